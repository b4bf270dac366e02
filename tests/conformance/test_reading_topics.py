"""Topics of a real Kafka as our reader reads them: what other clients read, and never what they do not."""

import asyncio
import itertools
import uuid

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from kustos.client import ClientSettings, KafkaError, RequestTimedOutError
from kustos.client.topics import FetchLimits, TopicReader
from kustos.wire import batch_headers, offset_after
from testkit.kafka import KafkaNode, NodeFactory, NodeSettings, make_topics
from testkit.waiting import wait_until
from tests.conformance.topic_records import Row, consumed, make_topic, new_topic, produce, read

RECORDS = 2000
VALUES = [None if number % 11 == 0 else b"%d," % number * (number % 60) for number in range(RECORDS)]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def settings_of(node: KafkaNode) -> ClientSettings:
    return ClientSettings.from_properties(node.bootstrap, {})


def reader_of(node: KafkaNode, topic: str, **limits: int) -> TopicReader:
    return TopicReader(settings_of(node), topic, FetchLimits(**limits))


def transactional(node: KafkaNode, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    return producer


def in_transaction(producer: Producer, topic: str, values: list[bytes]) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


async def test_a_topic_is_described_and_its_partitions_have_ends(kafka: KafkaNode) -> None:
    topic = make_topic(kafka, partitions=2)
    produce(kafka.internal_client, topic, VALUES, partition=1)
    async with reader_of(kafka, topic) as reader:
        described = await reader.describe()
        assert described.cluster_id == kafka.cluster_id
        assert described.topic_id is not None
        assert described.partitions == (0, 1)
        assert await reader.first_offsets([0, 1]) == {0: 0, 1: 0}
        assert await reader.end_offsets([1, 0]) == {0: 0, 1: RECORDS}
        assert await reader.end_offsets([]) == {}


# aiokafka has the other codecs only with cramjam, which nothing else here needs
@pytest.mark.parametrize(
    ("writer", "codec"),
    [
        *itertools.product(("librdkafka", "broker"), CODECS),
        *itertools.product(("aiokafka",), ("none", "gzip")),
    ],
)
async def test_what_a_client_writes_is_read_as_another_client_reads_it(
    kafka: KafkaNode, writer: str, codec: str
) -> None:
    if writer == "librdkafka":
        topic = make_topic(kafka)
        produce(kafka.internal_client, topic, VALUES, compression_type=codec)
    elif writer == "broker":
        # it is a broker in Java that compresses: snappy has blocks, zstd no size at its head
        topic = make_topic(kafka, compression_type="uncompressed" if codec == "none" else codec)
        produce(kafka.internal_client, topic, VALUES)
    else:
        topic = make_topic(kafka)
        producer = AIOKafkaProducer(
            bootstrap_servers=kafka.bootstrap, compression_type=None if codec == "none" else codec
        )
        async with producer:
            for value in VALUES:
                await producer.send(topic, value, key=b"key", partition=0)
    expected = consumed(kafka.internal_client, topic)
    assert [value for _, value in expected] == VALUES
    async with reader_of(kafka, topic, partition_max_bytes=10_000) as reader:
        assert await read(reader) == expected


async def test_the_next_fetch_begins_before_the_last_one_is_decoded(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    produce(kafka.internal_client, topic, VALUES)
    parts: list[bytes] = []
    offset = 0
    async with reader_of(kafka, topic, partition_max_bytes=5000) as reader:
        coming = asyncio.ensure_future(reader.fetch(0, 0))
        while offset < RECORDS:
            fetched = await coming
            offset = offset_after(fetched.records, offset)
            if offset < RECORDS:
                coming = asyncio.ensure_future(reader.fetch(0, offset))
            parts.append(fetched.records)
    assert len(parts) > 5
    headers = [header for part in parts for header in batch_headers(part[: whole_end(part)])]
    assert sum(header.record_count for header in headers) == RECORDS


def whole_end(records: bytes) -> int:
    """Return where the last whole batch ends, by the lengths alone."""
    position = 0
    while len(records) - position >= 12:
        end = position + 12 + int.from_bytes(records[position + 8 : position + 12], "big")
        if end > len(records):
            break
        position = end
    return position


async def test_the_offset_after_a_fetch_is_after_its_last_whole_batch(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    produce(kafka.internal_client, topic, VALUES)
    async with reader_of(kafka, topic) as reader:
        records = (await reader.fetch(0, 0)).records
    headers = list(batch_headers(records))
    ends = [sum(each.size_bytes for each in headers[: n + 1]) for n in range(len(headers))]
    assert offset_after(records, 0) == RECORDS
    for header, end in zip(headers, ends, strict=True):
        assert offset_after(records[:end], 0) == header.base_offset + header.last_offset_delta + 1
        assert offset_after(records[: end - 1], 7) == max(7, header.base_offset)


async def test_a_batch_that_is_larger_than_every_limit_comes_whole(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    produce(kafka.internal_client, topic, [b"x" * 500_000] * 3)
    async with reader_of(kafka, topic, partition_max_bytes=1, max_bytes=1) as reader:
        assert await read(reader) == [(number, b"x" * 500_000) for number in range(3)]


async def test_what_a_transaction_aborted_never_happened_and_an_open_one_has_not_yet(
    kafka: KafkaNode,
) -> None:
    topic = make_topic(kafka)
    one, two = (transactional(kafka, f"{topic}-{number}") for number in (1, 2))
    in_transaction(one, topic, [b"gone"] * 20)
    in_transaction(two, topic, [b"kept by two"] * 5)
    one.abort_transaction(60)
    in_transaction(one, topic, [b"kept by one"] * 5)
    two.commit_transaction(60)
    one.commit_transaction(60)
    in_transaction(one, topic, [b"gone too"] * 5)
    one.abort_transaction(60)
    produce(kafka.internal_client, topic, [b"plain"] * 5)
    in_transaction(two, topic, [b"open"] * 5)
    produce(kafka.internal_client, topic, [b"after the open one"])
    expected = consumed(kafka.internal_client, topic)
    assert {value for _, value in expected} == {b"kept by two", b"kept by one", b"plain"}
    async with reader_of(kafka, topic, partition_max_bytes=300, max_wait_ms=10) as reader:
        assert await read(reader) == expected
        stable = (await reader.end_offsets([0]))[0]
        beyond = await reader.fetch(0, stable)
        assert (beyond.records, beyond.last_stable_offset) == (b"", stable)
        two.abort_transaction(60)
        wait_until(lambda: len(consumed(kafka.internal_client, topic)) > len(expected), what="it ended")
        assert (await read(reader))[len(expected) :] == consumed(kafka.internal_client, topic)[
            len(expected) :
        ]


def test_the_holes_of_a_compacted_topic_are_passed(kafka_node: NodeFactory) -> None:
    node = kafka_node(NodeSettings(properties={"log.cleaner.backoff.ms": "100"}))
    topic = make_topic(
        node, cleanup_policy="compact", segment_ms="50", min_cleanable_dirty_ratio="0.01",
        min_compaction_lag_ms="0",
    )  # fmt: skip
    # every value but the last of each key goes
    for round_ in range(10):
        produce(node.internal_client, topic, [b"%d" % round_] * 40, is_compacted=True)

    async def rows() -> list[Row]:
        async with reader_of(node, topic, max_wait_ms=10) as reader:
            return await read(reader)

    def compacted() -> list[Row]:
        # a segment is rolled by the next record, and only those before the last are compacted
        produce(node.internal_client, topic, [b"more"], is_compacted=True)
        return asyncio.run(rows())

    wait_until(compacted, holds=lambda found: len(found) < found[-1][0] - 100, what="it was compacted")
    before = consumed(node.internal_client, topic)
    found = asyncio.run(rows())
    after = consumed(node.internal_client, topic)
    # the cleaner may go on in between, but only takes away
    assert set(after) <= set(found) <= set(before)
    assert found == sorted(found)


async def test_records_that_were_deleted_are_out_of_range(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    produce(kafka.internal_client, topic, VALUES)
    admin = AdminClient(kafka.internal_client)
    for deleted in admin.delete_records([TopicPartition(topic, 0, 70)]).values():
        deleted.result(60)
    async with reader_of(kafka, topic) as reader:
        assert await reader.first_offsets([0]) == {0: 70}
        assert (await reader.fetch(0, 70)).log_start_offset == 70
        for offset in (69, RECORDS + 1):
            with pytest.raises(KafkaError, match=f"topic `{topic}`, partition 0, offset {offset}") as raised:
                await reader.fetch(0, offset)
            assert raised.value.name == "OFFSET_OUT_OF_RANGE"


async def test_a_topic_that_was_recreated_is_never_read_as_the_former(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    produce(kafka.internal_client, topic, VALUES)
    async with reader_of(kafka, topic) as reader:
        former = await reader.describe()
        await reader.fetch(0, 0)
        admin = AdminClient(kafka.internal_client)
        admin.delete_topics([topic])[topic].result(60)
        wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, what="the topic is gone")
        with pytest.raises(KafkaError) as raised:
            await reader.fetch(0, 0)
        assert raised.value.name == "UNKNOWN_TOPIC_OR_PARTITION"
        make_topics([kafka], new_topic(topic))
        produce(kafka.internal_client, topic, [b"of another"] * RECORDS)
        for ask in (reader.fetch(0, 0), reader.describe()):
            with pytest.raises(KafkaError, match="was deleted and recreated: its id was") as raised:
                await ask
            assert raised.value.name == "UNKNOWN_TOPIC_ID"
    async with TopicReader(settings_of(kafka), topic, topic_id=former.topic_id) as reader:
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            await reader.end_offsets([0])
    async with reader_of(kafka, topic) as reader:
        assert (await reader.describe()).topic_id != former.topic_id
        assert len(await read(reader)) == RECORDS


async def test_a_topic_that_is_not_there_is_refused_at_once_and_not_made(kafka: KafkaNode) -> None:
    topic = f"nowhere-{uuid.uuid4()}"
    async with reader_of(kafka, topic, default_api_timeout_ms=600_000) as reader:
        with pytest.raises(KafkaError, match=f"UNKNOWN_TOPIC_OR_PARTITION: topic `{topic}`"):
            await reader.describe()
    async with reader_of(kafka, "not a name", default_api_timeout_ms=600_000) as reader:
        with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
            await reader.describe()


async def test_a_partition_that_is_not_there_may_still_come(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    async with reader_of(kafka, topic, default_api_timeout_ms=500) as reader:
        with pytest.raises(RequestTimedOutError, match=f"OR_PARTITION: topic `{topic}`, partition 1"):
            await reader.fetch(1, 0)
    async with reader_of(kafka, topic, max_wait_ms=10) as reader:
        await reader.fetch(0, 0)
        admin = AdminClient(kafka.internal_client)
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(60)
        assert (await reader.fetch(1, 0)).records == b""
