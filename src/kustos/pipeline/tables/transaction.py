"""One change of the tables: prepared aside, committed by one entry of the ledger, then put in place.

Theory of operation. A run writes below `_staging-<random>`, which Spark and other readers pass over. Its
ledger entry is the commit. Then files are moved to where they belong, each by a rename, and what they replace
is removed. Whoever opens the tables next finishes what was committed (each step can be repeated) and removes
what was not. The name of the folder is random, so that a job which outlived its killed driver cannot write
into the folder of the run that does the work again.

Limits: a file system on which rename is atomic and flock works, the same for driver and executors (a local
disk, NFS 4, a volume; no object store, for which there is Delta on its own log stores).
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kustos.pipeline.tables.errors import TablesDamagedError, TablesError, TablesInUseError
from kustos.pipeline.tables.ledger import (
    MAXIMUM_ENTRIES,
    LedgerEntry,
    State,
    fold,
    has_entry,
    read_state,
    write_entry,
)
from kustos.runtime import SystemEntropy, reason_of

STAGING_PREFIX: Final = "_staging-"
_FINISHED_PREFIX: Final = "_finished-"
_RUN_LOCK: Final = "_lock"
_PLACE_LOCK: Final = "_place.lock"

ApplyWrite = Callable[[Path, Mapping[str, Any], int], None]
"""Writes what is staged in a folder into a table that has its own log, once a sequence number."""


class Transaction:
    """The tables, held alone: `stage` lends places to write to, `commit` makes them the tables' contents."""

    def __init__(self, folder: Path, form: str, state: State, apply_write: ApplyWrite) -> None:
        self.folder: Final = folder
        self.state: Final = state
        self.staging: Final = folder / f"{STAGING_PREFIX}{SystemEntropy().uuid().hex}"
        self.is_committed = False
        self._form: Final = form
        self._apply_write: Final = apply_write

    def stage(self, name: str) -> Path:
        """Return a path in the staging folder for one writer; it does not exist yet."""
        self.staging.mkdir(exist_ok=True)
        return self.staging / name

    def staged_files(self, name: str) -> tuple[str, ...]:
        """Return the data files staged under this name, relative to it."""
        return data_files(self.staging / name)

    def discard(self, *names: str) -> None:
        """Remove what was staged under these names, which the tables do not need."""
        for name in names:
            shutil.rmtree(self.staging / name, ignore_errors=True)

    def commit(self, run_id: str, kind: str, **changes: Any) -> None:
        """Commit and put in place; `changes` are fields of `LedgerEntry`. Raises OSError."""
        if self.is_committed:
            raise TablesError("a transaction commits once")
        entry = LedgerEntry(
            sequence=self.state.sequence + 1,
            run_id=run_id,
            kind=kind,
            form=self._form,
            staging=self.staging.name,
            **changes,
        )
        self.staging.mkdir(exist_ok=True)
        sync_tree(self.staging)
        try:
            write_entry(self.folder, entry)
        except OSError:
            # it may be there, if only its directory could not be brought to the disk: then it counts
            self.is_committed = has_entry(self.folder, entry)
            raise
        self.is_committed = True
        finish(self.folder, entry, self._apply_write)


@contextmanager
def transaction(folder: Path, form: str, apply_write: ApplyWrite) -> Iterator[Transaction]:
    """Hold the tables alone, finish or remove what a killed run left, and lend a transaction.

    Raises `TablesInUseError`, `TablesDamagedError`, or `TablesError` if the folder cannot be written or its
    tables are of another form.
    """
    with run_lock(folder):
        state, entries = read_state(folder)
        if state.form not in {None, form}:
            raise TablesError(f"tables in `{folder}` are kept as {state.form}, not as {form}")
        for entry in entries:
            if (folder / entry.staging).exists():
                finish(folder, entry, apply_write)
        for prefix in (STAGING_PREFIX, _FINISHED_PREFIX):
            for left in folder.glob(f"{prefix}*"):
                shutil.rmtree(left, ignore_errors=True)
        if len(entries) >= MAXIMUM_ENTRIES:
            fold(folder, state, entries)
        opened = Transaction(folder, form, state, apply_write)
        try:
            yield opened
        finally:
            if not opened.is_committed:
                shutil.rmtree(opened.staging, ignore_errors=True)


def is_unfinished(folder: Path) -> bool:
    """Return whether a run was committed but killed, or is at work, before all of it was in place."""
    if not any(folder.glob(f"{STAGING_PREFIX}*")):
        return False
    return any((folder / entry.staging).exists() for entry in read_state(folder)[1])


def finish(folder: Path, entry: LedgerEntry, apply_write: ApplyWrite) -> None:
    """Carry out what the entry says, as often as it takes; its staging folder goes last."""
    staging = folder / entry.staging
    touched: set[Path] = set()
    with place_lock(folder, fcntl.LOCK_EX):
        for source, target in entry.moves:
            touched.add(_move(staging / source, folder / target))
        for name in entry.removes:
            (folder / name).unlink(missing_ok=True)
            touched.add((folder / name).parent)
        for directory in sorted(touched):
            sync_directory(directory)
    for write in entry.writes:
        apply_write(staging, write, entry.sequence)
    finished = folder / staging.name.replace(STAGING_PREFIX, _FINISHED_PREFIX)
    staging.rename(finished)  # at once: half a staging folder would be taken for one that is to be finished
    shutil.rmtree(finished, ignore_errors=True)


def _move(source: Path, target: Path) -> Path:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    elif not target.exists():
        raise TablesDamagedError(
            f"`{target}` was committed but is gone, restore it or read the audit into a new folder"
        )
    return target.parent


def data_files(folder: Path) -> tuple[str, ...]:
    """Return the files below a table's folder that hold rows, sorted, relative to it.

    Raises `TablesError` for a folder that may not be looked into: its rows would be missing in silence.
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


def sync_tree(folder: Path) -> None:
    """Bring what was written below a folder to the disk: an entry must not be more durable than its files."""
    for directory, _folders, names in os.walk(folder):
        for name in names:
            _sync(Path(directory, name), os.O_RDONLY)
        sync_directory(Path(directory))
    sync_directory(folder.parent)


def sync_directory(folder: Path) -> None:
    """Bring a directory's names to the disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold the tables against other runs, or raise `TablesInUseError` at once."""
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


@contextmanager
def place_lock(folder: Path, mode: int) -> Iterator[None]:
    """Wait for the short lock under which files change places: shared to list them, exclusive to move them.

    A reader without the right to write goes without it where the file is not there yet.
    """
    path = folder / _PLACE_LOCK
    try:
        lock = path.open("w" if mode == fcntl.LOCK_EX else "r")
    except (FileNotFoundError, PermissionError):
        if mode == fcntl.LOCK_EX:
            raise
        yield
        return
    with lock:
        fcntl.flock(lock, mode)
        yield


def moves_of(files: Iterable[str], staged: str, table: str) -> tuple[tuple[str, str], ...]:
    """Return the moves that bring staged files of this name into a table."""
    return tuple((f"{staged}/{file}", f"{table}/{file}") for file in files)
