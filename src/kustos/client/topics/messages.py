"""The requests that read a topic and the parsing of their answers, without IO: Metadata, ListOffsets and
Fetch.

Versions: Metadata from 4, which can disable auto-creation of the topic; ListOffsets from 2 and Fetch from 4,
which support transactions (KIP-98). Fetch uses the id of the topic from 13 on (KIP-516), its name until 12.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kustos.client.errors import ClientError, KafkaError, ProtocolViolationError
from kustos.client.settings import NodeAddress
from kustos.client.topics.limits import FetchLimits
from kustos.wire import ZERO_UUID, ErrorCode, Message, MessageCodec, uuid_of_text, uuid_text

METADATA_VERSIONS: Final = (4, 12)
LIST_OFFSETS_FLOOR: Final = 2
FETCH_FLOOR: Final = 4
LAST_FETCH_BY_NAME: Final = 12

EARLIEST: Final = -2
LATEST: Final = -1
"""The special timestamps of ListOffsets for the first available offset and for the end."""

_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
"""The replica id of a consumer."""
_NO_SESSION: Final = {"session_id": 0, "session_epoch": -1}
"""A fetch that is complete in itself (KIP-227)."""

UNKNOWN_TOPIC_OR_PARTITION: Final = int(ErrorCode.unknown_topic_or_partition)
UNKNOWN_TOPIC_ID: Final = int(ErrorCode.unknown_topic_id)
LEADER_NOT_AVAILABLE: Final = int(ErrorCode.leader_not_available)

MOVED: Final = frozenset(
    int(code)
    for code in (
        ErrorCode.leader_not_available,
        ErrorCode.not_leader_or_follower,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.replica_not_available,
        ErrorCode.offset_not_available,
        ErrorCode.kafka_storage_error,
        ErrorCode.request_timed_out,
        ErrorCode.network_exception,
        ErrorCode.unknown_server_error,
    )
)
"""Temporary errors, and errors that another leader does not have."""

MAYBE_MOVED: Final = MOVED | {
    UNKNOWN_TOPIC_OR_PARTITION,
    UNKNOWN_TOPIC_ID,
    int(ErrorCode.inconsistent_topic_id),
}
"""Errors of a partition's leader after which the metadata is looked up again: a broker also answers with
these when it is not the leader yet."""


class StaleError(Exception):
    """An attempt failed, but may succeed after a new look-up of the metadata; `reason` describes the
    failure."""

    def __init__(self, reason: ClientError) -> None:
        super().__init__(str(reason))
        self.reason: Final = reason


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic of a cluster; the ids as Kafka writes them, `topic_id` None before Kafka 2.8 (KIP-516)."""

    cluster_id: str | None
    topic_id: str | None
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A producer whose records from an offset on, until its next abort marker, never happened (KIP-98)."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer of a fetch for one partition.

    `records` are complete batches, except that the last one may be truncated; empty if there were none in
    time. `aborted` are the aborted transactions among them. `log_start_offset` is -1 before Kafka 1.0.
    """

    records: bytes = field(repr=False)
    aborted: tuple[AbortedTransaction, ...]
    log_start_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a partition; `epoch` is -1 for brokers before KIP-320."""

    address: NodeAddress
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """A topic and its leaders; a partition without a leader is missing in `leaders`."""

    topic: str
    description: TopicDescription
    leaders: Mapping[int, Leader]
    nodes: tuple[NodeAddress, ...]

    def leader(self, partition: int) -> Leader:
        """Return the leader of a partition; raise `StaleError` if there is none.

        A broker learns of a new partition after a moment.
        """
        found = self.leaders.get(partition)
        if found is not None:
            return found
        is_known = partition in self.description.partitions
        code = LEADER_NOT_AVAILABLE if is_known else UNKNOWN_TOPIC_OR_PARTITION
        raise StaleError(KafkaError(code, f"topic `{self.topic}`, partition {partition}"))


def metadata_request(codec: MessageCodec, topic: str) -> Message:
    """Return the Metadata request for one topic, without auto-creation."""
    asked = codec.struct("MetadataRequestTopic").fit(name=topic)
    return codec.root.fit(topics=[asked], allow_auto_topic_creation=False)


def read_layout(answer: Message, topic: str) -> TopicLayout:
    """Return the layout in a Metadata answer; raise the topic's `KafkaError`, or `StaleError` for temporary
    errors."""
    found = next((each for each in answer.topics if each.name == topic), None)
    if found is None:
        raise ProtocolViolationError(f"a broker left topic `{topic}` out of its metadata")
    if found.error_code:
        error = KafkaError(found.error_code, f"topic `{topic}`")
        raise StaleError(error) if error.code in MOVED else error
    nodes = {node.node_id: NodeAddress(node.host, node.port) for node in answer.brokers}
    leaders = {
        each.partition_index: Leader(nodes[each.leader_id], each.get("leader_epoch", -1))
        for each in found.partitions
        if each.leader_id in nodes
    }
    topic_id = found.get("topic_id", ZERO_UUID)
    description = TopicDescription(
        answer.cluster_id,
        None if topic_id == ZERO_UUID else uuid_text(UUID(bytes=topic_id)),
        tuple(sorted(each.partition_index for each in found.partitions)),
    )
    return TopicLayout(topic, description, leaders, tuple(nodes.values()))


def list_offsets_request(
    codec: MessageCodec, layout: TopicLayout, asked: Iterable[int], time: int
) -> Message:
    """Return the ListOffsets request for partitions of one leader at `EARLIEST` or `LATEST`."""
    partition = codec.struct("ListOffsetsPartition").fit
    partitions = [
        partition(partition_index=number, current_leader_epoch=layout.leaders[number].epoch, timestamp=time)
        for number in asked
    ]
    topic = codec.struct("ListOffsetsTopic")(name=layout.topic, partitions=partitions)
    return codec.root.fit(replica_id=_CONSUMER, isolation_level=_READ_COMMITTED, topics=[topic])


def read_offsets(answer: Message) -> Iterator[tuple[int, int, int]]:
    """Yield (partition, error code, offset) of ListOffsets."""
    for topic in answer.topics:
        for each in topic.partitions:
            yield each.partition_index, each.error_code, each.offset


def fetch_request(
    codec: MessageCodec,
    layout: TopicLayout,
    topic_id: str | None,
    partition: int,
    offset: int,
    limits: FetchLimits,
) -> Message:
    """Return the Fetch request for committed records of one partition from an offset on."""
    asked = codec.struct("FetchPartition").fit(
        partition=partition,
        current_leader_epoch=layout.leaders[partition].epoch,
        fetch_offset=offset,
        partition_max_bytes=limits.partition_max_bytes,
    )
    topic = codec.struct("FetchTopic").fit(
        topic=layout.topic,
        topic_id=ZERO_UUID if topic_id is None else uuid_of_text(topic_id).bytes,
        partitions=[asked],
    )
    return codec.root.fit(
        replica_id=_CONSUMER,
        max_wait=limits.max_wait_ms,
        min_bytes=1,
        max_bytes=limits.max_bytes,
        isolation_level=_READ_COMMITTED,
        topics=[topic],
        **_NO_SESSION,
    )


def throttle_ms_of(answer: Message) -> int:
    """Return the throttle time of a fetch, 0 if it is not throttled.

    If a request exceeds a quota, a broker answers at once without partitions, and reads no request for this
    time (KIP-219).
    """
    is_empty = not answer.responses and not answer.get("error_code", 0)
    return int(answer.throttle_time) if is_empty else 0


def read_fetched(answer: Message, partition: int) -> tuple[int, Fetched]:
    """Return (error code, fetched records); raise `ProtocolViolationError` for other partitions."""
    whole_error = answer.get("error_code", 0)
    found = [each for topic in answer.responses for each in topic.partitions]
    if whole_error and not found:
        return whole_error, Fetched(b"", (), -1, -1)
    if len(found) != 1 or found[0].partition_index != partition:
        raise ProtocolViolationError(f"a broker answered a fetch of partition {partition} with others")
    data = found[0]
    aborted = tuple(
        AbortedTransaction(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
    )
    return whole_error or data.error_code, Fetched(
        data.records or b"", aborted, data.get("log_start_offset", -1), data.last_stable_offset
    )
