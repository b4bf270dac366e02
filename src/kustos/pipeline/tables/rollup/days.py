"""The roll-up of some days: the stored roll-up with new events added, or rebuilt from the files of events.

A task takes the files of whole days, without a shuffle; days with little are taken together. Of a day that is
too large for one task several make a roll-up of their part each, and one adds them up.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from kustos.pipeline.columns.file_parts import FilePart, parts_of
from kustos.pipeline.errors import TablesDamagedError
from kustos.pipeline.places import Place, in_parallel, size_of
from kustos.pipeline.tables.delta import DataFile, NewFile, new_name, write_file
from kustos.pipeline.tables.integrity import files_by_log, remedy
from kustos.pipeline.tables.layout import AUDIT_EVENTS, AUDIT_ROLLUP, period_of, stored_schema
from kustos.pipeline.tables.line_writer import parts_by_day
from kustos.pipeline.tables.parquet_writer import in_tasks, write_batches, written_files
from kustos.pipeline.tables.rollup.columns import rolled_up_parts
from kustos.pipeline.tables.runs import UPKEEP, State
from kustos.pipeline.tables.transaction import Transaction, Write
from kustos.runtime import listed

_log = logging.getLogger("kustos.pipeline.tables")

TASK_BYTES_MAX: Final = 512 << 20
"""The largest day for a single task, some eight million events; several tasks share a larger one."""

GROUP_BYTES_MAX: Final = 32 << 20
"""Days with less are taken together, up to as much: a task for each takes longer to start than to run."""

GROUP_FILES_MAX: Final = 512
"""Files of the days that are taken together: each takes some milliseconds."""

DRIVER_BYTES_MAX: Final = 8 << 20
"""So little the driver rolls up itself, faster than Spark plans tasks."""

DRIVER_FILES_MAX: Final = 64
"""Files of the days that the driver rolls up itself."""

_PARTIAL: Final = "partial_rollup"


class RolledTables(Protocol):
    """The tables whose events are rolled up."""

    def state(self) -> State:
        """Return the state that the last committed run left; raise `TablesDamagedError`, `TablesError`."""

    def of_last_run(self) -> "RolledTables":
        """Return the tables that are read as the last committed run left them at each time."""

    def days(self, name: str) -> frozenset[str]:
        """Return the days (ISO dates) for which a table by day has files; raise `TablesError`."""

    def chosen(self, name: str, is_wanted: Callable[[DataFile], bool] = ...) -> list[tuple[Place, DataFile]]:
        """Return the wanted files of a table that runs write, by default all, with what the log says."""

    def snapshot(self, name: str) -> tuple[DataFile, ...]:
        """Return the files of a table as of the last committed run; raise `TablesDamagedError`."""

    def place(self, name: str) -> Place:
        """Return where a table is."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Lock the tables and yield a transaction; raise `TablesInUseError`, `TablesError`."""


def days_to_rebuild(tables: RolledTables, state: State, days: Collection[str]) -> frozenset[str]:
    """Return those of the days whose roll-up lacks committed events."""
    rolled = tables.days(AUDIT_ROLLUP)
    return frozenset(day for day in days if day in state.stale_days or day not in rolled)


@dataclass(frozen=True, slots=True)
class DayFiles:
    """What the roll-up of a day (ISO) is made of: files of events, and of roll-ups of other events."""

    day: str
    events: tuple[Place, ...]
    rollups: tuple[Place, ...] = ()

    def size_bytes(self) -> int:
        """Return the size of the files; raise `OSError` for one that is gone."""
        return sum(map(size_of, (*self.events, *self.rollups)))


def roll_up(
    spark: SparkSession,
    tables: RolledTables,
    change: Transaction,
    new_files: Sequence[Place],
    days: Collection[str],
    rebuilt: Collection[str],
) -> Write:
    """Add the roll-up of these days with the new events to the transaction, `rebuilt` ones from their events.

    `new_files`: files of events, each in the folder of its day.
    """
    merged = set(days) - set(rebuilt)
    events, rollups, stored = (
        _by_day(files)
        for files in (
            new_files,
            [path for path, _ in tables.chosen(AUDIT_ROLLUP, lambda file: file.day in merged)],
            [path for path, _ in tables.chosen(AUDIT_EVENTS, lambda file: file.day in rebuilt)],
        )
    )
    wanted = [
        DayFiles(day, (*events.get(day, ()), *stored.get(day, ())))
        if day in rebuilt
        else DayFiles(day, tuple(events.get(day, ())), tuple(rollups.get(day, ())))
        for day in sorted(days)
    ]
    place, partial = change.place(AUDIT_ROLLUP), change.stage(_PARTIAL)
    change.add(AUDIT_ROLLUP, write_rollup(spark, wanted, place, partial, change.mark))
    return Write(table=AUDIT_ROLLUP, schema=stored_schema(AUDIT_ROLLUP), replaces=tuple(sorted(days)))


def _by_day(files: Iterable[Place]) -> Mapping[str, list[Place]]:
    by_day: dict[str, list[Place]] = {}
    for file in files:
        by_day.setdefault(file.parent.name.removeprefix("day="), []).append(file)
    return by_day


def refresh_rollup(spark: SparkSession, tables: RolledTables) -> tuple[str, ...]:
    """Roll up the days that runs without a roll-up marked, all days if the roll-up is damaged; return them.

    Raises `TablesInUseError` if another run is writing, `TablesDamagedError` if events are gone.
    """
    with tables.transaction() as change:
        return _refresh(spark, tables.of_last_run(), change)


def refreshed_state(spark: SparkSession, tables: RolledTables) -> State:
    """Return a state whose roll-up has all its events; first refresh a roll-up that lacks some or is damaged.

    A stream may mark days again right after the refresh, so this returns the state that the refresh left.
    Raises what `refresh_rollup` raises.
    """
    state = tables.state()
    tables.snapshot(AUDIT_EVENTS)  # a roll-up of lost events must not answer for them
    if not state.stale_days and rollup_fault(tables) is None:
        return state
    with tables.transaction() as change:
        _refresh(spark, tables.of_last_run(), change)
        return change.state_now()


def rollup_fault(tables: RolledTables) -> str | None:
    """Return what another program did to the roll-up, None for one that is as the last run left it."""
    try:
        tables.of_last_run().snapshot(AUDIT_ROLLUP)
    except TablesDamagedError as error:
        return str(error).removesuffix(f"; {remedy(AUDIT_ROLLUP)}")
    return None


def _refresh(spark: SparkSession, tables: RolledTables, change: Transaction) -> tuple[str, ...]:
    fault = rollup_fault(tables)
    days = tuple(sorted(change.state.stale_days if fault is None else tables.days(AUDIT_EVENTS)))
    if fault is not None:
        write = _rebuilt(spark, tables, change, fault)
        change.commit("rebuild-rollup", UPKEEP, [write], stale_days=frozenset())
        _log.warning("%s; the roll-up was rebuilt from the events of %s", fault, period_of(days))
    elif days:
        write = roll_up(spark, tables, change, (), days, days)
        change.commit("refresh-rollup", UPKEEP, [write], stale_days=frozenset())
    return days


def _rebuilt(spark: SparkSession, tables: RolledTables, change: Transaction, fault: str) -> Write:
    """Add a new roll-up to the transaction: of the events, and of the stored rows of days without events.

    Raises `TablesDamagedError` if it is not sure that these rows are whole.
    """
    events = _by_day(path for path, _ in tables.chosen(AUDIT_EVENTS))
    stored = _by_log(tables, change.state)
    kept = [file for file in stored if file.day not in events]
    place = tables.place(AUDIT_ROLLUP)
    lost = sorted({file.day or "" for file in kept if not _is_there(place / file.name, file.size_bytes)})
    if lost:
        raise TablesDamagedError(_irreparable(fault, f"of {listed(lost, 'and')}"))
    rollups = _by_day(place / file.name for file in kept)
    wanted = [
        DayFiles(day, tuple(events.get(day, ())), tuple(rollups.get(day, ())))
        for day in sorted({*events, *rollups})
    ]
    files = write_rollup(spark, wanted, change.place(AUDIT_ROLLUP), change.stage(_PARTIAL), change.mark)
    change.add(AUDIT_ROLLUP, files)
    closed, stale, left = (
        change.state.closed_before,
        change.state.stale_days,
        change.state.contents.get(AUDIT_ROLLUP),
    )
    if closed is not None:
        # the rows of stale days are other ones than those that the last run left
        found = sum(file.rows for file in files if file.day not in stale)
        found += sum(file.rows for file in stored if file.day in stale)
        if left is None or found != left.rows:
            raise TablesDamagedError(_irreparable(fault, f"before {closed}"))
    return Write(table=AUDIT_ROLLUP, schema=stored_schema(AUDIT_ROLLUP), replaces=None)


def _by_log(tables: RolledTables, state: State) -> tuple[DataFile, ...]:
    """Return the files of the roll-up by its log alone, none if that is damaged, too."""
    place, version = tables.place(AUDIT_ROLLUP), state.versions.get(AUDIT_ROLLUP)
    try:
        return () if version is None else files_by_log(place, version, state)
    except TablesDamagedError:
        return ()


def _is_there(path: Place, size_bytes: int) -> bool:
    try:
        return size_of(path) == size_bytes
    except FileNotFoundError:
        return False


def _irreparable(fault: str, days: str) -> str:
    return (
        f"{fault}; it cannot be rebuilt, since the retention has dropped the events of days "
        f"{days}: restore the table from a backup"
    )


def write_rollup(
    spark: SparkSession, days: Sequence[DayFiles], place: Place, partial: Place, mark: str
) -> list[NewFile]:
    """Write the table `audit_rollup` of these days into files below `place`; return them.

    `partial` is a folder for files that are not needed afterwards; `mark` is in the names of all. Workers
    must see the files under these paths. Raises `OSError` for a file that is gone.
    """
    sizes = dict(zip(days, in_parallel(days, DayFiles.size_bytes), strict=True))
    large = [day for day in days if sizes[day] > TASK_BYTES_MAX]
    added_up = _large_days(spark, large, partial, mark)
    groups = list(_groups({added_up.get(day.day, day): size for day, size in sizes.items()}))

    def write(number: int) -> Iterator[tuple[str, NewFile]]:
        return (("", file) for file in _write(groups[number], place, mark))

    files = sum(len(day.events) + len(day.rollups) for day in days)
    if len(groups) == 1 and sum(sizes.values()) <= DRIVER_BYTES_MAX and files <= DRIVER_FILES_MAX:
        return _write(groups[0], place, mark)
    return written_files(in_tasks(spark, len(groups), write), "") if groups else []


def _large_days(
    spark: SparkSession, days: Sequence[DayFiles], partial: Place, mark: str
) -> dict[str, DayFiles]:
    """Roll up parts of these days; return the days with files of these roll-ups in place of the events."""
    tasks = [(day, part) for day in days for part in parts_of(day.events)]

    def write(number: int) -> Iterator[tuple[str, NewFile]]:
        day, part = tasks[number]
        batches = rolled_up_parts([part])
        return (("", file) for file in write_batches(batches, partial, mark, _SCHEMA, day=day.day))

    files = written_files(in_tasks(spark, len(tasks), write), "") if tasks else []
    found = _by_day(partial / file.name for file in files)
    return {day.day: replace(day, events=(), rollups=(*day.rollups, *found.get(day.day, ()))) for day in days}


def _groups(sizes: Mapping[DayFiles, int]) -> Iterator[list[DayFiles]]:
    """Yield the days in groups, each for one task."""
    group: list[DayFiles] = []
    group_bytes = group_files = 0
    for day, size in sizes.items():
        files = len(day.events) + len(day.rollups)
        if group and (group_bytes + size > GROUP_BYTES_MAX or group_files + files > GROUP_FILES_MAX):
            yield group
            group, group_bytes, group_files = [], 0, 0
        group.append(day)
        group_bytes += size
        group_files += files
    if group:
        yield group


_SCHEMA: Final = stored_schema(AUDIT_ROLLUP)


def _write(days: Sequence[DayFiles], place: Place, mark: str) -> list[NewFile]:
    """Write the roll-up of these days, a file for each."""
    events = (FilePart(str(file)) for day in days for file in day.events)
    rollups = (FilePart(str(file)) for day in days for file in day.rollups)
    batches = rolled_up_parts(events, rollups)
    if len(days) == 1:
        return write_batches(batches, place, mark, _SCHEMA, day=days[0].day)
    found = list(batches)
    if not found:
        return []

    def write(part: tuple[date, pa.Table]) -> NewFile:
        day = part[0].isoformat()
        return write_file(place, new_name(mark, day), part[1].drop_columns("day"), day)

    return in_parallel(list(parts_by_day(pa.Table.from_batches(found))), write)
