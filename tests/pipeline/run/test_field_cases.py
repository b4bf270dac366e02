"""Files that people have: their lines are decisions of Kafka, or quarantined by name."""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

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
