"""Which files are read, their lines, and how a finished table takes the place of the former one."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.pipeline.errors import AuditInputError, ReportOutputError
from kustos.runtime import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAXIMUM_FILES: Final = 100_000
"""Each file is a path in the driver's plan; beyond this, report on one period at a time."""

_LOCK_NAME: Final = ".kustos-report.lock"
_STAGING_NAME: Final = ".kustos-report-staging"
_FORMER_SUFFIX: Final = ".former"
_MARKER: Final = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class AuditFiles:
    """What lies in an audit folder: files to read, and hidden ones (`.` or `_`) passed over."""

    root: Path
    files: tuple[Path, ...]
    passed_over: tuple[Path, ...]


def list_audit_files(root: Path) -> AuditFiles:
    """Return the files below `root`, sorted; raise `AuditInputError` unless each can be opened."""
    if not root.exists():
        raise AuditInputError(f"audit folder `{root}` does not exist, give the folder of the audit files")
    if not root.is_dir():
        raise AuditInputError(f"`{root}` is not a folder, give the folder that holds the audit files")
    root = root.resolve()
    files: list[Path] = []
    passed_over: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=_refuse_folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            hidden = any(part.startswith((".", "_")) for part in path.relative_to(root).parts)
            (passed_over if hidden else files).append(path)
        if len(files) > MAXIMUM_FILES:
            raise AuditInputError(
                f"audit folder `{root}` holds more than {MAXIMUM_FILES} files, report on a part of it"
            )
    for path in files:
        _check_readable(path)
    if not files:
        raise AuditInputError(
            f"audit folder `{root}` holds no audit files"
            + (
                "; one is being written: a running node finishes it after `kustos.audit.json.roll.ms`"
                if any(path.name.startswith("_audit-") for path in passed_over)
                else ""
            )
        )
    return AuditFiles(root, tuple(files), tuple(passed_over))


def _refuse_folder(error: OSError) -> None:
    raise AuditInputError(f"cannot list `{error.filename}`: {reason_of(error)}") from error


def _check_readable(path: Path) -> None:
    if not path.is_file():
        raise AuditInputError(f"`{path}` is not a regular file, take it out of the audit folder")
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise AuditInputError(f"cannot read `{path}`: {reason_of(error)}") from error


@contextmanager
def staging(out: Path, audit: Path) -> Iterator[Path]:
    """Lock the output folder and yield an empty folder in it, removed at the end.

    Raises `ReportOutputError` if the folder cannot be written, another run holds it, or it lies in the
    audit folder (or the other way round), where a later run would read its own output.
    """
    out, audit = out.resolve(), audit.resolve()
    if out == audit or out in audit.parents or audit in out.parents:
        raise ReportOutputError(f"output folder `{out}` and audit folder `{audit}` must lie apart")
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / _LOCK_NAME).open("w")
    except OSError as error:
        raise ReportOutputError(f"cannot write to `{out}`: {reason_of(error)}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ReportOutputError(f"another report is being written to `{out}`, wait for it") from error
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
        if former.exists() and not (former / _MARKER).is_file():
            raise ReportOutputError(f"`{former}` is in the way and is no finished table, move it elsewhere")


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
        (folder / name).replace(out / name)


def read_files(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Return every line of the files below a folder as LINES_SCHEMA: plain, rotated and gzip files.

    Raises `AuditInputError` if the folder is missing, empty, or has a file that cannot be opened; a damaged
    file fails the action that reads it.
    """
    from kustos.pipeline.jobs import read_lines

    return read_lines(spark, list_audit_files(folder))
