"""One Delta table, by delta-rs: its files at a version, and commits that add and remove files.

Files are written first, by Spark or Arrow, and a commit names them; nothing is copied. Each commit carries
the application transaction `kustos` with the number of the run, so of two runs at once that write the same
table one is refused: on a disk a commit takes a name that must be free, in an object store it is a
conditional put. Deletion vectors and column mapping, under which the listed files alone are not the
rows, are never turned on here, and a table that has them is refused.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction
from pyarrow import parquet

from kustos.pipeline.errors import TablesDamagedError, TablesError, TablesInUseError
from kustos.pipeline.places import (
    Place,
    StorePath,
    make_folder,
    names_in,
    sink_of,
    size_of,
    source_of,
    stamp_of,
    sync,
)
from kustos.pipeline.tables.commits import landing_of
from kustos.pipeline.tables.delta_errors import cause, cleaning, reason, writing
from kustos.pipeline.tables.statistics import (
    NOTHING_KNOWN,
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
    "delta.enableExpiredLogCleanup": "false",  # so that no other program does it, see `clean_up`
}
_KEEPS_LOG: Final = PostCommitHookProperties(cleanup_expired_logs=False)
"""Of every commit, since it may be the first after a long time: see `clean_up`."""

CHECKPOINT_COMMITS: Final = 100
"""Commits between two checkpoints, Delta's default; a table is cleaned up as often."""

_REFUSED: Final = frozenset({"deletionVectors", "columnMapping"})
"""Features of Delta's protocol under which files are not read as plain Parquet."""
_MISREAD: Final = frozenset("%\\#?")
"""Characters of a path that delta-rs takes for those of a URL, in some operations."""

_OPTIONS: Final[Mapping[str, str]] = {"aws_conditional_put": "etag"}
"""A commit must never replace another's, whatever the environment says."""

_TOKEN: Final = "kustosCommit"  # noqa: S105 - the key of a commit's own mark


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table; `name` is its path below the table's folder, `day` (ISO) None without days."""

    name: str
    day: str | None
    rows: int
    size_bytes: int
    statistics: FileStatistics = NOTHING_KNOWN

    def may_hold(self, first_ms: int, last_ms: int) -> bool:
        """Return whether a row may have a time in this span, both ends included."""
        known = self.statistics
        if known.first_time_ms is None or known.last_time_ms is None:
            return True
        return known.first_time_ms <= last_ms and first_ms <= known.last_time_ms


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
        raise kind(f"cannot read the table `{place}`: {reason(place, error)}") from cause(place, error)


def _names_in_log(place: StorePath) -> list[str]:
    """Return the names in the log; those with a point are of commits that HDFS has not in full yet."""
    try:
        return [name for name in names_in(place / LOG) if not name.startswith(".")]
    except OSError as error:
        raise TablesError(f"cannot list `{place}`: {reason_of(error)}") from error


def newest_commit(place: Place, table: DeltaTable | None = None) -> tuple[str, int, int] | None:
    """Return what identifies the newest commit of the table in a folder, None without one.

    `table`: that version, if it is open already, which saves requests to an object store. Raises
    `TablesError`, `TablesDamagedError`.
    """
    if isinstance(place, StorePath):
        table = table or open_table(place)
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
    with writing(place):
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
    """Return what a commit says about a file that was written below the table's folder; raise OSError."""
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
    token: str | None = None,
) -> int:
    """Add files in place of those of the days `replaces` (ISO; None: of all files); return the version.

    `token`: what no other commit has, by which this one is known again; by default a random one.

    The version has the rows of the table as it was read, with these changes, and nothing else: an append
    that landed on rows of another run is none of ours, whatever became of it. On the commits of a clean-up,
    which change no row, it is as good as on what was read. Raises `TablesInUseError` if
    another run has written meanwhile, `TablesError`.
    """
    read = int(table.version())
    token = token or SystemEntropy().uuid().hex
    is_append = replaces is not None and not replaces
    with writing(place):
        table.create_write_transaction(
            [added(file) for file in files],
            "append" if is_append else "overwrite",
            schema,
            [DAY] if table.metadata().partition_columns else None,
            [(DAY, "in", list(replaces))] if replaces else None,
            **_properties(number, {_TOKEN: token}),
        )
        landing = landing_of(place / LOG, read + 1, token)
        version = landing.version
        if version is None or not landing.is_first:
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")
        table.load_as_version(version)  # not the newest one, which may be another's
    sync_log(place, version)
    return version


def restore(place: Place, table: DeltaTable, version: int | None, number: int) -> None:
    """Undo what a run that did not get to its end has committed since this version (None: all of it)."""
    if version is None:
        write(place, table, [], table.schema(), replaces=None, number=number)
        return
    with writing(place):
        table.restore(version, **_properties(number))


def compact(place: Place, table: DeltaTable, days: Sequence[str], file_bytes: int, number: int) -> int:
    """Combine the files of each of these days; return the version."""
    read = int(table.version())
    with writing(place):
        table.optimize.compact([(DAY, "in", list(days))], target_size=file_bytes, **_properties(number))
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
        with writing(place):
            table.alter.add_columns(missing, **_properties(number))
            table.update_incremental()
        if table.version() != read + 1:
            raise TablesInUseError(f"another run has written to `{place}` meanwhile, run again")


def vacuum(place: Place) -> None:
    """Remove files that no commit named for `KEPT_HOURS`: replaced ones, and those of killed runs.

    What cannot be removed is logged, and stays until the next time.
    """
    with cleaning(place):
        table = open_table(place)
        if table is not None:
            table.vacuum(dry_run=False, full=True, post_commithook_properties=_KEEPS_LOG)


def clean_up(place: Place, former: int, version: int) -> None:
    """Remove old files and commits of a table that got from one version to another, if it is time to.

    Delta would remove old commits while it commits: among them the one that `runs` names until the run has
    its end there, and for ever if it is killed. So they go after the run, and the version before stays, too,
    as a reader may have just learned of it. What cannot be removed is logged, once in `CHECKPOINT_COMMITS`,
    and goes the next time that it is time: each time takes all that is old.
    """
    if (former + 1) // CHECKPOINT_COMMITS == (version + 1) // CHECKPOINT_COMMITS:
        return
    with cleaning(place):
        table = open_table(place, former)
        if table is not None:
            table.cleanup_metadata()  # what is before the last checkpoint at or below its version
    vacuum(place)


def sync_log(place: Place, version: int) -> None:
    """Bring a commit to the disk, and the names of its log and its table, which the first commit creates."""
    for each in (place / LOG / f"{version:020d}.json", place / LOG, place, place.parent):
        sync(each)


def new_name(mark: str, day: str | None = None) -> str:
    """Return a name for a file that no other has, with the folder of its day; `mark` says whose it is."""
    name = f"part-{mark}-{SystemEntropy().uuid().hex}.parquet"
    return name if day is None else f"{DAY}={day}/{name}"


def dictionary_paths(schema: pa.Schema, plain: Collection[str]) -> list[str]:
    """Return the columns of a file that get a dictionary: all but these, as Parquet names them.

    A struct has no column of its own: a name of one would mean no column of the file.
    """
    return [path for field in schema if field.name not in plain for path in _leaves(field.name, field.type)]


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    if not pa.types.is_struct(kind):
        yield path
        return
    for field in kind:
        yield from _leaves(f"{path}.{field.name}", field.type)


def write_file(place: Place, name: str, rows: pa.Table, day: str | None = None, **options: Any) -> NewFile:
    """Write rows into a new file below the table's folder; `options` are those of Arrow's writer.

    Raises OSError.
    """
    with sink_of(place / name) as sink, parquet.ParquetWriter(sink, rows.schema, **options) as writer:
        writer.write_table(rows)
        writer.close()
        footer = writer.writer.metadata
    return described(place, name, day, footer)


def _properties(number: int, metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the arguments of each commit of a run."""
    application = [Transaction(APPLICATION, number)]
    return {
        "commit_properties": CommitProperties(custom_metadata=metadata, app_transactions=application),
        "post_commithook_properties": _KEEPS_LOG,
    }


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
