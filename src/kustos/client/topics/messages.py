"""The requests that read a topic, and what their answers say: Metadata, ListOffsets and Fetch, no IO.

Versions: Metadata from 4, which can forbid to create the topic; ListOffsets from 2 and Fetch from 4, which
know transactions (KIP-98). Fetch names the topic by its id from 13 on (KIP-516), by its name until 12.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from kustos.client.errors import ClientError, KafkaError, ProtocolViolationError
from kustos.client.settings import NodeAddress
from kustos.client.topics.limits import FetchLimits
from kustos.wire import ZERO_UUID, Message, MessageCodec, uuid_of_text, uuid_text

METADATA_VERSIONS: Final = (4, 12)
LIST_OFFSETS_FLOOR: Final = 2
FETCH_FLOOR: Final = 4
LAST_FETCH_BY_NAME: Final = 12

EARLIEST: Final = -2
LATEST: Final = -1
"""ListOffsets' times for the first offset that is left, and for the end."""

_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
"""The replica id of who is no replica."""
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
"""Errors that pass by themselves or with another leader."""

MAYBE_MOVED: Final = MOVED | {
    UNKNOWN_TOPIC_OR_PARTITION,
    UNKNOWN_TOPIC_ID,
    int(ErrorCode.inconsistent_topic_id),
}
"""Errors of a partition's leader that a fresh look at the metadata explains: a broker answers so, too, when
it does not lead the partition yet."""


class StaleError(Exception):
    """A try failed in a way that a fresh look at the metadata may heal; `reason` says how."""

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
    """What a fetch brought of a partition.

    `records` are whole batches, the last of which may be cut short; empty where there were none in time.
    `aborted` are the aborted transactions among them. `log_start_offset` is -1 before Kafka 1.0.
    """

    records: bytes = field(repr=False)
    aborted: tuple[AbortedTransaction, ...]
    log_start_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a partition; `epoch` is -1 where brokers have none (before KIP-320)."""

    address: NodeAddress
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicLayout:
    """A topic and its leaders at one moment; a partition without one is missing in `leaders`."""

    topic: str
    description: TopicDescription
    leaders: Mapping[int, Leader]
    nodes: tuple[NodeAddress, ...]

    def leader(self, partition: int) -> Leader:
        """Return who leads a partition; raise `StaleError` if nobody does.

        One that was just added is known to the broker that was asked a moment later.
        """
        found = self.leaders.get(partition)
        if found is not None:
            return found
        is_known = partition in self.description.partitions
        code = LEADER_NOT_AVAILABLE if is_known else UNKNOWN_TOPIC_OR_PARTITION
        raise StaleError(KafkaError(code, f"topic `{self.topic}`, partition {partition}"))


def metadata_request(codec: MessageCodec, topic: str) -> Message:
    """Return the question for one topic, which must not make it."""
    asked = codec.struct("MetadataRequestTopic").fit(name=topic)
    return codec.root.fit(topics=[asked], allow_auto_topic_creation=False)


def read_layout(answer: Message, topic: str) -> TopicLayout:
    """Return what Metadata says of the topic; raise its `KafkaError`, or `StaleError` for what may pass."""
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
    """Return the question for the offsets of some partitions of one leader at `EARLIEST` or `LATEST`."""
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
    """Return the question for the committed records of one partition from an offset on."""
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
    """Return how long a fetch is put off by a quota, 0 if it is not.

    A broker answers what exceeds one at once, without any partition, and then reads no request for so long
    (KIP-219).
    """
    is_empty = not answer.responses and not answer.get("error_code", 0)
    return int(answer.throttle_time) if is_empty else 0


def read_fetched(answer: Message, partition: int) -> tuple[int, Fetched]:
    """Return (error code, what was fetched); raise `ProtocolViolationError` for other partitions."""
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
