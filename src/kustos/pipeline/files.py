"""Which files are read, the locks of folders that are written, and how a table replaces the former one."""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.pipeline.errors import (
    AuditInputError,
    PipelineError,
    ReportOutputError,
    TablesError,
    TablesInUseError,
)
from kustos.pipeline.places import FileState, Place, StorePath, state_of, states_below, sync
from kustos.runtime import reason_of

MAXIMUM_FILES: Final = 100_000
"""Each file is a path in the driver's plan; beyond this, report on one period at a time."""

_LOCK_NAME: Final = ".kustos-report.lock"
_RUN_LOCK_NAME: Final = "_lock"
_DISK: Final = "a disk of this machine"
_STAGING_NAME: Final = ".kustos-report-staging"
_FORMER_SUFFIX: Final = ".former"
TABLE_MARKER: Final = "_SUCCESS"
"""The file by which Spark, too, says that the table in a folder is finished."""


@dataclass(frozen=True, slots=True)
class AuditFiles:
    """What lies in an audit folder: files to read with their states, and hidden ones passed over.

    A name is hidden that begins with `.` or `_`. `linked` are folders elsewhere that links in it lead to.
    """

    root: Place
    states: Mapping[Place, FileState]
    passed_over: tuple[str, ...]
    linked: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Place, ...]:
        """The files to read, folder by folder."""
        return tuple(self.states)


def list_audit_files(root: Place) -> AuditFiles:
    """Return the files below `root`; raise `AuditInputError` unless each local one can be opened."""
    found = _listed_in_store(root) if isinstance(root, StorePath) else _listed(root)
    if not found.states:
        raise AuditInputError(
            f"audit folder `{root}` holds no audit files"
            + (
                "; one is being written: a running node finishes it after `kustos.audit.json.roll.ms`"
                if any(Path(name).name.startswith("_audit-") for name in found.passed_over)
                else ""
            )
        )
    return found


def _listed(root: Path) -> AuditFiles:
    if not root.exists():
        raise AuditInputError(f"audit folder `{root}` does not exist, give the folder of the audit files")
    if not root.is_dir():
        raise AuditInputError(f"`{root}` is not a folder, give the folder that holds the audit files")
    root = root.resolve()
    files: list[Path] = []
    passed_over: list[str] = []
    roots = [root]
    for folder, folders, names in os.walk(root, onerror=_refuse_folder, followlinks=True):
        folders[:] = [name for name in sorted(folders) if _is_walked(Path(folder, name), roots)]
        for name in sorted(names):
            path = Path(folder, name)
            relative = path.relative_to(root)
            if _is_hidden(relative):
                passed_over.append(str(relative))
            else:
                files.append(path)
        _check_count(root, len(files))
    states: dict[Place, FileState] = {path: _checked_state(path) for path in files}
    return AuditFiles(root, states, tuple(passed_over), tuple(roots[1:]))


def _is_walked(folder: Path, roots: list[Path]) -> bool:
    """Return whether a folder is to be walked, and note where a link leads; raise `AuditInputError`.

    Each place is walked once: a link into one that is walked anyway is passed over, and a ring of links ends.
    """
    if not folder.is_symlink():
        return True
    target = folder.resolve()
    if folder.name.startswith((".", "_")) or any(target.is_relative_to(root) for root in roots):
        return False
    if roots[0].is_relative_to(target):
        raise AuditInputError(f"`{folder}` leads to `{target}`, which holds it: take the link out")
    roots.append(target)
    return True


def _listed_in_store(root: StorePath) -> AuditFiles:
    states: dict[Place, FileState] = {}
    passed_over: list[str] = []
    try:
        found = states_below(root)
    except OSError as error:
        raise AuditInputError(f"cannot list `{root}`: {reason_of(error)}") from error
    for name, state in found.items():
        if _is_hidden(Path(name)):
            passed_over.append(name)
            continue
        try:
            states[root / name] = state
        except ValueError as error:
            raise AuditInputError(f"cannot read `{name}` below `{root}`: {error}") from error
    _check_count(root, len(states))
    return AuditFiles(root, states, tuple(passed_over))


def _is_hidden(relative: Path) -> bool:
    return any(part.startswith((".", "_")) for part in relative.parts)


def _check_count(root: Place, count: int) -> None:
    if count > MAXIMUM_FILES:
        raise AuditInputError(
            f"audit folder `{root}` holds more than {MAXIMUM_FILES} files, report on a part of it"
        )


def _refuse_folder(error: OSError) -> None:
    raise AuditInputError(f"cannot list `{error.filename}`: {reason_of(error)}") from error


def _checked_state(path: Path) -> FileState:
    if not path.is_file():
        raise AuditInputError(f"`{path}` is not a regular file, take it out of the audit folder")
    try:
        with path.open("rb") as file:
            file.read(1)
        return state_of(path)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error


def are_nested(one: Place, other: Place) -> bool:
    """Return whether two resolved folders are one, or one lies in the other."""
    short, long = sorted((f"{str(each).rstrip('/')}/" for each in (one, other)), key=len)
    return long.startswith(short)


@contextmanager
def _locked(
    folder: Path, name: str, in_use: PipelineError, failure: type[PipelineError], instead: str
) -> Iterator[None]:
    """Hold the lock of a folder, a file of this name in it; raise `in_use` at once if another process does.

    Raises a `failure` for a folder that cannot be written, or not locked: then take `instead`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / name).open("w")
    except OSError as error:
        raise failure(f"cannot write to `{folder}`: {reason_of(error)}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise in_use from error
        except OSError as error:  # such as ENOLCK, of network file systems without a lock daemon
            raise failure(
                f"cannot lock `{folder}`: {reason_of(error)}; take a file system with locks, "
                f"such as {instead}"
            ) from error
        yield


@contextmanager
def run_lock(folder: Place) -> Iterator[None]:
    """Lock the tables against other runs, or raise `TablesInUseError` at once; a store has no locks.

    Raises `TablesError` for a folder that cannot be written or locked: on a disk what a killed run left is
    removed at once, and without the lock it could be what another run writes.
    """
    if isinstance(folder, StorePath):
        yield
        return
    in_use = TablesInUseError(f"another run is writing to the tables in `{folder}`, wait for it")
    with _locked(folder, _RUN_LOCK_NAME, in_use, TablesError, f"{_DISK}, or an object store"):
        yield


@contextmanager
def staging(out: Path, audit: Place) -> Iterator[Path]:
    """Lock the output folder and yield an empty folder in it, removed at the end.

    Raises `ReportOutputError` if the folder cannot be written, another run holds it, or it lies in the
    audit folder (or the other way round), where a later run would read its own output.
    """
    out = out.resolve()
    if isinstance(audit, Path) and are_nested(out, audit.resolve()):
        raise ReportOutputError(f"output folder `{out}` and audit folder `{audit}` must lie apart")
    in_use = ReportOutputError(f"another report is being written to `{out}`, wait for it")
    with _locked(out, _LOCK_NAME, in_use, ReportOutputError, _DISK):
        folder = out / _STAGING_NAME
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def check_replaceable(out: Path, tables: tuple[str, ...]) -> None:
    """Raise `ReportOutputError` if there is something else than a finished table at a table's path."""
    for table in tables:
        former = out / table
        if former.exists() and not (former / TABLE_MARKER).is_file():
            raise ReportOutputError(
                f"`{former}` is in the way and is not a finished table, move it elsewhere"
            )


def publish(folder: Path, out: Path, tables: tuple[str, ...], files: tuple[str, ...]) -> None:
    """Replace the former tables and files by the finished ones, each by renaming.

    A reader never sees half a table. A crash between two renames leaves tables of two runs side by side,
    which the next run replaces.
    """
    check_replaceable(out, tables)
    for table in tables:
        former = out / table
        aside = folder / f"{table}{_FORMER_SUFFIX}"
        if former.exists():
            former.rename(aside)
        (folder / table).rename(former)
        shutil.rmtree(aside, ignore_errors=True)
    for name in files:
        sync(folder / name)
        (folder / name).replace(out / name)
    sync(out)
