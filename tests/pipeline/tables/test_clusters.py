"""Rows of several clusters in one set of tables: told apart when they come in, and by every question."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import ClusterError
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.schemas import FINDINGS_SCHEMA, LINES_SCHEMA
from kustos.pipeline.tables import DeclaredCluster, IngestOptions, RunSummary, Tables, compact_tables, ingest
from kustos.pipeline.tables.clusters import Cluster
from tests.pipeline.events import event_line, kafka_line, login_line
from tests.pipeline.tables.ways import both_ways


def take(
    spark: SparkSession, tables: Tables, run_id: str, lines: Sequence[str], cluster: str | None = None
) -> RunSummary:
    frame = spark.createDataFrame([("f", line) for line in lines], LINES_SCHEMA)
    options = IngestOptions(cluster=DeclaredCluster(cluster))
    return ingest(spark, frame, tables, run_id, options=options)


def counts(run: RunSummary) -> tuple[int, int, int, int]:
    return run.events, run.security_events, run.quarantined, run.duplicates


def rows(tables: Tables, spark: SparkSession, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in tables.read(spark, name).select(*columns).collect())


@both_ways
def test_events_of_two_clusters_do_not_swallow_each_other(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    lines = [event_line(1), event_line(1), login_line(2), kafka_line(), "junk"]
    assert counts(take(spark, tables, "a", lines, "east")) == (2, 1, 1, 1)
    assert counts(take(spark, tables, "b", lines, "west")) == (2, 1, 1, 1)
    assert counts(take(spark, tables, "c", lines, "east")) == (0, 0, 0, 5)
    forged = [
        event_line(1, principal_name="eve"),
        event_line(3, cluster_id="west"),
        event_line(1, cluster_id="east"),
    ]
    assert counts(take(spark, tables, "d", forged, "east")) == (1, 0, 1, 1)
    mixed = [event_line(4, cluster_id=name) for name in ("east", "west", "east")] + [event_line(4)]
    assert counts(take(spark, tables, "e", mixed)) == (3, 0, 0, 1)
    assert rows(tables, spark, "quarantine", "cluster", "reason") == [
        ("east", "cluster_mismatch: west"), ("east", "format_unknown"), ("west", "format_unknown"),
    ]  # fmt: skip
    found = tables.read(spark, "audit_rollup").groupBy("cluster").sum("event_count").collect()
    assert {row[0]: row[1] for row in found} == {"east": 4, "west": 3, "": 1}
    assert tables.clusters() == ("", "east", "west")


def test_tables_of_one_cluster_have_its_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    assert tables.of_cluster().chosen_cluster.name == ""
    take(spark, tables, "a", [event_line(1), login_line(2), "junk"], "east")
    assert tables.of_cluster().chosen_cluster.name == "east"
    take(spark, tables, "b", [event_line(1), event_line(2)], "west")
    take(spark, tables, "c", ["junk"])
    with pytest.raises(ClusterError, match="several clusters, choose one with `--cluster`: `east`, `west`"):
        tables.of_cluster()
    with pytest.raises(ClusterError, match="no cluster `north`, only `east`, `west`"):
        tables.of_cluster("north")
    east = tables.of_cluster("east")
    assert east.of_cluster() == east
    assert rows(east, spark, "audit_events", "cluster", "event_id") == [("east", event_id(1))]
    assert rows(east, spark, "security_events", "cluster") == [("east",)]
    assert rows(east, spark, "quarantine", "cluster") == [("east",), ("east",)]  # with those of none
    both = tables.of_cluster(ids={"all": ("east", "west")})
    assert both.chosen_cluster.name == "all"
    assert rows(both, spark, "audit_rollup", "cluster", "event_count") == [("all", 1), ("all", 2)]


def event_id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012d}"


def finding(spark: SparkSession, name: str) -> Any:
    values = {"finding_id": name}
    return spark.createDataFrame(
        [tuple(values.get(one) for one in FINDINGS_SCHEMA.fieldNames())], FINDINGS_SCHEMA
    )


def test_answers_on_one_cluster_leave_those_on_others(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.replace("findings", finding(spark, "before"))
    assert rows(tables, spark, "findings", "cluster", "finding_id") == [("", "before")]
    for name in ("east", "west"):
        take(spark, tables, name, [event_line(1)], name)
        tables.of_cluster(name).replace("findings", finding(spark, f"of {name}"))
    tables.of_cluster("east").replace("findings", finding(spark, "again"))
    assert rows(tables, spark, "findings", "cluster", "finding_id") == [
        ("east", "again"),
        ("west", "of west"),
    ]
    tables.of_cluster("west").replace("flips_of_mine", finding(spark, "flip"))
    assert rows(tables.of_cluster("east"), spark, "flips_of_mine", "finding_id") == []
    assert rows(tables.of_cluster("west"), spark, "flips_of_mine", "finding_id") == [("flip",)]


def test_answers_on_clusters_that_rows_name_by_ids_leave_each_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, ids = Tables(tmp_path), {"east": ("lkc-1",), "west": ("lkc-2",), "gone": ("lkc-3",)}
    take(spark, tables, "both", [event_line(n, cluster_id=f"lkc-{n}") for n in (1, 2)])
    tables.of_cluster("lkc-2").replace("findings", finding(spark, "before west was declared"))
    for name in ("east", "west"):
        tables.of_cluster(name, ids).replace("findings", finding(spark, f"of {name}"))
    assert rows(tables, spark, "findings", "cluster", "finding_id") == [
        ("east", "of east"),
        ("west", "of west"),
    ]
    stored = Cluster("gone", frozenset({"gone", "lkc-3"}))
    replace(tables.of_cluster("east", ids), cluster=stored).replace("findings", finding(spark, "of no event"))
    tables.of_cluster("west", ids).of_cluster().replace("findings", finding(spark, "again"))
    assert rows(tables, spark, "findings", "cluster", "finding_id") == [
        ("east", "of east"),
        ("west", "again"),
    ]


@both_ways
def test_a_log_of_no_cluster_stays_so_if_one_is_declared(spark: SparkSession, tmp_path: Path) -> None:
    """Its lines would count twice."""
    tables, audit = Tables(tmp_path / "tables"), tmp_path / "audit"
    audit.mkdir()
    log = [kafka_line(time=f"2026-11-21 04:00:0{second},123") for second in range(3)]
    (audit / "a.log").write_text("\n".join([*log, "junk", ""]))
    (audit / "b.jsonl").write_text("\n".join([event_line(1), login_line(2), ""]))
    run_pipeline(spark, tables=tables, audit=audit, compact=False)
    assert tables.clusters() == ("",)
    (audit / "a.log").write_text("\n".join([*log, "junk", kafka_line(time="2026-11-21 04:00:09,123"), ""]))
    (audit / "b.jsonl").write_text("\n".join([event_line(1), login_line(2), event_line(3), ""]))
    (audit / "c.jsonl").write_text("\n".join([event_line(1), event_line(4), login_line(5), "junk", ""]))
    options = IngestOptions(cluster=DeclaredCluster("east"))
    run = run_pipeline(spark, tables=tables, audit=audit, options=options)
    assert counts(run) == (4, 1, 1, 6)
    assert len(run.warnings) == 2
    assert "was read as one of no cluster, and stays so" in run.warnings[0]
    found = tables.read(spark, "audit_rollup").groupBy("cluster").sum("event_count").collect()
    assert {row[0]: row[1] for row in found} == {"": 6, "east": 2}
    assert rows(tables, spark, "security_events", "cluster") == [("",), ("east",)]
    assert rows(tables, spark, "quarantine", "cluster") == [("",), ("east",)]
    assert tables.clusters() == ("", "east")
    compact_tables(tables, most_files=1)
    assert tables.clusters() == ("", "east")
    assert tables.of_cluster(ids={"east": ("",)}).read(spark, "audit_events").count() == 8


def test_files_of_two_clusters_are_two_logs(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    text = "\n".join([*[kafka_line(time=f"2026-11-21 04:00:0{n},123") for n in range(4)], ""])
    for name in ("east", "west"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kafka-authorizer.log").write_text(text)
        options = IngestOptions(cluster=DeclaredCluster(name))
        run = run_pipeline(spark, tables=tables, audit=tmp_path / name, options=options)
        assert (counts(run), run.overlapping_files, run.warnings) == ((4, 0, 0, 0), 0, ())
    assert tables.clusters() == ("east", "west")
