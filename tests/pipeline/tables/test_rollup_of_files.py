"""The roll-up of files is the roll-up of their rows, however they are cut, read and put together."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.testing import assertDataFrameEqual

from kustos.pipeline.columns import reading, rolling
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, ROLLUP_GRAIN
from kustos.pipeline.stages.rollup import merge_rollups, rollup
from kustos.pipeline.tables import Tables
from kustos.pipeline.tables import rollups as module
from kustos.pipeline.tables.rollups import rolled_up, rollup_of_files
from tests.pipeline.tables.test_rollup import by_python, event, frame, milliseconds, some_events

SCHEMA = to_arrow_schema(AUDIT_EVENTS_SCHEMA, timezone="UTC")


def written(path: Path, rows: list[dict[str, Any]], *, without: tuple[str, ...] = ()) -> Path:
    table = pa.Table.from_pylist(rows, schema=SCHEMA).drop_columns(list(without))
    parquet.write_table(table, path, row_group_size=25)
    return path


def of_batches(batches: list[pa.RecordBatch]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    found = {}
    for row in pa.Table.from_batches(batches).to_pylist():
        rule = None if row["rule"] is None else tuple(row["rule"].values())
        grain = (*(row[name] for name in ROLLUP_GRAIN[:-1]), rule)
        assert grain not in found, "each row of the grain once"
        times = (milliseconds(row["first_time"]), milliseconds(row["last_time"]))
        found[grain] = (
            row["event_count"],
            row["reference_count"],
            *times,
            row["hours"],
            row["sample_event_id"],
        )
    return found


@given(seed=st.integers(0, 2**32), chunk_rows=st.integers(1, 90), kept_groups=st.integers(1, 60))
def test_however_it_is_read_it_is_plain_pythons(
    tmp_path_factory: pytest.TempPathFactory, seed: int, chunk_rows: int, kept_groups: int
) -> None:
    folder = tmp_path_factory.mktemp("events")
    rows = some_events(seed)
    cut = len(rows) // 3
    files = [written(folder / "a.parquet", rows[:cut]), written(folder / "b.parquet", rows[cut:])]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rolling, "CHUNK_ROWS_MAX", chunk_rows)
        patched.setattr(rolling, "KEPT_GROUPS_MAX", kept_groups)
        patched.setattr(rolling, "OUT_ROWS", 7)
        batches = list(rolling.rolled_up_parts(reading.FilePart(str(path)) for path in files))
    assert of_batches(batches) == by_python(rows)
    assert all(batch.num_rows <= 7 for batch in batches)


def test_a_table_written_before_there_were_probes_is_rolled_up_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [event(1, decision="DENIED", log_if_denied=False), event(2, decision="DENIED", log_if_denied=True)]
    counts = {}
    for name, without in (("new", ()), ("old", ("log_if_denied",))):
        path = written(tmp_path / f"{name}.parquet", rows, without=without)
        of_rows = spark.read.schema(AUDIT_EVENTS_SCHEMA).parquet(str(path)).transform(rollup)
        assertDataFrameEqual(rollup_of_files(spark, [[path]]), of_rows)
        counts[name] = {row["access"]: row["event_count"] for row in of_rows.collect()}
        if name == "old":
            merged = merge_rollups(of_rows, frame(spark, rows).transform(rollup)).collect()
            counts["both"] = {row["access"]: row["event_count"] for row in merged}
    assert counts == {
        "new": {"ACCESS": 1, "PROBE": 1},
        "old": {"ACCESS": 2},
        "both": {"ACCESS": 3, "PROBE": 1},
    }


def test_a_rule_that_is_not_there_is_none_of_nulls(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [event(1), event(2), event(3)]
    rows[0]["rule"] = None
    rows[1]["rule"] = dict.fromkeys(rows[2]["rule"])
    path = written(tmp_path / "events.parquet", rows)
    rules = {grain[-1] for grain in of_batches(list(rolling.rolled_up_parts([reading.FilePart(str(path))])))}
    assert rules == {None, (None,) * len(rows[2]["rule"]), tuple(rows[2]["rule"].values())}


@pytest.mark.parametrize("task_bytes_max", [1 << 30, 1])
def test_the_files_of_days_are_rolled_up_as_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task_bytes_max: int
) -> None:
    rows = some_events(5)
    rows[3]["rule"] = None
    by_day = defaultdict(list)
    for row in rows:
        by_day[row["time_ms"] // 86_400_000].append(row)
    days = [
        [
            written(tmp_path / f"{day}-{number}.parquet", some, without=("node_id", "token_authenticated"))
            for number, some in enumerate((members[::2], members[1::2]))
        ]
        for day, members in by_day.items()
    ]
    assert len(days) > 2
    monkeypatch.setattr(module, "TASK_BYTES_MAX", task_bytes_max)
    monkeypatch.setattr(reading, "PART_BYTES_MAX", 20_000)
    found: DataFrame = rollup_of_files(spark, days)
    assertDataFrameEqual(found, frame(spark, rows).transform(rollup))
    assert found.dtypes == frame(spark, []).transform(rollup).dtypes


def test_no_files_have_no_rows(spark: SparkSession) -> None:
    assert rollup_of_files(spark, []).collect() == []


def test_what_a_task_writes_are_whole_days_only_where_it_takes_them_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "day=2026-11-21"
    folder.mkdir()
    files = [written(folder / "a.parquet", [event(1)]), written(folder / "b.parquet", [event(2)])]
    days = ["2026-11-21"]
    assert rolled_up(spark, Tables(tmp_path / "tables"), files, days, days).is_by_day
    monkeypatch.setattr(module, "TASK_BYTES_MAX", 1)
    assert not rolled_up(spark, Tables(tmp_path / "tables"), files, days, days).is_by_day
