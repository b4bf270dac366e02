"""The tables as programs read them that know Delta and nothing of kustos, on the way through a killed run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kustos.pipeline.places import Place
from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import Tables, compact_tables, ingest
from testkit.paths import ROOT
from testkit.spark_jars import SPARK_DELTA, spark_jars
from testkit.spark_quick import quick_driver_environment
from tests.pipeline.events import event_line, login_line
from tests.pipeline.tables.filling import folder_of

TIME_MS = 1_795_233_600_123
BATCHES = (
    [event_line(1), event_line(2), "junk", login_line(1)],
    [event_line(2), event_line(3), event_line(4, time_ms=TIME_MS + 86_400_000), "more junk"],
)
LONGEST_RUN_S = 300.0
NAMES = ("audit_events", "security_events", "audit_rollup", "quarantine", "spans")


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables after two batches of a stream, a compaction and an answer that was given twice."""
    tables = Tables(tmp_path_factory.mktemp("lake"))
    for number, batch in enumerate(BATCHES):
        lines = spark.createDataFrame([("f", line) for line in batch], LINES_SCHEMA)
        ingest(spark, lines, tables, f"s@{number}")
    assert compact_tables(tables, most_files=1)
    tables.replace("spans", spark.range(2))
    tables.replace("spans", tables.read(spark, "spans").limit(1))
    return tables


def test_spark_with_deltas_own_jars_reads_the_same_rows(spark: SparkSession, tables: Tables) -> None:
    # this session was started without Delta's extension, which reading does not need
    spark.conf.set("spark.databricks.delta.requiredSparkConfsCheck.enabled", "false")
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")
    for name in NAMES:
        found = spark.read.format("delta").load(str(tables.place(name)))
        ours = tables.read(spark, name)
        # lines have the day of their ingestion as a partition, which is none of their own columns
        assert set(found.columns) - set(ours.columns) <= {"day"}
        rows = sorted(map(repr, found.select(*ours.columns).collect()))
        assert rows == sorted(map(repr, ours.collect()))
        assert rows
    runs = spark.read.format("delta").load(str(folder_of(tables) / "runs"))
    assert [row.run_id for row in runs.orderBy("number").collect()] == [
        "s@0",
        "s@1",
        "compact",
        "replace-spans",
        "replace-spans",
    ]


PLAIN_SPARK = """
import sys
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.jars", sys.argv[1])
for setting in sys.argv[3:]:
    builder = builder.config(*setting.split("="))
spark = builder.getOrCreate()
events = spark.read.format("delta").load(sys.argv[2])
print(events.count(), events.filter("day = '2026-11-21'").count())
print(spark.sql(f"SELECT count(DISTINCT event_id) FROM delta.`{sys.argv[2]}`").first()[0])
"""
"""A Spark that knows nothing of kustos, started as the page on the tables says."""

AS_THE_PAGE_SAYS = (
    "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
)


def test_a_spark_without_kustos_reads_them_as_the_page_says(tables: Tables) -> None:
    page = (ROOT / "docs/how-to/pipeline-tables.md").read_text()
    assert all(f"--conf {setting}" in page for setting in AS_THE_PAGE_SAYS)
    jar = next(jar for jar in SPARK_DELTA.resolve().glob("delta-spark_*.jar"))
    artifact, _, version = jar.stem.rpartition("-")
    assert f"--packages io.delta:{artifact}:{version}" in page
    place = str(tables.place("audit_events"))
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_SPARK, spark_jars(SPARK_DELTA), place, *AS_THE_PAGE_SAYS],
        env=os.environ | quick_driver_environment(),
        capture_output=True,
        text=True,
        timeout=LONGEST_RUN_S,
        check=False,
    )
    assert done.stdout.split() == ["4", "3", "4"], done.stderr[-3000:]


@pytest.mark.parametrize("name", NAMES)
def test_duckdb_reads_the_same_rows_from_the_files_that_delta_lists(
    spark: SparkSession, tables: Tables, name: str
) -> None:
    files = [str(tables.place(name) / row["path"]) for row in actions(tables.place(name))]
    ours = tables.read(spark, name).toArrow()
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = "SELECT * FROM read_parquet($files, union_by_name = true, hive_partitioning = true)"
        found: Any = connection.sql(query, params={"files": files}).to_arrow_table()
    assert same_rows(found, ours) == sum(row["num_records"] for row in actions(tables.place(name))) > 0


@pytest.mark.parametrize("name", NAMES)
def test_polars_reads_the_same_rows(spark: SparkSession, tables: Tables, name: str) -> None:
    found = polars.scan_delta(str(tables.place(name))).collect().to_arrow()
    assert same_rows(found, tables.read(spark, name).toArrow()) > 0


def same_rows(found: pa.Table, ours: pa.Table) -> int:
    """Assert that another reader found our rows; return how many there are."""
    # lines have the day of their ingestion as a partition, which is none of their own columns
    assert set(found.column_names) - set(ours.column_names) <= {"day"}
    theirs = found.select(ours.column_names).cast(ours.schema)
    assert sorted(map(repr, theirs.to_pylist())) == sorted(map(repr, ours.to_pylist()))
    return int(ours.num_rows)


def actions(place: Place) -> list[dict[str, Any]]:
    return pa.table(DeltaTable(str(place)).get_add_actions(flatten=True)).to_pylist()  # type: ignore[no-any-return]


def test_what_another_program_commits_is_not_seen_and_is_undone(
    spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    copy = Tables(tmp_path / "copy")
    shutil.copytree(folder_of(tables), folder_of(copy))
    before = sorted(map(repr, copy.read(spark, "audit_events").collect()))
    DeltaTable(str(copy.place("audit_events"))).delete("day = '2026-11-21'")
    assert sorted(map(repr, copy.read(spark, "audit_events").collect())) == before
    lines = spark.createDataFrame([("f", event_line(9))], LINES_SCHEMA)
    ingest(spark, lines, copy, "s@2")
    assert copy.read(spark, "audit_events").count() == len(before) + 1
    newest = sum(row["num_records"] for row in actions(copy.place("audit_events")))
    assert newest == len(before) + 1
