"""Kafka's share consumers and their tool through kustos before two brokers (KIP-932)."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.static.primitive import i8

from testkit.guarded.cluster import PREFIXED, GuardedCluster, Op, Type, acl
from testkit.guarded.raw_client import RawClient
from testkit.guarded.tools import GuardedTools
from testkit.kafka import KafkaTools, ToolResult
from testkit.kustos import KustosSettings
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

USERS = {name: f"{name}-secret" for name in ("admin", "tom", "dave", "eve")}
ACLS = (
    # tom reads a topic in his groups, and keeps these
    acl("tom", Op.READ, Type.TOPIC, "orders"),
    *[
        acl("tom", operation, Type.GROUP, "tom-", PREFIXED)
        for operation in (Op.READ, Op.DELETE, Op.ALTER_CONFIGS)
    ],
    # dave sees the topic, and reads in tom's groups nothing of it
    acl("dave", Op.DESCRIBE, Type.TOPIC, "orders"),
    acl("dave", Op.READ, Type.GROUP, "tom-", PREFIXED),
    # eve reads the topic, in no group
    acl("eve", Op.READ, Type.TOPIC, "orders"),
)
RECORDS = 20
DESCRIBE_CONFIGS, GROUP = 32, 32
WAIT_S = 60.0
COMES_MS, REFUSED_MS = 45_000, 4_000
"""How long a reader waits for records, and how long one that is refused, which may tell of it only then; it
is started again if it was not refused by then. Both come within a second on an idle machine."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """Two brokers, each leading a partition of a topic with records."""
    settings = KustosSettings(users=USERS, acls=ACLS)
    with GuardedCluster(
        tmp_path_factory.mktemp("shares"), settings, nodes=2, topics=("orders", "hidden"), partitions=2
    ) as made:
        producer = Producer({"bootstrap.servers": made.direct})
        for number in range(RECORDS):
            producer.produce("orders", f"record-{number}".encode(), partition=number % 2)
            producer.produce("hidden", b"secret", partition=number % 2)
        assert producer.flush(WAIT_S) == 0
        yield made


def begins_at(broker: str, group: str) -> str:
    """Return where a group begins to read, as this broker knows it."""
    asked = DescribeConfigsResource(
        resource_type=i8(GROUP), resource_name=group, configuration_keys=("share.auto.offset.reset",)
    )
    with RawClient(broker, "past") as client:
        answer = client.ask(
            DESCRIBE_CONFIGS, 4, resources=(asked,), include_synonyms=False, include_documentation=False
        )
    [config] = answer.results[0].configs
    return str(config.value)


class Tool(GuardedTools):
    """What these tests ask of the tools."""

    def from_the_beginning(self, group: str) -> None:
        """Have a group read what is there already."""
        entity = ("--entity-type", "groups", "--entity-name", group)
        change = ("--alter", "--add-config", "share.auto.offset.reset=earliest")
        self("ConfigCommand", "tom", *change, *entity).require()
        # the controller has answered, and each broker begins where the setting says that it has read
        for node in self.scene.cluster.nodes:
            wait_until(
                partial(begins_at, f"{LOOPBACK}:{node.internal_port}", group),
                holds=lambda found: found == "earliest",
                what=f"node {node.node_id} knows where `{group}` begins",
            )

    def consume(self, user: str, group: str, count: int) -> ToolResult:
        """Read records until there are as many, or none came for long."""
        wanted = ("--max-messages", str(count), "--timeout-ms", str(COMES_MS))
        return self("ConsoleShareConsumer", user, "--topic", "orders", "--group", group, *wanted)


@pytest.fixture
def tool(scene: GuardedCluster, kafka_tools: KafkaTools, tmp_path: Path) -> Tool:
    return Tool(scene, kafka_tools, tmp_path)


@pytest.mark.behaviour("B160")
def test_records_are_shared_by_who_reads_the_group_and_the_topic(tool: Tool) -> None:
    tool.from_the_beginning("tom-shares")
    outcome = tool.consume("tom", "tom-shares", RECORDS)
    assert sorted(outcome.require().split()) == sorted(f"record-{number}" for number in range(RECORDS))


@pytest.mark.behaviour("B160")
@pytest.mark.parametrize(
    ("user", "group", "topic", "why"),
    [
        ("dave", "tom-denied", "orders", "TopicAuthorizationException"),
        ("eve", "tom-denied", "orders", "GroupAuthorizationException"),
        ("tom", "others", "orders", "GroupAuthorizationException"),
        ("tom", "tom-denied", "hidden", "TopicAuthorizationException"),
    ],
)
def test_nothing_is_shared_with_others(tool: Tool, user: str, group: str, topic: str, why: str) -> None:
    tool.from_the_beginning("tom-denied")
    # not to the end: who may not read asks again at once, as fast as both processors can
    asked = ("--topic", topic, "--group", group, "--timeout-ms", str(REFUSED_MS))
    said = tool.says(why, "ConsoleShareConsumer", user, *asked)
    assert "record" not in said
    assert "secret" not in said


def test_a_verifiable_consumer_acknowledges_every_record(tool: Tool) -> None:
    tool.from_the_beginning("tom-verifies")
    wanted = ("--topic", "orders", "--group-id", "tom-verifies", "--max-messages", str(RECORDS))
    outcome = tool("VerifiableShareConsumer", "tom", *wanted)
    assert '"name":"offsets_acknowledged"' in outcome.require()
    described = tool(
        "ShareGroupCommand", "tom", "--describe", "--group", "tom-verifies", "--offsets"
    ).require()
    lines = [line.split() for line in described.splitlines() if line.startswith("tom-verifies")]
    lags = {(topic, partition): lag for _, topic, partition, _, lag in lines}
    assert lags == {("orders", "0"): "0", ("orders", "1"): "0"}


@pytest.mark.behaviour("B162")
def test_offsets_are_kept_by_who_may(tool: Tool) -> None:
    group = ("--group", "tom-offsets")
    reset = ("--reset-offsets", *group, "--topic", "orders", "--to-earliest", "--execute")
    assert "orders" in tool("ShareGroupCommand", "tom", *reset).require()
    listed = tool("ShareGroupCommand", "tom", "--list").require()
    assert "tom-offsets" in listed
    offsets = ("--describe", *group, "--offsets")
    assert "orders" in tool("ShareGroupCommand", "tom", *offsets).require()
    refused = tool("ShareGroupCommand", "eve", *offsets)
    assert "GroupAuthorizationException" in refused.stdout + refused.stderr
    deletion = ("--delete-offsets", *group, "--topic", "orders")
    refused = tool("ShareGroupCommand", "dave", *deletion)
    assert "Group authorization failed" in refused.stdout + refused.stderr
    assert "Successful" in tool("ShareGroupCommand", "tom", *deletion).require()
