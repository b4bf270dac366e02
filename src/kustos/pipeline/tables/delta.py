"""One Delta table on a disk, by delta-rs: its files at a version, and commits that add and remove files.

Files are written first, by Spark or Arrow, and a commit names them; nothing is copied. Each commit carries
the application transaction `kustos` with the number of the run, so of two runs at once that write the same
table one is refused. Deletion vectors and column mapping, under which the listed files alone are not the
rows, are never turned on here, and a table that has them is refused.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction
from pyarrow import parquet

from kustos.pipeline.errors import TablesDamagedError, TablesError, TablesInUseError
from kustos.runtime import SystemEntropy, reason_of

APPLICATION: Final = "kustos"
LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"\d{20}\.json")
DAY: Final = "day"

KEPT_HOURS: Final = 24
"""Replaced and dropped files stay so long: readers that began before may still read them."""

LOOKED_BACK: Final = 64
"""Commits of others that may lie over ours when we look for its version."""

_CONFIGURATION: Final = {
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.logRetentionDuration": f"interval {KEPT_HOURS} hours",  # a stream adds a file a second
}
_REFUSED: Final = frozenset({"deletionVectors", "columnMapping"})
"""Features of Delta's protocol under which files are not read as plain Parquet."""
_MISREAD: Final = frozenset("%\\#?")
"""Characters of a path that delta-rs takes for those of a URL, in some operations."""

_TOKEN: Final = "kustosCommit"  # noqa: S105 - the key of a commit's own mark


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table; `name` is its path below the table's folder, `day` (ISO) None without days."""

    name: str
    day: str | None
    rows: int
    size_bytes: int


def open_table(place: Path, version: int | None = None) -> DeltaTable | None:
    """Return the table in a folder, as of a version or the newest; None if there is none.

    Raises `TablesError`, `TablesDamagedError`.
    """
    log = place / LOG
    try:
        if not log.is_dir():
            return None
        next(os.scandir(log), None)
    except OSError as error:
        raise TablesError(f"cannot list `{log}`: {reason_of(error)}") from error
    try:
        table = DeltaTable(_address(place), version=version)
        features = set(table.protocol().reader_features or ())
        has_mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    except (DeltaError, OSError, ValueError) as error:
        raise TablesDamagedError(f"cannot read the table `{place}`: {_reason(error)}") from error
    if has_mapping or features & _REFUSED:
        raise TablesError(
            f"another program turned on deletion vectors or column mapping in `{place}`, drop these features"
        )
    return table


def newest_commit(place: Path) -> tuple[str, int, int] | None:
    """Return what tells the newest commit of the table in a folder from every other, None without one.

    Raises `TablesError`.
    """
    log = place / LOG
    try:
        with os.scandir(log) as entries:
            newest = max((each.name for each in entries if _COMMIT.fullmatch(each.name)), default=None)
        if newest is None:
            return None
        status = (log / newest).stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TablesError(f"cannot list `{log}`: {reason_of(error)}") from error
    return newest, status.st_ino, status.st_mtime_ns


def create_table(place: Path, schema: pa.Schema, *, has_days: bool) -> DeltaTable:
    """Return a new table without rows; one that is there already is returned as it is."""
    with _writing(place):
        place.mkdir(parents=True, exist_ok=True)
        return DeltaTable.create(
            _address(place),
            schema=schema,
            mode="ignore",
            partition_by=[DAY] if has_days else None,
            configuration=_CONFIGURATION,
        )


def files_of(table: DeltaTable) -> tuple[DataFile, ...]:
    """Return the files of the table at its version, sorted by name."""
    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    found = (
        DataFile(
            row["path"],
            None if row.get(f"partition.{DAY}") is None else row[f"partition.{DAY}"].isoformat(),
            row["num_records"] or 0,
            row["size_bytes"],
        )
        for row in rows
    )
    return tuple(sorted(found, key=lambda file: file.name))


def added(place: Path, name: str, day: str | None) -> AddAction:
    """Return the action that adds a file below the table's folder; raise OSError."""
    path = place / name
    footer = parquet.read_metadata(path)
    status = path.stat()
    stats: dict[str, Any] = {"numRecords": footer.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    span = time_span(footer)
    if span is not None:
        stats["minValues"]["time_ms"], stats["maxValues"]["time_ms"] = span
    values = {} if day is None else {DAY: day}
    modified_ms = status.st_mtime_ns // 1_000_000
    return AddAction(name, status.st_size, values, modified_ms, True, json.dumps(stats))


def time_span(footer: parquet.FileMetaData) -> tuple[int, int] | None:
    """Return the least and the greatest `time_ms` in a file by its footer, None if it does not tell."""
    column = footer.schema.to_arrow_schema().get_field_index("time_ms")
    if column < 0 or footer.schema.column(column).path != "time_ms":
        return None
    found = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
    if not found or not all(each is not None and each.has_min_max for each in found):
        return None
    return min(each.min for each in found), max(each.max for each in found)


def write(
    place: Path,
    table: DeltaTable,
    files: Sequence[AddAction],
    schema: pa.Schema | Schema,
    *,
    replaces: Sequence[str] | None,
    number: int,
) -> int:
    """Add files in place of those of the days `replaces` (ISO; None: of all files); return the version.

    Raises `TablesInUseError` if another run has written meanwhile, `TablesError`.
    """
    token = SystemEntropy().uuid().hex
    is_append = replaces is not None and not replaces
    with _writing(place):
        table.create_write_transaction(
            list(files),
            "append" if is_append else "overwrite",
            schema,
            [DAY] if table.metadata().partition_columns else None,
            [(DAY, "in", list(replaces))] if replaces else None,
            commit_properties=_properties(number, {_TOKEN: token}),
        )
        table.update_incremental()
        # the newest version may be another's that came right after
        for entry in table.history(LOOKED_BACK):
            if entry.get(_TOKEN) == token:
                version = int(entry["version"])
                sync_log(place, version)
                return version
    raise TablesInUseError(f"another program writes to `{place}` all the time, stop it")


def restore(place: Path, table: DeltaTable, version: int | None, number: int) -> None:
    """Undo what a run that did not get to its end has committed since this version (None: all of it)."""
    if version is None:
        write(place, table, [], table.schema(), replaces=None, number=number)
        return
    with _writing(place):
        table.restore(version, commit_properties=_properties(number))


def compact(place: Path, table: DeltaTable, days: Sequence[str], file_bytes: int, number: int) -> int:
    """Combine the files of each of these days; return the version."""
    with _writing(place):
        table.optimize.compact(
            [(DAY, "in", list(days))], target_size=file_bytes, commit_properties=_properties(number)
        )
    version = int(table.version())
    sync_log(place, version)
    return version


def widen(place: Path, table: DeltaTable, schema: pa.Schema, number: int) -> None:
    """Give the table those columns of the schema that it lacks."""
    known = {field.name for field in table.schema().fields}
    missing = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
    if missing:
        with _writing(place):
            table.alter.add_columns(missing, commit_properties=_properties(number))
            table.update_incremental()


def vacuum(place: Path) -> None:
    """Remove files that no commit named for `KEPT_HOURS`: replaced ones, and those of killed runs."""
    table = open_table(place)
    if table is not None:
        with _writing(place):
            table.vacuum(dry_run=False, full=True)


def sync_log(place: Path, version: int) -> None:
    """Bring a commit to the disk."""
    sync(place / LOG / f"{version:020d}.json")
    sync(place / LOG)


def sync(path: Path) -> None:
    """Bring a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def new_name() -> str:
    """Return a name for a file that no other has."""
    return f"part-{SystemEntropy().uuid().hex}.parquet"


def _properties(number: int, metadata: dict[str, Any] | None = None) -> CommitProperties:
    return CommitProperties(custom_metadata=metadata, app_transactions=[Transaction(APPLICATION, number)])


def _address(place: Path) -> str:
    path = str(place.absolute())
    if set(path) & _MISREAD or not path.isprintable():
        raise TablesError(
            f"tables cannot lie in `{place}`, take a folder without any of `%\\#?` and line feeds"
        )
    return path


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Raise `TablesInUseError` for a commit that lost to another, `TablesError` for any other failure."""
    try:
        yield
    except CommitFailedError as error:
        if "oncurrent" in str(error) or "already exists" in str(error):
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again") from error
        raise TablesError(f"cannot write to `{place}`: {_reason(error)}") from error
    except (DeltaError, OSError) as error:
        raise TablesError(f"cannot write to `{place}`: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return reason_of(error)
    text = str(error)
    if "ermission denied" in text:
        return reason_of(PermissionError(13, "permission denied"))
    return text.splitlines()[0] if text else type(error).__name__
