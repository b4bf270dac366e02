"""One Delta table, by delta-rs: its files at a version, and commits that add and remove files.

Files are written first, by Spark or Arrow, and a commit names them; nothing is copied. Each commit carries
the application transaction `kustos` with the number of the run, so of two runs at once that write the same
table one is refused: on a disk a commit takes a name that must be free, in an object store it is a
conditional put. Deletion vectors and column mapping, under which the listed files alone are not the
rows, are never turned on here, and a table that has them is refused.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyarrow import parquet

from kustos.pipeline.errors import TablesDamagedError, TablesError, TablesInUseError
from kustos.pipeline.places import (
    Place,
    StorePath,
    make_folder,
    names_in,
    reason_in_store,
    sink_of,
    size_of,
    source_of,
    stamp_of,
    sync,
)
from kustos.pipeline.tables.statistics import (
    NOTHING_TOLD,
    FileStatistics,
    statistics_of_action,
    statistics_of_footer,
    statistics_text,
)
from kustos.runtime import SystemClock, SystemEntropy, reason_of

APPLICATION: Final = "kustos"
LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"\d{20}\.json")
DAY: Final = "day"

KEPT_HOURS: Final = 24
"""Replaced and dropped files stay so long: readers that began before may still read them."""

_CONFIGURATION: Final = {
    "delta.deletedFileRetentionDuration": f"interval {KEPT_HOURS} hours",
    "delta.logRetentionDuration": f"interval {KEPT_HOURS} hours",  # a stream adds a file a second
}
_REFUSED: Final = frozenset({"deletionVectors", "columnMapping"})
"""Features of Delta's protocol under which files are not read as plain Parquet."""
_MISREAD: Final = frozenset("%\\#?")
"""Characters of a path that delta-rs takes for those of a URL, in some operations."""

_OPTIONS: Final[Mapping[str, str]] = {"aws_conditional_put": "etag"}
"""A commit must never replace another's, whatever the environment says."""

_LOST: Final = re.compile(r"oncurrent|already exists|since last commit|commit transaction: \d+$")
"""What delta-rs says of a commit that another one came before; the last of a restored version."""

_TOKEN: Final = "kustosCommit"  # noqa: S105 - the key of a commit's own mark


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table; `name` is its path below the table's folder, `day` (ISO) None without days."""

    name: str
    day: str | None
    rows: int
    size_bytes: int
    statistics: FileStatistics = NOTHING_TOLD

    def may_hold(self, first_ms: int, last_ms: int) -> bool:
        """Return whether a row may have a time in this span, both ends included."""
        told = self.statistics
        if told.first_time_ms is None or told.last_time_ms is None:
            return True
        return told.first_time_ms <= last_ms and first_ms <= told.last_time_ms


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that was written, and is to be committed; `name` is its path below the table's folder."""

    name: str
    day: str | None
    rows: int
    size_bytes: int
    modified_ms: int
    statistics: FileStatistics


def open_table(place: Place, version: int | None = None) -> DeltaTable | None:
    """Return the table in a folder, as of a version or the newest; None if there is none.

    Raises `TablesError`, `TablesDamagedError`.
    """
    if not _has_log(place) or (table := _opened(place, version)) is None:
        return None
    features = set(table.protocol().reader_features or ())
    has_mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
    if has_mapping or features & _REFUSED:
        raise TablesError(
            f"another program turned on deletion vectors or column mapping in `{place}`, drop these features"
        )
    return table


def _has_log(place: Place) -> bool:
    """Return whether there may be a table: one in an object store is looked for by opening it."""
    if isinstance(place, StorePath):
        return True
    log = place / LOG
    try:
        if not log.is_dir():
            return False
        next(os.scandir(log), None)
    except OSError as error:
        raise TablesError(f"cannot list `{log}`: {reason_of(error)}") from error
    return True


def _opened(place: Place, version: int | None, attempts: int = 2) -> DeltaTable | None:
    try:
        return DeltaTable(_address(place), version=version, storage_options=_options(place))
    except (DeltaError, OSError, ValueError) as error:
        if isinstance(error, TableNotFoundError) and isinstance(place, StorePath):
            if not _names_in_log(place):
                return None
            if attempts > 1:  # another run may have created it meanwhile
                return _opened(place, version, attempts - 1)
        is_away = isinstance(place, StorePath) and isinstance(error, OSError)
        kind = TablesError if is_away else TablesDamagedError
        raise kind(f"cannot read the table `{place}`: {_reason(place, error)}") from _cause(place, error)


def _names_in_log(place: StorePath) -> list[str]:
    """Return the names in the log; those with a point are of commits that HDFS has not in full yet."""
    try:
        return [name for name in names_in(place / LOG) if not name.startswith(".")]
    except OSError as error:
        raise TablesError(f"cannot list `{place}`: {reason_of(error)}") from error


def newest_commit(place: Place) -> tuple[str, int, int] | None:
    """Return what tells the newest commit of the table in a folder from every other, None without one.

    Raises `TablesError`, `TablesDamagedError`.
    """
    if isinstance(place, StorePath):
        table = open_table(place)
        return None if table is None else (str(table.metadata().id), table.version(), 0)
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


def create_table(place: Place, schema: pa.Schema, *, has_days: bool) -> DeltaTable:
    """Return a new table without rows; one that is there already is returned as it is."""
    with _writing(place):
        make_folder(place)
        return DeltaTable.create(
            _address(place),
            schema=schema,
            mode="ignore",
            partition_by=[DAY] if has_days else None,
            configuration=_CONFIGURATION,
            storage_options=_options(place),
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
            statistics_of_action(row),
        )
        for row in rows
    )
    return tuple(sorted(found, key=lambda file: file.name))


def described(
    place: Place, name: str, day: str | None, footer: parquet.FileMetaData | None = None
) -> NewFile:
    """Return what a commit tells of a file that was written below the table's folder; raise OSError."""
    path, size = place / name, size_of(place / name)
    footer = footer or parquet.read_metadata(source_of(path))
    modified_ns = stamp_of(path) or SystemClock().wall_ms() * 1_000_000
    return NewFile(name, day, footer.num_rows, size, modified_ns // 1_000_000, statistics_of_footer(footer))


def added(file: NewFile) -> AddAction:
    """Return the action that adds a file."""
    values = {} if file.day is None else {DAY: file.day}
    stats = statistics_text(file.rows, file.statistics)
    return AddAction(file.name, file.size_bytes, values, file.modified_ms, True, stats)


def write(
    place: Place,
    table: DeltaTable,
    files: Sequence[NewFile],
    schema: pa.Schema | Schema,
    *,
    replaces: Sequence[str] | None,
    number: int,
) -> int:
    """Add files in place of those of the days `replaces` (ISO; None: of all files); return the version.

    The version has the rows of the table as it was read, with these changes, and nothing else: an append
    that landed on rows of another run is none of ours, whatever became of it. Raises `TablesInUseError` if
    another run has written meanwhile, `TablesError`.
    """
    read = int(table.version())
    token = SystemEntropy().uuid().hex
    is_append = replaces is not None and not replaces
    with _writing(place):
        table.create_write_transaction(
            [added(file) for file in files],
            "append" if is_append else "overwrite",
            schema,
            [DAY] if table.metadata().partition_columns else None,
            [(DAY, "in", list(replaces))] if replaces else None,
            commit_properties=_properties(number, {_TOKEN: token}),
        )
        version = read + 1
        if token not in _commit_text(place, version):
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")
        table.load_as_version(version)  # not the newest one, which may be another's
    sync_log(place, version)
    return version


def _commit_text(place: Place, version: int) -> str:
    """Return a commit of the log.

    `DeltaTable.history` numbers the commits of the moment by the version of the handle, so it names a wrong
    version if another commit came meanwhile.
    """
    source = source_of(place / LOG / f"{version:020d}.json")
    if isinstance(source, str):
        return Path(source).read_text(encoding="utf-8")
    return bytes(source.read()).decode()


def restore(place: Place, table: DeltaTable, version: int | None, number: int) -> None:
    """Undo what a run that did not get to its end has committed since this version (None: all of it)."""
    if version is None:
        write(place, table, [], table.schema(), replaces=None, number=number)
        return
    with _writing(place):
        table.restore(version, commit_properties=_properties(number))


def compact(place: Place, table: DeltaTable, days: Sequence[str], file_bytes: int, number: int) -> int:
    """Combine the files of each of these days; return the version."""
    read = int(table.version())
    with _writing(place):
        table.optimize.compact(
            [(DAY, "in", list(days))], target_size=file_bytes, commit_properties=_properties(number)
        )
    version = int(table.version())
    if version > read + 1:
        raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")
    sync_log(place, version)
    return version


def widen(place: Place, table: DeltaTable, schema: pa.Schema, number: int) -> None:
    """Give the table those columns of the schema that it lacks."""
    known = {field.name for field in table.schema().fields}
    missing = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
    if missing:
        read = int(table.version())
        with _writing(place):
            table.alter.add_columns(missing, commit_properties=_properties(number))
            table.update_incremental()
        if table.version() != read + 1:
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")


def vacuum(place: Place) -> None:
    """Remove files that no commit named for `KEPT_HOURS`: replaced ones, and those of killed runs."""
    table = open_table(place)
    if table is not None:
        with _writing(place):
            table.vacuum(dry_run=False, full=True)


def sync_log(place: Place, version: int) -> None:
    """Bring a commit to the disk."""
    sync(place / LOG / f"{version:020d}.json")
    sync(place / LOG)


def new_name(mark: str, day: str | None = None) -> str:
    """Return a name for a file that no other has, with the folder of its day; `mark` tells whose it is."""
    name = f"part-{mark}-{SystemEntropy().uuid().hex}.parquet"
    return name if day is None else f"{DAY}={day}/{name}"


def write_file(place: Place, name: str, rows: pa.Table, day: str | None = None, **options: Any) -> NewFile:
    """Write rows into a new file below the table's folder; `options` are those of Arrow's writer.

    Raises OSError.
    """
    with sink_of(place / name) as sink, parquet.ParquetWriter(sink, rows.schema, **options) as writer:
        writer.write_table(rows)
        writer.close()
        footer = writer.writer.metadata
    return described(place, name, day, footer)


def _properties(number: int, metadata: dict[str, Any] | None = None) -> CommitProperties:
    return CommitProperties(custom_metadata=metadata, app_transactions=[Transaction(APPLICATION, number)])


def _address(place: Place) -> str:
    if isinstance(place, StorePath):
        return str(place)
    path = str(place.absolute())
    if set(path) & _MISREAD or not path.isprintable():
        raise TablesError(
            f"tables cannot lie in `{place}`, take a folder without any of `%\\#?` and line feeds"
        )
    return path


def _options(place: Place) -> dict[str, str] | None:
    return dict(_OPTIONS) if isinstance(place, StorePath) else None


@contextmanager
def _writing(place: Place) -> Iterator[None]:
    """Raise `TablesInUseError` for a commit that lost to another, `TablesError` for any other failure."""
    try:
        yield
    except CommitFailedError as error:
        if _LOST.search(str(error)):
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again") from error
        raise TablesError(f"cannot write to `{place}`: {_reason(place, error)}") from _cause(place, error)
    except (DeltaError, OSError) as error:
        raise TablesError(f"cannot write to `{place}`: {_reason(place, error)}") from _cause(place, error)


def _cause(place: Place, error: Exception) -> Exception | None:
    """Return the error, or None if it may quote a request to an object store."""
    return error if isinstance(place, Path) else None


def _reason(place: Place, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return reason_of(error)
    if isinstance(place, StorePath) and not isinstance(error, ValueError):
        number, text = reason_in_store(error)
        return reason_of(OSError(number, text))
    text = str(error)
    if "ermission denied" in text:
        return reason_of(PermissionError(13, "permission denied"))
    return text.splitlines()[0] if text else type(error).__name__
