"""Audit events as records of a topic upstream: key the principal, value the JSON line.

Written with acks=all. The events of a principal go to one partition, where Kafka's own producer would
put the key, in the order of their decisions. What is not acknowledged is sent again, so a consumer may
see an event twice, with the same `event_id`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from kustos.client import ClientError, KafkaConnection, KafkaError, NodeAddress, ProtocolViolationError
from kustos.client.errors import NONE
from kustos.gateway.audit_entries import AuditEntry, AuditEvents
from kustos.gateway.audit_json_lines import JsonLines
from kustos.gateway.audit_log import AuditSinkError
from kustos.gateway.partitioner import partition_of
from kustos.wire import Message, MessageCodec
from kustos.wire.api_keys import ApiKey
from kustos.wire.record_batch import Record, RecordBatch

BATCH_MAX_BYTES: Final = 512 * 1024
"""Of one record batch, below the default of `max.message.bytes` (1 MiB)."""

ATTEMPTS: Final = 5
"""Tries in a row without progress before the sink says that it cannot write."""

FIRST_BACKOFF_S: Final = 0.1
PRODUCE_VERSIONS: Final = (9, 12)
"""Flexible, and by topic name: from 13 on topics are named by ids."""
METADATA_VERSIONS: Final = (4, 12)
RECORD_OVERHEAD_BYTES: Final = 32

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
"""Errors that pass by themselves, or with newer metadata; any other fails the sink at once."""

Connect = Callable[[NodeAddress], Awaitable[KafkaConnection]]
Batches = dict[int, deque[bytes]]


class KafkaTopicSink:
    """Produces to one topic. `connect` opens an authenticated connection, or raises `ClientError`."""

    name = "kafka"

    def __init__(
        self,
        topic: str,
        events: AuditEvents,
        bootstrap: Sequence[NodeAddress],
        connect: Connect,
        timeout_ms: int = 30_000,
    ) -> None:
        self._topic: Final = topic
        self._events: Final = events
        self._bootstrap: Final = tuple(bootstrap)
        self._connect: Final = connect
        self._timeout_ms: Final = timeout_ms
        self._lines: Final = JsonLines(events.node_id)
        self._links: dict[NodeAddress, KafkaConnection] = {}
        self._brokers: tuple[NodeAddress, ...] = ()
        self._leaders: dict[int, NodeAddress] = {}

    async def open(self) -> None:
        """Learn who leads the topic's partitions; raise `AuditSinkError`."""
        await self._persist({})

    async def write(self, entries: Sequence[AuditEntry]) -> None:
        """Return when the cluster has acknowledged all; raise `AuditSinkError`, then some may be there."""
        await self.open()
        count = max(self._leaders) + 1
        await self._persist(await asyncio.to_thread(self._batches, entries, count))

    async def close(self) -> None:
        """Close the connections."""
        self._forget()

    def _batches(self, entries: Sequence[AuditEntry], partition_count: int) -> Batches:
        """Return the encoded record batches of each partition, in order."""
        records: dict[int, list[tuple[bytes, bytes, int]]] = {}
        for entry in entries:
            key = str(entry.context.principal).encode()
            of_partition = records.setdefault(partition_of(key, partition_count), [])
            of_partition.extend(
                (key, line.encode(), entry.time_ms) for line in self._events.json_lines(entry, self._lines)
            )
        return {partition: deque(_encoded(items)) for partition, items in records.items()}

    async def _persist(self, batches: Batches) -> None:
        """Send until everything is acknowledged; learn the leaders where they are not known."""
        attempts, backoff_s = 0, FIRST_BACKOFF_S
        while batches or not self._leaders:
            left = _count(batches)
            try:
                if not self._leaders:
                    await self._find_leaders()
                await self._send_round(batches)
                if batches and _count(batches) == left:
                    raise ProtocolViolationError("the answer to Produce is about none of its partitions")
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
        """Send the first batch of each partition; take away what was acknowledged, raise the first error."""
        by_leader: dict[NodeAddress, list[int]] = {}
        for partition in batches:
            leader = self._leaders.get(partition)
            if leader is None:
                raise KafkaError(_LEADER_NOT_AVAILABLE, f"partition {partition} has no leader")
            by_leader.setdefault(leader, []).append(partition)
        results = await asyncio.gather(
            *(self._produce(leader, partitions, batches) for leader, partitions in by_leader.items()),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _produce(self, leader: NodeAddress, partitions: list[int], batches: Batches) -> None:
        link = await self._link(leader)

        def build(codec: MessageCodec) -> Message:
            partition_data = codec.struct("PartitionProduceData")
            topic = codec.struct("TopicProduceData")(
                name=self._topic,
                partition_data=[partition_data(index=n, records=batches[n][0]) for n in partitions],
            )
            return codec.new(transactional_id=None, acks=-1, timeout=self._timeout_ms, topic_data=[topic])

        floor, cap = PRODUCE_VERSIONS
        answer = await link.request(ApiKey.PRODUCE, build, cap=cap, floor=floor)
        failed: KafkaError | None = None
        for topic in answer.responses:
            for partition in topic.partition_responses:
                if partition.error_code != NONE:
                    failed = failed or KafkaError(partition.error_code, partition.error_message)
                    continue
                batches[partition.index].popleft()
                if not batches[partition.index]:
                    del batches[partition.index]
        if failed is not None:
            raise failed

    async def _find_leaders(self) -> None:
        """Ask any broker who leads the partitions; raise `ClientError`."""
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
        # an audit trail in a topic with whatever defaults would be worse than none
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
        if link is None or not link.is_usable:
            if link is not None:
                link.close()
            link = self._links[address] = await self._connect(address)
        return link

    def _forget(self) -> None:
        """Begin anew: connections and leaders may both be stale."""
        for link in self._links.values():
            link.close()
        self._links.clear()
        self._leaders = {}

    def _failure(self, error: ClientError) -> AuditSinkError:
        self._forget()
        return AuditSinkError(
            f"cannot produce to topic `{self._topic}` upstream: {error}; create it, and allow kustos to write"
        )


_LEADER_NOT_AVAILABLE: Final = 5


def _count(batches: Batches) -> int:
    return sum(len(waiting) for waiting in batches.values())


def _encoded(items: Iterable[tuple[bytes, bytes, int]]) -> Iterable[bytes]:
    """Yield record batches of (key, value, time) that are each small enough to be accepted."""
    chunk: list[tuple[bytes, bytes, int]] = []
    size = 0
    for item in items:
        item_size = len(item[0]) + len(item[1]) + RECORD_OVERHEAD_BYTES
        if chunk and size + item_size > BATCH_MAX_BYTES:
            yield _batch(chunk).encode()
            chunk, size = [], 0
        chunk.append(item)
        size += item_size
    if chunk:
        yield _batch(chunk).encode()


def _batch(items: Sequence[tuple[bytes, bytes, int]]) -> RecordBatch:
    base_ms = items[0][2]
    return RecordBatch(
        0,
        -1,
        tuple(
            Record(delta, value, key, timestamp_delta_ms=time_ms - base_ms)
            for delta, (key, value, time_ms) in enumerate(items)
        ),
        last_offset_delta=len(items) - 1,
        base_timestamp_ms=base_ms,
        max_timestamp_ms=max(time_ms for _, _, time_ms in items),
    )
