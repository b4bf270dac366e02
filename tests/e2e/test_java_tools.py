"""Kafka's own Java clients and tools through kustos, judged between two taps."""

from collections.abc import Mapping

import pytest
from confluent_kafka import Producer

from testkit.guarded.cluster import GuardedCluster
from testkit.kafka import KafkaTools, ToolResult
from testkit.tap.frames import code, read_response
from testkit.waiting import wait_until

PRODUCE, INIT_PRODUCER_ID = 0, 22
CLUSTER_AUTHORIZATION_FAILED = 31
RECORDS = 300
GROUP_PROTOCOLS = {"classic": "PLAIN", "consumer": "SCRAM-SHA-512"}


class Runner:
    """Runs a tool against kustos as a user."""

    def __init__(self, scene: GuardedCluster, tools: KafkaTools) -> None:
        self.scene = scene
        self.tools = tools

    def __call__(
        self,
        tool: str,
        user: str,
        *arguments: str,
        mechanism: str = "SCRAM-SHA-256",
        stdin: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ToolResult:
        return self.tools.run(
            tool,
            "--bootstrap-server",
            self.scene.bootstrap,
            *arguments,
            stdin=stdin,
            client_properties={**self.scene.java(user, mechanism), **(properties or {})},
        )


@pytest.fixture
def run(scene: GuardedCluster, kafka_tools: KafkaTools) -> Runner:
    return Runner(scene, kafka_tools)


@pytest.fixture(scope="module", autouse=True)
def stocked(world: GuardedCluster) -> None:
    """Put records into a topic, past kustos."""
    producer = Producer({"bootstrap.servers": world.direct})
    for number in range(RECORDS):
        producer.produce("orders-us", f"record-{number}".encode())
    assert producer.flush(60) == 0


@pytest.mark.parametrize("protocol", GROUP_PROTOCOLS)
def test_what_the_console_producer_wrote_the_console_consumer_reads(run: Runner, protocol: str) -> None:
    topic = {"classic": "orders-eu", "consumer": "orders-us"}[protocol]
    mechanism = GROUP_PROTOCOLS[protocol]
    written = ["one", "two", "three"]
    run(
        "ConsoleProducer", "alice", "--topic", topic, mechanism=mechanism, stdin="\n".join(written) + "\n"
    ).require()
    earlier = [f"record-{number}" for number in range(RECORDS)] if topic == "orders-us" else []
    expected = earlier + written
    read = run(
        "ConsoleConsumer",
        "alice",
        *("--topic", topic, "--from-beginning", "--max-messages", str(len(expected))),
        *("--group", f"alice-{protocol}"),
        mechanism=mechanism,
        properties={"group.protocol": protocol},
    )
    assert read.require().splitlines() == expected
    groups = run("ConsumerGroupCommand", "alice", "--describe", "--group", f"alice-{protocol}")
    (row,) = [line.split() for line in groups.require().splitlines() if topic in line]
    # current offset, end of the log, lag
    assert row[3:6] == [str(len(expected))] * 2 + ["0"]


def test_the_console_consumer_is_told_what_it_may_not(run: Runner) -> None:
    topic = run("ConsoleConsumer", "carol", "--topic", "plans-hidden", "--group", "carol-group")
    assert "Not authorized to access topics: [plans-hidden]" in topic.stderr + topic.stdout
    group = run("ConsoleConsumer", "carol", "--topic", "orders-eu", "--group", "alice-group")
    assert "Not authorized to access group: alice-group" in group.stderr + group.stdout


def test_the_console_producer_gets_nowhere_without_write(run: Runner) -> None:
    """The tool itself says nothing of it: it is seen in what passed."""
    run("ConsoleProducer", "bob", "--topic", "orders-eu", stdin="x\n")
    asked = [each for each in run.scene.clients.exchanges if each.api_key == INIT_PRODUCER_ID]
    assert asked
    for each in asked:
        assert each.answer is not None
        body = read_response(each.answer, INIT_PRODUCER_ID, each.api_version)[1]
        assert code(body) == CLUSTER_AUTHORIZATION_FAILED
    assert not [each for each in run.scene.upstream.exchanges if each.api_key in {PRODUCE, INIT_PRODUCER_ID}]


def test_topics_are_made_described_listed_and_deleted(run: Runner) -> None:
    run("TopicCommand", "erin", "--create", "--topic", "erin-java", "--partitions", "2").require()
    denied = run("TopicCommand", "erin", "--create", "--topic", "orders-java")
    assert denied.exit_code == 1
    assert "TopicAuthorizationException" in denied.stderr + denied.stdout
    # the controller has made it, and the broker may yet have to read of it
    wait_until(
        lambda: run("TopicCommand", "erin", "--describe", "--topic", "erin-java").stdout,
        holds=lambda described: "PartitionCount: 2" in described,
        what="the topic is described",
    )
    assert run("TopicCommand", "bob", "--list").require().split() == ["orders-eu", "public-news"]
    run("TopicCommand", "erin", "--delete", "--topic", "erin-java").require()


def test_groups_are_listed_to_those_who_may_see_them(run: Runner) -> None:
    seen = run("ConsumerGroupCommand", "alice", "--list").require().split()
    assert set(seen) == {"alice-classic", "alice-consumer"}
    assert run("ConsumerGroupCommand", "dave", "--list").require().split() == []


def test_the_performance_tools_run(run: Runner) -> None:
    written = run(
        "ProducerPerformance",
        "alice",
        *("--topic", "orders-eu", "--num-records", "2000", "--record-size", "100", "--throughput", "-1"),
    )
    assert "2000 records sent" in written.require()
    read = run(
        "ConsumerPerformance",
        "alice",
        "--topic",
        "orders-eu",
        "--num-records",
        "2000",
        "--group",
        "alice-perf",
    )
    # the fifth column is the number of records
    assert float(read.require().splitlines()[-1].split(", ")[4]) >= 2000
