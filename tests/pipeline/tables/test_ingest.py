"""Lines into tables: once, each with its outcome, and nothing of a failed run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.errors import LinesLostError
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA, LINES_SCHEMA
from kustos.pipeline.tables import (
    IngestOptions,
    RunSummary,
    Tables,
    TablesError,
    ingest,
    line_writer,
    refresh_rollup,
)
from kustos.pipeline.tables.transaction import data_files
from tests.pipeline.events import event_line, kafka_line, login_line
from tests.pipeline.tables.ways import both_ways

pytestmark = pytest.mark.usefixtures("users_plans")

TIME_MS = 1_795_233_600_123
DAY_MS = 86_400_000


@dataclass(frozen=True)
class StoppedClock:
    """A clock that stands."""

    now_ms: int

    def wall_ms(self) -> int:
        return self.now_ms

    def monotonic_ms(self) -> int:
        return 0


def lines_of(spark: SparkSession, *lines: str) -> DataFrame:
    return spark.createDataFrame([("f", line) for line in lines], LINES_SCHEMA)


def counts(summary: RunSummary) -> tuple[int, int, int, int]:
    return (summary.lines, summary.events, summary.quarantined, summary.duplicates)


def rows(tables: Tables, spark: SparkSession, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in tables.read(spark, name).select(*columns).collect())


@both_ways
def test_batches_are_taken_in_once_and_what_is_known_is_a_duplicate(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Tables(tmp_path / "tables")
    steps: list[str] = []

    def take(run_id: str, *lines: str) -> RunSummary:
        return ingest(spark, lines_of(spark, *lines), tables, run_id, progress=steps.append)

    first = take("s@1", event_line(1), event_line(2), kafka_line(), kafka_line(), "junk")
    assert counts(first) == (5, 4, 1, 0)
    assert first.days == ("2026-11-21",)
    assert steps[0] == "reading and sorting lines"
    again = take("s@1", event_line(9))
    assert again.is_repeat
    assert counts(again) == counts(first)
    forged = event_line(1, decision="DENIED")
    second = take("s@2", event_line(2), forged, event_line(3), *[kafka_line()] * 3, "junk", "junk")
    assert counts(second) == (8, 3, 1, 4)
    assert (first.conflicts, second.conflicts) == (0, 1)
    assert [text.partition(";")[0] for text in second.warnings] == [
        "1 event has the id of another event with other content, one of the two is forged or faulty and both "
        f"count: `{event_line_id(1)}` in `f` and in `f`"
    ]
    assert counts(take("s@3")) == (0, 0, 0, 0)
    events = rows(tables, spark, "audit_events", "event_id", "decision", "day")
    assert len(events) == 7
    assert [decision for event_id, decision, _ in events if event_id == event_line_id(1)] == [
        "ALLOWED",
        "DENIED",
    ]
    assert {day for *_, day in events} == {date(2026, 11, 21)}
    reasons = rows(tables, spark, "quarantine", "reason", "line")
    assert reasons == [("format_unknown", "junk"), ("format_unknown", "junk")]
    counted = rows(tables, spark, "audit_rollup", "host", "event_count", "sample_event_id")
    assert [(host, count) for host, count, _ in counted] == [
        ("10.0.0.7", 1),
        ("10.0.0.7", 3),
        ("127.0.0.1", 3),
    ]
    assert counted[0][2] == event_line_id(1)
    assert len(tables.files("audit_rollup")) == 1


def event_line_id(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012d}"


@both_ways
def test_logins_go_into_a_table_of_their_own_once(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")

    def take(run_id: str, *lines: str) -> tuple[int, int, int, int]:
        run = ingest(spark, lines_of(spark, *lines), tables, run_id)
        assert run.lines == run.events + run.security_events + run.quarantined + run.duplicates
        return run.events, run.security_events, run.quarantined, run.duplicates

    assert take("a@1", login_line(1), event_line(1), login_line(1)) == (1, 1, 0, 1)
    assert take("a@2", login_line(1), login_line(2), login_line(1, claimed_name="eve")) == (0, 2, 0, 1)
    assert take("a@3", event_line(1), event_line(2)) == (1, 0, 0, 1)
    assert take("a@4", login_line(3), login_line(2)) == (0, 1, 0, 1)
    found = rows(tables, spark, "security_events", "event_type", "claimed_name", "attempt_count", "day")
    days = date(2026, 11, 21)
    assert found == [*[("LOGIN", "bob", 1, days)] * 3, ("LOGIN", "eve", 1, days)]
    assert len(rows(tables, spark, "audit_events", "event_id")) == 2
    assert tables.state().newest_time_ms == TIME_MS
    rolled = tables.read(spark, "audit_rollup").selectExpr("sum(event_count)").collect()
    assert rolled[0][0] == 2


@both_ways
def test_what_comes_too_late_is_quarantined_only_if_so_asked_and_a_false_future_moves_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Tables(tmp_path)
    options = IngestOptions(watermark_days=2, with_rollup=False, keep_raw=True)
    clock = StoppedClock(TIME_MS)

    def take(run_id: str, *lines: str) -> RunSummary:
        return ingest(spark, lines_of(spark, *lines), tables, run_id, options=options, clock=clock)

    old = event_line(1, time_ms=TIME_MS - 10 * DAY_MS)
    future = event_line(2, time_ms=TIME_MS + 1000 * DAY_MS)
    assert counts(take("a", old, future)) == (2, 2, 0, 0)  # the first run has nothing to be late for
    late = event_line(3, time_ms=TIME_MS - 2 * DAY_MS - 1)
    in_time = event_line(4, time_ms=TIME_MS - 2 * DAY_MS)
    assert counts(take("b", late, in_time, old)) == (3, 1, 1, 1)
    assert rows(tables, spark, "quarantine", "reason", "line") == [("too_late", late)]
    assert rows(tables, spark, "audit_raw", "line") == sorted(
        (line,) for line in [old, future, late, in_time, old]
    )
    assert tables.days("audit_rollup") == frozenset()
    stale = tables.state().stale_days
    assert refresh_rollup(spark, tables) == tuple(sorted(stale))
    days = [datetime.fromtimestamp((TIME_MS + days * DAY_MS) / 1000, UTC).date() for days in (-10, -2, 1000)]
    assert rows(tables, spark, "audit_rollup", "day", "event_count") == [(day, 1) for day in days]
    assert refresh_rollup(spark, tables) == ()


@both_ways
def test_lines_with_a_place_are_known_by_it_and_faults_are_quarantined(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Tables(tmp_path)

    def take(run_id: str, lines: Sequence[tuple[str | None, int, str | None]]) -> RunSummary:
        placed = [("t/0", line, "topic-0", position, fault, None, None) for line, position, fault in lines]
        return ingest(spark, spark.createDataFrame(placed, INPUT_LINES_SCHEMA), tables, run_id)

    first = [(kafka_line(), 7, None), (kafka_line(), 8, None), (None, 9, "null_value")]
    assert counts(take("s@0", first)) == (3, 2, 1, 0)
    assert counts(take("s@1", [*first[1:], (kafka_line(), 10, None)])) == (3, 1, 0, 2)
    assert rows(tables, spark, "quarantine", "file", "reason") == [("t/0", "null_value")]


def test_a_run_that_loses_a_line_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = line_writer._QUARANTINE.empty_table()
    monkeypatch.setattr(line_writer._Writer, "_quarantined", lambda *_: nothing)
    with pytest.raises(LinesLostError, match="2 lines were read but 1 accounted for"):
        ingest(spark, lines_of(spark, event_line(1), "junk"), Tables(tmp_path), "a")
    assert data_files(tmp_path) == ()
    assert Tables(tmp_path).state().runs == {}


def test_tables_that_answer_are_replaced_whole_and_others_only_by_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = Tables(tmp_path)
    assert tables.read(spark, "findings").count() == 0
    tables.replace("spans", spark.range(3))
    tables.replace("spans", tables.read(spark, "spans").filter("id > 0"))
    assert rows(tables, spark, "spans", "id") == [(1,), (2,)]
    with pytest.raises(TablesError, match="`audit_events` is written by runs only"):
        tables.replace("audit_events", spark.range(3))
    for name in ("../x", "X", "_ledger", ""):
        with pytest.raises(TablesError, match="is not a name of a table"):
            tables.read(spark, name)
    with pytest.raises(TablesError, match="there is no table `nothing`"):
        tables.read(spark, "nothing")
