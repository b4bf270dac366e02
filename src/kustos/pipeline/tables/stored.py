"""Lookups of ids in the tables' files, by column: only what a run may have again is kept in memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.lines.generated_ids import EVENT_ID_BEGIN
from kustos.pipeline.places import Place, in_parallel, source_of
from kustos.pipeline.schemas import CLUSTER, CONTENT_SCHEMA
from kustos.pipeline.tables.deduplication.outcomes import STORED, content_digests, in_cluster
from kustos.pipeline.tables.key_numbers import Sieve, numbers_of_keys

CHUNK_ROWS_MAX: Final = 1 << 20
"""Ids looked up at a time, some 50 MB: fewer would look up one file after the other."""

KEPT_FILES_MAX: Final = 512
KEPT_ROWS_MAX: Final = 1_024
"""Files whose ids a process keeps, and their largest number of rows: 25 MB at most. Each batch of a stream is
compared with the files of the batches before it, and to open one takes as long as to compare 1,000 ids."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a table, its day if the table has days, and how many rows it has."""

    place: Place
    rows: int
    day: date | None = None


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Files of the tables to compare a run with, and the span of time of the events."""

    events: tuple[StoredFile, ...] = ()
    quarantine: tuple[StoredFile, ...] = ()
    first_time_ms: int = 0
    last_time_ms: int = 0

    def files_with(self, wanted: pa.Array) -> tuple[set[StoredFile], pa.Array]:
        """Return the files of events with any of these ids in the span, and the ids that they have."""
        found, known = set[StoredFile](), [pa.array([], pa.string())]
        if not len(wanted):
            return found, known[0]
        # most stored ids are not wanted, and most wanted ones not stored: a sieve costs each a fifth of what
        # comparing their texts does
        wanted_numbers = numbers_of_keys(wanted)
        sieve = Sieve(wanted_numbers)
        for files in _chunks(self.events):
            ids = in_parallel(files, lambda file: sieve.kept(self._ids_of(file)))
            numbers = pa.concat_arrays([pa.repeat(n, len(part)) for n, part in enumerate(ids)])
            texts = pa.concat_arrays(ids)
            if not len(texts):
                continue
            is_near = Sieve(numbers_of_keys(texts)).lets_through(wanted_numbers)
            rows = pc.indices_nonzero(pc.is_in(texts, value_set=wanted.filter(pa.array(is_near))))
            known.append(texts.take(rows))
            found.update(files[number] for number in pc.unique(numbers.take(rows)).to_pylist())
        return found, pa.concat_arrays(known)

    def events_of(self, files: Iterable[StoredFile], wanted: pa.Array, secret: str) -> pa.Table:
        """Return the events of these files with these ids, as STORED; only brought ids need a `content`."""
        found = [STORED.empty_table()]
        for chunk in _chunks(files):
            parts = in_parallel(chunk, lambda file: self._events_of(file, wanted))
            of_version: dict[str, list[pa.Table]] = {}
            for part in parts:
                of_version.setdefault(str(part.schema), []).append(part)
            found += [_with_content(pa.concat_tables(tables), secret) for tables in of_version.values()]
        return pa.concat_tables(found)

    def known_line_ids(self, wanted: pa.Array) -> pa.Array:
        """Return those of these ids, each in its cluster, that quarantined lines have."""
        found = [pa.array([], pa.string())]
        for files in _chunks(self.quarantine if len(wanted) else ()):
            ids = in_parallel(files, lambda file: _line_ids(file.place))
            found += [part.filter(pc.is_in(part, value_set=wanted)) for part in ids]
        return pa.concat_arrays(found)

    def _ids_of(self, file: StoredFile) -> pa.Array:
        """Return the ids of the events in the span."""
        if file.rows > KEPT_ROWS_MAX:
            return self._rows_of(file, ["event_id"])["event_id"]
        ids, time_ms = _ids_and_times(file.place)
        is_in_span = self._in_span(time_ms)
        return ids if is_in_span is None else ids.filter(is_in_span)

    def _in_span(self, time_ms: pa.Array) -> pa.Array | None:
        """Return whether each time is in the span; None if all are."""
        found = pc.min_max(time_ms).as_py()
        if found["min"] is None or (self.first_time_ms <= found["min"] and found["max"] <= self.last_time_ms):
            return None
        return pc.and_(
            pc.greater_equal(time_ms, self.first_time_ms), pc.less_equal(time_ms, self.last_time_ms)
        )

    def _rows_of(self, file: StoredFile, columns: Sequence[str]) -> dict[str, pa.Array]:
        """Return columns of the events in the span."""
        with parquet.ParquetFile(source_of(file.place)) as content:
            groups = [
                number for number in range(content.num_row_groups) if self._may_hold(content.metadata, number)
            ]
            known = set(content.schema_arrow.names)
            wanted = [name for name in columns if name in known]
            table = content.read_row_groups(groups, [*dict.fromkeys((*wanted, "time_ms"))], use_threads=False)
        is_in_span = self._in_span(table["time_ms"])
        table = (table if is_in_span is None else table.filter(is_in_span)).combine_chunks()
        found = {name: _whole(table[name]) for name in wanted}
        return found | {"event_id": found["event_id"].cast(pa.string())}

    def _may_hold(self, footer: parquet.FileMetaData, number: int) -> bool:
        group = footer.row_group(number)
        for place in range(group.num_columns):
            column = group.column(place)
            if column.path_in_schema == "time_ms":
                found = column.statistics
                if found is None or not found.has_min_max:
                    return True
                return bool(found.min <= self.last_time_ms and self.first_time_ms <= found.max)
        return True

    def _events_of(self, file: StoredFile, wanted: pa.Array) -> pa.Table:
        """Return the events with these ids, all their fields and the file's day."""
        columns = self._rows_of(file, [*CONTENT_SCHEMA.fieldNames(), CLUSTER, "source_file"])
        clusters = _clusters(columns, len(columns["event_id"]))
        fields = pa.table(columns | {CLUSTER: clusters})
        found = fields.filter(pc.is_in(fields["event_id"], value_set=wanted))
        return found.append_column("day", pa.repeat(pa.scalar(file.day, pa.date32()), found.num_rows))


@lru_cache(KEPT_FILES_MAX)
def _ids_and_times(place: Place) -> tuple[pa.Array, pa.Array]:
    """Return the ids and times of a file's events; no other file ever has its name."""
    with parquet.ParquetFile(source_of(place)) as content:
        table = content.read(["event_id", "time_ms"], use_threads=False)
    return _whole(table["event_id"]).cast(pa.string()), _whole(table["time_ms"])


def _with_content(events: pa.Table, secret: str) -> pa.Table:
    """Return events as STORED; of those whose id kustos made, the content is not needed."""
    is_brought = pc.invert(pc.starts_with(events["event_id"], EVENT_ID_BEGIN)).combine_chunks()
    content = pa.nulls(events.num_rows, pa.uint64())
    if pc.any(is_brought).as_py():
        digests = content_digests(events.filter(is_brought).combine_chunks(), secret)
        content = pc.replace_with_mask(content, is_brought, digests)
    texts = [events[name].cast(pa.string()) for name in (CLUSTER, "event_id", "source_file")]
    return pa.table([events["day"], *texts[:2], content, texts[2]], schema=STORED)


def _chunks(files: Iterable[StoredFile]) -> Iterator[list[StoredFile]]:
    """Yield the files in groups of about `CHUNK_ROWS_MAX` rows."""
    chunk: list[StoredFile] = []
    rows = 0
    for file in files:
        chunk.append(file)
        rows += file.rows
        if rows >= CHUNK_ROWS_MAX:
            yield chunk
            chunk, rows = [], 0
    if chunk:
        yield chunk


def _line_ids(place: Place) -> pa.Array:
    """Return the ids of quarantined lines, each in its cluster."""
    with parquet.ParquetFile(source_of(place)) as content:
        wanted = [name for name in ("line_id", CLUSTER) if name in content.schema_arrow.names]
        table = content.read(wanted, use_threads=False)
    found = {name: _whole(table[name]) for name in wanted}
    return in_cluster(_clusters(found, table.num_rows), found["line_id"].cast(pa.string())).drop_null()


def _clusters(columns: dict[str, pa.Array], count: int) -> pa.Array:
    """Return the cluster of each row: the unnamed one in files of versions that knew none."""
    if CLUSTER not in columns:
        return pa.repeat(UNNAMED, count)
    return columns[CLUSTER].cast(pa.string()).fill_null(UNNAMED)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
