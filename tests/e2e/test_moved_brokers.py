"""Real brokers that restart at other addresses behind a stable bootstrap address (KIP-899)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from testkit.forwarder import Forwarder
from testkit.guarded.common_settings import ACLS, USERS
from testkit.kafka import KafkaCluster, KafkaNode, make_topics
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import free_port
from testkit.waiting import wait_until

WAIT_S = 60.0
ATTEMPT_S = 2.0
TOPIC, PARTITIONS = "orders-eu", 4
NEVER_MS = str(3_600_000)
"""No refresh in time helps these tests."""


class MovingCluster:
    """Two brokers behind one address, and kustos before it."""

    def __init__(self, directory: Path, **properties: str) -> None:
        self.cluster = KafkaCluster(directory / "kafka", nodes=2)
        self.forwarder = Forwarder(lambda: self.cluster.bootstrap.split(","))
        properties["kustos.upstream.metadata.max.age.ms"] = NEVER_MS
        settings = KustosSettings(users=USERS, acls=ACLS, properties=properties)
        self.kustos = KustosNode(directory / "kustos", self.forwarder.bootstrap, settings)

    def client(self) -> dict[str, str | int]:
        """Return the configuration of alice's clients."""
        return {
            "bootstrap.servers": self.kustos.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": USERS["alice"],
            "log_level": 0,
        }

    def produce(self, timeout_s: float = ATTEMPT_S) -> bool:
        """Write a record to each partition with a new client; return whether all of them were taken."""
        taken: list[bool] = []
        producer = Producer(self.client() | {"message.timeout.ms": int(timeout_s * 1000)})
        for partition in range(PARTITIONS):
            producer.produce(
                TOPIC, b"x", partition=partition, on_delivery=lambda error, _: taken.append(error is None)
            )
        producer.flush(WAIT_S)
        return taken == [True] * PARTITIONS


def move(*nodes: KafkaNode) -> None:
    """Stop brokers and start them at other addresses."""
    for node in reversed(nodes):
        node.stop()
    for node in nodes:
        node.ports["PLAINTEXT"] = free_port()
        write_properties(node.configuration_file, node.configuration())
        node.launch()
    for node in nodes:
        node.wait_ready()


@pytest.fixture
def moving(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[MovingCluster]:
    made = MovingCluster(tmp_path, **getattr(request, "param", {}))
    with made.forwarder, made.cluster:
        made.forwarder.listen()
        make_topics(made.cluster.nodes, NewTopic(TOPIC, PARTITIONS, 2))
        with made.kustos:
            assert made.produce(WAIT_S)
            yield made


def both_lead(moving: MovingCluster) -> bool:
    """Move leaders back to the brokers that they had first; return whether they are there."""
    admin = AdminClient({"bootstrap.servers": moving.cluster.bootstrap})
    admin.elect_leaders(
        ElectionType.PREFERRED, [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    ).result(WAIT_S)
    topic = admin.list_topics(TOPIC, timeout=WAIT_S).topics[TOPIC]
    return {each.leader for each in topic.partitions.values()} == {1, 2}


@pytest.mark.parametrize(
    "moving", [{}, {"kustos.workers": "2"}], ids=["one process", "workers"], indirect=True
)
def test_a_node_finds_brokers_that_all_moved(moving: MovingCluster) -> None:
    move(*moving.cluster.nodes)
    wait_until(moving.produce, what="a client writes to all partitions again")
    wait_until(moving.kustos.is_ready, what="the node reports that it is ready")


def test_a_node_without_clients_finds_them_too(moving: MovingCluster) -> None:
    move(*moving.cluster.nodes)
    wait_until(moving.kustos.is_ready, what="the node reports that it is ready")
    assert moving.produce(WAIT_S)


def test_a_client_goes_on_where_one_broker_moved(moving: MovingCluster) -> None:
    taken: list[bool] = []
    producer = Producer(moving.client() | {"message.timeout.ms": int(WAIT_S * 1000)})

    def produce() -> None:
        for partition in range(PARTITIONS):
            producer.produce(
                TOPIC, b"x", partition=partition, on_delivery=lambda error, _: taken.append(error is None)
            )
        assert producer.flush(2 * WAIT_S) == 0

    produce()
    move(moving.cluster.nodes[1])
    wait_until(lambda: both_lead(moving), what="the moved broker leads again")
    produce()
    assert taken == [True] * (2 * PARTITIONS)
