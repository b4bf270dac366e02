"""A transaction on the tables: staged, committed to each table by Delta's log, and to `runs` last.

Theory of operation. A run writes below `_staging-<random>`, which Spark and other readers ignore. To commit,
its files are renamed into the tables' folders, where no commit names them yet; then each table commits them,
and `runs` last (see there). Killed before, nothing of it is seen, and the next run undoes what it finds. The
name of the folder is random, so that a job that outlived its killed driver cannot write into the folder of
the run that repeats its work.

A lock on the folder refuses a second run at once where the file system has locks; that nothing is written
twice does not depend on it.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from kustos.pipeline.errors import TablesDamagedError, TablesError, TablesInUseError
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.runs import (
    INPUTS,
    INPUTS_SCHEMA,
    MAXIMUM_FILES,
    RUNS,
    RUNS_SCHEMA,
    InputFile,
    Row,
    State,
    add_rows,
    input_rows,
    kept_rows,
    latest_inputs,
    read_runs,
    rows_of,
    state_of,
)
from kustos.runtime import SystemEntropy, reason_of

STAGING_PREFIX: Final = "_staging-"
_RUN_LOCK: Final = "_lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The staged files of a table are added; they replace those of the days `replaces` (ISO), None: all.

    `day`: that of files in no folder of a day, in a table by day. The table is made if it is not there.
    """

    table: str
    schema: pa.Schema
    has_days: bool = True
    replaces: tuple[str, ...] | None = ()
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The files of each of these days (ISO) of a table become few of about so many bytes."""

    table: str
    days: tuple[str, ...]
    file_bytes: int


class Transaction:
    """The tables at a state: `stage` returns paths to write to, `commit` makes the files part of them."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._newest: Final = delta.newest_commit(folder / RUNS)
        self._runs, self._rows = read_runs(folder)
        self.state: Final[State] = state_of(folder, self._rows)
        self.staging: Final = folder / f"{STAGING_PREFIX}{SystemEntropy().uuid().hex}"
        self.is_committed = False
        self._number: Final = self.state.number + 1

    def stage(self, name: str) -> Path:
        """Return a path in the staging folder for one writer; it does not exist yet."""
        self.staging.mkdir(exist_ok=True)
        return self.staging / name

    def staged_files(self, name: str) -> tuple[str, ...]:
        """Return the data files staged under this name, relative to it."""
        return data_files(self.staging / name)

    def discard(self, *names: str) -> None:
        """Remove what was staged under these names."""
        for name in names:
            shutil.rmtree(self.staging / name, ignore_errors=True)

    def commit(
        self,
        run_id: str,
        kind: str,
        changes: Sequence[Write | Compaction],
        *,
        inputs: Sequence[InputFile] = (),
        summary: Mapping[str, Any] | None = None,
        newest_time_ms: int | None = None,
        stale_days: frozenset[str] | None = None,
        closed_before: str | None = None,
    ) -> None:
        """Commit the changes and the state after them, where None is the former one.

        Raises `TablesInUseError` if another run was first, `TablesError`.
        """
        if self.is_committed:
            raise TablesError("a transaction commits once")
        self._check_current()
        try:
            versions = dict(self.state.versions)
            for change in changes:
                versions[change.table] = self._apply(change)
            if inputs:
                versions[INPUTS] = self._add_inputs(inputs)
            self._add_run(
                {
                    "number": self._number,
                    "run_id": run_id,
                    "kind": kind,
                    "summary": json.dumps(summary or {}),
                    "newest_time_ms": _latest(self.state.newest_time_ms, newest_time_ms),
                    "stale_days": sorted(self.state.stale_days if stale_days is None else stale_days),
                    "closed_before": _latest(self.state.closed_before, closed_before),
                    "versions": json.dumps(versions),
                }
            )
        except OSError as error:
            place = error.filename2 or error.filename or self.folder
            raise TablesError(f"cannot write to `{place}`: {reason_of(error)}") from error
        self.is_committed = True

    def _check_current(self) -> None:
        """Raise `TablesInUseError` early if another run has committed; the commit itself would, too."""
        if delta.newest_commit(self.folder / RUNS) != self._newest:
            raise TablesInUseError(f"another run has written to the tables in `{self.folder}`, run again")

    def _apply(self, change: Write | Compaction) -> int:
        place = self.folder / change.table
        if isinstance(change, Compaction):
            table = self._opened(change.table)
            if table is None:
                raise TablesError(f"there is no table `{change.table}` in `{self.folder}`")
            before = rows_in(table)
            version = delta.compact(place, table, change.days, change.file_bytes, self._number)
            if rows_in(table) != before:
                raise TablesError(
                    f"compacting `{change.table}` would change its number of rows, nothing was changed"
                )
            return version
        table = self._opened(change.table)
        if table is None:
            table = delta.create_table(place, change.schema, has_days=change.has_days)
        elif change.replaces is not None:
            delta.widen(place, table, change.schema, self._number)
        schema = change.schema if change.replaces is None else table.schema()
        added = [delta.added(place, name, day) for name, day in self._moved(change)]
        return delta.write(place, table, added, schema, replaces=change.replaces, number=self._number)

    def _opened(self, name: str) -> DeltaTable | None:
        """Return the table with the rows that the state gives it; what is above them is undone."""
        place, version = self.folder / name, self.state.versions.get(name)
        table = delta.open_table(place)
        if table is None:
            return None
        if version is None:
            if self.state.number == 0 and (table.transaction_version(delta.APPLICATION) or 0) > 1:
                raise TablesDamagedError(
                    f"`{self.folder / RUNS}` is gone while `{place}` is there, restore it or read the audit "
                    "into a new folder"
                )
            if delta.files_of(table):
                delta.restore(place, table, None, self._number)
        elif table.version() != version:
            committed = delta.open_table(place, version)
            if committed is None or delta.files_of(table) != delta.files_of(committed):
                delta.restore(place, table, version, self._number)
        return table

    def _moved(self, change: Write) -> list[tuple[str, str | None]]:
        """Move the staged files of a table into its folder; return their names there, and their days."""
        place, moved = self.folder / change.table, list[tuple[str, str | None]]()
        for staged in self.staged_files(change.table):
            name, day = staged, None
            if change.has_days and change.day is not None:
                day = change.day.isoformat()
                name = f"{delta.DAY}={day}/{Path(staged).name}"
            elif change.has_days:
                day = Path(staged).parent.name.removeprefix(f"{delta.DAY}=")
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            delta.sync(self.staging / change.table / staged)  # no commit is to be safer than its files
            (self.staging / change.table / staged).rename(place / name)
            moved.append((name, day))
        for directory in {place, *((place / name).parent for name, _ in moved)}:
            delta.sync(directory)
        return moved

    def _add_inputs(self, inputs: Sequence[InputFile]) -> int:
        place, rows = self.folder / INPUTS, input_rows(inputs, self._number)
        table = self._opened(INPUTS) or delta.create_table(place, INPUTS_SCHEMA, has_days=False)
        delta.widen(place, table, INPUTS_SCHEMA, self._number)
        is_full = len(delta.files_of(table)) >= MAXIMUM_FILES
        if is_full:
            former = rows_of(place, table, INPUTS_SCHEMA)
            rows = input_rows(latest_inputs([*former, *rows]).values(), self._number)
        return add_rows(place, table, rows, INPUTS_SCHEMA, replaces_all=is_full, number=self._number)

    def _add_run(self, row: Row) -> None:
        """Add the row to the table as it was at the beginning: refused if another run was first."""
        place = self.folder / RUNS
        runs = self._runs or delta.create_table(place, RUNS_SCHEMA, has_days=False)
        if self._runs is None and runs.version() != 0:
            raise TablesInUseError(f"another run has written to the tables in `{self.folder}`, run again")
        is_full = len(delta.files_of(runs)) >= MAXIMUM_FILES
        rows = kept_rows([*self._rows, row]) if is_full else [row]
        add_rows(place, runs, rows, RUNS_SCHEMA, replaces_all=is_full, number=self._number)
        if is_full:
            delta.vacuum(place)


@contextmanager
def transaction(folder: Path) -> Iterator[Transaction]:
    """Lock the tables, remove the staging of killed runs, and yield a transaction.

    Raises `TablesInUseError`, `TablesDamagedError`, or `TablesError` if the folder cannot be written.
    """
    with run_lock(folder):
        for left in folder.glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(left, ignore_errors=True)
        opened = Transaction(folder)
        try:
            yield opened
        finally:
            shutil.rmtree(opened.staging, ignore_errors=True)


def rows_in(table: DeltaTable) -> int:
    """Return how many rows the table has."""
    return sum(file.rows for file in delta.files_of(table))


def data_files(folder: Path) -> tuple[str, ...]:
    """Return the data files below a folder, sorted, relative to it.

    Raises `TablesError` for a folder that cannot be listed: its rows would be missing silently.
    """
    found: list[str] = []
    for directory, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        found += [str(Path(directory, name).relative_to(folder)) for name in names if not _is_hidden(name)]
    return tuple(sorted(found))


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise TablesError(f"cannot list `{error.filename}`: {reason_of(error)}") from error


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Lock the tables against other runs, or raise `TablesInUseError` at once."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / _RUN_LOCK).open("w")
    except OSError as error:
        raise TablesError(f"cannot write to `{folder}`: {reason_of(error)}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TablesInUseError(
                f"another run is writing to the tables in `{folder}`, wait for it"
            ) from error
        yield


def _latest(former: Any, new: Any) -> Any:
    return max((each for each in (former, new) if each is not None), default=None)
