"""What is on disk: small files become few, folders of older and newer versions are read."""

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import SchemaConflictError, Tables, compact_tables, ingest
from kustos.pipeline.tables.transaction import data_files
from tests.pipeline.events import event_line

DAY = "day=2026-11-21"


def take(spark: SparkSession, tables: Tables, run_id: str, *lines: str) -> None:
    ingest(spark, spark.createDataFrame([("f", line) for line in lines], LINES_SCHEMA), tables, run_id)


def rewrite(place: Path, **changes: Any) -> None:
    """Write a day's only file anew with other columns, as another version of kustos had written it."""
    (name,) = data_files(place)
    table = pyarrow.parquet.ParquetFile(place / name).read()
    for column, values in changes.items():
        if column in table.column_names:
            table = table.drop_columns([column])
        if values is not None:
            table = table.append_column(column, values)
    pyarrow.parquet.write_table(table, place / name, use_deprecated_int96_timestamps=True)  # as Spark does


def identifiers(rows: DataFrame) -> list[str]:
    return sorted(row["event_id"][-1] for row in rows.collect())


def test_older_and_newer_folders_are_read_compacted_and_go_on(spark: SparkSession, tmp_path: Path) -> None:
    tables, events = Tables(tmp_path), tmp_path / "audit_events" / DAY
    take(spark, tables, "old", event_line(1))
    rewrite(events, forwarded_by=None, rule=pyarrow.array([{"kind": "SuperUser"}]))
    rewrite(events, added_later=pyarrow.array([7]), api_key=pyarrow.array([1], pyarrow.int16()))
    take(spark, tables, "new", event_line(2, forwarded_by="User:gate"), event_line(3))
    rows = tables.read(spark, "audit_events")
    assert identifiers(rows) == ["1", "2", "3"]
    assert "added_later" not in rows.columns
    assert identifiers(rows.filter("forwarded_by is null and rule.host is null")) == ["1", "3"]
    before = sorted(map(repr, rows.collect()))
    assert compact_tables(spark, tables, most_files=1) == (f"audit_events/{DAY}",)
    assert sorted(map(repr, tables.read(spark, "audit_events").collect())) == before
    (name,) = data_files(events)
    kept = pyarrow.parquet.read_table(events / name, partitioning=None)
    assert sorted(kept["added_later"].to_pylist(), key=str) == [7, None, None]
    with duckdb.connect() as connection:  # what is at rest is plain Parquet, for anything that reads it
        found = connection.execute(
            f"SELECT count(*), min(day) FROM read_parquet('{tmp_path}/audit_events/*/*.parquet')"
        ).fetchall()
    assert found == [(3, datetime.date(2026, 11, 21))]


def test_a_type_that_cannot_be_read_as_ours_is_named(spark: SparkSession, tmp_path: Path) -> None:
    tables, events = Tables(tmp_path), tmp_path / "audit_events" / DAY
    take(spark, tables, "a", event_line(1))
    rewrite(events, time_ms=pyarrow.array(["soon"]))
    with pytest.raises(SchemaConflictError, match=r"column `time_ms` of `.*parquet` is string, not bigint"):
        tables.read(spark, "audit_events")
    with pytest.raises(SchemaConflictError, match="column `time_ms`"):
        take(spark, tables, "b", event_line(2))
    (name,) = data_files(events)
    (events / name).write_bytes(b"PAR1")
    with pytest.raises(SchemaConflictError, match="is no readable Parquet file"):
        tables.read(spark, "audit_events")


def test_a_day_without_its_roll_up_is_rolled_up_from_its_events(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    take(spark, tables, "a", event_line(1))
    for name in data_files(tmp_path / "audit_rollup"):
        (tmp_path / "audit_rollup" / name).unlink()
    take(spark, tables, "b", event_line(2))
    assert tables.read(spark, "audit_rollup").agg(sql.sum("event_count")).collect()[0][0] == 2
