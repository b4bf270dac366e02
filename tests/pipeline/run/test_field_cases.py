"""Files that people have: their lines are decisions of Kafka, or quarantined by name."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import RunSummary, Tables

CASES = Path(__file__).parents[1] / "data" / "field_cases"


def taken(spark: SparkSession, case: str, folder: Path) -> tuple[Tables, RunSummary, Counter[str]]:
    """Return the tables of a case, the summary of the run, and the reasons of quarantined lines."""
    tables = Tables(folder / "tables")
    summary = run_pipeline(spark, tables=tables, audit=CASES / case)
    rows = tables.read(spark, "quarantine").collect() if summary.quarantined else []
    return tables, summary, Counter(row["reason"] for row in rows)


def test_decisions_of_confluents_operator_on_connectors_are_not_kafkas(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, summary, reasons = taken(spark, "05-confluent-operator-layout", tmp_path)
    assert (summary.lines, summary.events) == (5, 2)
    assert reasons == {"value_invalid: resource_type Connector": 3}
    events = tables.read(spark, "audit_events").collect()
    assert {(row["resource_type"], row["operation"]) for row in events} == {
        ("TOPIC", "DESCRIBE"),
        ("GROUP", "READ"),
    }


def test_a_decision_of_confluents_metadata_service_is_of_no_cluster(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, summary, reasons = taken(spark, "19-confluent-events/in", tmp_path)
    assert (summary.lines, summary.events) == (6, 3)
    assert reasons["value_invalid: resource_type Environment"] == 1
    assert {row["cluster"] for row in tables.read(spark, "audit_events").collect()} == {"lkc-bbb"}
    assert tables.of_cluster(None).chosen_cluster.name == "lkc-bbb"


DECISIONS = {
    ("pay-api", "WRITE", "payments"): 2,
    ("etl", "READ", "etl-main"): 1,
    ("CN=etl,OU=data,O=Example Ltd", "DESCRIBE", "orders"): 1,
}


@pytest.mark.parametrize(
    ("case", "millisecond"),
    [
        ("03-prefixed-lines/timestamps", 713),
        ("03-prefixed-lines/kprefix", 713),
        ("03-prefixed-lines/stern", 259),
        ("04-json-layouts/ecs", 123),
        ("04-json-layouts/logstash", 541),
        ("04-json-layouts/docker", 180),
    ],
)
def test_lines_in_envelopes_are_decisions_with_the_brokers_time(
    spark: SparkSession, tmp_path: Path, case: str, millisecond: int
) -> None:
    tables, summary, _ = taken(spark, case, tmp_path)
    assert (summary.lines, summary.events) == (4, 4)
    rows = tables.read(spark, "audit_events").collect()
    assert (
        Counter((row["principal_name"], row["operation"], row["resource_name"]) for row in rows) == DECISIONS
    )
    assert {row["time_ms"] % 1_000 for row in rows} == {millisecond}


def test_the_parts_of_a_line_of_a_container_are_one_line(spark: SparkSession, tmp_path: Path) -> None:
    tables, summary, reasons = taken(spark, "02-cri-wrapped", tmp_path)
    assert (summary.lines, summary.events) == (6, 5)
    assert reasons == {"format_unknown": 1}, "the line of the broker's start"
    rows = tables.read(spark, "audit_events").collect()
    assert {row["time_ms"] % 1_000 for row in rows} == {135, 100}
    names = Counter(row["principal_name"] for row in rows)
    assert names == {"pay-api": 2, "etl": 1, "CN=etl,OU=data,O=Example Ltd": 2}


def test_a_line_whose_last_part_is_not_written_yet_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    lines = (CASES / "02-cri-wrapped" / "in" / "0.log").read_bytes().splitlines(keepends=True)
    (tmp_path / "in").mkdir()
    path, tables = tmp_path / "in" / "0.log", Tables(tmp_path / "tables")
    path.write_bytes(b"".join(lines[:-1]))
    first = run_pipeline(spark, tables=tables, audit=path.parent)
    assert (first.lines, first.events, first.half_lines) == (5, 4, 1)
    with path.open("ab") as file:
        file.write(lines[-1])
    second = run_pipeline(spark, tables=tables, audit=path.parent)
    assert (second.lines, second.events, second.duplicates) == (6, 1, 5)


def test_a_report_on_a_folder_reads_envelopes(spark: SparkSession, tmp_path: Path) -> None:
    summary = run_access_report(spark, CASES / "04-json-layouts", tmp_path / "page.html")
    assert (summary.lines, summary.events) == (12, 12)
