"""What reading and writing take, one right at a time: on names, on everything, on prefixes."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.kafka import KafkaTools
from testkit.kustos import KustosSettings

ACLS = (
    acl("reader", Op.READ, Type.TOPIC, "orders"),
    acl("seer", Op.DESCRIBE, Type.TOPIC, "orders"),
    acl("seer", Op.DESCRIBE, Type.TOPIC, "__consumer_offsets"),
    acl("seer", Op.READ, Type.GROUP, "seer", PREFIXED),
    acl("writer", Op.WRITE, Type.TOPIC, "orders"),
    acl("writer", Op.READ, Type.GROUP, "writers"),
    # on everything, and on prefixes
    *[acl("wide", operation, Type.TOPIC, "*") for operation in (Op.READ, Op.WRITE)],
    acl("wide", Op.READ, Type.GROUP, "*"),
    *[acl("narrow", operation, Type.TOPIC, "ord", PREFIXED) for operation in (Op.READ, Op.WRITE)],
    acl("narrow", Op.READ, Type.GROUP, "nar", PREFIXED),
)
USERS = {name: f"{name}-secret" for name in ("admin", "reader", "seer", "writer", "wide", "narrow")}
WAIT_S = 60.0
COMES_MS, NOTHING_COMES_MS = 45_000, 10_000
"""How long a reader waits for what comes, and for what never does, which takes that long."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """One broker with records in one topic, and offsets of a group in an internal one."""
    settings = KustosSettings(users=USERS, acls=ACLS)
    with GuardedCluster(tmp_path_factory.mktemp("rights"), settings, topics=("orders", "plans")) as made:
        producer = Producer({"bootstrap.servers": made.direct})
        for number in range(3):
            producer.produce("orders", f"record-{number}".encode(), partition=0)
        assert producer.flush(WAIT_S) == 0
        with closing(Consumer({"bootstrap.servers": made.direct, "group.id": "inside"})) as consumer:
            consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        yield made


def first_of(consumer: Consumer) -> str:
    """Return the value of the next record; raise `KafkaException` for what is refused."""
    message = consumer.poll(WAIT_S)
    assert message is not None
    if message.error():
        raise KafkaException(message.error())
    return (message.value() or b"").decode()


def first_assigned(consumer: Consumer) -> str:
    """Return the value of the next record; raise `KafkaException` for what is refused of the topic.

    librdkafka looks for the coordinator of its group also where it needs none, and may tell of its refusal
    before or after.
    """
    while True:
        try:
            return first_of(consumer)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                raise


def assigned(scene: GuardedCluster, user: str) -> Consumer:
    """Return a consumer that reads from the second record on, in a group that nobody has a right to."""
    consumer = Consumer(scene.librdkafka(user, group_id="unheard-of", enable_auto_commit=False))
    consumer.assign([TopicPartition("orders", 0, 1)])
    return consumer


@pytest.mark.behaviour("B124", "B126")
def test_an_assigned_partition_is_read_from_an_offset_with_read_alone(scene: GuardedCluster) -> None:
    with closing(assigned(scene, "reader")) as consumer:
        assert first_assigned(consumer) == "record-1"


@pytest.mark.behaviour("B124")
@pytest.mark.parametrize("user", ["seer", "writer"])
def test_an_assigned_partition_is_not_read_with_describe_or_write(scene: GuardedCluster, user: str) -> None:
    with closing(assigned(scene, user)) as consumer, pytest.raises(KafkaException) as failure:
        first_assigned(consumer)
    assert failure.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.behaviour("B215")
@pytest.mark.parametrize(
    ("user", "group", "code"),
    [
        ("reader", "readers", KafkaError.GROUP_AUTHORIZATION_FAILED),
        ("seer", "seers", KafkaError.TOPIC_AUTHORIZATION_FAILED),
        ("writer", "writers", KafkaError.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_a_group_reads_with_both_rights_or_not_at_all(
    scene: GuardedCluster, user: str, group: str, code: int
) -> None:
    settings = scene.librdkafka(user, group_id=group) | {"auto.offset.reset": "earliest"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(KafkaException) as failure:
            first_of(consumer)
    assert failure.value.args[0].code() == code


@pytest.mark.behaviour("B214")
@pytest.mark.parametrize("user", ["wide", "narrow"])
def test_rights_on_everything_and_on_prefixes_are_rights(scene: GuardedCluster, user: str) -> None:
    errors: list[KafkaError | None] = []
    producer = Producer(scene.librdkafka(user))
    producer.produce("orders", b"more", partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    assert errors == [None]
    settings = scene.librdkafka(user, group_id=f"{user}-group") | {"auto.offset.reset": "earliest"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["orders"])
        assert first_of(consumer) == "record-0"
        consumer.commit(asynchronous=False)


@pytest.mark.behaviour("B129")
@pytest.mark.parametrize(
    ("user", "excluded", "told", "timeout_ms"),
    [
        ("wide", "false", "Processed a total of 1 messages", COMES_MS),
        ("wide", "true", "Processed a total of 0 messages", NOTHING_COMES_MS),
        ("narrow", "false", "Processed a total of 0 messages", NOTHING_COMES_MS),
        ("seer", "false", "Not authorized to access topics: [__consumer_offsets]", COMES_MS),
    ],
)
def test_internal_topics_are_read_by_a_pattern_with_read_and_the_will_to_have_them(
    scene: GuardedCluster, kafka_tools: KafkaTools, user: str, excluded: str, told: str, timeout_ms: int
) -> None:
    # a pattern that matches a topic that some see, and the internal one
    outcome = kafka_tools.run(
        "ConsoleConsumer",
        *("--bootstrap-server", scene.bootstrap, "--include", "plans|__consumer_offsets"),
        *("--group", f"{user}-{excluded}", "--from-beginning"),
        *("--max-messages", "1", "--timeout-ms", str(timeout_ms)),
        client_properties={**scene.java(user), "exclude.internal.topics": excluded},
    )
    assert told in outcome.stderr + outcome.stdout
