"""Upkeep of the tables: drops rows older than their retention, and compacts days of many small files.

Old rows are dropped by whole days, in one commit: events and roll-up by their days, lines of `quarantine` and
`audit_raw` by the day of ingestion. From then on the days are closed: `runs` has the bound (`closed_before`),
and a repeated or late event of such a day is quarantined as too late. Otherwise it would be counted again in
a roll-up that is kept for longer. Files are removed when no reader may need them any more.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from kustos.pipeline.errors import TablesError
from kustos.pipeline.tables.delta import vacuum
from kustos.pipeline.tables.layout import (
    AUDIT_EVENTS,
    AUDIT_ROLLUP,
    GROWING,
    LINES,
    SECURITY_EVENTS,
    stored_schema,
)
from kustos.pipeline.tables.runs import UPKEEP, State
from kustos.pipeline.tables.store import Tables, rows_of
from kustos.pipeline.tables.transaction import Compaction, Write
from kustos.runtime import Clock, SystemClock

MOST_FILES: Final = 32
"""Files of a day above which a run compacts it: opening one costs some milliseconds."""

MAXIMUM_DAYS: Final = 64
"""Days compacted in one transaction; the next run compacts the next ones."""

FILE_BYTES: Final = 128 * 1024 * 1024
"""About the size of a compacted file."""

_EVENTS: Final = (AUDIT_EVENTS, SECURITY_EVENTS)


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


def drop_expired(tables: Tables, retention: Retention, *, clock: Clock | None = None) -> Dropped:
    """Drop all rows older than their retention, or none; return their numbers.

    A day that is not rolled up yet is kept until it is. Raises `TablesError`, `TablesInUseError`.
    """
    clock, tables = clock or SystemClock(), tables.of_last_run()
    with tables.transaction() as change:
        found = _Expired(tables, change.state, retention, clock)
        closed = closed_before(change.state, retention, clock)
        writes = [
            Write(table=table, schema=stored_schema(table), replaces=days)
            for table, days in found.by_table.items()
            if days
        ]
        if writes:
            change.commit(f"drop-before-{closed}", UPKEEP, writes, closed_before=closed)
    for write in writes:
        vacuum(tables.place(write.table))
    return found.counted()


def would_drop(tables: Tables, retention: Retention, *, clock: Clock | None = None) -> Dropped:
    """Return what `drop_expired` would drop now."""
    return _Expired(tables, tables.state(), retention, clock or SystemClock()).counted()


class _Expired:
    """The expired days of each table."""

    def __init__(self, tables: Tables, state: State, retention: Retention, clock: Clock) -> None:
        first = kept_from(retention.days, clock)
        self._files = {table: tables.snapshot(table) for table in (*_EVENTS, AUDIT_ROLLUP, *LINES)}
        events = {day for table in _EVENTS for day in self._days(table, first, state.stale_days)}
        rolled_up: tuple[str, ...] = ()
        if retention.rollup_days is not None:
            bound = kept_from(retention.rollup_days, clock)
            rolled_up = self._days(AUDIT_ROLLUP, bound, state.stale_days)
        self._event_days = tuple(sorted(events))
        self.by_table = {
            **{table: self._days(table, first, state.stale_days) for table in _EVENTS},
            AUDIT_ROLLUP: rolled_up,
            **{table: self._days(table, first, ()) for table in LINES},
        }

    def _days(self, table: str, first: str, kept: Iterable[str]) -> tuple[str, ...]:
        days = {file.day for file in self._files[table] if file.day is not None and file.day < first}
        return tuple(sorted(days - set(kept)))

    def counted(self) -> Dropped:
        """Return the numbers, by the tables' logs."""
        return Dropped(
            event_days=self._event_days,
            events=sum(self._rows(table) for table in _EVENTS),
            rollup_days=self.by_table[AUDIT_ROLLUP],
            lines=sum(self._rows(table) for table in LINES),
        )

    def _rows(self, table: str) -> int:
        days = set(self.by_table[table])
        return rows_of([file for file in self._files[table] if file.day in days])


def compact_tables(tables: Tables, *, most_files: int = MOST_FILES) -> tuple[str, ...]:
    """Compact each day of more than `most_files` files; return the days as `TABLE/day=DAY`.

    Rows do not change, and columns that this version does not know stay. A kill at any moment leaves either
    the old files or the new ones. Files that no reader needs any more are removed. Raises `TablesInUseError`
    if another run is writing.
    """
    tables = tables.of_last_run()
    changes = [
        Compaction(table=table, days=days, file_bytes=FILE_BYTES)
        for table in sorted(GROWING)
        if (days := _crowded_days(tables, table, most_files))
    ]
    if not changes:
        return ()
    with tables.transaction() as change:
        change.commit("compact", UPKEEP, changes)
    for one in changes:
        vacuum(tables.place(one.table))
    return tuple(f"{one.table}/day={day}" for one in changes for day in one.days)


def _crowded_days(tables: Tables, table: str, most_files: int) -> tuple[str, ...]:
    counts = Counter(file.day for file in tables.snapshot(table))
    crowded = sorted(day for day, count in counts.items() if day is not None and count > most_files)
    return tuple(crowded[:MAXIMUM_DAYS])
