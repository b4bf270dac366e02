"""What real brokers wrote: Kafka 2.8.2 with AclAuthorizer through log4j 1, and Kafka 4.3.1 as it runs."""

import gzip
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import Row, SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import Tables
from testkit.kafka import KafkaNode, NodeFactory
from testkit.waiting import wait_until
from tests.pipeline.lines import reference
from tests.pipeline.run.topics import GUARDED, PASSWORD, fill, make_topic

pytestmark = pytest.mark.usefixtures("users_plans")

DATA = Path(__file__).parents[1] / "data"
OLD_LINES = 129


def taken(spark: SparkSession, audit: Path, tables: Tables, lines: list[str]) -> tuple[list[Row], list[Row]]:
    """Return the events and the quarantined lines of a log, which are those that the slow version tells."""
    run_pipeline(spark, tables=tables, audit=audit)
    events = tables.read(spark, "audit_events").collect()
    quarantined = tables.read(spark, "quarantine").collect()
    wanted = Counter(line for line in lines if reference.parse(line) is None)
    assert Counter(row["line"] for row in quarantined) == wanted
    assert len(events) == len(lines) - wanted.total()
    return events, quarantined


def test_every_decision_of_a_real_acl_authorizer_is_read(spark: SparkSession, tmp_path: Path) -> None:
    text = (DATA / "kafka-2.8.2-authorizer.log").read_text()
    lines = text.splitlines()
    assert len(lines) == OLD_LINES
    half = text.index("\n", len(text) // 2) + 1
    audit = tmp_path / "audit"
    audit.mkdir()
    (audit / "kafka-authorizer.log.2026-11-21-13.gz").write_bytes(gzip.compress(text[:half].encode()))
    (audit / "kafka-authorizer.log").write_text(text[half:])
    events, quarantined = taken(spark, audit, Tables(tmp_path / "tables"), lines)
    # a group called `a group for request = Fetch`, and one with a line break, each met more than once
    assert {row["reason"] for row in quarantined} == {
        "kafka_note",
        "kafka_line_ambiguous",
        "kafka_line_incomplete",
        "format_unknown",
    }
    decisions = Counter((row["principal_name"], row["decision"]) for row in events)
    assert decisions["admin", "ALLOWED"] > 0
    assert decisions["alice", "ALLOWED"] > 0
    assert decisions["alice", "DENIED"] > 0
    assert ("eve", "ALLOWED") not in decisions
    assert {row["operation"] for row in events} >= {"CLUSTER_ACTION", "DESCRIBE_CONFIGS"}
    assert {row["access"] for row in events} == {"ACCESS", "LISTING"}


def _deny(node: KafkaNode, topic: str) -> None:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "eve",
        "sasl.password": PASSWORD,
        "group.id": "a group is Allowed operation = READ",
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        consumer.poll(2)
    finally:
        consumer.close()
    admin = AdminClient(settings)
    try:
        admin.delete_topics([topic])[topic].result(timeout=30)
    except KafkaException:
        return


def test_every_decision_of_a_broker_that_runs_is_read(
    spark: SparkSession, kafka_node: NodeFactory, tmp_path: Path
) -> None:
    node = kafka_node(GUARDED)
    topic = make_topic(node)
    fill(node, topic, ["x"])
    _deny(node, topic)

    def written() -> list[str]:
        text = node.authorizer_log.read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    wait_until(
        lambda: any("is Denied operation = DELETE" in line or "eve" in line for line in written()),
        what="the denial is in the log",
    )
    lines = [f"[2026-11-21T04:26:55,815Z] {line} (kafka.authorizer.logger)" for line in written()]
    audit = tmp_path / "audit"
    audit.mkdir()
    (audit / "authorizer.log").write_text("\n".join(lines) + "\n")
    events, quarantined = taken(spark, audit, Tables(tmp_path / "tables"), lines)
    assert all("a group is Allowed operation" in row["line"] for row in quarantined)
    eve = {(row["operation"], row["decision"]) for row in events if row["principal_name"] == "eve"}
    assert eve
    assert {decision for _, decision in eve} == {"DENIED"}
