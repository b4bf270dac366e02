"""A transaction on the tables: files beside the others, committed by Delta's logs, and by `runs` last.

Theory of operation. A run writes its files into the tables' folders, where no commit names them yet, and
whatever else it needs below `_staging-<time>-<mark>`. To commit, each table takes its files, and `runs` its
row (see there). Killed before, nothing of it is seen, and the next run undoes what it finds committed. Names
of files have the run's random mark: a job that outlived its killed driver cannot write into the files of the
run that repeats its work, and on a disk the next run removes those of a killed one at once. In an object
store another run may be at work; there files that no commit names go with the old ones, by vacuum.

On a disk a lock on the folder refuses a second run at once; that nothing is written twice does not depend on
it.
"""

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from deltalake import DeltaTable

from kustos.pipeline.errors import TablesError, TablesInUseError
from kustos.pipeline.files import run_lock
from kustos.pipeline.places import (
    Place,
    in_parallel,
    make_folder,
    names_in,
    remove_file,
    remove_folder,
    sync,
)
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.commits import landing_of
from kustos.pipeline.tables.integrity import (
    Contents,
    check_number,
    committed_files,
    replaceable,
    run_of,
)
from kustos.pipeline.tables.layout import INPUTS, RUNS, commented
from kustos.pipeline.tables.runs import (
    CONTENTS,
    COUNT,
    INPUTS_SCHEMA,
    MARK,
    MAXIMUM_FILES,
    RUNS_SCHEMA,
    InputFile,
    State,
    add_rows,
    input_rows,
    kept_rows,
    latest_inputs,
    read_runs,
    rows_of,
    state_of,
)
from kustos.runtime import SystemClock, SystemEntropy, reason_of

STAGING_PREFIX: Final = "_staging-"
_STAGED_AT: Final = "%Y%m%dT%H%M%SZ"

FREE_TIMEOUT_MS: Final = 60_000
"""How long `when_free` tries: another run's batch takes seconds, a compaction some more."""

_PAUSE_S: Final = 0.1

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The files that were added for a table; they replace those of the days `replaces` (ISO), None: all.

    The table is made if it is not there.
    """

    table: str
    schema: pa.Schema
    has_days: bool = True
    replaces: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The files of each of these days (ISO) of a table become few of about so many bytes."""

    table: str
    days: tuple[str, ...]
    file_bytes: int


class Transaction:
    """The tables at a state: files are written and added, and `commit` makes them part of the tables."""

    def __init__(self, folder: Place) -> None:
        self.folder: Final = folder
        self._newest: Final = delta.newest_commit(folder / RUNS)
        self._runs, self._rows = read_runs(folder)
        self._run_version: Final = 1 if self._runs is None else int(self._runs.version()) + 1
        self.state: Final[State] = state_of(folder, self._rows)
        self.mark: Final = SystemEntropy().uuid().hex
        now = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
        self.staging: Final = folder / f"{STAGING_PREFIX}{now:{_STAGED_AT}}-{self.mark}"
        self.is_committed = False
        self._may_be_committed = False
        self._number: Final = self.state.number + 1
        self._added: dict[str, list[delta.NewFile]] = {}

    def stage(self, name: str) -> Place:
        """Return a place for files that are needed until the commit; nothing is there yet."""
        make_folder(self.staging)
        return self.staging / name

    def place(self, table: str) -> Place:
        """Return the folder of a table, for new files with names of `delta.new_name(change.mark, ...)`."""
        make_folder(self.staging)  # shows the next run that files with this mark may be left
        return self.folder / table

    def add(self, table: str, files: Iterable[delta.NewFile]) -> None:
        """Take files that were written into the folder of a table; `commit` makes them part of it."""
        self._added.setdefault(table, []).extend(files)

    def added(self, table: str) -> tuple[delta.NewFile, ...]:
        """Return the files that were added to a table."""
        return tuple(self._added.get(table, ()))

    def rows_added(self, table: str) -> int:
        """Return how many rows these files have."""
        return sum(file.rows for file in self.added(table))

    def end(self) -> None:
        """Remove what the transaction has written and did not commit.

        Where it failed in the last commit and cannot learn what became of it, all stays for the next run.
        """
        is_committed = self.is_committed or self._found_committed()
        if is_committed is None:
            return
        if not is_committed:
            try:
                self._remove_written()
            except (OSError, TablesError):
                return  # staging shows the next run whose files are left
        remove_folder(self.staging)

    def _remove_written(self) -> None:
        """Remove the files, in a store those that were added; raise OSError, `TablesError`."""
        if isinstance(self.staging, Path):
            if self.staging.is_dir():  # which it is before any of them is there
                _remove_files(self.staging.parent, self.mark, self.state)
            return
        for table, files in self._added.items():
            for file in files:
                with suppress(OSError):
                    remove_file(self.folder / table / file.name)

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

        Raises `TablesInUseError` if another run was first, `TablesError`. After an error it may be committed
        none the less, if that came at the very end: a run with the same id then finds itself in `runs`.
        """
        if self.is_committed or self._may_be_committed:
            raise TablesError("a transaction commits once")
        self._check_current()
        try:
            written = {change.table: self._apply(change) for change in changes}
            if inputs:
                written[INPUTS] = self._add_inputs(inputs)
            versions = {**self.state.versions, **{name: int(one.version()) for name, one in written.items()}}
            left = {name: Contents.of(delta.files_of(one)) for name, one in written.items()}
            contents = {name: asdict(one) for name, one in {**self.state.contents, **left}.items()}
            row = {
                "number": self._number,
                "run_id": run_id,
                "kind": kind,
                "summary": {**(summary or {}), CONTENTS: contents, MARK: self.mark},
                "newest_time_ms": _latest(self.state.newest_time_ms, newest_time_ms),
                "stale_days": sorted(self.state.stale_days if stale_days is None else stale_days),
                "closed_before": _latest(self.state.closed_before, closed_before),
                "versions": json.dumps(versions),
            }
            run_version = self._add_run(row)
        except OSError as error:
            place = error.filename2 or error.filename or self.folder
            raise TablesError(f"cannot write to `{place}`: {reason_of(error)}") from error
        self.is_committed = True
        self._rows = [*self._rows, row]
        delta.clean_up(self.folder / RUNS, self._run_version - 1, run_version)
        for name, former in self.state.versions.items():
            delta.clean_up(self.folder / name, former, versions[name])

    def state_now(self) -> State:
        """Return the state that the commit left, or the former one before it."""
        return state_of(self.folder, self._rows)

    def _found_committed(self) -> bool | None:
        """Return whether `runs` has the commit; None if that cannot be known."""
        if not self._may_be_committed:
            return False
        try:
            landing = landing_of(self.folder / RUNS / delta.LOG, self._run_version, self.mark)
        except (OSError, TablesError):
            return None
        if landing.version is not None:
            return True
        # a request that failed may still come to the store, and lands if no other run was first
        return None if landing.is_first and not isinstance(self.folder, Path) else False

    def _check_current(self) -> None:
        """Raise `TablesInUseError` early if another run has committed; the commit itself would, too."""
        if delta.newest_commit(self.folder / RUNS) != self._newest:
            raise TablesInUseError(f"another run has written to the tables in `{self.folder}`, run again")

    def _apply(self, change: Write | Compaction) -> DeltaTable:
        """Commit a change to its table; return the table at the version of the commit."""
        place = self.folder / change.table
        if isinstance(change, Compaction):
            table = self._opened(change.table)
            if table is None:
                raise TablesError(f"there is no table `{change.table}` in `{self.folder}`")
            before = rows_in(table)
            delta.compact(place, table, change.days, change.file_bytes, self._number)
            if rows_in(table) != before:
                raise TablesError(
                    f"compacting `{change.table}` would change its number of rows, nothing was changed"
                )
            return table
        table = self._opened(change.table, is_replaced=change.replaces is None)
        if table is None:
            table = self._created(change.table, change.schema, has_days=change.has_days)
        elif change.replaces is not None:
            delta.widen(place, table, change.schema, self._number)
        schema = change.schema if change.replaces is None else table.schema()
        added = self.added(change.table)
        # no commit is to be safer than the names of its files
        in_parallel([*{place, *((place / file.name).parent for file in added)}], sync)
        delta.write(place, table, added, schema, replaces=change.replaces, number=self._number)
        return table

    def _created(self, name: str, schema: pa.Schema, *, has_days: bool) -> DeltaTable:
        place = self.folder / name
        table = delta.create_table(place, commented(name, schema), has_days=has_days)
        if delta.files_of(table):  # another run has created it, and written to it
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")
        return table

    def _opened(self, name: str, *, is_replaced: bool = False) -> DeltaTable | None:
        """Return the table with the rows that the state gives it; what is above them is undone.

        A commit on a damaged table would make the damage its state, so it is refused. Of a table that
        `is_replaced` as a whole neither the former rows nor their state matter.
        """
        place, version = self.folder / name, self.state.versions.get(name)
        if is_replaced and version is not None:
            return replaceable(place)
        table = delta.open_table(place)
        if version is None:
            check_number(place, run_of(table), self.state.number)
            if table is not None and delta.files_of(table):
                delta.restore(place, table, None, self._number)
            return table
        files = committed_files(place, self.state, table)
        if table is not None and table.version() != version and delta.files_of(table) != files:
            delta.restore(place, table, version, self._number)
            if delta.files_of(table) != files:
                raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")
        return table

    def _add_inputs(self, inputs: Sequence[InputFile]) -> DeltaTable:
        place, rows = self.folder / INPUTS, input_rows(inputs, self._number)
        table = self._opened(INPUTS) or self._created(INPUTS, INPUTS_SCHEMA, has_days=False)
        delta.widen(place, table, INPUTS_SCHEMA, self._number)
        is_full = len(delta.files_of(table)) >= MAXIMUM_FILES
        if is_full:
            former = rows_of(place, table, INPUTS_SCHEMA)
            rows = input_rows(latest_inputs([*former, *rows]).all(), self._number)
        add_rows(place, table, rows, INPUTS_SCHEMA, replaces_all=is_full, number=self._number)
        return table

    def _add_run(self, row: dict[str, Any]) -> int:
        """Add the row to the table as it was at the beginning, refused if another run was first.

        Completes the row's summary with the number of rows, and returns the version.
        """
        place = self.folder / RUNS
        runs = self._runs or delta.create_table(place, commented(RUNS, RUNS_SCHEMA), has_days=False)
        if self._runs is None and runs.version() != 0:
            raise TablesInUseError(f"another run has written to the tables in `{self.folder}`, run again")
        is_full = len(delta.files_of(runs)) >= MAXIMUM_FILES
        rows = kept_rows([*self._rows, row]) if is_full else [row]
        row["summary"] = json.dumps({**row["summary"], COUNT: len(rows) if is_full else len(self._rows) + 1})
        self._may_be_committed = True  # whatever is raised from here on
        number, token = self._number, self.mark
        return add_rows(place, runs, rows, RUNS_SCHEMA, replaces_all=is_full, number=number, token=token)


@contextmanager
def transaction(folder: Place) -> Iterator[Transaction]:
    """Lock the tables, remove what killed runs left, and yield a transaction.

    Raises `TablesInUseError`, `TablesDamagedError`, or `TablesError` if the folder cannot be written.
    """
    with run_lock(folder):
        opened = Transaction(folder)
        _remove_leavings(opened)
        try:
            yield opened
        finally:
            opened.end()


def when_free(action: Callable[[], _T]) -> _T:
    """Return what an action on the tables returns; repeat it while another run writes to them.

    Raises `TablesInUseError` after `FREE_TIMEOUT_MS`.
    """
    clock, pause = SystemClock(), threading.Event()
    give_up_ms = clock.monotonic_ms() + FREE_TIMEOUT_MS
    while True:
        try:
            return action()
        except TablesInUseError:
            if clock.monotonic_ms() >= give_up_ms:
                raise
        pause.wait(_PAUSE_S)


def _remove_leavings(opened: Transaction) -> None:
    """Remove staging of killed runs and, on a disk, their files; in a store only after `KEPT_HOURS`."""
    folder = opened.folder
    try:
        left = [name for name in names_in(folder) if name.startswith(STAGING_PREFIX)]
        for name in left:
            if isinstance(folder, Path):
                _remove_files(folder, name.rpartition("-")[2], opened.state)
                remove_folder(folder / name)
            elif _is_old(name):
                remove_folder(folder / name)
    except OSError as error:
        raise TablesError(f"cannot write to `{folder}`: {reason_of(error)}") from error


def _remove_files(folder: Path, mark: str, state: State) -> None:
    """Remove the files of a killed or failed run but for those that it committed."""
    for place in folder.iterdir():
        files = list(place.glob(f"**/part-{mark}-*.parquet")) if not _is_hidden(place.name) else []
        if files:
            version = state.versions.get(place.name)
            table = None if version is None else delta.open_table(place, version)
            committed = set() if table is None else {file.name for file in delta.files_of(table)}
            for file in files:
                if str(file.relative_to(place)) not in committed:
                    file.unlink()


def _is_old(staging: str) -> bool:
    """Return whether a run that began then cannot be at work any more, by the name of its staging."""
    try:
        began = datetime.strptime(staging.split("-")[1], _STAGED_AT).replace(tzinfo=UTC)
    except (ValueError, IndexError):
        return False
    now = datetime.fromtimestamp(SystemClock().wall_ms() / 1000, UTC)
    return now - began > timedelta(hours=delta.KEPT_HOURS)


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


def _latest(former: Any, new: Any) -> Any:
    return max((each for each in (former, new) if each is not None), default=None)
