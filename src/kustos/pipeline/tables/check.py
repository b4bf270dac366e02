"""The thorough check of tables: reads every file, and compares what must agree. It changes nothing.

Opening a table finds what its log and the sizes of its files show (`integrity`). This finds the rest: files
that cannot be read or have other rows than their footers and the log say, event ids that occur twice, and
days on which the roll-up is not the sum of the events: there a file may have other rows, as many as before.
Workers read the files; they need the memory of a roll-up of the same days.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from kustos.pipeline.columns.file_parts import FilePart
from kustos.pipeline.errors import TablesDamagedError, TablesError
from kustos.pipeline.places import Place, names_in, source_of
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.schemas import CLUSTER, CONTENT_SCHEMA
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.tables import delta
from kustos.pipeline.tables.deduplication.outcomes import SECRET_CHARACTERS, content_digests
from kustos.pipeline.tables.delta import DataFile
from kustos.pipeline.tables.integrity import check_number, faults, files_by_log, orphans, remedy, run_of
from kustos.pipeline.tables.key_numbers import Numbers, numbers_of_keys
from kustos.pipeline.tables.layout import AUDIT_EVENTS, AUDIT_ROLLUP, RUNS, SECURITY_EVENTS
from kustos.pipeline.tables.parquet_reader import BATCH_ROWS
from kustos.pipeline.tables.rollup.columns import rolled_up_parts
from kustos.pipeline.tables.rollup.days import GROUP_BYTES_MAX, GROUP_FILES_MAX
from kustos.pipeline.tables.runs import State
from kustos.pipeline.tables.store import Tables
from kustos.runtime import SystemEntropy, quoted, reason_of

CHECK_STEPS: Final = (
    "comparing logs, files and runs",
    "reading every file",
    "comparing the roll-up with the events",
    "looking for repeated event ids",
)

REPEATED_MAX: Final = 10
"""Repeated event ids that are named of a day; one is enough to look for the cause."""

_HASH_KEY_CHARACTERS: Final = 16
"""As many as pandas takes."""

_FOUND: Final = StructType([StructField(name, StringType()) for name in ("table", "file", "what")])
_FOUND_ARROW: Final = pa.schema([(name, pa.string()) for name in _FOUND.fieldNames()])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFault:
    """What is wrong: with a table, or with its `file` (below the table's folder); `run` wrote or left it."""

    table: str
    file: str | None
    run: str
    what: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return remedy(self.table, of_file=self.file is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedTable:
    """A table by its log; `orphans` are files in its folder that no commit names."""

    table: str
    files: int
    rows: int
    orphans: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesCheck:
    """What a check read and found. `days` were compared with the roll-up, `stale_days` have none yet."""

    tables: tuple[CheckedTable, ...] = ()
    faults: tuple[TableFault, ...] = ()
    days: int = 0
    stale_days: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def check_tables(spark: SparkSession, tables: Tables, progress: Progress = silent) -> TablesCheck:
    """Check all tables as of the last committed run; damage is in the result and never raised.

    Raises `TablesError` for a place that cannot be read.
    """
    tables = tables.of_all_clusters().of_last_run()
    try:
        state = tables.state()
        if not state.number:
            tables.snapshot(AUDIT_EVENTS)
            return TablesCheck()
    except TablesDamagedError as error:
        return TablesCheck(faults=(TableFault(table=RUNS, file=None, run="", what=str(error)),))
    progress(CHECK_STEPS[0])
    check = _Checking(tables, state)
    check.compare_logs()
    for step, items in zip(CHECK_STEPS[1:], (check.contents, check.rollups, check.ids), strict=True):
        progress(step)
        check.take(_found(spark, items()))
    return TablesCheck(
        tables=tuple(check.checked),
        faults=tuple(check.faults),
        days=len(check.days),
        stale_days=tuple(sorted(state.stale_days)),
    )


class _Item(Protocol):
    """A piece of the check that a worker does."""

    @property
    def table(self) -> str:
        """The table that it is about."""

    @property
    def files(self) -> Sequence[tuple[Place, DataFile]]:
        """The files that it reads."""

    def found(self) -> Iterator[tuple[str, str | None, str]]:
        """Yield table, file and text of each fault."""


@dataclass
class _Checking:
    """The files of the tables, and what is known of them so far."""

    tables: Tables
    state: State
    faults: list[TableFault] = field(default_factory=list)
    checked: list[CheckedTable] = field(default_factory=list)
    days: Collection[str] = ()
    _whole: dict[str, list[DataFile]] = field(default_factory=dict)
    _damaged_days: set[str | None] = field(default_factory=set)

    def compare_logs(self) -> None:
        """Compare each table's log with `runs`, and the files with the log."""
        for name in self._names():
            place = self._place(name)
            try:
                newest = delta.open_table(place)
                check_number(place, run_of(newest), self.state.number)
                if name not in self.state.versions and name != RUNS:
                    continue  # a killed run made it, or a run at work
                files = self._by_log(name, place, newest)
            except TablesDamagedError as error:
                self._add(name, None, str(error))
                continue
            damaged = set()
            for fault in faults(place, files, self.state):
                damaged.add(fault.file)
                file = None if fault.file is None else fault.file.name
                self._add(name, file, fault.text.removeprefix(f"`{place / (file or '')}` "))
            self._set_whole(name, [file for file in files if file not in damaged], damaged - {None})
            rows = sum(file.rows for file in files)
            left = tuple(self._orphans(place, files))
            self.checked.append(CheckedTable(table=name, files=len(files), rows=rows, orphans=left))

    def contents(self) -> Iterator["_Item"]:
        """Yield each file, to be read."""
        for name in self._whole:
            place = self._place(name)
            for file in self._whole[name]:
                yield _Contents(name, ((place / file.name, file),))

    def rollups(self) -> Iterator["_Item"]:
        """Yield each day whose roll-up must be the sum of its events."""
        if AUDIT_EVENTS not in self._whole or AUDIT_ROLLUP not in self._whole:
            return
        events, rollups = self._by_day(AUDIT_EVENTS), self._by_day(AUDIT_ROLLUP)
        closed = self.state.closed_before or ""
        wanted = {day for day in {*events, *rollups} if day in events or day >= closed}
        self.days = wanted - self.state.stale_days - self._damaged_days
        key = SystemEntropy().uuid().hex[:_HASH_KEY_CHARACTERS]
        for day in sorted(self.days):
            yield _DayOfRollup(day, tuple(events.get(day, ())), tuple(rollups.get(day, ())), key)

    def ids(self) -> Iterator["_Item"]:
        """Yield each day of events, whose ids must differ."""
        for name in (AUDIT_EVENTS, SECURITY_EVENTS):
            for files in self._by_day(name).values():
                yield _DayOfIds(name, tuple(files))

    def take(self, found: Iterable[tuple[str, str | None, str]]) -> None:
        """Take what workers found; a file that cannot be read is left out from then on."""
        for table, name, what in found:
            self._add(table, name, what)
            named = {file for file in self._whole[table] if file.name == name}
            self._set_whole(table, [file for file in self._whole[table] if file not in named], named)

    def _orphans(self, place: Place, files: Sequence[DataFile]) -> list[str]:
        try:
            return orphans(place, files)
        except OSError as error:
            raise TablesError(f"cannot list `{place}`: {reason_of(error)}") from error

    def _names(self) -> list[str]:
        """Return the tables of the state, and others that are there."""
        try:
            there = [name for name in names_in(self.tables.folder) if not name.startswith(("_", "."))]
        except OSError as error:
            raise TablesError(f"cannot list `{self.tables.folder}`: {reason_of(error)}") from error
        return sorted({RUNS, *self.state.versions, *there})

    def _by_log(self, name: str, place: Place, newest: DeltaTable | None) -> tuple[DataFile, ...]:
        if name != RUNS:
            return files_by_log(place, self.state.versions[name], self.state)
        return () if newest is None else delta.files_of(newest)

    def _set_whole(self, name: str, whole: list[DataFile], damaged: Iterable[DataFile | None]) -> None:
        self._whole[name] = whole
        if name in (AUDIT_EVENTS, AUDIT_ROLLUP):
            self._damaged_days |= {file.day for file in damaged if file is not None}

    def _by_day(self, name: str) -> dict[str, list[tuple[Place, DataFile]]]:
        place, found = self._place(name), defaultdict(list)
        for file in self._whole.get(name, ()):
            found[file.day or ""].append((place / file.name, file))
        return found

    def _place(self, name: str) -> Place:
        place = self.tables.folder / name
        return place.absolute() if isinstance(place, Path) else place

    def _add(self, table: str, file: str | None, what: str) -> None:
        run = None if file is None else self.state.writer_of(file)
        self.faults.append(TableFault(table=table, file=file, run=run or self.state.run_id, what=what))


def _found(spark: SparkSession, items: Iterable[_Item]) -> list[tuple[str, str | None, str]]:
    """Return what is wrong with the items, by tasks that read similar amounts."""
    groups = list(_groups(items))

    def work(number: int) -> Iterator[pa.RecordBatch]:
        found = (row for item in groups[number] for row in _of_item(item))
        rows = [dict(zip(_FOUND_ARROW.names, row, strict=True)) for row in found]
        yield pa.RecordBatch.from_pylist(rows, schema=_FOUND_ARROW)

    rows = numbered_tasks(spark, len(groups), work, _FOUND).collect()
    found = [(row["table"], row["file"], row["what"]) for row in rows]
    return sorted(found, key=lambda each: (each[0], each[1] or "", each[2]))


def _of_item(item: _Item) -> Iterator[tuple[str, str | None, str]]:
    """Yield what an item finds, also if its files have other columns than those of the table."""
    try:
        yield from item.found()
    except (OSError, pa.ArrowException) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        yield item.table, item.files[0][1].name, f"cannot be compared with other files of its day: {reason}"


def _groups(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    group: list[_Item] = []
    group_bytes = group_files = 0
    for item in items:
        size = sum(file.size_bytes for _, file in item.files)
        if group and (
            group_bytes + size > GROUP_BYTES_MAX or group_files + len(item.files) > GROUP_FILES_MAX
        ):
            yield group
            group, group_bytes, group_files = [], 0, 0
        group.append(item)
        group_bytes += size
        group_files += len(item.files)
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class _Contents:
    """A file that is read: as many rows as its footer and the log say."""

    table: str
    files: Sequence[tuple[Place, DataFile]]

    def found(self) -> Iterator[tuple[str, str | None, str]]:
        for path, file in self.files:
            what = _fault_of_content(path, file.rows)
            if what is not None:
                yield self.table, file.name, what


def _fault_of_content(path: Place, rows: int) -> str | None:
    try:
        with parquet.ParquetFile(source_of(path)) as content:
            footer = content.metadata.num_rows
            if footer != rows:
                return f"has {footer:,} rows by its footer, but {rows:,} by the log of its table"
            found = sum(batch.num_rows for batch in content.iter_batches(BATCH_ROWS, use_threads=False))
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {reason_of(error) if isinstance(error, OSError) else error}"
    return None if found == footer else f"has {found:,} rows, but {footer:,} by its footer"


@dataclass(frozen=True, slots=True)
class _DayOfRollup:
    """A day whose roll-up is compared with one that is made of its events."""

    day: str
    events: Sequence[tuple[Place, DataFile]]
    rollups: Sequence[tuple[Place, DataFile]]
    key: str

    @property
    def table(self) -> str:
        return AUDIT_EVENTS if self.events else AUDIT_ROLLUP

    @property
    def files(self) -> Sequence[tuple[Place, DataFile]]:
        return (*self.events, *self.rollups)

    def found(self) -> Iterator[tuple[str, str | None, str]]:
        events, rollups = ([FilePart(str(path)) for path, _ in each] for each in (self.events, self.rollups))
        made = _Sums.of(rolled_up_parts(events), self.key)
        stored = _Sums.of(rolled_up_parts((), rollups), self.key)
        if made != stored:
            name = self.rollups[0][1].name if self.rollups else None
            yield (
                AUDIT_ROLLUP,
                name,
                f"the roll-up of {self.day} has {stored.events:,} events in {stored.rows:,} rows, other "
                f"than the sum of the events, {made.events:,} in {made.rows:,}: another program has changed "
                "one of them",
            )


@dataclass(frozen=True, slots=True)
class _Sums:
    """What is equal for equal roll-ups, in whatever order: rows, events, and a sum of the rows' hashes."""

    rows: int = 0
    events: int = 0
    digest: int = 0

    @classmethod
    def of(cls, batches: Iterable[pa.RecordBatch], key: str) -> "_Sums":
        """Return the sums of a roll-up. `key` is random: no one can write rows with the hashes of others."""
        from pandas.util import hash_pandas_object  # no other command needs pandas

        rows, events, digest = 0, 0, np.uint64(0)
        for batch in batches:
            table = pa.Table.from_batches([batch]).flatten()
            texts = pa.table({name: table[name].cast(pa.string()) for name in table.column_names})
            hashes = hash_pandas_object(texts.to_pandas(), index=False, hash_key=key).to_numpy()
            rows += table.num_rows
            events += sum(table["event_count"].to_pylist())
            digest += np.sum(hashes, dtype=np.uint64)
        return cls(rows, events, int(digest))


@dataclass(frozen=True, slots=True)
class _DayOfIds:
    """The files of a day of a table, in which each content of an event id occurs once for each cluster.

    Events that share an id but not their content are no fault of the tables: both are kept.
    """

    table: str
    files: Sequence[tuple[Place, DataFile]]

    def found(self) -> Iterator[tuple[str, str | None, str]]:
        repeated = _repeated(np.concatenate([numbers_of_keys(_ids(path)) for path, _ in self.files]))
        if not len(repeated):
            return
        secret = SystemEntropy().uuid().hex[:SECRET_CHARACTERS]
        first: dict[tuple[str, str, int], str] = {}
        count = 0
        for path, file in self.files:
            ids = _ids(path)
            rows = np.flatnonzero(np.isin(numbers_of_keys(ids), repeated))
            columns = _clusters(path).take(rows), ids.take(rows), _contents(path, rows, secret)
            for key in zip(*(each.to_pylist() for each in columns), strict=True):
                if key in first:
                    count += 1
                    if count <= REPEATED_MAX:
                        other = "" if first[key] == file.name else f" in {quoted(first[key])}"
                        yield self.table, file.name, f"event id `{key[1]}` occurs a second time, first{other}"
                first.setdefault(key, file.name)


def _contents(path: Place, rows: npt.NDArray[np.int64], secret: str) -> pa.Array:
    """Return a digest of the content of these rows of a file."""
    with parquet.ParquetFile(source_of(path)) as content:
        known = [name for name in CONTENT_SCHEMA.fieldNames() if name in content.schema_arrow.names]
        return content_digests(content.read(columns=known).take(rows).combine_chunks(), secret)


def _repeated(numbers: Numbers) -> Numbers:
    ordered = np.sort(numbers)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def _column(path: Place, name: str) -> pa.Array:
    with parquet.ParquetFile(source_of(path)) as content:
        if name not in content.schema_arrow.names:
            return pa.nulls(content.metadata.num_rows, pa.string())
        return content.read(columns=[name])[name].cast(pa.string()).combine_chunks()


def _ids(path: Place) -> pa.Array:
    return _column(path, "event_id").fill_null("")


def _clusters(path: Place) -> pa.Array:
    return _column(path, CLUSTER).fill_null("")
