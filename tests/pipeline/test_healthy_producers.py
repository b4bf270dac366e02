"""A restart of three hundred producers: each is denied IDEMPOTENT_WRITE first, and nothing is refused.

The node, its audit files and the questions are real: two producers of librdkafka show their shape, and the
three hundred ask the same over bare sockets. One client that really is refused stands among them.
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]
from pyspark.sql import SparkSession

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.cli.run import run
from kustos.pipeline.deciding import read_acl_set
from kustos.pipeline.tables import Tables
from kustos.wire.api_keys import ApiKey
from kustos.wire.record_batch import encoded_batch_of
from testkit.equality.requests import ask
from testkit.equality.sides import Side
from testkit.kafka import KafkaNode, make_topics
from testkit.kustos import KustosNode, KustosSettings

PRODUCERS = [f"producer-{number:03}" for number in range(300)]
"""Each starts once; `fleet` is one principal of as many processes, `mallory` has no right at all."""
REAL = ["shop-1", "shop-2"]
WRITERS = [*PRODUCERS, *REAL, "fleet"]
USERS = {name: f"{name}-secret" for name in (*WRITERS, "mallory")}
TOPIC = "restart-orders"
CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED = 31, 29
WAIT_S = 60.0
ORDER = encoded_batch_of(0, -1, 0, [b"order"])

Shape = tuple[tuple[str, str, str | None, str, bool, str], ...]


def may_write(user: str) -> AclBinding:
    entry = AccessControlEntry(f"User:{user}", "*", AclOperation.WRITE, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, TOPIC, PatternType.LITERAL), entry)


def started(side: Side, user: str) -> int:
    """Ask for a producer's id as a producer does that starts; return the error."""
    fields: dict[str, Any] = {"transactional_id": None, "transaction_timeout_ms": 2**31 - 1}
    code: int = ask(
        side, user, ApiKey.INIT_PRODUCER_ID, 4, **fields, producer_id=-1, producer_epoch=-1
    ).error_code
    return code


def produced(side: Side, user: str) -> int:
    topic = {"name": TOPIC, "partition_data": [{"index": 0, "records": ORDER}]}
    answer = ask(
        side, user, ApiKey.PRODUCE, 9, transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[topic]
    )
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def produce_for_real(node: KustosNode, user: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": USERS[user],
            "enable.idempotence": True,
        }
    )
    errors: list[object] = []
    producer.produce(TOPIC, b"order", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    assert errors == [None]


@pytest.fixture(scope="module")
def place(kafka: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The audit of the restart, Kafka's lines of it, the metrics at its end, and a configuration."""
    folder = tmp_path_factory.mktemp("restart")
    make_topics([kafka], NewTopic(TOPIC, 1, 1))
    lines = {"kustos.audit.sinks": "json,log4j", "kustos.audit.log4j.file": str(folder / "kafka.log")}
    acls = [may_write(user) for user in WRITERS]
    settings = KustosSettings(users=USERS, acls=acls, properties=lines)
    with KustosNode(folder / "node", kafka.bootstrap, settings) as node:
        for user in REAL:
            produce_for_real(node, user)
        with Side("kustos", node.bootstrap, USERS) as side:
            for user in PRODUCERS:
                assert (started(side, user), produced(side, user)) == (0, 0)
                side.hang_up(user)
                assert started(side, "fleet") == 0
                assert started(side, "mallory") == CLUSTER_AUTHORIZATION_FAILED
            assert produced(side, "fleet") == 0
            assert produced(side, "mallory") == TOPIC_AUTHORIZATION_FAILED
        (folder / "metrics").write_text(node.metrics())
        assert node.stop() == 0
    (folder / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: node/audit\n"
    )
    assert run(["pipeline", "run", "--config", str(folder / "pipeline.yml"), "--output", "json"]) == 0
    return folder


@pytest.fixture(scope="module")
def events(place: Path) -> list[dict[str, Any]]:
    texts = [path.read_text() for path in sorted((place / "node" / "audit").glob("*.jsonl"))]
    found = [json.loads(line) for text in texts for line in text.splitlines()]
    return [event for event in found if "event_type" not in event]


def shapes(events: list[dict[str, Any]]) -> dict[str, set[Shape]]:
    """Return what each principal's requests for a producer's id were asked and answered."""
    fields = ("operation", "resource_type", "resource_name", "decision", "log_if_denied", "access")
    requests: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for event in events:
        if event["api_name"] == "InitProducerId":
            requests[event["principal_name"], event["correlation_id"]].append(
                tuple(event[field] for field in fields)
            )
    found: dict[str, set[Shape]] = defaultdict(set)
    for (user, _), questions in requests.items():
        found[user].add(tuple(questions))
    return found


def said(capsys: pytest.CaptureFixture[str], place: Path, *words: str) -> Any:
    capsys.readouterr()
    command = ["pipeline", *words, "--config", str(place / "pipeline.yml"), "--output", "json"]
    assert run(command) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_the_events_say_which_denials_are_probes(events: list[dict[str, Any]]) -> None:
    probe = ("IDEMPOTENT_WRITE", "CLUSTER", "kafka-cluster", "DENIED", False, "ACCESS")
    let_in = ("WRITE", "TOPIC", None, "ALLOWED", False, "ACCESS")
    refused = ("WRITE", "TOPIC", None, "DENIED", False, "ACCESS")
    assert shapes(events) == {
        **{user: {(probe, let_in)} for user in WRITERS},
        "mallory": {(probe, refused)},
    }


def test_the_log_in_kafkas_form_has_the_one_denial_that_kafka_logs(place: Path) -> None:
    [line] = (place / "kafka.log").read_text().splitlines()
    assert "Principal = User:mallory is Denied operation = WRITE" in line
    assert "for request = Produce" in line


def test_the_metrics_count_probes_apart(place: Path, events: list[dict[str, Any]]) -> None:
    figures = re.findall(
        r'^kustos_authorization_decisions_total\{api="InitProducerId",result="(\w+)"\} (\S+)$',
        (place / "metrics").read_text(),
        re.MULTILINE,
    )
    starts = sum(event["operation"] == "IDEMPOTENT_WRITE" for event in events)
    assert {result: float(figure) for result, figure in figures} == {
        "PROBE": starts,
        "ALLOWED": starts - len(PRODUCERS),
        "DENIED": len(PRODUCERS),
        "FILTERED": 0,
        "SHADOW_DENIED": 0,
    }


def test_the_report_lists_no_producer_among_the_refused(
    spark: SparkSession, place: Path, events: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    page = place / "page.html"
    summary = said(capsys, place, "report", "--out", str(page))
    starts = sum(event["operation"] == "IDEMPOTENT_WRITE" for event in events)
    assert (summary["denied"], summary["probes"]) == (len(PRODUCERS) + 1, starts)
    assert summary["events"] == len(events)
    [denials] = re.findall(r'<ol class="bars" id="denials">.*?</ol>', page.read_text(), re.DOTALL)
    assert set(re.findall(r"<bdi>(User:[^<]*)</bdi>", denials)) == {"User:mallory"}
    rollup = Tables(place / "tables").read(spark, "audit_rollup").filter("decision = 'DENIED'")
    denied = {(row["access"], row["principal"]) for row in rollup.select("access", "principal").collect()}
    assert {who for access, who in denied if access == "ACCESS"} == {"User:mallory"}
    assert {who for access, who in denied if access == "PROBE"} == {f"User:{user}" for user in USERS}


def test_only_who_was_refused_is_an_anomaly(
    spark: SparkSession, place: Path, events: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    last_ms = max(event["time_ms"] for event in events)
    day = spark.sql(f"select date(timestamp_millis({last_ms}))").collect()[0][0]
    found = said(capsys, place, "anomalies", "find", "--until", str(day))
    assert {(row["kind"], row["principal"]) for row in found["anomalies"]} == {
        ("MISSING_RIGHT", "User:mallory")
    }


def test_what_is_recommended_gives_producers_their_topic_and_nothing_on_the_cluster(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = place / "least.yaml"
    assert said(capsys, place, "recommend", "--beyond-today", "--out", str(out))["is_proven"]
    granted = {
        (acl.entry.principal, acl.entry.operation.name, acl.pattern.resource_type.name)
        for acl in read_acl_set(out).bindings
    }
    assert granted >= {(f"User:{user}", "WRITE", "TOPIC") for user in WRITERS}
    assert {kind for _, _, kind in granted} == {"TOPIC"}
    assert "User:mallory" not in {who for who, _, _ in granted}
