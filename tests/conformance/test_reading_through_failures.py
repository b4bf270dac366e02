"""Our reader while brokers die and come back: no record is lost, none is doubled."""

import asyncio
import uuid

import pytest
from confluent_kafka.admin import AdminClient

from kustos.client import ClientSettings, RequestTimedOutError, UnreachableError
from kustos.client.topics import FetchLimits, TopicReader
from kustos.pipeline.run.topic.decoding import next_offset
from testkit.kafka import ClusterFactory, KafkaCluster, KafkaNode, NodeFactory, NodeSettings, make_topics
from tests.conformance.topic_records import Row, make_topic, new_topic, produce, read, rows_of

RECORDS = 3000
VALUES: list[bytes | None] = [b"%d," % number * 20 for number in range(RECORDS)]
EVERYTHING = list(enumerate(VALUES))

PATIENT = FetchLimits(default_api_timeout_ms=90_000, partition_max_bytes=20_000, max_wait_ms=100)
"""A controller takes a broker for dead after its session, and a busy machine its time."""

SOON_DEAD = NodeSettings(
    properties={"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "300"}
)


@pytest.fixture
def cluster(kafka_cluster: ClusterFactory) -> KafkaCluster:
    return kafka_cluster(SOON_DEAD, nodes=3)


def leaders(cluster: KafkaCluster, topic: str) -> dict[int, int]:
    found = AdminClient(cluster.nodes[0].internal_client).list_topics(topic, timeout=60).topics[topic]
    return {number: each.leader for number, each in found.partitions.items()}


async def test_a_leader_is_killed_and_another_one_stopped_amid_reading(cluster: KafkaCluster) -> None:
    topic = f"read-{uuid.uuid4()}"
    make_topics(cluster.nodes, new_topic(topic, 3, 3))
    for partition in range(3):
        produce(cluster.nodes[0].internal_client, topic, VALUES, partition)
    # the first node is the only controller: it stays
    victims = {number: node for number, node in leaders(cluster, topic).items() if node != 1}
    settings = ClientSettings.from_properties(cluster.bootstrap, {})
    async with TopicReader(settings, topic, PATIENT) as reader:
        for partition, number in victims.items():
            node = cluster.nodes[number - 1]
            rows = await read_until(reader, partition, RECORDS // 3)
            await asyncio.to_thread(node.kill if partition == min(victims) else node.stop)
            ends = await reader.end_offsets([0, 1, 2])
            assert ends == dict.fromkeys(range(3), RECORDS)
            rows += await read_until(reader, partition, RECORDS, rows[-1][0] + 1)
            assert rows == EVERYTHING
            await asyncio.to_thread(node.launch)
            await asyncio.to_thread(node.wait_ready, frozenset({1, 2, 3}))
        for partition in range(3):
            assert await read(reader, partition) == EVERYTHING


async def read_until(reader: TopicReader, partition: int, end: int, offset: int = 0) -> list[Row]:
    rows: list[Row] = []
    while offset < end:
        fetched = await reader.fetch(partition, offset)
        rows += rows_of(fetched, offset, end)
        offset = min(next_offset(fetched.records, offset), end)
    return rows


async def test_a_broker_restarts_amid_reading(kafka_node: NodeFactory) -> None:
    node = kafka_node(NodeSettings())
    topic = make_topic(node)
    produce(node.internal_client, topic, VALUES)
    settings = ClientSettings.from_properties(node.bootstrap, {})
    async with TopicReader(settings, topic, PATIENT) as reader:
        rows = await read_until(reader, 0, RECORDS // 2)
        await asyncio.to_thread(node.kill)
        rest = asyncio.ensure_future(read_until(reader, 0, RECORDS, RECORDS // 2))
        await asyncio.to_thread(node.start)
        assert rows + await rest == EVERYTHING


async def test_a_broker_that_stays_away_is_given_up_with_the_reason(kafka_node: NodeFactory) -> None:
    node: KafkaNode = kafka_node(NodeSettings())
    topic = make_topic(node)
    settings = ClientSettings.from_properties(node.bootstrap, {})
    limits = FetchLimits(default_api_timeout_ms=500, max_wait_ms=10)
    async with TopicReader(settings, topic, limits) as reader:
        await reader.describe()
        await asyncio.to_thread(node.kill)
        for ask in (reader.fetch(0, 0), reader.end_offsets([0]), reader.describe()):
            with pytest.raises(
                (UnreachableError, RequestTimedOutError), match=r"within 5[01]0 ms: .*refused"
            ):
                await ask
