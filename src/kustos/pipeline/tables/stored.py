"""Lookups of ids in the tables' files, in columns: for runs of few lines."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql.types import StructType

from kustos.pipeline.places import Place, source_of, stamp_of
from kustos.pipeline.schemas import ANY_EVENT_SCHEMA
from kustos.pipeline.tables.delta import time_span

MAXIMUM_FOOTERS: Final = 4_096
"""Files whose span of time is cached: some hundred bytes each."""

Found = dict[tuple[date, str], list[Any]]


@dataclass(frozen=True, slots=True)
class Span:
    """The number of rows of a file and their span of time; None if its footer lacks it."""

    rows: int
    first_time_ms: int | None
    last_time_ms: int | None

    def may_hold(self, first_ms: int, last_ms: int) -> bool:
        """Return whether a row may be in this span."""
        if not self.rows:
            return False
        if self.first_time_ms is None or self.last_time_ms is None:
            return True
        return self.first_time_ms <= last_ms and first_ms <= self.last_time_ms


def files_of_time(files: Sequence[Place], first_ms: int, last_ms: int) -> tuple[list[Place], int]:
    """Return the files that may have rows in this span, both ends included, and their number of rows."""
    spans = [(file, _span(file, stamp_of(file))) for file in files]
    held = [(file, span.rows) for file, span in spans if span.may_hold(first_ms, last_ms)]
    return [file for file, _ in held], sum(rows for _, rows in held)


@lru_cache(maxsize=MAXIMUM_FOOTERS)
def _span(file: Place, _modified_ns: int) -> Span:
    footer = parquet.read_metadata(source_of(file))
    first, last = time_span(footer) or (None, None)
    return Span(footer.num_rows, first, last)


def event_ids(files: Sequence[Place], first_ms: int, last_ms: int) -> pa.ChunkedArray:
    """Return the ids of the events in this span."""
    if not files:
        return pa.chunked_array([], pa.string())
    columns = ["event_id", "time_ms"]
    tables = [parquet.read_table(source_of(file), columns=columns, partitioning=None) for file in files]
    return _of_time(pa.concat_tables(tables), first_ms, last_ms)["event_id"].cast(pa.string())


def _of_time(table: pa.Table, first_ms: int, last_ms: int) -> pa.Table:
    time_ms = table["time_ms"]
    span = pc.min_max(time_ms).as_py()
    if span["min"] is not None and first_ms <= span["min"] and span["max"] <= last_ms:
        return table
    return table.filter(pc.and_(pc.greater_equal(time_ms, first_ms), pc.less_equal(time_ms, last_ms)))


def events_by_id(files: Sequence[Place], wanted: Collection[str], first_ms: int, last_ms: int) -> Found:
    """Return the contents of the events with these ids in this span, by day and id; see `contents`."""
    ids = pa.array(wanted, pa.string())
    events: Found = {}
    for file in files:
        for found, content in _events_of(file, ids, first_ms, last_ms):
            events.setdefault(found, []).append(content)
    return events


def _events_of(file: Place, ids: pa.Array, first_ms: int, last_ms: int) -> Iterator[tuple[Any, Any]]:
    day = date.fromisoformat(file.parent.name.removeprefix("day="))
    held = parquet.read_table(source_of(file), columns=["event_id"], partitioning=None)["event_id"]
    is_wanted = pc.is_in(held.cast(pa.string()), value_set=ids)
    if not pc.any(is_wanted).as_py():
        return
    table = _of_time(read_contents(file).filter(is_wanted), first_ms, last_ms)
    yield from zip(
        ((day, event_id) for event_id in table["event_id"].to_pylist()), contents(table), strict=True
    )


def read_contents(file: Place) -> pa.Table:
    """Return the events of a file with its columns of ANY_EVENT_SCHEMA."""
    known = set(parquet.read_schema(source_of(file)).names)
    columns = [name for name in ANY_EVENT_SCHEMA.fieldNames() if name in known]
    return parquet.read_table(source_of(file), columns=columns, partitioning=None)


def contents(table: pa.Table) -> list[Any]:
    """Return all fields of each row's event, for comparison.

    A column that the file lacks is null; a column outside of ANY_EVENT_SCHEMA is left out.
    """
    rows: list[dict[str, Any]] = table.to_pylist()
    return (
        rows
        if _is_whole(table.schema, ANY_EVENT_SCHEMA)
        else [_filled(ANY_EVENT_SCHEMA, row) for row in rows]
    )


def _is_whole(found: pa.Schema | pa.StructType, schema: StructType) -> bool:
    """Return whether the file has these columns and no others, also within structs."""
    return len(found) == len(schema.fields) and all(
        (place := found.get_field_index(field.name)) >= 0
        and (not isinstance(field.dataType, StructType) or _is_whole(found.field(place).type, field.dataType))
        for field in schema.fields
    )


def _filled(schema: StructType, row: dict[str, Any]) -> dict[str, Any]:
    filled = {}
    for field in schema.fields:
        value = row.get(field.name)
        if isinstance(field.dataType, StructType) and value is not None:
            value = _filled(field.dataType, value)
        filled[field.name] = value
    return filled


def line_ids(files: Sequence[Place]) -> frozenset[str]:
    """Return the ids of the lines in these files of `quarantine`."""
    tables = (parquet.read_table(source_of(file), columns=["line_id"], partitioning=None) for file in files)
    return frozenset(each for table in tables for each in table["line_id"].to_pylist() if each is not None)


def rows_of(files: Sequence[Place]) -> int:
    """Return how many rows these files have."""
    return sum(_span(file, stamp_of(file)).rows for file in files)
