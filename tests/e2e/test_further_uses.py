"""Uses of clients that no other file has: each through kustos, with what it may and what it may not."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import kafka
import kafka.errors
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.tools import GuardedTools
from testkit.kafka import KafkaTools
from testkit.waiting import wait_until

WAIT_S = 60.0
VALUES = [f"record-{number}" for number in range(20)]
TOPIC_DENIED = 29
SUCCESS = 0

Use = Callable[[GuardedCluster, Path], None]


@pytest.fixture(scope="module", autouse=True)
def stocked(world: GuardedCluster) -> None:
    """Put records into a topic, past kustos."""
    producer = Producer({"bootstrap.servers": world.direct})
    for value in VALUES:
        producer.produce("orders-eu", value.encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def committed(scene: GuardedCluster, group: str) -> int:
    """Return up to where a group has read its topic, past kustos."""
    admin = AdminClient({"bootstrap.servers": scene.direct})
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    (partition,) = asked[group].result(WAIT_S).topic_partitions
    return int(partition.offset)


def read_committed(scene: GuardedCluster, topic: str) -> list[str]:
    """Return the committed values of a topic up to its last stable offset, past kustos."""
    settings = {"bootstrap.servers": scene.direct, "group.id": "past", "enable.partition.eof": True}
    read: list[str] = []
    with closing(Consumer(settings | {"isolation.level": "read_committed"})) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            read.append((message.value() or b"").decode())
    return read


def aiokafka_administers(scene: GuardedCluster, _: Path) -> None:
    """Topics are made, described and deleted, and are not where one may not."""

    async def administer() -> None:
        admin = AIOKafkaAdminClient(**scene.python("erin"))
        await admin.start()
        try:
            made = await admin.create_topics([NewTopic("erin-aio", 2, 1), NewTopic("orders-aio", 2, 1)])
            assert {topic: code for topic, code, _ in made.topic_errors} == {
                "erin-aio": SUCCESS,
                "orders-aio": TOPIC_DENIED,
            }
            past = AdminClient({"bootstrap.servers": scene.direct})
            wait_until(
                lambda: "erin-aio" in past.list_topics(timeout=WAIT_S).topics, what="the topic is there"
            )
            (described,) = await admin.describe_topics(["erin-aio"])
            assert len(described["partitions"]) == 2
            resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in ("erin-aio", "orders-eu")]
            (configs,) = await admin.describe_configs(resources)
            assert {each[3]: each[0] for each in configs.resources} == {
                "erin-aio": SUCCESS,
                "orders-eu": TOPIC_DENIED,
            }
            gone = await admin.delete_topics(["erin-aio", "orders-eu"])
            assert dict(gone.topic_error_codes) == {"erin-aio": SUCCESS, "orders-eu": TOPIC_DENIED}
        finally:
            await admin.close()

    asyncio.run(administer())


def kafka_python_transacts(scene: GuardedCluster, _: Path) -> None:
    """A transaction is read as a whole, an aborted one not at all, and a strange id is refused."""
    with closing(kafka.KafkaProducer(**scene.python("alice"), transactional_id="alice-python")) as producer:
        producer.init_transactions()
        for values, end in (
            (["never"], producer.abort_transaction),
            (["one", "two"], producer.commit_transaction),
        ):
            producer.begin_transaction()
            for value in values:
                producer.send("orders-us", value.encode(), partition=0)
            producer.flush(WAIT_S)
            end()
    # Kafka answers the end of a transaction before its markers are in the partitions (KIP-98)
    read = wait_until(lambda: read_committed(scene, "orders-us"), what="the transaction is there")
    assert read == ["one", "two"]
    with (
        closing(kafka.KafkaProducer(**scene.python("alice"), transactional_id="bob-python")) as producer,
        pytest.raises(kafka.errors.TransactionalIdAuthorizationFailedError),
    ):
        producer.init_transactions()


def a_verifiable_consumer_reads(scene: GuardedCluster, directory: Path) -> None:
    """Kafka's own test consumer reads all in its group, and is refused another one."""
    tool = GuardedTools(scene, KafkaTools(), directory)

    def consumed(group: str) -> Any:
        wanted = ("--topic", "orders-eu", "--group-id", group, "--max-messages", str(len(VALUES)))
        return tool("VerifiableConsumer", "alice", *wanted)

    said = [json.loads(line) for line in consumed("alice-verifies").require().splitlines()]
    assert sum(each["count"] for each in said if each["name"] == "records_consumed") == len(VALUES)
    assert committed(scene, "alice-verifies") == len(VALUES)
    refused = consumed("bob-verifies")
    assert "GroupAuthorizationException" in refused.stdout + refused.stderr


def kcat_reads_in_a_group(scene: GuardedCluster, _: Path) -> None:
    """kcat is a member of a group whose offsets are kept, and is refused another one."""
    settings = scene.librdkafka("alice", "PLAIN", auto_offset_reset="earliest")
    options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]

    def read(group: str) -> subprocess.CompletedProcess[str]:
        command = ["kcat", *options, "-c", str(len(VALUES)), "-q", "-G", group, "orders-eu"]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)

    done = read("alice-kcat")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == VALUES
    assert committed(scene, "alice-kcat") == len(VALUES)
    refused = read("bob-kcat")
    assert refused.returncode != 0
    assert "Group authorization failed" in refused.stderr


USES: dict[Use, set[tuple[str, str, str]]] = {
    aiokafka_administers: {("ALLOWED", "CREATE", "erin-aio"), ("DENIED", "DELETE", "orders-eu")},
    kafka_python_transacts: {("ALLOWED", "WRITE", "alice-python"), ("DENIED", "DESCRIBE", "bob-python")},
    a_verifiable_consumer_reads: {
        ("ALLOWED", "READ", "alice-verifies"),
        ("DENIED", "DESCRIBE", "bob-verifies"),
    },
    kcat_reads_in_a_group: {("ALLOWED", "READ", "alice-kcat"), ("DENIED", "DESCRIBE", "bob-kcat")},
}
"""With what the audit log must have of each: decision, operation, name."""


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_client_may_what_its_acls_allow(scene: GuardedCluster, tmp_path: Path, use: Use) -> None:
    use(scene, tmp_path)

    def audited() -> set[tuple[str, str, str]]:
        events = scene.kustos.audit_events()
        return {(each["decision"], each["operation"], each["resource_name"]) for each in events}

    wait_until(lambda: audited() >= USES[use], what="the decisions are in the audit log")
