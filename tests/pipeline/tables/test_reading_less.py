"""A read opens only the files of its days and of its cluster, and takes only the columns that it names."""

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.places import Place, StorePath, stamp_of
from kustos.pipeline.tables import Tables, TablesError, parquet_reader
from kustos.pipeline.tables.layout import SCHEMAS, stored_schema
from testkit.object_store import ObjectStore
from tests.pipeline.tables.filling import fill

FIRST = date(2026, 1, 1)
DAYS = 4
WIDE_BYTES = 2_000_000


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


def rolled_up(*clusters: str, principal: str = "User:a") -> pa.Table:
    """Return a row of a roll-up for each of these clusters."""
    rows = [{"cluster": name, "principal": principal, "host": "h", "event_count": 1} for name in clusters]
    return pa.Table.from_pylist(rows, schema=stored_schema("audit_rollup")).drop_columns("day")


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Tables with a day of each of two clusters in turn, and a day of both."""
    tables = Tables(tmp_path)
    days: dict[str, pa.Table] = {
        day(number).isoformat(): rolled_up(("east", "west")[number % 2]) for number in range(DAYS)
    }
    fill(tables, "audit_rollup", {**days, day(DAYS).isoformat(): rolled_up("east", "west")})
    return tables


def days_read(rows: Any) -> set[str]:
    """Return the days whose files a query reads."""
    return {found[1] for path in rows.inputFiles() if (found := re.search("day=([0-9-]+)", path))}


def plan_of(spark: SparkSession, rows: Any) -> str:
    jvm: Any = spark._jvm
    return str(jvm.PythonSQLUtils.explainString(rows._jdf.queryExecution(), "simple"))


def days_of(*numbers: int) -> set[str]:
    return {day(number).isoformat() for number in numbers}


def test_a_period_opens_only_the_files_of_its_days(
    spark: SparkSession, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: set[str] = set()

    def seen_stamp_of(path: Place) -> int:
        opened.add(path.parent.name)
        return stamp_of(path)

    monkeypatch.setattr(parquet_reader, "stamp_of", seen_stamp_of)
    rows = tables.read(spark, "audit_rollup", first_day=day(1), last_day=day(2))
    assert days_read(rows) == days_of(1, 2) == {name.removeprefix("day=") for name in opened}
    assert {str(row.day) for row in rows.select("day").collect()} == days_of(1, 2)
    assert days_read(tables.read(spark, "audit_rollup", first_day=day(3))) == days_of(3, 4)
    assert days_read(tables.read(spark, "audit_rollup", last_day=day(0))) == days_of(0)
    assert tables.read(spark, "audit_rollup", last_day=day(-1)).collect() == []


def test_a_cluster_opens_only_files_that_may_name_it(spark: SparkSession, tables: Tables) -> None:
    east, west = tables.of_cluster("east"), tables.of_cluster("west")
    assert days_read(east.read(spark, "audit_rollup")) == days_of(0, 2, 4)
    assert days_read(west.read(spark, "audit_rollup", first_day=day(2))) == days_of(3, 4)
    assert [row.cluster for row in west.read(spark, "audit_rollup").collect()] == ["west"] * 3


def test_a_column_takes_no_other_from_the_files(spark: SparkSession, tables: Tables) -> None:
    rows = tables.read(spark, "audit_rollup", columns=("principal",))
    assert set(rows.columns) == {"principal", "cluster"}
    assert "ReadSchema: struct<cluster:string,principal:string>" in plan_of(spark, rows)
    whole = tables.read(spark, "audit_rollup").groupBy("principal").count()
    assert "ReadSchema: struct<principal:string>" in plan_of(spark, whole)


def test_what_cannot_be_narrowed_is_said(spark: SparkSession, tables: Tables) -> None:
    with pytest.raises(TablesError, match=r"there is no column `principle`, take some of day, cluster, "):
        tables.read(spark, "audit_rollup", columns=("principle",))
    with pytest.raises(TablesError, match="`quarantine` is not by day, read it as a whole"):
        tables.read(spark, "quarantine", first_day=day(1))


def test_a_column_in_an_object_store_takes_its_own_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's reader, in a task, asks the store for the footer and for the chunks of the named columns."""
    schema = SCHEMAS["audit_rollup"]
    wide = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(WIDE_BYTES // 3))
    path = tmp_path / "part.parquet"
    parquet.write_table(rolled_up(*["east"] * 10, principal=wide), path)
    size, read = path.stat().st_size, []

    class Counted:
        closed = False

        def __init__(self) -> None:
            self.file = path.open("rb")

        def read(self, count: int = -1) -> bytes:
            data = self.file.read(count)
            read.append(len(data))
            return data

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    monkeypatch.setattr(parquet_reader, "source_of", lambda _: pa.PythonFile(Counted(), "r"))
    place = StorePath("s3://lake/audit_rollup/day=2026-01-01/part.parquet")
    narrow = type(schema)([field for field in schema.fields if field.name in {"day", "host", "event_count"}])
    [batch] = parquet_reader._rows(place, narrow)
    assert batch.to_pylist() == [{"day": FIRST, "host": "h", "event_count": 1}] * 10
    assert sum(read) < size / 4
    read.clear()
    assert [len(batch) for batch in parquet_reader._rows(place, schema)] == [10]
    assert sum(read) > size / 2


def test_other_days_of_an_object_store_are_not_asked_for(near: SparkSession, store: ObjectStore) -> None:
    tables = Tables.at(store.address("less"))
    fill(tables, "audit_rollup", {day(number).isoformat(): rolled_up("east") for number in range(DAYS)})
    before = len(store.log.read_text())
    rows = tables.read(near, "audit_rollup", columns=("host",), first_day=day(1), last_day=day(1))
    assert [row.asDict() for row in rows.collect()] == [{"host": "h", "cluster": "east"}]
    asked = store.log.read_text()[before:]
    assert set(re.findall(r"\bGET\b.*day=([0-9-]+)/part", asked)) == days_of(
        1
    )  # all sizes are checked by HEAD
