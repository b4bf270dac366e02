"""A transaction on the tables: staged, committed by one ledger entry, then moved into place.

Theory of operation. A run writes below `_staging-<random>`, which Spark and other readers ignore. Its ledger
entry is the commit. Then each file is renamed into place, and the files that it replaces are removed. The
next process that opens the tables finishes what was committed (each step can be repeated) and removes what
was not. The name of the folder is random, so that a job that outlived its killed driver cannot write into
the folder of the run that repeats its work.

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

from kustos.pipeline.errors import TablesDamagedError, TablesError, TablesInUseError
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
"""Writes the rows staged in a folder into a table with its own log, once for each sequence number."""


class Transaction:
    """The locked tables: `stage` returns paths to write to, `commit` makes the files part of the tables."""

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
        """Remove what was staged under these names."""
        for name in names:
            shutil.rmtree(self.staging / name, ignore_errors=True)

    def commit(self, run_id: str, kind: str, **changes: Any) -> None:
        """Commit and move into place; `changes` are fields of `LedgerEntry`. Raises OSError."""
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
            # the entry may exist if only the sync of its directory failed: then it counts
            self.is_committed = has_entry(self.folder, entry)
            raise
        self.is_committed = True
        finish(self.folder, entry, self._apply_write)


@contextmanager
def transaction(folder: Path, form: str, apply_write: ApplyWrite) -> Iterator[Transaction]:
    """Lock the tables, finish or remove the rest of a killed run, and yield a transaction.

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
    """Return whether a committed run, killed or still running, has not moved all its files into place."""
    if not any(folder.glob(f"{STAGING_PREFIX}*")):
        return False
    return any((folder / entry.staging).exists() for entry in read_state(folder)[1])


def finish(folder: Path, entry: LedgerEntry, apply_write: ApplyWrite) -> None:
    """Apply the entry, repeatably; its staging folder is removed last."""
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
    staging.rename(finished)  # atomically: half a staging folder would look unfinished
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
    """Return the data files below a table's folder, sorted, relative to it.

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


def sync_tree(folder: Path) -> None:
    """Sync all files below a folder to the disk: an entry must not be more durable than its files."""
    for directory, _folders, names in os.walk(folder):
        for name in names:
            _sync(Path(directory, name), os.O_RDONLY)
        sync_directory(Path(directory))
    sync_directory(folder.parent)


def sync_directory(folder: Path) -> None:
    """Sync a directory to the disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


@contextmanager
def place_lock(folder: Path, mode: int) -> Iterator[None]:
    """Wait for the short lock on file moves: shared to list files, exclusive to move them.

    A reader without write permission proceeds without the lock if its file does not exist yet.
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
    """Return the moves of staged files of this name into a table."""
    return tuple((f"{staged}/{file}", f"{table}/{file}") for file in files)
