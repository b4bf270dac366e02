"""Records of a topic, as our reader and as librdkafka's consumer see them, and topics to read."""

import uuid
from collections.abc import Iterable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from kustos.client.topics import Fetched, TopicReader
from kustos.pipeline.run.topic.decoding import decode, next_offset
from testkit.kafka import KafkaNode, make_topics

WAIT_S = 60.0

Row = tuple[int, bytes | None]


def make_topic(node: KafkaNode, partitions: int = 1, **config: str) -> str:
    """Make a topic of a new name."""
    name = f"read-{uuid.uuid4()}"
    make_topics([node], new_topic(name, partitions, 1, **config))
    return name


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **config: str) -> NewTopic:
    """Return a topic to make; `cleanup_policy` stands for `cleanup.policy`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return NewTopic(name, partitions, replicas, config=settings)


def produce(
    client: dict[str, object],
    topic: str,
    values: Iterable[bytes | None],
    partition: int = 0,
    *,
    is_compacted: bool = False,
    has_headers: bool = True,
    **more: object,
) -> None:
    """Put values into a topic, in batches of fifty, and return when the broker has them all.

    They have seven keys; every third has none, unless the topic is compacted.
    """
    settings = {"linger.ms": 5, "batch.num.messages": 50, **client}
    producer = Producer(settings | {key.replace("_", "."): value for key, value in more.items()})
    errors: list[object] = []
    for number, value in enumerate(values):
        producer.produce(
            topic,
            value,
            key=b"%d" % (number % 7) if is_compacted or number % 3 else None,
            partition=partition,
            headers=[("header", b"x" * (number % 4)), ("none", None)] if has_headers else None,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(WAIT_S) == 0
    assert not any(errors), errors


async def read(reader: TopicReader, partition: int = 0) -> list[Row]:
    """Return the committed records of a partition, from its first to its end offset."""
    offset = (await reader.first_offsets([partition]))[partition]
    end = (await reader.end_offsets([partition]))[partition]
    rows: list[Row] = []
    while offset < end:
        fetched = await reader.fetch(partition, offset)
        rows += rows_of(fetched, offset, end)
        offset = next_offset(fetched.records, offset)
    return rows


def rows_of(fetched: Fetched, first: int, end: int) -> list[Row]:
    """Return the records of a fetch from `first` up to `end`."""
    return [
        row
        for found in decode(fetched.records, fetched.aborted, first, end)
        for row in zip(found.offsets, found.values, strict=True)
    ]


def consumed(client: dict[str, object], topic: str, partition: int = 0) -> list[Row]:
    """Return the same as librdkafka's consumer sees it."""
    consumer = Consumer(
        {
            **client,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    rows: list[Row] = []
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"only {len(rows)} records came"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return rows
            offset = message.offset()
            assert offset is not None
            rows.append((offset, message.value()))
    finally:
        consumer.close()
