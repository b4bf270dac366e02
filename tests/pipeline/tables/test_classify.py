"""Each line becomes an event, a duplicate or a quarantined line with its reason."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from pyspark.testing import assertDataFrameEqual

from kustos.pipeline.lines.line_columns import MAXIMUM_LINE_CHARACTERS
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, LINES_SCHEMA, QUARANTINE_SCHEMA
from kustos.pipeline.tables.deduplication import frames, outcomes
from tests.pipeline.events import event, event_line, kafka_line

DATA = Path(__file__).parents[1] / "data"
MATCHING = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=pay, patternType=PREFIXED, "
    "principal=User:*, host=10.0.0.0/8, operation=ALL, permissionType=DENY])"
)
GOOD_JSON = event_line()
QUARANTINED = {
    "": "blank",
    "hello world": "format_unknown",
    "[1, 2]": "format_unknown",
    GOOD_JSON[:-20]: "json_malformed",
    GOOD_JSON + event_line(2): "json_malformed",
    GOOD_JSON + " junk": "json_malformed",
    event_line(time_ms="soon"): "json_malformed",
    event_line(api_key=2**40): "json_malformed",
    GOOD_JSON.replace('"', "'"): "json_malformed",
    "{}": "field_missing: schema_version",
    event_line(rule__kind=None): "field_missing: rule.kind",
    event_line(schema_version=3): "schema_version_unknown",
    event_line(decision="MAYBE"): "decision_unknown",
    event_line(time_ms=-1): "time_out_of_range",
    event_line(time_ms=2**62): "time_out_of_range",
    kafka_line(time="2026-02-30 04:00:00,123"): "time_out_of_range",
    kafka_line()[:-30]: "kafka_line_incomplete",
    kafka_line(result="Maybe"): "kafka_line_incomplete",
    kafka_line(principal="User:a is Denied operation = READ from host = 1.1.1.1"): "kafka_line_ambiguous",
    kafka_line(resource="Topic:LITERAL:a for request = Fetch"): "kafka_line_ambiguous",
    kafka_line(resource="Topic:LITERAL:a\x1fb"): "kafka_line_ambiguous",
}


def lines_of(spark: SparkSession, *lines: str, file: str = "a.log") -> DataFrame:
    return spark.createDataFrame([(file, line) for line in lines], LINES_SCHEMA)


def reasons_of(classified: DataFrame) -> dict[str, str | None]:
    return {row["line"]: row["reason"] for row in classified.collect()}


def test_what_is_no_event_is_quarantined_with_its_reason(spark: SparkSession) -> None:
    found = reasons_of(lines_of(spark, *QUARANTINED).transform(frames.classify))
    assert {line: (found[line] or "")[: len(reason)] for line, reason in QUARANTINED.items()} == QUARANTINED


def test_bytes_that_are_no_text_and_endless_lines_are_quarantined_cut(spark: SparkSession) -> None:
    binary = spark.createDataFrame(
        [("b", bytes(range(128, 256))), ("c", b"{" + b"x" * MAXIMUM_LINE_CHARACTERS)],
        StructType([StructField("file", StringType()), StructField("bytes", BinaryType())]),
    )
    lines = binary.selectExpr("file", "cast(bytes as string) as line")
    rows = lines.transform(frames.classify).transform(frames.quarantine).orderBy("file").collect()
    assert [row["reason"] for row in rows] == ["not_utf8", "line_too_long"]
    assert len(rows[1]["line"]) == frames.MAXIMUM_QUARANTINED_CHARACTERS
    assert rows[1]["line_length"] == MAXIMUM_LINE_CHARACTERS + 1


def test_a_json_event_keeps_every_field(spark: SparkSession) -> None:
    written = event(rule__kind="MatchingAcl", rule__host="*", client_id="café ☕", log_if_denied=True)
    lines = lines_of(spark, json.dumps(written) + "\r")
    row = lines.transform(frames.classify).transform(frames.audit_events).collect()[0]
    found = row.asDict(recursive=True)
    assert {name: found[name] for name in written} == written
    assert (found["source_format"], found["source_file"]) == ("json", "a.log")
    assert found["time"].timestamp() * 1000 == pytest.approx(written["time_ms"])


def test_a_kafka_line_says_what_it_says_and_no_more(spark: SparkSession) -> None:
    line = kafka_line(level="INFO", result="Denied", resource="TransactionalId:LITERAL:a: b", rule=MATCHING)
    events = lines_of(spark, line).transform(frames.classify, time_zone="Europe/Berlin")
    found = events.transform(frames.audit_events).collect()[0].asDict(recursive=True)
    known = {name: value for name, value in found.items() if value is not None}
    assert known.pop("event_id").startswith("kafka-")
    assert known.pop("time").timestamp() * 1000 == known["time_ms"]
    assert known == {
        "time_ms": 1_795_230_000_123,
        "principal_type": "User",
        "principal_name": "bob",
        "host": "127.0.0.1",
        "api_name": "Fetch",
        "resource_type": "TRANSACTIONAL_ID",
        "resource_name": "a: b",
        "operation": "READ",
        "decision": "DENIED",
        "rule": {
            "kind": "MatchingAcl",
            "resource_type": "TOPIC",
            "resource_name": "pay",
            "pattern_type": "PREFIXED",
            "principal": "User:*",
            "host": "10.0.0.0/8",
            "operation": "ALL",
            "permission_type": "DENY",
        },
        "reference_count": 1,
        "log_if_denied": True,
        "access": "ACCESS",
        "source_format": "kafka",
        "source_file": "a.log",
        "cluster": "",
    }


def test_in_the_repeated_hour_the_earlier_time_is_taken(spark: SparkSession) -> None:
    lines = lines_of(spark, kafka_line(time="2026-10-25 02:30:00,000"))
    events = lines.transform(frames.classify, time_zone="Europe/Berlin")
    assert [row["time_ms"] for row in events.collect()] == [1_792_888_200_000]


def test_kafkas_probe_for_any_resource_has_no_name(spark: SparkSession) -> None:
    probe = kafka_line(resource="Topic:LITERAL:hardcode", count=0)
    real = kafka_line(resource="Topic:LITERAL:hardcode", count=1)
    events = lines_of(spark, probe, real).transform(frames.classify).transform(frames.audit_events)
    assert {row["reference_count"]: row["resource_name"] for row in events.collect()} == {
        0: None,
        1: "hardcode",
    }


def test_what_a_custom_authorizer_decided_is_read(spark: SparkSession) -> None:
    events = lines_of(spark, kafka_line(rule="CustomAuthorizer")).transform(frames.classify)
    assert [(row["reason"], row["rule"]["kind"]) for row in events.collect()] == [(None, "CustomAuthorizer")]


def test_real_lines_of_a_broker_are_all_read_but_the_forged_ones(spark: SparkSession) -> None:
    lines = (DATA / "kafka-authorizer.log").read_text().splitlines()
    classified = lines_of(spark, *lines).transform(frames.classify).collect()
    forged = {line for line in lines if "User:x is Allowed operation" in line or "victim" in line}
    cut = {line for line in lines if line.endswith("Topic:LITERAL:evil")}
    assert len(lines) == 158
    assert cut
    assert {row["line"] for row in classified if row["outcome"] == outcomes.QUARANTINED} == forged | cut
    assert Counter(row["rule"]["kind"] for row in classified if row["reason"] is None).keys() == {
        "SuperUser",
        "DefaultDeny",
        "MatchingAcl",
    }


def test_copies_are_duplicates_and_repetitions_are_not(spark: SparkSession) -> None:
    kafka = kafka_line()
    lines = lines_of(spark, event_line(1), kafka, kafka)
    for file in ("a.log.gz", "b/a.log"):
        lines = lines.union(lines_of(spark, event_line(1), kafka, kafka, file=file))
    classified = lines.transform(frames.classify)
    outcomes = Counter((row["outcome"], row["source_format"]) for row in classified.collect())
    assert outcomes == {
        ("event", "json"): 1,
        ("duplicate", "json"): 2,
        ("event", "kafka"): 4,  # two in `a.log` and its copy, two of another broker
        ("duplicate", "kafka"): 2,
    }
    identifiers = [r["event_id"] for r in classified.transform(frames.audit_events).collect()]
    assert len(set(identifiers)) == 5


def test_an_event_id_with_two_contents_is_quarantined(spark: SparkSession) -> None:
    lines = lines_of(spark, event_line(1), event_line(1, decision="DENIED"), event_line(1))
    found = Counter((row["outcome"], row["reason"]) for row in lines.transform(frames.classify).collect())
    assert found[outcomes.QUARANTINED, "event_id_conflict"] >= 1
    assert found[outcomes.EVENT, None] == 1
    assert found.total() == 3


def test_the_tables_have_their_schemas_even_when_empty(spark: SparkSession) -> None:
    classified = lines_of(spark).transform(frames.classify)
    events = spark.createDataFrame([], AUDIT_EVENTS_SCHEMA)
    assertDataFrameEqual(classified.transform(frames.audit_events), events)
    assertDataFrameEqual(
        classified.transform(frames.quarantine), spark.createDataFrame([], QUARANTINE_SCHEMA)
    )
