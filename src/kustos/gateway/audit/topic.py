"""Audit events as records of a topic upstream: the key is the principal, the value the event's line.

The sink produces with acks=all. The events of a principal go to one partition in the order of their
decisions, the partition that Kafka's own producer chooses for the key. The key of a failed login is empty.
The sink sends unacknowledged events again, so a consumer may see an event twice, with the same `event_id`. It
sends a batch that is too large for the topic in smaller pieces.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from kustos.authorizer.audit import AuditFormat, cut, formatter, visible
from kustos.client import NONE, ClientError, KafkaConnection, KafkaError, NodeAddress, ProtocolViolationError
from kustos.gateway.audit.batches import EventBatch, EventRecord, batches_of
from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.events import text_lines
from kustos.wire import ApiKey, Message, MessageCodec

ATTEMPTS: Final = 5
"""Attempts in a row without progress before the sink reports a failure."""

FIRST_BACKOFF_S: Final = 0.1
PRODUCE_VERSIONS: Final = (9, 12)
"""Flexible versions that name topics; from version 13 on requests have topic ids."""
METADATA_VERSIONS: Final = (4, 12)

RETRIABLE: Final = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "THROTTLING_QUOTA_EXCEEDED",
    }
)
"""Errors that end by themselves or with newer metadata; any other error fails the sink at once."""

TOO_LARGE: Final = frozenset({"MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"})
"""Errors of a batch that is larger than `max.message.bytes` or a whole segment of the topic."""

HEADERS: Final = {
    AuditFormat.CLOUDEVENTS: ((b"content-type", AuditFormat.CLOUDEVENTS.content_type.encode()),),
}
"""Headers of records by format; CloudEvents need one for structured mode (1.0.2, Kafka binding)."""

LOG: Final = structlog.get_logger("kustos.audit")

Connect = Callable[[NodeAddress], Awaitable[KafkaConnection]]
Batches = dict[int, deque[EventBatch]]


class KafkaTopicSink:
    """Produces to one topic. `connect` opens an authenticated connection, or raises `ClientError`."""

    name = "kafka"

    def __init__(
        self,
        topic: str,
        bootstrap: Sequence[NodeAddress],
        connect: Connect,
        timeout_ms: int = 30_000,
        line_format: AuditFormat = AuditFormat.KUSTOS,
    ) -> None:
        self._format: Final = line_format
        self.shortened_events = 0
        self._topic: Final = topic
        self._bootstrap: Final = tuple(bootstrap)
        self._connect: Final = connect
        self._timeout_ms: Final = timeout_ms
        self._links: dict[NodeAddress, KafkaConnection] = {}
        self._brokers: tuple[NodeAddress, ...] = ()
        self._leaders: dict[int, NodeAddress] = {}

    async def open(self) -> None:
        """Look up the leaders of the topic's partitions; raise `AuditSinkError`."""
        await self._persist({})

    async def write(self, lines: bytes) -> None:
        """Return when the cluster has acknowledged all events; raise `AuditSinkError` if some may be
        missing."""
        await self.open()
        count = max(self._leaders) + 1
        await self._persist(await asyncio.to_thread(self._batches, lines, count))

    async def close(self) -> None:
        """Close the connections."""
        self._forget()

    def _batches(self, lines: bytes, partition_count: int) -> Batches:
        """Return the encoded record batches of each partition, in order."""
        records: dict[int, list[EventRecord]] = {}
        in_format = formatter(self._format)
        partitions: dict[str, int] = {}
        for line in text_lines(lines):
            event = json.loads(line)
            key = _key_of(event)
            if key not in partitions:
                partitions[key] = partition_of(key.encode(), partition_count)
            record = EventRecord.of(key, in_format(line, event), event["time_ms"])
            records.setdefault(partitions[key], []).append(record)
        headers = HEADERS.get(self._format, ())
        return {partition: deque(batches_of(items, headers)) for partition, items in records.items()}

    async def _persist(self, batches: Batches) -> None:
        """Send until everything is acknowledged; look up the leaders if they are unknown."""
        attempts, backoff_s = 0, FIRST_BACKOFF_S
        while batches or not self._leaders:
            left = _count(batches)
            try:
                if not self._leaders:
                    await self._find_leaders()
                await self._send_round(batches)
                continue
            except KafkaError as error:
                if error.name not in RETRIABLE:
                    raise self._failure(error) from error
                reason: ClientError = error
            except ClientError as error:
                reason = error
            self._forget()
            attempts = 0 if _count(batches) < left else attempts + 1
            if attempts >= ATTEMPTS:
                raise self._failure(reason) from reason
            await asyncio.sleep(backoff_s)
            backoff_s *= 2 if attempts else 1

    async def _send_round(self, batches: Batches) -> None:
        """Send the first batch of each partition; remove the acknowledged ones, raise the first error."""
        by_leader: dict[NodeAddress, list[int]] = {}
        for partition in batches:
            leader = self._leaders.get(partition)
            if leader is None:
                raise KafkaError(_LEADER_NOT_AVAILABLE, f"partition {partition} has no leader")
            by_leader.setdefault(leader, []).append(partition)
        before = _firsts(batches)
        results = await asyncio.gather(
            *(self._produce(leader, partitions, batches) for leader, partitions in by_leader.items()),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if batches and _firsts(batches) == before:
            raise ProtocolViolationError("the answer to Produce has none of its partitions")

    async def _produce(self, leader: NodeAddress, partitions: list[int], batches: Batches) -> None:
        link = await self._link(leader)

        def build(codec: MessageCodec) -> Message:
            partition_data = codec.struct("PartitionProduceData")
            topic = codec.struct("TopicProduceData")(
                name=self._topic,
                partition_data=[partition_data(index=n, records=batches[n][0].encoded) for n in partitions],
            )
            return codec.new(transactional_id=None, acks=-1, timeout=self._timeout_ms, topic_data=[topic])

        floor, cap = PRODUCE_VERSIONS
        answer = await link.request(ApiKey.PRODUCE, build, cap=cap, floor=floor)
        failed: KafkaError | None = None
        for topic in answer.responses:
            for partition in topic.partition_responses:
                waiting = batches[partition.index]
                if partition.error_code != NONE:
                    error = KafkaError(partition.error_code, partition.error_message)
                    if not (error.name in TOO_LARGE and _split_first(waiting)):
                        failed = failed or error
                    continue
                self._acknowledged(waiting.popleft())
                if not waiting:
                    del batches[partition.index]
        if failed is not None:
            raise failed

    def _acknowledged(self, batch: EventBatch) -> None:
        shortened = batch.shortened_events
        if shortened:
            self.shortened_events += shortened
            LOG.warning("audit events were too large for their topic, long texts are cut", events=shortened)

    async def _find_leaders(self) -> None:
        """Query any broker for the leaders of the partitions; raise `ClientError`."""
        failure: ClientError | None = None
        for address in dict.fromkeys((*self._brokers, *self._bootstrap)):
            try:
                link = await self._link(address)
                floor, cap = METADATA_VERSIONS
                answer = await link.request(ApiKey.METADATA, self._question, cap=cap, floor=floor)
            except KafkaError:
                raise
            except ClientError as error:
                failure = error
                continue
            self._read_leaders(answer)
            return
        if failure is not None:
            raise failure

    def _question(self, codec: MessageCodec) -> Message:
        topic = codec.struct("MetadataRequestTopic")(name=self._topic)
        # an audit trail in a topic with default settings would be worse than an error
        return codec.new(topics=[topic], allow_auto_topic_creation=False)

    def _read_leaders(self, answer: Message) -> None:
        brokers = {broker.node_id: NodeAddress(broker.host, broker.port) for broker in answer.brokers}
        self._brokers = tuple(brokers.values())
        for topic in answer.topics:
            if topic.error_code != NONE:
                raise KafkaError(topic.error_code, f"topic `{self._topic}`; does it exist")
            self._leaders = {
                partition.partition_index: brokers[partition.leader_id]
                for partition in topic.partitions
                if partition.leader_id in brokers
            }
        if not self._leaders:
            raise KafkaError(_LEADER_NOT_AVAILABLE, f"topic `{self._topic}` has no leader")

    async def _link(self, address: NodeAddress) -> KafkaConnection:
        link = self._links.get(address)
        if link is None or not link.is_open:
            if link is not None:
                link.close()
            link = self._links[address] = await self._connect(address)
        return link

    def _forget(self) -> None:
        """Start over: connections and leaders may both be stale."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._leaders = {}

    def _failure(self, error: ClientError) -> AuditSinkError:
        self._forget()
        return AuditSinkError(
            f"cannot produce to topic `{self._topic}` upstream: {error}; create it, allow kustos to write, "
            "and let its `max.message.bytes` be 64 KiB at least"
        )


_LEADER_NOT_AVAILABLE: Final = 5


def _key_of(event: Mapping[str, Any]) -> str:
    """Return the principal of an event as a record's key; empty for an unauthenticated client.

    Long names are cut as in security events, so that all events of a principal have the same key. UTF-8
    cannot encode half a surrogate pair, which becomes an escape.
    """
    name = event["principal_name"]
    return "" if name is None else visible(f"{cut(event['principal_type'])}:{cut(name)}")


def _count(batches: Batches) -> int:
    return sum(len(batch.records) for waiting in batches.values() for batch in waiting)


def _firsts(batches: Batches) -> dict[int, EventBatch]:
    """Return the next batch of each partition."""
    return {partition: waiting[0] for partition, waiting in batches.items()}


def _split_first(waiting: deque[EventBatch]) -> bool:
    """Replace the first batch by smaller ones; return False if it cannot be smaller."""
    smaller = waiting[0].smaller()
    if smaller:
        waiting.popleft()
        waiting.extendleft(reversed(smaller))
    return bool(smaller)


_MASK: Final = 0xFFFF_FFFF
_M: Final = 0x5BD1_E995
_SEED: Final = 0x9747_B28C


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of Kafka's `Utils.murmur2`, as an unsigned number."""
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


def partition_of(key: bytes, partition_count: int) -> int:
    """Return the partition of a key, of `partition_count` partitions."""
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count
