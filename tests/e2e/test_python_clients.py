"""librdkafka, aiokafka and kafka-python through kustos, everything they do judged between two taps."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from testkit.guarded.cluster import GuardedCluster
from testkit.waiting import wait_until

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
CONSUMER_GROUP_HEARTBEAT = 68
WAIT_S = 60.0


def produce(
    scene: GuardedCluster, user: str, topic: str, values: list[str], **properties: Any
) -> list[str | None]:
    """Return the name of each record's error, None for those that were taken."""
    errors: list[str | None] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        errors.append(None if error is None else error.name())

    producer = Producer(scene.librdkafka(user, **properties))
    for value in values:
        producer.produce(topic, value.encode(), partition=0, on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    return errors


def consume(consumer: Consumer, count: int) -> list[str]:
    """Return the values of the next `count` records; raise `KafkaException` for what is refused."""
    values: list[str] = []
    while len(values) < count:
        message = consumer.poll(WAIT_S)
        assert message is not None, f"only {values}"
        if message.error():
            raise KafkaException(message.error())
        values.append((message.value() or b"").decode())
    return values


@pytest.fixture(scope="module")
def stocked(world: GuardedCluster) -> list[str]:
    """Put ten records into every topic, past kustos."""
    values = [f"record-{number}" for number in range(10)]
    producer = Producer({"bootstrap.servers": world.direct})
    for topic in world.topics:
        for value in values:
            producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(WAIT_S) == 0
    return values


@pytest.fixture
def closer() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_produces_where_it_may(scene: GuardedCluster, mechanism: str) -> None:
    assert produce(scene, "alice", "orders-us", ["a", "b"], mechanism=mechanism) == [None, None]
    denied = ["TOPIC_AUTHORIZATION_FAILED"]
    assert produce(scene, "alice", "orders-secret", ["a"], mechanism=mechanism) == denied
    assert produce(scene, "alice", "invoices", ["a"], mechanism=mechanism) == denied


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka_consumes_in_a_group(
    scene: GuardedCluster, stocked: list[str], closer: ExitStack, mechanism: str, protocol: str
) -> None:
    group = f"alice-{protocol}-{mechanism}"
    consumer = Consumer(
        scene.librdkafka(
            "alice", mechanism, group_id=group, group_protocol=protocol, auto_offset_reset="earliest"
        )
    )
    closer.callback(consumer.close)
    consumer.subscribe(["orders-eu"])
    assert consume(consumer, 10) == stocked
    consumer.commit(asynchronous=False)
    assert consumer.committed([TopicPartition("orders-eu", 0)], WAIT_S)[0].offset == 10


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_may_not_be_read_cannot_be_joined(
    scene: GuardedCluster, closer: ExitStack, protocol: str
) -> None:
    consumer = Consumer(scene.librdkafka("carol", group_id="other-group", group_protocol=protocol))
    closer.callback(consumer.close)
    consumer.subscribe(["orders-eu"])
    with pytest.raises(KafkaException) as refused:
        consume(consumer, 1)
    assert refused.value.args[0].name() == "GROUP_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_may_not_be_seen_cannot_be_subscribed_to(
    scene: GuardedCluster, closer: ExitStack, protocol: str
) -> None:
    consumer = Consumer(scene.librdkafka("bob", group_id="bob-group", group_protocol=protocol))
    closer.callback(consumer.close)
    consumer.subscribe(["orders-us"])
    with pytest.raises(KafkaException) as refused:
        consume(consumer, 1)
    assert refused.value.args[0].name() == "TOPIC_AUTHORIZATION_FAILED"


def test_a_subscription_by_expression_is_not_left_to_upstream(
    scene: GuardedCluster, stocked: list[str], closer: ExitStack
) -> None:
    """The group coordinator would match all topics, since it trusts kustos; so it gets names."""
    settings = {"group_protocol": "consumer", "auto_offset_reset": "earliest"}
    consumer = Consumer(scene.librdkafka("alice", group_id="alice-expression", **settings))
    closer.callback(consumer.close)
    consumer.subscribe(["^orders-.*"])
    missing = {(topic, value) for topic in ("orders-eu", "orders-us") for value in stocked}
    while missing:
        # other tests write to these topics, too
        message = consumer.poll(WAIT_S)
        assert message is not None, f"without {missing}"
        assert message.error() is None
        missing.discard((message.topic(), (message.value() or b"").decode()))
    assert {each.topic for each in consumer.assignment()} == {"orders-eu", "orders-us"}
    beats = [each for each in scene.upstream.exchanges if each.api_key == CONSUMER_GROUP_HEARTBEAT]
    expressions = [each.request for each in beats if b"^orders" in each.request]
    assert expressions
    quoted = re.compile(rb"/\\Q[^\\]*\^orders-\.\*[^\\]*\\E")
    assert all(map(quoted.search, expressions)), "a slash is in no topic's name, and the rest is quoted"


def test_librdkafka_assigns_and_seeks(scene: GuardedCluster, stocked: list[str], closer: ExitStack) -> None:
    consumer = Consumer(scene.librdkafka("bob", group_id="bob-seeks", enable_auto_commit=False))
    closer.callback(consumer.close)
    consumer.assign([TopicPartition("orders-eu", 0, 7)])
    assert consume(consumer, 3) == stocked[7:]
    consumer.seek(TopicPartition("orders-eu", 0, 2))
    assert consume(consumer, 8) == stocked[2:]
    assert consumer.get_watermark_offsets(TopicPartition("orders-eu", 0), WAIT_S) == (0, 10)


def test_deny_stands_above_a_wildcard(scene: GuardedCluster, stocked: list[str], closer: ExitStack) -> None:
    consumer = Consumer(scene.librdkafka("carol", group_id="carol-group", enable_auto_commit=False))
    closer.callback(consumer.close)
    consumer.assign([TopicPartition("orders-secret", 0, 0)])
    assert consume(consumer, 10) == stocked
    consumer.assign([TopicPartition("plans-hidden", 0, 0)])
    with pytest.raises(KafkaException) as refused:
        consume(consumer, 1)
    assert refused.value.args[0].name() == "TOPIC_AUTHORIZATION_FAILED"


def test_an_idempotent_producer_needs_to_be_able_to_write(scene: GuardedCluster) -> None:
    assert produce(scene, "alice", "orders-us", ["i"], enable_idempotence=True) == [None]
    producer = Producer(scene.librdkafka("bob", enable_idempotence=True) | {"error_cb": lambda _: None})
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        # a connection that breaks is an event, too, and ends a poll
        wait_until(lambda: producer.poll(1.0) < 0, what="the producer is refused for good")
    asked = [each for each in scene.clients.exchanges if each.api_key == 22 and each.client_id == "bob"]
    assert asked
    assert not [each for each in scene.upstream.exchanges if each.api_key == 22 and each.client_id == "bob"]


def test_everyone_sees_what_is_open_to_everyone_and_nothing_else(scene: GuardedCluster) -> None:
    admin = AdminClient(scene.librdkafka("dave"))
    assert set(admin.list_topics(timeout=WAIT_S).topics) == {"public-news"}
    bob = AdminClient(scene.librdkafka("bob"))
    assert set(bob.list_topics(timeout=WAIT_S).topics) == {"public-news", "orders-eu"}


def test_topics_are_made_described_and_deleted_where_one_may(scene: GuardedCluster) -> None:
    admin = AdminClient(scene.librdkafka("erin"))
    made = admin.create_topics([NewTopic("erin-one", 2, 1), NewTopic("orders-mine", 1, 1)])
    made["erin-one"].result(WAIT_S)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        made["orders-mine"].result(WAIT_S)
    resources = [
        ConfigResource(ResourceType.TOPIC, "erin-one"),
        ConfigResource(ResourceType.TOPIC, "orders-eu"),
    ]

    def described() -> dict[str, ConfigEntry]:
        found: dict[str, ConfigEntry] = admin.describe_configs(resources[:1])[resources[0]].result(WAIT_S)
        return found

    # the controller has made it, and the broker may yet have to read of it
    configs = wait_until(described, not_yet=KafkaException, what="the broker knows `erin-one`")
    assert configs["cleanup.policy"].value == "delete"
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        admin.describe_configs(resources)[resources[1]].result(WAIT_S)
    gone = admin.delete_topics(["erin-one", "orders-eu"])
    gone["erin-one"].result(WAIT_S)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        gone["orders-eu"].result(WAIT_S)


def test_groups_are_listed_and_described_where_one_may(
    scene: GuardedCluster, stocked: list[str], closer: ExitStack
) -> None:
    consumer = Consumer(scene.librdkafka("alice", group_id="alice-listed", auto_offset_reset="earliest"))
    closer.callback(consumer.close)
    consumer.subscribe(["orders-eu"])
    assert consume(consumer, 1) == stocked[:1]
    alice, dave = AdminClient(scene.librdkafka("alice")), AdminClient(scene.librdkafka("dave"))
    listed = {group.group_id for group in alice.list_consumer_groups().result(WAIT_S).valid}
    assert "alice-listed" in listed
    assert all(name.startswith("alice-") for name in listed)
    assert dave.list_consumer_groups().result(WAIT_S).valid == []
    described = alice.describe_consumer_groups(["alice-listed"])["alice-listed"].result(WAIT_S)
    assert [member.client_id for member in described.members] == ["alice"]
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        dave.describe_consumer_groups(["alice-listed"])["alice-listed"].result(WAIT_S)
    offsets = dave.list_consumer_group_offsets([ConsumerGroupTopicPartitions("alice-listed")])
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        offsets["alice-listed"].result(WAIT_S)


def test_the_cluster_is_described_with_kustos_addresses(scene: GuardedCluster) -> None:
    for user, may in (("erin", True), ("dave", False)):
        admin = AdminClient(scene.librdkafka(user))
        found = admin.describe_cluster(include_authorized_operations=True).result(WAIT_S)
        assert [(node.host, node.port) for node in found.nodes] == [
            ("127.0.0.1", int(scene.bootstrap.partition(":")[2]) + 2)
        ]
        assert bool(found.authorized_operations) is may


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_produces_and_consumes(
    scene: GuardedCluster, stocked: list[str], mechanism: str
) -> None:
    producer = aiokafka.AIOKafkaProducer(**scene.python("alice", mechanism), enable_idempotence=True)
    await producer.start()
    try:
        await producer.send_and_wait("orders-us", b"by aiokafka")
        with pytest.raises(aiokafka.errors.TopicAuthorizationFailedError):
            await producer.send_and_wait("orders-secret", b"no")
    finally:
        await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(
        "orders-eu",
        **scene.python("alice", mechanism),
        group_id=f"alice-aio-{mechanism}",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        values = [(await consumer.getone()).value.decode() for _ in stocked]
        assert values == stocked
        await consumer.seek_to_beginning()
        assert (await consumer.getone()).value.decode() == stocked[0]
    finally:
        await consumer.stop()


async def test_aiokafka_is_told_that_its_group_is_not_its_own(scene: GuardedCluster) -> None:
    consumer = aiokafka.AIOKafkaConsumer("orders-eu", **scene.python("carol"), group_id="someone-else")
    try:
        with pytest.raises(aiokafka.errors.GroupAuthorizationFailedError):
            await consumer.start()
    finally:
        await consumer.stop()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_produces_and_consumes(
    scene: GuardedCluster, stocked: list[str], mechanism: str
) -> None:
    with closing(kafka.KafkaProducer(**scene.python("alice", mechanism))) as producer:
        producer.send("orders-us", b"by kafka-python").get(WAIT_S)
        with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
            producer.send("orders-secret", b"no").get(WAIT_S)
    consumer = kafka.KafkaConsumer(
        "orders-eu",
        **scene.python("alice", mechanism),
        group_id=f"alice-python-{mechanism}",
        auto_offset_reset="earliest",
    )
    with closing(consumer):
        assert [next(consumer).value.decode() for _ in stocked] == stocked


def test_kafka_python_administers_topics(scene: GuardedCluster) -> None:
    with closing(kafka.KafkaAdminClient(**scene.python("erin"))) as admin:
        admin.create_topics({"erin-python": {"num_partitions": 1, "replication_factor": 1}})
        with pytest.raises(kafka.errors.TopicAuthorizationFailedError):
            admin.create_topics({"invoices-mine": {"num_partitions": 1, "replication_factor": 1}})
        admin.delete_topics(["erin-python"])


def test_the_judges_would_have_told(world: GuardedCluster) -> None:
    assert produce(world, "alice", "orders-us", ["seen"]) == [None]
    nobody_may = world.judge(())
    assert {violation.rule for _, violation in nobody_may.violations} == {
        "nothing unauthorised goes upstream",
        "the answer is Kafka's",
    }
    assert nobody_may.forwarded
    assert nobody_may.answered
