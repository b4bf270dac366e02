"""The roll-up of files is the roll-up of their rows, however they are cut, read and put together."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.columns import file_parts
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA
from kustos.pipeline.tables.parquet_reader import read_parquet
from kustos.pipeline.tables.rollup import columns
from kustos.pipeline.tables.rollup import days as module
from kustos.pipeline.tables.rollup.days import DayFiles, write_rollup
from tests.pipeline.tables.test_rollup import ROLLUP, SCHEMA, as_python, by_python, event, some_events


def written(path: Path, rows: list[dict[str, Any]], *, without: tuple[str, ...] = ()) -> Path:
    table = pa.Table.from_pylist(rows, schema=SCHEMA).drop_columns(list(without))
    parquet.write_table(table, path, row_group_size=25)
    return path


def of_batches(batches: list[pa.RecordBatch]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    return as_python(pa.Table.from_batches(batches).to_pylist())


@given(seed=st.integers(0, 2**32), chunk_rows=st.integers(1, 90), kept_groups=st.integers(1, 60))
def test_however_it_is_read_it_is_plain_pythons(
    tmp_path_factory: pytest.TempPathFactory, seed: int, chunk_rows: int, kept_groups: int
) -> None:
    folder = tmp_path_factory.mktemp("events")
    rows = some_events(seed)
    cut = len(rows) // 3
    files = [written(folder / "a.parquet", rows[:cut]), written(folder / "b.parquet", rows[cut:])]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(columns, "CHUNK_ROWS_MAX", chunk_rows)
        patched.setattr(columns, "KEPT_GROUPS_MAX", kept_groups)
        patched.setattr(columns, "OUT_ROWS", 7)
        batches = list(columns.rolled_up_parts(file_parts.FilePart(str(path)) for path in files))
    assert of_batches(batches) == by_python(rows)
    assert all(batch.num_rows <= 7 for batch in batches)


def rolled_up(spark: SparkSession, folder: Path, days: Sequence[DayFiles]) -> DataFrame:
    """Return the roll-up of these days as it is stored."""
    files = write_rollup(spark, days, folder / "rollup", folder / "partial", "mark")
    return read_parquet(spark, folder / "rollup", [file.name for file in files], AUDIT_ROLLUP_SCHEMA)


@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, 300), max_size=3))
def test_parts_add_up_to_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    rows = some_events(seed)
    at = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    events = [written(folder / f"{number}.parquet", rows[a:b]) for number, (a, b) in enumerate(pairwise(at))]
    rollups = []
    for number, path in enumerate(events[1:]):
        batches = list(columns.rolled_up_parts([file_parts.FilePart(str(path))]))
        rollups.append(folder / f"rollup-{number}.parquet")
        table = pa.Table.from_batches(batches, schema=ROLLUP)
        parquet.write_table(table, rollups[-1])
    first, others = (
        [file_parts.FilePart(str(events[0]))],
        [file_parts.FilePart(str(path)) for path in rollups],
    )
    assert of_batches(list(columns.rolled_up_parts(first, others))) == by_python(rows)


def test_a_table_written_before_there_were_probes_is_rolled_up_as_it_was(tmp_path: Path) -> None:
    rows = [event(1, decision="DENIED", log_if_denied=False), event(2, decision="DENIED", log_if_denied=True)]
    parts = {}
    for name, without in (("new", ()), ("old", ("log_if_denied",))):
        path = written(tmp_path / f"{name}.parquet", rows, without=without)
        parts[name] = [file_parts.FilePart(str(path))]
    old = tmp_path / "rollup.parquet"
    parquet.write_table(pa.Table.from_batches(columns.rolled_up_parts(parts["old"])), old)

    def counts(batches: Iterable[pa.RecordBatch]) -> dict[str, int]:
        return {row["access"]: row["event_count"] for batch in batches for row in batch.to_pylist()}

    assert counts(columns.rolled_up_parts(parts["new"])) == {"ACCESS": 1, "PROBE": 1}
    assert counts(columns.rolled_up_parts(parts["old"])) == {"ACCESS": 2}
    both = columns.rolled_up_parts(parts["new"], [file_parts.FilePart(str(old))])
    assert counts(both) == {"ACCESS": 3, "PROBE": 1}


def test_a_rule_that_is_not_there_is_none_of_nulls(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [event(1), event(2), event(3)]
    rows[0]["rule"] = None
    rows[1]["rule"] = dict.fromkeys(rows[2]["rule"])
    path = written(tmp_path / "events.parquet", rows)
    rules = {
        grain[-1] for grain in of_batches(list(columns.rolled_up_parts([file_parts.FilePart(str(path))])))
    }
    assert rules == {None, (None,) * len(rows[2]["rule"]), tuple(rows[2]["rule"].values())}


@pytest.mark.parametrize("limits", [{}, {"TASK_BYTES_MAX": 1}, {"DRIVER_FILES_MAX": 0, "GROUP_FILES_MAX": 3}])
def test_the_files_of_days_are_rolled_up_as_their_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    rows = some_events(5)
    rows[3]["rule"] = None
    by_day = defaultdict(list)
    for row in rows:
        by_day[row["time_ms"] // 86_400_000].append(row)
    days = [
        DayFiles(
            (date(1970, 1, 1) + timedelta(days=day)).isoformat(),
            tuple(
                written(
                    tmp_path / f"{day}-{number}.parquet", some, without=("node_id", "token_authenticated")
                )
                for number, some in enumerate((members[::2], members[1::2]))
            ),
        )
        for day, members in by_day.items()
    ]
    assert len(days) > 2
    for name, limit in limits.items():
        monkeypatch.setattr(module, name, limit)
    monkeypatch.setattr(file_parts, "PART_BYTES_MAX", 20_000)
    found = rolled_up(spark, tmp_path, days)
    assert as_python(found.toArrow().to_pylist()) == by_python(rows)
    assert found.dtypes == spark.createDataFrame([], AUDIT_ROLLUP_SCHEMA).dtypes
    assert rolled_up(spark, tmp_path, []).collect() == []
