"""Each line becomes an event, a duplicate or a quarantined line with its reason."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from kustos.pipeline.lines.line_columns import MAXIMUM_LINE_CHARACTERS
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, LINES_SCHEMA
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables, ingest
from kustos.pipeline.tables.line_writer import MAXIMUM_QUARANTINED_CHARACTERS
from tests.pipeline.events import event, event_line, kafka_line
from tests.pipeline.lines import lines as random_lines
from tests.pipeline.lines.parsing import parsed

DATA = Path(__file__).parents[1] / "data"
MATCHING = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=pay, patternType=PREFIXED, "
    "principal=User:*, host=10.0.0.0/8, operation=ALL, permissionType=DENY])"
)
LINES = 1500
"""Of a random world."""

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
    event_line(decision="MAYBE"): "value_invalid: decision MAYBE",
    event_line(time_ms=-1): "time_out_of_range",
    event_line(time_ms=2**62): "time_out_of_range",
    kafka_line(time="2026-02-30 04:00:00,123"): "time_out_of_range",
    kafka_line()[:-30]: "kafka_line_incomplete",
    kafka_line(result="Maybe"): "kafka_line_incomplete",
    kafka_line(principal="User:a is Denied operation = READ from host = 1.1.1.1"): "kafka_line_ambiguous",
    kafka_line(resource="Topic:LITERAL:a for request = Fetch"): "kafka_line_ambiguous",
    kafka_line(resource="Topic:LITERAL:a\x1fb"): "kafka_line_ambiguous",
}


NO_ROLLUP = IngestOptions(with_rollup=False)


def lines_of(spark: SparkSession, *lines: str, file: str = "a.log") -> DataFrame:
    return spark.createDataFrame([(file, line) for line in lines], LINES_SCHEMA)


def taken(spark: SparkSession, lines: DataFrame, folder: Path) -> tuple[Tables, RunSummary]:
    tables = Tables(folder)
    return tables, ingest(spark, lines, tables, "run", options=NO_ROLLUP)


def test_what_is_no_event_has_its_reason() -> None:
    found = [row["reason"] or "" for row in parsed(list(QUARANTINED))]
    wanted = list(QUARANTINED.values())
    assert [each[: len(reason)] for each, reason in zip(found, wanted, strict=True)] == wanted


def test_bytes_that_are_no_text_and_endless_lines_are_quarantined_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    binary = spark.createDataFrame(
        [("b", bytes(range(128, 256))), ("c", b"{" + b"x" * MAXIMUM_LINE_CHARACTERS)],
        StructType([StructField("file", StringType()), StructField("bytes", BinaryType())]),
    )
    tables, _ = taken(spark, binary.selectExpr("file", "cast(bytes as string) as line"), tmp_path)
    rows = tables.read(spark, "quarantine").orderBy("file").collect()
    assert [row["reason"] for row in rows] == ["not_utf8", "line_too_long"]
    assert len(rows[1]["line"]) == MAXIMUM_QUARANTINED_CHARACTERS
    assert rows[1]["line_length"] == MAXIMUM_LINE_CHARACTERS + 1


def test_a_json_event_keeps_every_field(spark: SparkSession, tmp_path: Path) -> None:
    written = event(rule__kind="MatchingAcl", rule__host="*", client_id="café ☕", log_if_denied=True)
    tables, _ = taken(spark, lines_of(spark, json.dumps(written) + "\r"), tmp_path)
    [row] = tables.read(spark, "audit_events").collect()
    found = row.asDict(recursive=True)
    assert {name: found[name] for name in written} == written
    assert (found["source_format"], found["source_file"]) == ("json", "a.log")
    assert found["time"].timestamp() * 1000 == pytest.approx(written["time_ms"])


def test_a_kafka_line_says_what_it_says_and_no_more() -> None:
    line = kafka_line(level="INFO", result="Denied", resource="TransactionalId:LITERAL:a: b", rule=MATCHING)
    [found] = parsed([line], "Europe/Berlin")
    assert found["time"].timestamp() * 1000 == found["time_ms"]
    known = {name: found[name] for name in AUDIT_EVENTS_SCHEMA.fieldNames() if found.get(name) is not None}
    del known["time"]
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


def test_in_the_repeated_hour_the_earlier_time_is_taken() -> None:
    [found] = parsed([kafka_line(time="2026-10-25 02:30:00,000")], "Europe/Berlin")
    assert found["time_ms"] == 1_792_888_200_000


def test_kafkas_probe_for_any_resource_has_no_name() -> None:
    texts = [kafka_line(resource="Topic:LITERAL:hardcode", count=count) for count in (0, 1)]
    assert [row["resource_name"] for row in parsed(texts)] == [None, "hardcode"]


def test_what_a_custom_authorizer_decided_is_read() -> None:
    [found] = parsed([kafka_line(rule="CustomAuthorizer")])
    assert (found["reason"], found["rule"]["kind"]) == (None, "CustomAuthorizer")


def test_real_lines_of_a_broker_are_all_read_but_the_forged_ones() -> None:
    lines = (DATA / "kafka-authorizer.log").read_text().splitlines()
    found = dict(zip(lines, parsed(lines), strict=True))
    forged = {line for line in lines if "User:x is Allowed operation" in line or "victim" in line}
    cut = {line for line in lines if line.endswith("Topic:LITERAL:evil")}
    assert len(lines) == 158
    assert cut
    assert {line for line, row in found.items() if row["reason"] is not None} == forged | cut
    assert {row["rule"]["kind"] for row in found.values() if row["reason"] is None} == {
        "SuperUser",
        "DefaultDeny",
        "MatchingAcl",
    }


def test_every_line_ends_in_exactly_one_outcome(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    texts = [random_lines.line(random) for _ in range(LINES)]
    texts += random.choices(texts, k=LINES // 3)
    frame = spark.createDataFrame([(random.choice("ab"), text) for text in texts], LINES_SCHEMA)
    tables, summary = taken(spark, frame, tmp_path)
    kept = [tables.read(spark, name).count() for name in ("audit_events", "quarantine")]
    assert kept == [summary.events, summary.quarantined]
    assert sum(kept) + summary.duplicates == summary.lines == len(texts)


def test_copies_are_duplicates_and_repetitions_are_not(spark: SparkSession, tmp_path: Path) -> None:
    kafka = kafka_line()
    lines = lines_of(spark, event_line(1), kafka, kafka)
    for file in ("a.log.gz", "b/a.log"):
        lines = lines.union(lines_of(spark, event_line(1), kafka, kafka, file=file))
    tables, summary = taken(spark, lines, tmp_path)
    events = tables.read(spark, "audit_events").select("event_id", "source_format").collect()
    assert Counter(row["source_format"] for row in events) == {
        "json": 1,
        "kafka": 4,  # two in `a.log` and its copy, two of another broker
    }
    assert summary.duplicates == 4
    assert len({row["event_id"] for row in events}) == 5


def test_lines_that_share_an_event_id_but_not_its_content_are_two_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = lines_of(spark, event_line(1), event_line(1, decision="DENIED"), event_line(1))
    tables, summary = taken(spark, lines, tmp_path)
    events = tables.read(spark, "audit_events").select("decision", "conflicting_file").collect()
    assert sorted(row["decision"] for row in events) == ["ALLOWED", "DENIED"]
    assert sum(row["conflicting_file"] is not None for row in events) == summary.conflicts == 1
    assert (summary.events, summary.duplicates, summary.quarantined) == (2, 1, 0)
