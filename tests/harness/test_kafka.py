"""The harness keeps its word: brokers serve when it says so, and end when it says so."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.kafka import (
    PLAINTEXT,
    SASL_PLAINTEXT,
    STANDARD_AUTHORIZER,
    ChildError,
    ClusterFactory,
    KafkaNode,
    KafkaTools,
    NodeFactory,
    NodeSettings,
)
from testkit.kafka.probe import broker_ids
from testkit.paths import ROOT
from testkit.waiting import wait_until


def topics(tools: KafkaTools, bootstrap: str) -> set[str]:
    return set(tools.run("TopicCommand", "--bootstrap-server", bootstrap, "--list").require().split())


def test_a_topic_made_by_kafkas_tool_is_listed(kafka: KafkaNode, kafka_tools: KafkaTools) -> None:
    create = ["--create", "--topic", "harness", "--partitions", "1", "--replication-factor", "1"]
    kafka_tools.run("TopicCommand", "--bootstrap-server", kafka.bootstrap, *create).require()
    wait_until(lambda: "harness" in topics(kafka_tools, kafka.bootstrap), what="the topic is listed")


def test_records_typed_into_the_console_producer_come_out_of_the_console_consumer(
    kafka: KafkaNode, kafka_tools: KafkaTools
) -> None:
    server = ["--bootstrap-server", kafka.bootstrap, "--topic", "harness-records"]
    kafka_tools.run("TopicCommand", *server, "--create").require()
    kafka_tools.run("ConsoleProducer", *server, stdin="one\ntwo\n").require()
    read = kafka_tools.run("ConsoleConsumer", *server, "--from-beginning", "--max-messages", "2").require()
    assert read.splitlines() == ["one", "two"]


def test_a_tool_that_fails_says_so(kafka: KafkaNode, kafka_tools: KafkaTools) -> None:
    result = kafka_tools.run(
        "TopicCommand", "--bootstrap-server", kafka.bootstrap, "--describe", "--topic", "none"
    )
    assert result.exit_code == 1
    with pytest.raises(ChildError, match="does not exist"):
        result.require()


def test_a_stopped_broker_is_gone_and_starts_again_with_its_data(
    tmp_path: Path, kafka_tools: KafkaTools
) -> None:
    node = KafkaNode(tmp_path).start()
    try:
        create = ["--create", "--topic", "kept"]
        kafka_tools.run("TopicCommand", "--bootstrap-server", node.bootstrap, *create).require()
        pid = node.pid
        node.stop()
        assert not Path(f"/proc/{pid}").exists()
        assert broker_ids(node.internal_port, sasl=False) == frozenset()
        node.start()
        assert "kept" in topics(kafka_tools, node.bootstrap)
    finally:
        node.kill()


def test_scram_users_log_in_and_the_authorizer_decides_for_them(
    kafka_node: NodeFactory, kafka_tools: KafkaTools
) -> None:
    settings = NodeSettings(
        listeners=(PLAINTEXT, SASL_PLAINTEXT),
        users={"alice": "alice-secret", "mallory": "mallory-secret"},
        authorizer=STANDARD_AUTHORIZER,
        super_users=("User:alice",),
    )
    node = kafka_node(settings)

    def list_acls(user: str, mechanism: str) -> int:
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        jaas = f'{user}" password="{user}-secret";'
        client = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="{jaas}',
        }
        server = ["--bootstrap-server", node.address("SASL_PLAINTEXT"), "--list"]
        return kafka_tools.run("AclCommand", *server, client_properties=client).exit_code

    assert list_acls("alice", "SCRAM-SHA-512") == 0
    assert list_acls("alice", "PLAIN") == 0
    assert list_acls("mallory", "SCRAM-SHA-256") != 0
    log = node.authorizer_log.read_text()
    assert "Principal = User:mallory is Denied operation = DESCRIBE" in log


def test_every_broker_of_a_cluster_knows_every_other(kafka_cluster: ClusterFactory) -> None:
    cluster = kafka_cluster(nodes=2)
    for node in cluster.nodes:
        assert broker_ids(node.internal_port, sasl=False) == {1, 2}


def test_three_voters_elect_a_leader(kafka_cluster: ClusterFactory, kafka_tools: KafkaTools) -> None:
    cluster = kafka_cluster(nodes=3, controllers=3)
    status = kafka_tools.run(
        "MetadataQuorumCommand", "--bootstrap-server", cluster.bootstrap, "describe", "--status"
    ).require()
    voters = next(line for line in status.splitlines() if line.startswith("CurrentVoters"))
    assert voters.count("directoryId") == 3


def test_a_broker_that_cannot_start_shows_why(tmp_path: Path) -> None:
    settings = NodeSettings(authorizer="no.such.Authorizer")
    with pytest.raises(ChildError, match=r"no\.such\.Authorizer"):
        KafkaNode(tmp_path, settings).start()


def test_a_broker_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys\n"
        "from testkit.kafka import KafkaNode\n"
        "node = KafkaNode(pathlib.Path(sys.argv[1])).start()\n"
        "print(node.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        broker = int(parent.stdout.readline())
        assert Path(f"/proc/{broker}").exists()
        os.kill(parent.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{broker}").exists(), what="the broker is gone")
