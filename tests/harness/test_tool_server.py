"""Tools that share a JVM say what they say in one of their own; one that hangs holds up no other."""

import socket
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from testkit.kafka import KAFKA, ChildError, KafkaNode, KafkaTools, ToolResult, count_records, make_topics
from testkit.kafka.tool_server import ToolServer, ToolTimeoutError
from testkit.kafka.tools import SERVED, full_name
from testkit.loopback_names import LoopbackNames
from testkit.ports import LOOPBACK

TWO = ("--from-beginning", "--max-messages", "2")


def said(result: ToolResult) -> tuple[int, list[str], list[str]]:
    """Return all but the frames of a trace, which go on to the caller of `main`."""
    out, err = (
        [line for line in text.splitlines() if not line.startswith("\tat ")]
        for text in (result.stdout, result.stderr)
    )
    return result.exit_code, out, err


def test_what_shares_a_jvm_are_kafkas_tools() -> None:
    classes = {name for jar in KAFKA.resolve().glob("kafka*.jar") for name in zipfile.ZipFile(jar).namelist()}
    wanted = {f"{full_name(tool).replace('.', '/')}.class" for tool in SERVED}
    assert wanted - classes == set()


@pytest.mark.parametrize(
    "words",
    [
        ("TopicCommand", "--list"),
        ("TopicCommand", "--no-such-option"),
        ("TopicCommand", "--help"),
        ("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "1"),
        ("AclCommand", "--list"),
        ("StorageTool", "format"),
        ("DumpLogSegments", "--files", "/no/such/file"),
    ],
    ids=" ".join,
)
def test_a_tool_says_what_it_says_in_a_jvm_of_its_own(
    kafka: KafkaNode, kafka_tools: KafkaTools, words: tuple[str, ...]
) -> None:
    tool, *arguments = words
    server = () if tool in {"StorageTool", "DumpLogSegments"} else ("--bootstrap-server", kafka.bootstrap)
    shared = kafka_tools.run(tool, *server, *arguments)
    assert said(shared) == said(kafka_tools.run(tool, *server, *arguments, own_jvm=True))
    assert shared.stdout or shared.stderr


def test_a_tool_reads_its_input_and_does_at_its_end_what_is_left(
    kafka: KafkaNode, kafka_tools: KafkaTools
) -> None:
    topics = {False: "sent-shared", True: "sent-alone"}
    make_topics([kafka], *(NewTopic(topic, 1, 1) for topic in topics.values()))
    results = []
    for own_jvm, topic in topics.items():
        to = ("--bootstrap-server", kafka.bootstrap, "--topic", topic)
        # it waits a second for more records before it sends these, and ends before
        written = kafka_tools.run("ConsoleProducer", *to, stdin="one\nzwölf\n", own_jvm=own_jvm)
        assert count_records(kafka, topic) == 2
        read = kafka_tools.run("ConsoleConsumer", *to, *TWO, own_jvm=own_jvm)
        nothing = kafka_tools.run("ConsoleProducer", *to, own_jvm=own_jvm)
        refused = kafka_tools.run("ConsoleConsumer", *to, "--no-such-option", own_jvm=own_jvm)
        results.append([said(each) for each in (written, read, nothing, refused)])
    assert results[0] == results[1]
    assert results[0][1][1] == ["one", "zwölf"]


def test_a_tool_that_hangs_is_killed_and_the_next_one_runs(kafka: KafkaNode, kafka_tools: KafkaTools) -> None:
    with socket.create_server((LOOPBACK, 0)) as silent:
        address = f"{LOOPBACK}:{silent.getsockname()[1]}"
        with pytest.raises(ToolTimeoutError):
            kafka_tools.run("TopicCommand", "--bootstrap-server", address, "--list", timeout_s=2)
    assert kafka_tools.run("TopicCommand", "--bootstrap-server", kafka.bootstrap, "--list").exit_code == 0


def test_a_tool_is_not_kept_waiting_by_one_that_hangs(kafka: KafkaNode) -> None:
    server, topics = ToolServer(), full_name("TopicCommand")
    with socket.create_server((LOOPBACK, 0)) as silent, ThreadPoolExecutor() as others:
        address = f"{LOOPBACK}:{silent.getsockname()[1]}"
        hanging = others.submit(server.run, topics, ["--bootstrap-server", address, "--list"], 600)
        silent.accept()
        listing = ["--bootstrap-server", kafka.bootstrap, "--list"]
        assert server.run(topics, listing, 60) is None
        server.stop()
        with pytest.raises(ChildError):
            hanging.result()
        answer = server.run(topics, listing, 60)
        assert answer is not None
        assert answer[0] == 0
        server.stop()


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_the_environment_of_a_tool_is_that_of_its_jvm(
    tmp_path: Path, kafka: KafkaNode, kafka_tools: KafkaTools, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    address = f"broker.example.com:{kafka.bootstrap.rpartition(':')[2]}"
    codes = []
    for known in ("broker.example.com", "another.example.com"):
        (tmp_path / known).mkdir()
        environment = LoopbackNames(tmp_path / known, [known]).java
        if by == "variable":
            for name, value in environment.items():
                monkeypatch.setenv(name, value)
            environment = {}
        listing = ("TopicCommand", "--bootstrap-server", address, "--list")
        codes.append(kafka_tools.run(*listing, environment=environment).exit_code)
    assert codes == [0, 1]
