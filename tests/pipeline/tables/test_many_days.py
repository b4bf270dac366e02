"""A run over many days, a line of each, which any login can forge: what it opens and starts is counted."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.schemas.events import LINES_SCHEMA
from kustos.pipeline.tables import (
    IngestOptions,
    RunSummary,
    Tables,
    ingest,
    line_writer,
    parquet_writer,
    stored,
)
from kustos.pipeline.tables.rollup import days
from tests.pipeline.events import event_line

TIME_MS = 1_795_233_600_123
DAY_MS = 86_400_000
DAYS = 70
MANY_DAYS = 3_000


def line(number: int, day: int) -> str:
    return event_line(number, time_ms=TIME_MS - day * DAY_MS)


class Runs:
    """Takes runs of lines, and counts of the last one tasks, and how often the files of a day were opened."""

    def __init__(self, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.tables = Tables(folder)
        self.opened: Counter[str] = Counter()
        self.tasks: list[int] = []
        self._spark = spark
        self._honest = parquet_writer.in_tasks
        patch.setattr(stored, "source_of", self._source_of)
        patch.setattr(days, "in_tasks", self._in_tasks)
        patch.setattr(line_writer, "in_tasks", self._in_tasks)

    def _source_of(self, place: Path) -> Any:
        self.opened[place.parent.name] += 1
        return str(place)

    def _in_tasks(self, spark: SparkSession, count: int, write: Any) -> list[Any]:
        self.tasks.append(count)
        return self._honest(spark, count, write)

    def take(self, run_id: str, *lines: str) -> RunSummary:
        self.opened.clear()
        self.tasks.clear()
        stored._ids_and_times.cache_clear()  # each run is as one of a process of its own
        frame = self._spark.createDataFrame([("f", text) for text in lines], LINES_SCHEMA)
        return ingest(self._spark, frame, self.tables, run_id, options=IngestOptions())


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(spark, tmp_path, monkeypatch)


def test_small_days_are_taken_together_and_no_other_day_is_opened(
    spark: SparkSession, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "DRIVER_FILES_MAX", 2)
    monkeypatch.setattr(days, "GROUP_FILES_MAX", 40)
    first = runs.take("a", *(line(day, day) for day in range(DAYS)))
    assert (first.events, len(first.days)) == (DAYS, DAYS)
    assert runs.tasks == [2], "a task for 40 days, the driver writes few lines itself"
    assert not runs.opened, "nothing was stored"
    assert runs.take("b", *(line(day, day) for day in range(DAYS))).duplicates == DAYS
    assert max(runs.opened.values()) <= 2, "ids, then contents"
    assert runs.take("c", line(500, 7)).events == 1
    assert len(runs.opened) == 1, "the day of the line"
    assert runs.tasks == []
    assert runs.take("d", line(501, 7), line(502, DAYS + 9)).events == 2
    assert len(runs.opened) == 1, "the days of the lines, and none between them"
    rolled = runs.tables.read(spark, "audit_rollup").selectExpr("sum(event_count)", "count(distinct day)")
    assert tuple(rolled.collect()[0]) == (DAYS + 3, DAYS + 1)


def test_thousands_of_days_are_a_handful_of_tasks(runs: Runs) -> None:
    """Whoever may log in can forge a line of each day: such a run must not stop those after it."""
    first = runs.take("a", *(line(day, day) for day in range(MANY_DAYS)))
    assert (first.events, len(first.days)) == (MANY_DAYS, MANY_DAYS)
    assert runs.tasks == [-(-MANY_DAYS // days.GROUP_FILES_MAX)]
    assert not runs.opened
    assert runs.take("b", line(MANY_DAYS, 7)).events == 1
    assert runs.tasks == []
    assert list(runs.opened.values()) == [1]
