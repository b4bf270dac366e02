"""What is older than its retention goes by whole days, once, and does not come back."""

import os
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.pipeline.configuration import parse_configuration
from kustos.pipeline.errors import ConfigurationError
from kustos.pipeline.tables import (
    Dropped,
    IngestOptions,
    Retention,
    RunSummary,
    Tables,
    TablesError,
    drop_expired,
    ingest,
    refresh_rollup,
    would_drop,
)
from kustos.pipeline.tables.upkeep import kept_from
from tests.pipeline.events import event_line, login_line
from tests.pipeline.tables.dying import deaths
from tests.pipeline.tables.filling import fill, folder_of
from tests.pipeline.tables.test_ingest import DAY_MS, TIME_MS, StoppedClock, counts, lines_of, rows

TODAY = date(2026, 11, 21)
NOW = StoppedClock(TIME_MS)
KEPT = Retention(days=3, rollup_days=5)


def days(*back: int) -> tuple[str, ...]:
    """Days before today, the oldest first."""
    return tuple(sorted((TODAY - timedelta(days=one)).isoformat() for one in back))


def one_a_day(*back: int) -> list[str]:
    return [event_line(100 + one, time_ms=TIME_MS - one * DAY_MS) for one in back]


def test_old_days_go_and_what_comes_of_them_again_is_told_and_not_counted_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Tables(tmp_path)

    def take(run_id: str, lines: list[str], clock: StoppedClock, retention: Retention | None) -> RunSummary:
        options = IngestOptions(keep_raw=True, retention=retention)
        return ingest(spark, lines_of(spark, *lines), tables, run_id, options=options, clock=clock)

    def rolled() -> list[tuple[Any, ...]]:
        return rows(tables, spark, "audit_rollup", "day", "event_count")

    # taken in ten days ago, so that nothing was too late; and a line of today
    first = take("a", [*one_a_day(*range(8)), "junk"], StoppedClock(TIME_MS - 10 * DAY_MS), None)
    assert counts(first) == (9, 8, 1, 0)
    take("b", ["junk of today"], NOW, KEPT)
    expected = Dropped(event_days=days(4, 5, 6, 7), events=4, rollup_days=days(6, 7), lines=10)
    assert would_drop(tables, KEPT, clock=NOW) == expected
    assert drop_expired(tables, KEPT, clock=NOW) == expected
    number = tables.state().number
    assert drop_expired(tables, KEPT, clock=NOW) == Dropped()
    assert tables.state().number == number
    assert rows(tables, spark, "quarantine", "line") == [("junk of today",)]
    assert rows(tables, spark, "audit_raw", "line") == [("junk of today",)]
    assert tables.days("audit_events") == set(days(0, 1, 2, 3))
    before = rolled()
    assert [str(row[0]) for row in before] == list(days(0, 1, 2, 3, 4, 5))

    again = take("c", [*one_a_day(*range(8)), event_line(1, time_ms=TIME_MS - 4 * DAY_MS)], NOW, KEPT)
    assert (*counts(again), again.too_late) == (9, 0, 5, 4, 5)
    assert {row[0] for row in rows(tables, spark, "quarantine", "reason")} >= {"too_late"}
    once_more = take("d", one_a_day(6, 7), NOW, KEPT)
    assert (*counts(once_more), once_more.too_late) == (2, 0, 0, 2, 0)
    # days that went stay closed, also where nobody asks for a retention any more
    later = take("e", [event_line(2, time_ms=TIME_MS - 5 * DAY_MS)], NOW, None)
    assert (*counts(later), later.too_late) == (1, 0, 1, 0, 1)
    assert rolled() == before


def test_logins_go_with_the_events_of_their_days(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    lines = [login_line(one, time_ms=TIME_MS - one * DAY_MS, first_time_ms=0) for one in (0, 4, 9)]
    assert ingest(spark, lines_of(spark, *lines), tables, "a").security_events == 3
    expected = Dropped(event_days=days(4, 9), events=2)
    assert would_drop(tables, KEPT, clock=NOW) == expected
    assert drop_expired(tables, KEPT, clock=NOW) == expected
    assert rows(tables, spark, "security_events", "day") == [(TODAY,)]
    assert tables.days("security_events") == {str(TODAY)}


def test_a_day_that_is_not_rolled_up_yet_stays_until_it_is(spark: SparkSession, tmp_path: Path) -> None:
    tables, options = Tables(tmp_path), IngestOptions(with_rollup=False)
    ingest(spark, lines_of(spark, *one_a_day(0, 9)), tables, "s@1", options=options, clock=NOW)
    forever = Retention(days=3)
    assert drop_expired(tables, forever, clock=NOW) == Dropped()
    refresh_rollup(spark, tables)
    assert drop_expired(tables, forever, clock=NOW) == Dropped(event_days=days(9), events=1)
    assert [str(row[0]) for row in rows(tables, spark, "audit_rollup", "day")] == list(days(0, 9))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables as runs leave them, made without Spark: files of one row."""
    tables = Tables(tmp_path_factory.mktemp("retention") / "tables")
    row = pa.table({"line": ["x"]})
    for table in ("audit_events", "audit_rollup"):
        fill(tables, table, dict.fromkeys(days(0, 4, 9), row))
    for day in days(0, 4):
        fill(tables, "quarantine", {day: row})
    return tables


def held(tables: Tables) -> list[str]:
    return [
        f"{name}/{file.day}"
        for name in ("audit_events", "audit_rollup", "quarantine")
        for file in tables.snapshot(name)
    ]


def test_dead_anywhere_all_of_it_goes_or_nothing(filled: Tables, tmp_path: Path) -> None:
    wanted = Tables(tmp_path / "wanted")
    shutil.copytree(folder_of(filled), folder_of(wanted))
    before = held(wanted)
    dropped = drop_expired(wanted, KEPT, clock=NOW)
    assert dropped == Dropped(event_days=days(4, 9), events=2, rollup_days=days(9), lines=1)
    after = held(wanted)
    assert after == [
        "audit_events/2026-11-21",
        "audit_rollup/2026-11-17",
        "audit_rollup/2026-11-21",
        "quarantine/2026-11-21",
    ]
    seen = set()
    for folder in deaths(folder_of(filled), lambda folder: drop_expired(Tables(folder), KEPT, clock=NOW)):
        tables = Tables(folder)
        found = held(tables)
        assert found in (before, after)
        seen.add(tuple(found))
        drop_expired(tables, KEPT, clock=NOW)
        assert held(tables) == after
        assert tables.state().closed_before == days(3)[0]
    assert seen == {tuple(before), tuple(after)}


def test_files_of_dropped_days_go_when_no_reader_needs_them(filled: Tables, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    shutil.copytree(folder_of(filled), folder_of(tables))
    before = files_of(tables, "audit_events")
    stray = before[0].with_name("of_a_killed_run.parquet")
    stray.touch()
    os.utime(stray, (0, 0))
    drop_expired(tables, KEPT, clock=NOW)
    assert files_of(tables, "audit_events") == before
    assert not stray.exists()


def files_of(tables: Tables, name: str) -> list[Path]:
    return sorted((folder_of(tables) / name).rglob("part-*.parquet"))


@given(back=st.integers(0, 800_000))
def test_the_first_day_kept_is_so_many_days_before_today(back: int) -> None:
    first = date.fromisoformat(kept_from(back, NOW))
    assert first == (TODAY - timedelta(days=back) if back < TODAY.toordinal() else date.min)


def test_what_cannot_be_kept_so_is_refused() -> None:
    with pytest.raises(TablesError, match="one day or more"):
        Retention(days=0)
    with pytest.raises(TablesError, match="as long as the events"):
        Retention(days=9, rollup_days=8)
    for settings in ("rollup_retention_days: 9", "retention_days: 9, rollup_retention_days: 8"):
        text = f"version: 1\ntables: {{path: t, {settings}}}\n"
        with pytest.raises(ConfigurationError, match="at least `retention_days`"):
            parse_configuration(text, Path("pipeline.yml"))
