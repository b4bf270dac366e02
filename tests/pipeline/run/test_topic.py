"""A topic of a real broker with an authorizer, as lines; what goes wrong is told soon, without a secret."""

import contextlib
import io
import re
import signal
import socket
import threading
import time
import traceback

import pytest
from pyspark.sql import SparkSession

from kustos.client import KafkaError, ProtocolViolationError, RequestTimedOutError
from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.lines.line_columns import read_lines
from kustos.pipeline.run.topic import Span, TopicSettings, open_topic, read_topic
from kustos.pipeline.run.topic.failures import kafka_failure
from kustos.pipeline.run.topic.lines import read_spans
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from testkit.kafka import KafkaNode, NodeFactory
from testkit.ports import LOOPBACK
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.run.topics import GUARDED, PASSWORD, client_properties, fill, make_topic


@pytest.fixture(scope="module")
def guarded(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(GUARDED)


def settings_of(node: KafkaNode, topic: str = "nothing", **properties: str) -> TopicSettings:
    changed = {key.replace("__", "."): value for key, value in properties.items()}
    return TopicSettings(topic=topic, client_properties={**client_properties(node), **changed})


def test_every_record_is_a_line_with_its_place(spark: SparkSession, guarded: KafkaNode) -> None:
    topic = make_topic(guarded, partitions=2)
    values: list[str | bytes | None] = [f"line {at}" for at in range(50)]
    fill(guarded, topic, [*values, None, b"\xff\xfe"])
    lines = read_topic(spark, settings_of(guarded, topic))
    assert lines.schema.simpleString() == INPUT_LINES_SCHEMA.simpleString()
    # as bytes: what is not UTF-8 cannot leave a Connect server as text
    rows = lines.selectExpr("log", "position", "cast(line AS binary) AS bytes").collect()
    assert sorted(bytes(row["bytes"]) for row in rows) == sorted(
        [b"", b"\xff\xfe", *(str(value).encode() for value in values)]
    )
    assert {row["log"] for row in rows} == {f"topic:{topic}-0", f"topic:{topic}-1"}
    for log in {row["log"] for row in rows}:
        places = sorted(row["position"] for row in rows if row["log"] == log)
        assert places == list(range(len(places)))


def test_records_are_lines_of_the_layout_that_is_set_whatever_ends_them(
    spark: SparkSession, guarded: KafkaNode
) -> None:
    """An appender of log4j ends each record by `%n`; kustos' events may come by the same topic."""
    topic = make_topic(guarded, partitions=1)
    own = kafka_line(time="2026-11-21 04:00:00,000")
    strimzi = own.removeprefix("[").replace("] ", " ", 1) + " [data-plane-3]"
    fill(
        guarded,
        topic,
        [f"{strimzi}\n", f"{strimzi}\r\n", strimzi, f"{own}\n", event_line(1), b"\xff\n", "\n"],
    )
    properties = client_properties(guarded)

    def reasons(layout: str | None) -> list[str | None]:
        settings = TopicSettings(topic=topic, client_properties=properties, layout=layout)
        lines = read_topic(spark, settings).orderBy("position").toArrow()
        return [reason for batch in lines.to_batches() for reason in read_lines(batch)["reason"].to_pylist()]

    assert reasons("%d{ISO8601} %p %m (%c) [%t]%n") == [*[None] * 5, "not_utf8", "blank"]
    assert reasons(None) == [*["format_unknown"] * 3, None, None, "not_utf8", "blank"]


def test_no_plan_and_no_text_shows_a_secret(spark: SparkSession, guarded: KafkaNode) -> None:
    topic = make_topic(guarded)
    settings = settings_of(guarded, topic)
    texts = [repr(settings)]
    frame = read_topic(spark, settings)
    for mode in ("simple", "extended", "formatted"):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            frame.explain(mode=mode)
        assert "Plan ==" in shown.getvalue()
        texts.append(shown.getvalue())
    assert not [text for text in texts if "s3cr3t" in text or "hunter" in text]


MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
UNKNOWN_MODULE = f'com.x.Foo required password="{PASSWORD}";'
FAULTS = {
    "does not exist at": {},
    "refused the login": {"sasl__jaas__config": f'{MODULE} required username="admin" password="hunter3";'},
    "do not answer": {"bootstrap__servers": "127.0.0.1:1"},
    "check the address": {"bootstrap__servers": "no-such-host.invalid:9092"},
    "the client properties cannot be used": {"sasl__jaas__config": UNKNOWN_MODULE},
}


@pytest.mark.parametrize("told", FAULTS)
def test_what_goes_wrong_is_told_soon_and_without_a_secret(guarded: KafkaNode, told: str) -> None:
    before = time.monotonic()
    with (
        pytest.raises(KafkaInputError, match=told) as raised,
        open_topic(settings_of(guarded, **FAULTS[told])),
    ):
        pass
    assert time.monotonic() - before < 120  # Kafka's own defaults would take many minutes
    shown = "".join(traceback.format_exception(raised.value))
    assert "s3cr3t" not in shown
    assert "hunter" not in shown


def test_ctrl_c_ends_it_while_a_broker_is_silent() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    names = ("default.api.timeout.ms", "request.timeout.ms", "socket.connection.setup.timeout.ms")
    try:
        with socket.create_server((LOOPBACK, 0)) as silent:
            brokers = {"bootstrap.servers": f"{LOOPBACK}:{silent.getsockname()[1]}"}
            properties = brokers | dict.fromkeys(names, str(2**31 - 1))
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with (
                pytest.raises(KeyboardInterrupt),
                open_topic(TopicSettings(topic="audit", client_properties=properties)),
            ):
                pass
    finally:
        signal.signal(signal.SIGALRM, former)
    assert "topic_0" not in {thread.name for thread in threading.enumerate()}


def test_who_may_not_read_is_told_so(spark: SparkSession, guarded: KafkaNode) -> None:
    topic = make_topic(guarded)
    properties = client_properties(guarded, user="eve")
    with pytest.raises(KafkaInputError, match=f"no permission to read topic `{topic}`"):
        read_topic(spark, TopicSettings(topic=topic, client_properties=properties))


def test_an_end_that_is_never_reached_is_told_in_time(guarded: KafkaNode) -> None:
    topic = make_topic(guarded, partitions=1)
    fill(guarded, topic, ["a", "b"])
    settings = settings_of(guarded, topic, default__api__timeout__ms="1000", fetch__max__wait__ms="10")
    with pytest.raises(KafkaInputError, match="partition 0, from offset 2 on, though its end is 3"):
        list(read_spans(settings, None, [Span(0, 0, 3)]))


def test_what_brokers_answered_is_told_and_not_that_they_do_not_answer() -> None:
    late = RequestTimedOutError("topic `audit` could not be read within 15000 ms: LEADER_NOT_AVAILABLE")
    late.__cause__ = KafkaError(5)
    denied = RequestTimedOutError("late")
    denied.__cause__ = KafkaError(29)
    for error, told in (
        (late, "cannot read topic `audit`: .*LEADER_NOT_AVAILABLE"),
        (denied, "no permission to read topic `audit`"),
        (ProtocolViolationError("odd"), "cannot read topic `audit`: odd"),
        (RequestTimedOutError("late"), "do not answer"),
    ):
        settings = TopicSettings(topic="audit", client_properties={"bootstrap.servers": "x:1"})
        assert re.search(told, str(kafka_failure(error, settings)))


def test_settings_that_cannot_be_are_refused_before_anything_is_asked() -> None:
    for topic, properties, told in (
        ("a,b", {"bootstrap.servers": "x:1"}, "not a name of a topic"),
        ("..", {"bootstrap.servers": "x:1"}, "not a name of a topic"),
        ("audit", {}, "lack `bootstrap.servers`"),
    ):
        with pytest.raises(KafkaInputError, match=told):
            TopicSettings(topic=topic, client_properties=properties)
