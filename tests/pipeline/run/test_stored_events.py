"""However many events are stored, the driver holds few of them when it looks up the first ones of a log."""

import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.run import run_pipeline
from kustos.pipeline.run.files.new_files import find_new_files
from kustos.pipeline.run.files.stored_events import overlaps_stored
from kustos.pipeline.tables import Tables
from tests.pipeline.events import kafka_line

STORED = 20_000
START = datetime(2026, 11, 21, 4, tzinfo=UTC)


def log_lines(count: int, *, step_ms: int, first_ms: int = 0) -> list[str]:
    times = (START + timedelta(milliseconds=first_ms + at * step_ms) for at in range(count))
    return [kafka_line(time=time.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]) for time in times]


@pytest.fixture(scope="module")
def stored(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, Path]:
    """Tables that have the events of a long log, all of one day, and the folder of its file."""
    folder = tmp_path_factory.mktemp("stored")
    tables, audit = Tables(folder / "tables"), folder / "audit"
    audit.mkdir()
    (audit / "long.log").write_text("\n".join([*log_lines(STORED, step_ms=1_000), ""]))
    assert run_pipeline(spark, tables=tables, audit=audit).events == STORED
    return tables, audit


def peak_bytes(action: Callable[[], Any]) -> int:
    """Return how much Python holds at most, beside what it held before; what is imported is there already."""
    action()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# with three of the first four lines in common it matters, too, whether the log goes on after them
@pytest.mark.parametrize("common", [3, 4])
def test_of_a_day_of_stored_events_few_rows_reach_the_driver(
    stored: tuple[Tables, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, common: int
) -> None:
    tables, audit = stored
    # an export that begins within the log
    beginning = log_lines(common, step_ms=1_000, first_ms=1_000_000)
    others = log_lines(20, step_ms=7, first_ms=1_000_001 + common * 1_000)
    (tmp_path / "new.log").write_text("\n".join([*beginning, *others, ""]))
    found = find_new_files([audit, tmp_path], tables)
    known = list(tables.inputs().values())
    assert [file.name for file in found.new] == ["new.log"]
    rows: list[int] = []

    def counted(read: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
        def reading(*args: Any, **options: Any) -> pa.Table:
            table = read(*args, **options)
            rows.append(table.num_rows)
            return table

        return reading

    def looked_up() -> list[bool]:
        return [one.is_sure for one in overlaps_stored(found.new, known, tables, "UTC")]

    monkeypatch.setattr(parquet, "read_table", counted(parquet.read_table))
    assert looked_up() == [common == 4]
    assert sum(rows) == common
    monkeypatch.undo()
    (day,) = tables.files("audit_events")
    whole = peak_bytes(lambda: parquet.read_table(day, columns=["time_ms"], partitioning=None).to_pylist())
    assert peak_bytes(looked_up) * 4 < whole
