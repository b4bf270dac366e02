"""Retention: drops old rows, by whole days, in one commit, and keeps them from being ingested again.

Events and roll-up are dropped by their days. Lines of `quarantine` and `audit_raw`, which may have no time,
are dropped by the day of ingestion, which is in their file names. From then on the days are closed: the
ledger has the bound (`closed_before`), and a repeated or late event of such a day is quarantined as too late.
Otherwise it would be counted again in a roll-up that is kept for longer.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from kustos.pipeline.errors import TablesError
from kustos.pipeline.tables.ledger import UPKEEP, State
from kustos.pipeline.tables.reading import rows_on_disk
from kustos.pipeline.tables.store import (
    AUDIT_EVENTS,
    AUDIT_RAW,
    AUDIT_ROLLUP,
    DELTA,
    QUARANTINE,
    SECURITY_EVENTS,
    Tables,
)
from kustos.pipeline.tables.transaction import data_files
from kustos.runtime import Clock, SystemClock

_EVENTS: Final = (AUDIT_EVENTS, SECURITY_EVENTS)
_TAKEN: Final = re.compile(r"(\d{4}-\d\d-\d\d)_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many days are kept, without today: of events and lines, and of the roll-up (None: for ever).

    The roll-up is kept at least as long as the events. Raises `TablesError`.
    """

    days: int
    rollup_days: int | None = None

    def __post_init__(self) -> None:
        if self.days < 1:
            raise TablesError("a retention is one day or more")
        if self.rollup_days is not None and self.rollup_days < self.days:
            raise TablesError("the roll-up is kept as long as the events at least")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """The rows that were dropped, or would be: days (ISO) of events and of the roll-up, events, and lines.

    Security events are events here.
    """

    event_days: tuple[str, ...] = ()
    events: int = 0
    rollup_days: tuple[str, ...] = ()
    lines: int = 0


def kept_from(days: int, clock: Clock) -> str:
    """Return the first day (ISO, UTC) that is kept."""
    today = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC).date()
    return max(date.min, today - timedelta(days=min(days, today.toordinal() - 1))).isoformat()


def closed_before(state: State, retention: Retention | None, clock: Clock) -> str | None:
    """Return the day (ISO) before which no event is ingested; a closed day is never opened again."""
    first_kept = () if retention is None else (kept_from(retention.days, clock),)
    return max([day for day in (state.closed_before, *first_kept) if day is not None], default=None)


def drop_expired(
    spark: SparkSession, tables: Tables, retention: Retention, *, clock: Clock | None = None
) -> Dropped:
    """Drop all rows older than their retention, or none; return their numbers.

    A day that is not rolled up yet is kept until it is. Delta tables are refused: Delta keeps deleted rows
    until its own VACUUM. Raises `TablesError`, `TablesInUseError`.
    """
    clock = clock or SystemClock()
    if tables.form == DELTA:
        raise TablesError("tables kept as Delta are cut by Delta's own DELETE and VACUUM, not by a retention")
    with tables.transaction(spark) as change:
        found = _Expired(tables, change.state, retention, clock)
        dropped, files = found.counted(), found.files()
        closed = closed_before(change.state, retention, clock)
        if files:
            change.commit(f"drop-before-{closed}", UPKEEP, removes=files, closed_before=closed)
            _remove_empty(tables, dropped)
    return dropped


def would_drop(tables: Tables, retention: Retention, *, clock: Clock | None = None) -> Dropped:
    """Return what `drop_expired` would drop now."""
    return _Expired(tables, tables.state(), retention, clock or SystemClock()).counted()


class _Expired:
    """The expired files and days, by table."""

    def __init__(self, tables: Tables, state: State, retention: Retention, clock: Clock) -> None:
        self._tables = tables
        first = kept_from(retention.days, clock)
        self.event_days = tuple(sorted({day for table in _EVENTS for day in self._days(table, first, state)}))
        self.rollup_days: tuple[str, ...] = ()
        if retention.rollup_days is not None:
            self.rollup_days = self._days(AUDIT_ROLLUP, kept_from(retention.rollup_days, clock), state)
        self._lines = {
            table: tuple(file for file in files if day_taken(tables.place(table) / file) < first)
            for table, files in (
                (table, data_files(tables.place(table))) for table in (QUARANTINE, AUDIT_RAW)
            )
        }

    def _days(self, table: str, first: str, state: State) -> tuple[str, ...]:
        return tuple(sorted(day for day in self._tables.days(table) - state.stale_days if day < first))

    def _of_days(self, table: str, days: Sequence[str]) -> tuple[str, ...]:
        place = self._tables.place(table)
        return tuple(f"day={day}/{file}" for day in days for file in data_files(place / f"day={day}"))

    def files(self) -> tuple[str, ...]:
        """Return the files, relative to the tables' folder."""
        by_table = {
            **{table: self._of_days(table, self.event_days) for table in _EVENTS},
            AUDIT_ROLLUP: self._of_days(AUDIT_ROLLUP, self.rollup_days),
            **self._lines,
        }
        return tuple(f"{table}/{file}" for table, files in by_table.items() for file in files)

    def counted(self) -> Dropped:
        """Return the numbers, from the footers of the files."""
        return Dropped(
            event_days=self.event_days,
            events=sum(
                rows_on_disk(self._tables.place(table), self._of_days(table, self.event_days))
                for table in _EVENTS
            ),
            rollup_days=self.rollup_days,
            lines=sum(rows_on_disk(self._tables.place(table), files) for table, files in self._lines.items()),
        )


def _remove_empty(tables: Tables, dropped: Dropped) -> None:
    by_day = {AUDIT_ROLLUP: dropped.rollup_days, **dict.fromkeys(_EVENTS, dropped.event_days)}
    for table, days in by_day.items():
        for day in days:
            with suppress(OSError):  # a folder with a foreign file stays
                (tables.place(table) / f"day={day}").rmdir()


def day_taken(path: Path) -> str:
    """Return the day (ISO, UTC) on which a file's lines were ingested; of older files, that of writing."""
    match = _TAKEN.match(path.name)
    if match is not None:
        return match[1]
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()


def taken_on(moves: Iterable[tuple[str, str]], day: str) -> tuple[tuple[str, str], ...]:
    """Return moves of files into a table without days, with the day in the names."""
    return tuple(
        (source, str(Path(target).with_name(f"{day}_{Path(target).name}"))) for source, target in moves
    )
