"""A node with no room for answers, before a real broker: consumers get all there is, in smaller pieces."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import NewTopic

from testkit.gateway.sessions import fetch
from testkit.kafka import KafkaNode, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until

TOPIC = "no-room-for-answers"
PARTITIONS = 3
RECORD_BYTES = 3_000_000
"""More than a Fetch gets at the least: a broker returns the first batch all the same."""
RECORDS = 18
SILENT_CLIENTS = 4
PATIENCE_S = 60.0


@pytest.fixture
def node(kafka: KafkaNode, tmp_path: Path) -> Iterator[KustosNode]:
    settings = KustosSettings(
        protocol="PLAINTEXT",
        super_users=("ANONYMOUS",),
        properties={"kustos.gateway.answers.max.bytes": "0"},
    )
    with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as made:
        yield made


def record(number: int) -> bytes:
    return number.to_bytes(4, "big") * (RECORD_BYTES // 4)


def fill(kafka: KafkaNode, bootstrap: str) -> None:
    config = {"max.message.bytes": str(2 * RECORD_BYTES)}
    make_topics([kafka], NewTopic(TOPIC, PARTITIONS, 1, config=config))
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 2 * RECORD_BYTES})
    for number in range(RECORDS):
        producer.produce(TOPIC, record(number), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


def test_a_consumer_gets_every_record_while_others_never_read(kafka: KafkaNode, node: KustosNode) -> None:
    fill(kafka, node.bootstrap)
    host, _, port = node.bootstrap.rpartition(":")
    with ExitStack() as stack:
        for _ in range(SILENT_CLIENTS):
            silent = stack.enter_context(socket.create_connection((host, int(port))))
            for correlation_id in range(8):
                frame = fetch(correlation_id, TOPIC, max_bytes=8 * 2**20)
                silent.sendall(len(frame).to_bytes(4, "big") + frame)
        consumer = Consumer(
            {"bootstrap.servers": node.bootstrap, "group.id": TOPIC, "auto.offset.reset": "earliest"}
        )
        stack.callback(consumer.close)
        consumer.subscribe([TOPIC])
        seen: list[bytes] = []

        def has_all() -> bool:
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None
                seen.append(message.value() or b"")
            return len(seen) >= RECORDS

        wait_until(has_all, what="every record has come")
        assert sorted(seen) == [record(number) for number in range(RECORDS)]
