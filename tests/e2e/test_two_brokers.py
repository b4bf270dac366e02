"""Two brokers behind one kustos: clients are always led back through its ports, also when leaders move."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from testkit.guarded.cluster import UPSTREAM_HOST, GuardedCluster
from testkit.guarded.common_settings import TOPICS, settings
from testkit.waiting import wait_until
from tests.e2e.test_python_clients import consume

WAIT_S = 60.0
PARTITIONS = 4


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    settled = settings(**{"kustos.upstream.metadata.max.age.ms": "500"})
    with GuardedCluster(
        tmp_path_factory.mktemp("pair"), settled, nodes=2, topics=TOPICS[:2], partitions=PARTITIONS
    ) as scene:
        yield scene


def leaders(scene: GuardedCluster, topic: str) -> dict[int, int]:
    partitions = AdminClient({"bootstrap.servers": scene.direct}).list_topics(topic, timeout=WAIT_S)
    return {number: each.leader for number, each in partitions.topics[topic].partitions.items()}


def produce_everywhere(scene: GuardedCluster, text: str) -> None:
    errors: list[object] = []
    producer = Producer(
        scene.librdkafka(
            "alice", topic_metadata_refresh_interval_ms=200, message_timeout_ms=int(WAIT_S * 1000)
        )
    )
    for number in range(PARTITIONS):
        producer.produce(
            "orders-eu", text.encode(), partition=number, on_delivery=lambda error, _: errors.append(error)
        )
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * PARTITIONS


def relays_used(scene: GuardedCluster) -> set[str]:
    produced = [each for each in scene.upstream.exchanges if each.api_key == 0]
    numbers = {each.connection for each in produced}
    return {each.relay for each in scene.upstream.connections if each.number in numbers}


def test_clients_reach_each_leader_through_its_own_port_and_follow_it(pair: GuardedCluster) -> None:
    assert set(leaders(pair, "orders-eu").values()) == {1, 2}
    produce_everywhere(pair, "first")
    assert len(relays_used(pair)) == 2
    # its coordinator may be on the broker that goes, and comes back within this time
    session = {"session.timeout.ms": 180_000}
    client = pair.librdkafka("alice", group_id="alice-pair", auto_offset_reset="earliest")
    group = Consumer(client | session)
    group.subscribe(["orders-eu"])
    assert consume(group, PARTITIONS) == ["first"] * PARTITIONS

    pair.node(2).stop()
    wait_until(lambda: set(leaders(pair, "orders-eu").values()) == {1}, what="broker 1 leads all")
    produce_everywhere(pair, "second")
    assert consume(group, PARTITIONS) == ["second"] * PARTITIONS

    pair.node(2).start()
    admin = AdminClient({"bootstrap.servers": pair.direct})
    wait_until(lambda: len(admin.list_topics(timeout=WAIT_S).brokers) == 2, what="broker 2 is back")
    elect_preferred(pair)
    produce_everywhere(pair, "third")
    assert consume(group, PARTITIONS) == ["third"] * PARTITIONS
    group.close()
    pair.assert_proper()
    pair.begin_anew()


def elect_preferred(scene: GuardedCluster) -> None:
    """Move leaders back where they were."""
    from confluent_kafka import ElectionType

    admin = AdminClient({"bootstrap.servers": scene.direct})
    partitions = [TopicPartition("orders-eu", number) for number in range(PARTITIONS)]

    def moved() -> bool:
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result(WAIT_S)
        return set(leaders(scene, "orders-eu").values()) == {1, 2}

    wait_until(moved, what="leaders are spread again")


def test_no_byte_to_a_client_names_an_upstream_address(pair: GuardedCluster) -> None:
    admin = AdminClient(pair.librdkafka("admin"))
    port = int(pair.bootstrap.rpartition(":")[2])
    ours = {("127.0.0.1", port + 1 + number) for number in (1, 2)}
    listed = {(each.host, each.port) for each in admin.list_topics(timeout=WAIT_S).brokers.values()}
    described = {(each.host, each.port) for each in admin.describe_cluster().result(WAIT_S).nodes}
    assert listed == described == ours
    # upstream did say them, so there was something to leak
    assert any(UPSTREAM_HOST.encode() in (each.answer or b"") for each in pair.upstream.exchanges)
    assert pair.leaks() == []
    verdict = pair.assert_proper()
    assert verdict.forwarded
