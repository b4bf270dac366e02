"""Kafka's tools of every day through kustos before two brokers: records, groups, settings, places."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.guarded.tools import GuardedTools
from testkit.kafka import KafkaTools
from testkit.kustos import KustosSettings
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "olga", "tom", "dave")}
THE_CLUSTER = "kafka-cluster"
ACLS = (
    # olga operates the cluster and sees the topics in it
    *[
        acl("olga", operation, Type.CLUSTER, THE_CLUSTER)
        for operation in (Op.ALTER, Op.ALTER_CONFIGS, Op.DESCRIBE)
    ],
    acl("olga", Op.DESCRIBE, Type.TOPIC, "*"),
    acl("olga", Op.DESCRIBE_CONFIGS, Type.TOPIC, "*"),
    # tom owns a topic and his groups
    *[
        acl("tom", operation, Type.TOPIC, "orders")
        for operation in (Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.ALTER_CONFIGS)
    ],
    acl("tom", Op.READ, Type.GROUP, "tom-", PREFIXED),
    acl("tom", Op.DELETE, Type.GROUP, "tom-", PREFIXED),
    # dave sees the topic and the group
    acl("dave", Op.DESCRIBE, Type.TOPIC, "orders"),
    acl("dave", Op.DESCRIBE, Type.GROUP, "tom-", PREFIXED),
)
WAIT_S = 60.0
TOPIC_DENIED, GROUP_DENIED = "TopicAuthorizationException", "GroupAuthorizationException"
CLUSTER_DENIED = "ClusterAuthorizationException"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """Two brokers with one topic on both."""
    settings = KustosSettings(users=USERS, acls=ACLS)
    with GuardedCluster(
        tmp_path_factory.mktemp("daily"), settings, nodes=2, topics=("orders", "places")
    ) as made:
        yield made


class Tool(GuardedTools):
    """What these tests ask of the tools."""

    def refuses(self, why: str, tool: str, user: str, *arguments: str) -> None:
        """Assert that the tool says why it may not."""
        result = self(tool, user, *arguments)
        assert why in result.stdout + result.stderr, result.stdout + result.stderr

    def file(self, name: str, content: object) -> str:
        """Return the path of a file with this content as JSON."""
        path = self.directory / name
        path.write_text(json.dumps(content))
        return str(path)


@pytest.fixture
def tool(scene: GuardedCluster, kafka_tools: KafkaTools, tmp_path: Path) -> Tool:
    return Tool(scene, kafka_tools, tmp_path)


def write(scene: GuardedCluster, count: int) -> None:
    """Write records into tom's topic, past kustos."""
    producer = Producer({"bootstrap.servers": scene.direct})
    for number in range(count):
        producer.produce("orders", f"record-{number}".encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


@pytest.mark.behaviour("B140")
def test_records_are_deleted_by_who_may(tool: Tool) -> None:
    write(tool.scene, 5)
    plan = {"partitions": [{"topic": "orders", "partition": 0, "offset": 3}], "version": 1}
    wanted = ("--offset-json-file", tool.file("offsets.json", plan))
    tool.refuses(TOPIC_DENIED, "DeleteRecordsCommand", "dave", *wanted)
    assert "low_watermark: 3" in tool("DeleteRecordsCommand", "tom", *wanted).require()


@pytest.mark.behaviour("B141")
def test_partitions_are_added_by_who_may(tool: Tool) -> None:
    enlarge = ("--alter", "--topic", "orders", "--partitions", "2")
    tool.refuses(TOPIC_DENIED, "TopicCommand", "dave", *enlarge)
    tool("TopicCommand", "tom", *enlarge).require()
    wait_until(
        lambda: tool("TopicCommand", "tom", "--describe", "--topic", "orders").stdout,
        holds=lambda described: "PartitionCount: 2" in described,
        what="the topic has its partitions",
    )


def test_settings_of_a_topic_are_altered_by_who_may(tool: Tool) -> None:
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    change = (*topic, "--alter", "--add-config", "retention.ms=7200000")
    tool.refuses(TOPIC_DENIED, "ConfigCommand", "dave", *change)
    tool("ConfigCommand", "tom", *change).require()
    wait_until(
        lambda: tool("ConfigCommand", "tom", *topic, "--describe").stdout,
        holds=lambda described: "retention.ms=7200000" in described,
        what="the setting is told",
    )


@pytest.mark.behaviour("B137", "B138")
def test_groups_and_their_offsets_are_deleted_by_who_may(tool: Tool) -> None:
    consumer = Consumer(tool.scene.librdkafka("tom", group_id="tom-daily"))
    consumer.commit(offsets=[Partition("orders", 0, 4)], asynchronous=False)
    consumer.close()
    group = ("--group", "tom-daily")
    offsets = ("--delete-offsets", *group, "--topic", "orders:0")
    tool.refuses(GROUP_DENIED, "ConsumerGroupCommand", "dave", *offsets)
    assert "Successful" in tool("ConsumerGroupCommand", "tom", *offsets).require()
    tool.refuses(GROUP_DENIED, "ConsumerGroupCommand", "dave", "--delete", *group)
    consumer = Consumer(tool.scene.librdkafka("tom", group_id="tom-daily"))
    consumer.commit(offsets=[Partition("orders", 0, 4)], asynchronous=False)
    consumer.close()
    tool("ConsumerGroupCommand", "tom", "--delete", *group).require()
    assert "tom-daily" not in tool("ConsumerGroupCommand", "dave", "--list").require()


@pytest.mark.behaviour("B117", "B177")
def test_brokers_loggers_and_quotas_are_altered_by_who_may(tool: Tool) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    logger = ("--entity-type", "broker-loggers", "--entity-name", "1")
    user = ("--entity-type", "users", "--entity-name", "tom")
    known = tool("ConfigCommand", "olga", *logger, "--describe").require()
    name = next(line.split("=")[0].strip() for line in known.splitlines() if "=" in line)
    for entity, change, told in (
        (broker, "background.threads=11", "background.threads=11"),
        (logger, f"{name}=WARN", f"{name}=WARN"),
        (user, "consumer_byte_rate=100000000", "consumer_byte_rate=1.0E8"),
    ):
        words = (*entity, "--alter", "--add-config", change)
        tool.refuses(CLUSTER_DENIED, "ConfigCommand", "tom", *words)
        tool("ConfigCommand", "olga", *words).require()
        wait_until(
            lambda entity=entity: tool("ConfigCommand", "olga", *entity, "--describe").stdout,  # type: ignore[misc]
            holds=lambda described, told=told: told in described,  # type: ignore[misc]
            what=f"`{change}` is told",
        )
    # all settings: upstream's addresses are not among them, as the scene's own check of leaks sees
    everything = tool("ConfigCommand", "olga", *broker, "--describe", "--all").require()
    assert "advertised.listeners=null sensitive=true" in everything
    tool.refuses(
        "InvalidRequestException",
        "ConfigCommand",
        "olga",
        *(*broker, "--alter", "--add-config", "listener.security.protocol.map=[PLAINTEXT:PLAINTEXT]"),
    )


@pytest.mark.behaviour("B178", "B179")
def test_places_are_seen_and_changed_by_who_operates_the_cluster(tool: Tool) -> None:
    moved = {"version": 1, "partitions": [{"topic": "places", "partition": 0, "replicas": [2]}]}
    plan = ("--reassignment-json-file", tool.file("plan.json", moved))
    for denied in (("--execute", *plan), ("--list",)):
        tool.refuses(CLUSTER_DENIED, "ReassignPartitionsCommand", "tom", *denied)
    reassign = "ReassignPartitionsCommand"
    tool(reassign, "olga", *plan, "--execute").require()
    wait_until(
        lambda: tool("TopicCommand", "olga", "--describe", "--topic", "places").stdout,
        holds=lambda described: "Replicas: 2\tIsr: 2" in described,
        what="the partition is at its new place",
    )
    assert "No partition reassignments found" in tool(reassign, "olga", "--list").require()
    logs = ("--describe", "--topic-list", "places")
    tool.refuses(CLUSTER_DENIED, "LogDirsCommand", "tom", *logs)
    assert '"partition":"places-0"' in tool("LogDirsCommand", "olga", *logs).require()
    elect = ("--election-type", "preferred", "--all-topic-partitions")
    tool.refuses("Not authorized to perform leader election", "LeaderElectionCommand", "tom", *elect)
    tool("LeaderElectionCommand", "olga", *elect).require()
    tool.refuses(CLUSTER_DENIED, "MetadataQuorumCommand", "tom", "describe", "--status")
    status = tool("MetadataQuorumCommand", "olga", "describe", "--status").require()
    assert "LeaderId" in status
    assert tool.scene.node(1).controller_address not in status


def test_librdkafka_administers_what_it_may(scene: GuardedCluster) -> None:
    write(scene, 3)
    tom, dave = (AdminClient(scene.librdkafka(name)) for name in ("tom", "dave"))
    partition = Partition("orders", 0, 1)
    deleted = tom.delete_records([partition])[partition].result(WAIT_S)
    assert deleted.low_watermark >= 1
    with pytest.raises(KafkaException) as failure:
        dave.delete_records([partition])[partition].result(WAIT_S)
    assert failure.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as failure:
        dave.create_partitions([NewPartitions("orders", 9)])["orders"].result(WAIT_S)
    assert failure.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as failure:
        dave.delete_consumer_groups(["tom-other"])["tom-other"].result(WAIT_S)
    assert failure.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    committed = [ConsumerGroupTopicPartitions("tom-other", [Partition("orders", 0, 2)])]
    tom.alter_consumer_group_offsets(committed)["tom-other"].result(WAIT_S)
    tom.delete_consumer_groups(["tom-other"])["tom-other"].result(WAIT_S)


@pytest.mark.behaviour("B178")
def test_features_and_voters_are_changed_by_who_may_alter_the_cluster(tool: Tool) -> None:
    downgrade = ("downgrade", "--feature", "share.version=1", "--dry-run")
    tool.refuses("Cluster authorization failed", "FeatureCommand", "tom", *downgrade)
    assert "share.version can be downgraded to 1" in tool("FeatureCommand", "olga", *downgrade).require()
    voter = ("--controller-id", "4711", "--controller-directory-id", "MzMzMzMzMzMzMzMzMzMzMw")
    tool.refuses(CLUSTER_DENIED, "MetadataQuorumCommand", "tom", "remove-controller", *voter)
    tool.refuses("Cannot remove voter", "MetadataQuorumCommand", "olga", "remove-controller", *voter)
