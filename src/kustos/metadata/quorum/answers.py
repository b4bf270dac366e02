"""Fetch and FetchSnapshot of the metadata log: builds requests, parses answers.

An answer is accepted only in the form of Kafka's controllers (KIP-595, KIP-630, KIP-853): one topic, one
partition, whole batches with valid checksums. Anything else is a `ForeignAnswerError`, and the whole answer
is discarded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Final

from kustos.metadata.log import SnapshotId
from kustos.metadata.log.layout import METADATA_TOPIC_ID
from kustos.metadata.quorum.values import UNKNOWN, Address, FetchedBatch, ForeignAnswerError
from kustos.wire import LENGTH_END, CorruptBatchError, ErrorCode, Message, MessageCodec, read_batch

METADATA_TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = METADATA_TOPIC_ID.bytes

FETCH_VERSIONS: Final = (17, 18)
"""17 has the leader's address in a refusal (KIP-853), 18 has our high watermark (KIP-1166)."""
FETCH_SNAPSHOT_VERSION: Final = 1
"""The first version with the leader's address."""

FETCH_MAX_BYTES: Final = 1024 * 1024
"""Kafka's own followers request 8 MB; this much fits through a slow link within the timeout of an answer."""

SNAPSHOT_MAX_BYTES: Final = 2**31 - 1
"""A snapshot of ten million ACLs is smaller; a larger one would not fit into memory."""

ANONYMOUS_REPLICA: Final = -1
"""A fetch with a replica id counts as that replica; with a voter's id it would move the high watermark, and
any id of ours might be a controller's."""

LEADERLESS: Final = -1


@unique
class Event(Enum):
    """The meaning of an answer, or of its absence."""

    RECORDS = "records"
    DIVERGED = "diverging epoch"
    SNAPSHOT = "snapshot named"
    CHUNK = "chunk of the snapshot"
    WHOLE = "last chunk"
    LEADER = "another leader named"
    NO_LEADER = "no leader known"
    AGAIN = "any other error"
    REFUSED = "not authorized"
    FOREIGN = "another cluster"
    LOST = "no answer"


_BY_ERROR: Final[Mapping[int, Event]] = {
    ErrorCode.not_leader_or_follower.value: Event.LEADER,
    ErrorCode.fenced_leader_epoch.value: Event.LEADER,
    ErrorCode.unknown_leader_epoch.value: Event.NO_LEADER,
    ErrorCode.inconsistent_cluster_id.value: Event.FOREIGN,
    ErrorCode.cluster_authorization_failed.value: Event.REFUSED,
    ErrorCode.topic_authorization_failed.value: Event.REFUSED,
}
"""Errors that mean more than "try again". 4.3.1 reports a wrong position, snapshot or epoch of a
FetchSnapshot as UNKNOWN_SERVER_ERROR, where KIP-630 has specific codes: all of them restart it."""


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The last epoch and end offset on which the leader's log agrees."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class ControllerAnswer:
    """A parsed answer of a controller. Of the last fields, only the fields of the event are set."""

    event: Event
    error: int = 0
    epoch: int = UNKNOWN
    leader: Address | None = None
    high_watermark: int = UNKNOWN
    batches: tuple[FetchedBatch, ...] = ()
    diverging: EpochEnd | None = None
    snapshot_id: SnapshotId | None = None
    position: int = 0
    size_bytes: int = 0
    chunk: bytes = b""


def fetch_request(
    codec: MessageCodec,
    cluster_id: str | None,
    epoch: int,
    offset: int,
    last_epoch: int,
    high_watermark: int,
    max_wait_ms: int,
) -> Message:
    """Return a Fetch of the metadata log from `offset` on; `last_epoch` is the epoch of the batch before
    it."""
    topic = codec.struct("FetchTopic")
    partition = codec.struct("FetchPartition").fit(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=UNKNOWN,
        partition_max_bytes=FETCH_MAX_BYTES,
        high_watermark=high_watermark,
    )
    return codec.root.fit(
        cluster_id=cluster_id,
        max_wait=max_wait_ms,
        min_bytes=0,
        max_bytes=FETCH_MAX_BYTES,
        session_epoch=UNKNOWN,
        topics=[topic(topic_id=TOPIC_ID, partitions=[partition])],
    )


def fetch_snapshot_request(
    codec: MessageCodec, cluster_id: str | None, epoch: int, snapshot_id: SnapshotId, position: int
) -> Message:
    """Return a FetchSnapshot for the bytes of the file from `position` on."""
    of_snapshot = codec.struct("SnapshotId")(end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch)
    partition = codec.struct("PartitionSnapshot")(
        partition=0, current_leader_epoch=epoch, snapshot_id=of_snapshot, position=position
    )
    topic = codec.struct("TopicSnapshot")(name=METADATA_TOPIC, partitions=[partition])
    return codec.root(
        cluster_id=cluster_id, replica_id=ANONYMOUS_REPLICA, max_bytes=FETCH_MAX_BYTES, topics=[topic]
    )


def read_fetch(answer: Message) -> ControllerAnswer:
    """Parse the answer to a Fetch; raise `ForeignAnswerError`."""
    if answer.error_code:
        return _failed(answer.error_code, None, answer)
    topic = _only(answer.responses, "topic")
    if topic.topic_id != TOPIC_ID:
        raise ForeignAnswerError("the answer to a Fetch is about another topic")
    partition = _only(topic.partitions, "partition")
    _require_partition(partition.partition_index)
    if partition.error_code:
        return _failed(partition.error_code, partition, answer)
    epoch = partition.current_leader.leader_epoch
    high_watermark = partition.high_watermark
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    if high_watermark < UNKNOWN:
        raise ForeignAnswerError(f"the high watermark is {high_watermark}")
    if snapshot.end_offset >= 0:
        named = _snapshot_id(snapshot)
        return ControllerAnswer(Event.SNAPSHOT, epoch=epoch, high_watermark=high_watermark, snapshot_id=named)
    if diverging.epoch >= 0 or diverging.end_offset >= 0:
        if diverging.epoch < 0 or diverging.end_offset < 0:
            raise ForeignAnswerError("a diverging epoch lacks its number or its end")
        end = EpochEnd(diverging.epoch, diverging.end_offset)
        return ControllerAnswer(Event.DIVERGED, epoch=epoch, high_watermark=high_watermark, diverging=end)
    batches = read_batches(partition.records or b"")
    return ControllerAnswer(Event.RECORDS, epoch=epoch, high_watermark=high_watermark, batches=batches)


def read_fetch_snapshot(answer: Message) -> ControllerAnswer:
    """Parse the answer to a FetchSnapshot; raise `ForeignAnswerError`."""
    if answer.error_code:
        return _failed(answer.error_code, None, answer)
    topic = _only(answer.topics, "topic")
    if topic.name != METADATA_TOPIC:
        raise ForeignAnswerError(f"the answer to a FetchSnapshot is about the topic `{topic.name}`")
    partition = _only(topic.partitions, "partition")
    _require_partition(partition.index)
    if partition.error_code:
        return _failed(partition.error_code, partition, answer)
    chunk, position, size = partition.unaligned_records, partition.position, partition.size
    if not 0 < size <= SNAPSHOT_MAX_BYTES:
        raise ForeignAnswerError(
            f"a snapshot of {size} bytes is offered, up to {SNAPSHOT_MAX_BYTES} are taken"
        )
    if not chunk or position < 0 or position + len(chunk) > size:
        raise ForeignAnswerError(
            f"{len(chunk)} bytes at {position} are not part of a snapshot of {size} bytes"
        )
    return ControllerAnswer(
        Event.WHOLE if position + len(chunk) == size else Event.CHUNK,
        epoch=partition.current_leader.leader_epoch,
        snapshot_id=_snapshot_id(partition.snapshot_id),
        position=position,
        size_bytes=size,
        chunk=chunk,
    )


def read_batches(data: bytes) -> tuple[FetchedBatch, ...]:
    """Return the whole batches; a last one truncated by the size limit is left for the next fetch."""
    found: list[FetchedBatch] = []
    position = 0
    while position < len(data):
        if found and _is_cut_off(data, position):
            break
        try:
            batch, end = read_batch(data, position)
        except CorruptBatchError as error:
            raise ForeignAnswerError(f"byte {position} of what was fetched: {error}") from error
        found.append(FetchedBatch(batch, data[position:end]))
        position = end
    return tuple(found)


def _is_cut_off(data: bytes, position: int) -> bool:
    left = len(data) - position
    if left < LENGTH_END:
        return True
    length = int.from_bytes(data[position + 8 : position + LENGTH_END], "big", signed=True)
    return length > 0 and LENGTH_END + length > left


def _only(items: list[Message], what: str) -> Message:
    if len(items) != 1:
        raise ForeignAnswerError(f"the answer has {len(items)} {what}s where one is expected")
    return items[0]


def _require_partition(index: int) -> None:
    if index != 0:
        raise ForeignAnswerError(f"the answer is about partition {index}")


def _snapshot_id(answered_id: Message) -> SnapshotId:
    if answered_id.end_offset < 0 or answered_id.epoch < 0:
        raise ForeignAnswerError(f"no snapshot has the id {answered_id.end_offset}-{answered_id.epoch}")
    return SnapshotId(answered_id.end_offset, answered_id.epoch)


def _failed(error: int, partition: Message | None, answer: Message) -> ControllerAnswer:
    event = _BY_ERROR.get(error, Event.AGAIN)
    if partition is None:
        return ControllerAnswer(Event.NO_LEADER if event is Event.LEADER else event, error)
    epoch, leader = partition.current_leader.leader_epoch, None
    if partition.current_leader.leader_id != LEADERLESS:
        for endpoint in answer.node_endpoints:
            if endpoint.node_id == partition.current_leader.leader_id:
                leader = Address(endpoint.host, endpoint.port)
    if event is Event.LEADER and leader is None:
        event = Event.NO_LEADER
    return ControllerAnswer(event, error, epoch, leader if event is Event.LEADER else None)
