"""A run over many days, a line of each, which any login can forge: what it opens and starts is counted."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.schemas.events import LINES_SCHEMA
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables, ingest, line_writing, stored, writing
from kustos.pipeline.tables.rollup import days
from tests.pipeline.events import event_line

TIME_MS = 1_795_233_600_123
DAY_MS = 86_400_000
DAYS = 70


def line(number: int, day: int) -> str:
    return event_line(number, time_ms=TIME_MS - day * DAY_MS)


def test_small_days_are_taken_together_and_no_other_day_is_opened(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(tmp_path)
    opened: Counter[str] = Counter()
    tasks: list[int] = []

    def source_of(place: Path) -> Any:
        opened[place.parent.name] += 1
        return str(place)

    def in_tasks(spark: SparkSession, count: int, write: Any) -> list[Any]:
        tasks.append(count)
        return honest(spark, count, write)

    def take(run_id: str, *lines: str) -> RunSummary:
        opened.clear()
        tasks.clear()
        frame = spark.createDataFrame([("f", text) for text in lines], LINES_SCHEMA)
        return ingest(spark, frame, tables, run_id, options=IngestOptions())

    honest = writing.in_tasks
    monkeypatch.setattr(stored, "source_of", source_of)
    monkeypatch.setattr(days, "in_tasks", in_tasks)
    monkeypatch.setattr(line_writing, "in_tasks", in_tasks)
    monkeypatch.setattr(days, "DRIVER_FILES_MAX", 2)
    monkeypatch.setattr(days, "GROUP_FILES_MAX", 40)
    first = take("a", *(line(day, day) for day in range(DAYS)))
    assert (first.events, len(first.days)) == (DAYS, DAYS)
    assert tasks == [2], "a task for 40 days, the driver writes few lines itself"
    assert not opened, "nothing was stored"
    assert take("b", *(line(day, day) for day in range(DAYS))).duplicates == DAYS
    assert max(opened.values()) <= 2, "ids, then contents"
    assert take("c", line(500, 7)).events == 1
    assert len(opened) == 1, "the day of the line"
    assert tasks == []
    assert take("d", line(501, 7), line(502, DAYS + 9)).events == 2
    assert len(opened) == 1, "the days of the lines, and none between them"
    rolled = (
        tables.read(spark, "audit_rollup").selectExpr("sum(event_count)", "count(distinct day)").collect()
    )
    assert tuple(rolled[0]) == (DAYS + 3, DAYS + 1)
