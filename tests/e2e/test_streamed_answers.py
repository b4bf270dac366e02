"""Large answers pass while they arrive: clients stop reading in the middle of one, a broker dies there."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from testkit.gateway.sessions import fetch
from testkit.kafka import KafkaNode, NodeSettings, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.processes import freeze
from testkit.waiting import wait_until

TOPIC = "streamed-answers"
RECORD_BYTES = 1_000_000
RECORDS = 30
ANSWER_BYTES = RECORDS * RECORD_BYTES
PATIENCE_S = 60.0
SILENT_CLIENTS = 12
GROWTH_MAX_MB = 60.0
"""What a node may hold for them all: some buffers each, where their answers are 360 MB."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path_factory.mktemp("kafka"), NodeSettings(heap="1g")) as node:
        make_topics([node], NewTopic(TOPIC, 1, 1, config={"max.message.bytes": str(2 * RECORD_BYTES)}))
        producer = Producer({"bootstrap.servers": node.bootstrap, "message.max.bytes": 2 * RECORD_BYTES})
        for _ in range(RECORDS):
            producer.produce(TOPIC, os.urandom(RECORD_BYTES), partition=0)
        assert producer.flush(PATIENCE_S) == 0
        yield node


@pytest.fixture
def node(broker: KafkaNode, tmp_path: Path) -> Iterator[KustosNode]:
    settings = KustosSettings(
        protocol="PLAINTEXT",
        super_users=("ANONYMOUS",),
        properties={"kustos.gateway.answers.max.bytes": str(2**30)},
    )
    with KustosNode(tmp_path / "kustos", broker.bootstrap, settings) as made:
        yield made


def connected(stack: ExitStack, address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return stack.enter_context(socket.create_connection((host, int(port)), PATIENCE_S))


def ask(client: socket.socket, correlation_id: int = 7) -> None:
    """Request all records at once."""
    frame = fetch(correlation_id, TOPIC, max_bytes=2 * ANSWER_BYTES, partition_max_bytes=2 * ANSWER_BYTES)
    client.sendall(len(frame).to_bytes(4, "big") + frame)


def received(client: socket.socket, size_bytes: int) -> bytes:
    """Return the next bytes, as many as these."""
    with client.makefile("rb", buffering=0) as stream:
        data = bytearray()
        while len(data) < size_bytes:
            piece = stream.read(size_bytes - len(data))
            assert piece, "the connection ended"
            data += piece
        return bytes(data)


def size_of_answer(client: socket.socket) -> int:
    """Return the size that the frame has by its length."""
    return int.from_bytes(received(client, 4), "big")


def resident_mb(node: KustosNode) -> float:
    assert node.server is not None
    lines = Path(f"/proc/{node.server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def test_answers_that_clients_leave_unread_are_not_held_and_come_whole_when_they_read(
    node: KustosNode, broker: KafkaNode
) -> None:
    with ExitStack() as stack:
        direct = connected(stack, broker.bootstrap)
        ask(direct)
        expected = received(direct, size_of_answer(direct))
        assert len(expected) > ANSWER_BYTES
        before_mb = resident_mb(node)
        clients = [connected(stack, node.bootstrap) for _ in range(SILENT_CLIENTS)]
        for client in clients:
            ask(client)
        # the beginning of each has come: the rest is on its way
        sizes = [size_of_answer(client) for client in clients]
        assert set(sizes) == {len(expected)}
        assert resident_mb(node) - before_mb < GROWTH_MAX_MB
        for client in clients:
            assert received(client, len(expected)) == expected
        ask(clients[0], correlation_id=8)
        assert size_of_answer(clients[0]) == len(expected), "the connection goes on"
        assert resident_mb(node) - before_mb < GROWTH_MAX_MB


def test_a_broker_that_dies_in_the_middle_of_an_answer_ends_the_connection(
    node: KustosNode, broker: KafkaNode
) -> None:
    with ExitStack() as stack:
        client = connected(stack, node.bootstrap)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        ask(client)
        size = size_of_answer(client)
        freeze(broker.pid)
        os.kill(broker.pid, signal.SIGKILL)
        came = 0
        while piece := client.recv(2**20):
            came += len(piece)
        assert 0 < came < size, "an end is all that tells an incomplete answer"
        wait_until(lambda: node.server is not None and node.server.running, what="the node runs on")
