"""Topics of a real Kafka as our reader reads them: the same bytes of batches that other clients decode."""

import uuid
from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from kustos.client import ClientSettings, KafkaError
from kustos.client.topics import FetchLimits, TopicReader
from kustos.wire import batch_headers, offset_after
from testkit.kafka import KafkaNode, make_topics

RECORDS = 2000


def make_topic(node: KafkaNode, partitions: int = 1, **config: str) -> str:
    name = f"read-{uuid.uuid4()}"
    settings = {key.replace("_", "."): config[key] for key in config}
    make_topics([node], NewTopic(name, partitions, 1, config=settings))
    return name


def reader_of(node: KafkaNode, topic: str, **limits: int) -> TopicReader:
    return TopicReader(ClientSettings.from_properties(node.bootstrap, {}), topic, FetchLimits(**limits))


def fill(node: KafkaNode, topic: str, count: int, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5, "batch.num.messages": 50})
    for number in range(count):
        producer.produce(topic, b"%d" % number * 20, partition=partition)
    assert producer.flush(60) == 0


async def parts_of(reader: TopicReader, partition: int, end: int) -> AsyncIterator[bytes]:
    offset = 0
    while offset < end:
        fetched = await reader.fetch(partition, offset)
        yield fetched.records
        offset = offset_after(fetched.records, offset)


async def test_a_topic_is_described_and_read_from_its_first_to_its_end_offset(kafka: KafkaNode) -> None:
    topic = make_topic(kafka, partitions=2)
    fill(kafka, topic, RECORDS, partition=1)
    async with reader_of(kafka, topic, partition_max_bytes=10_000) as reader:
        described = await reader.describe()
        assert described.cluster_id == kafka.cluster_id
        assert described.topic_id is not None
        assert described.partitions == (0, 1)
        assert await reader.first_offsets([0, 1]) == {0: 0, 1: 0}
        assert await reader.end_offsets([1, 0]) == {0: 0, 1: RECORDS}
        parts = [part async for part in parts_of(reader, 1, RECORDS)]
    assert len(parts) > 1


async def test_the_offset_after_a_fetch_is_after_its_last_whole_batch(kafka: KafkaNode) -> None:
    topic = make_topic(kafka)
    fill(kafka, topic, RECORDS)
    async with reader_of(kafka, topic) as reader:
        records = (await reader.fetch(0, 0)).records
    headers = list(batch_headers(records))
    ends = [sum(each.size_bytes for each in headers[: n + 1]) for n in range(len(headers))]
    assert offset_after(records, 0) == RECORDS
    for header, end in zip(headers, ends, strict=True):
        after = header.base_offset + header.last_offset_delta + 1
        assert offset_after(records[:end], 0) == after
        assert offset_after(records[: end - 1], 7) == max(7, header.base_offset)


async def test_a_topic_that_is_not_there_is_refused_at_once_and_not_made(kafka: KafkaNode) -> None:
    topic = f"nowhere-{uuid.uuid4()}"
    async with reader_of(kafka, topic) as reader:
        with pytest.raises(KafkaError, match=f"UNKNOWN_TOPIC_OR_PARTITION: topic `{topic}`"):
            await reader.describe()
