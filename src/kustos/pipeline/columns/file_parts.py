"""Parquet columns as Arrow arrays of bounded length, texts as the file's dictionary codes.

Files are cut into parts of similar size by their bytes alone: planning reads no footer.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kustos.pipeline.columns.codes import Coded, coded
from kustos.pipeline.places import Place, place_of, size_of, source_of

PART_BYTES_MAX: Final = 128 << 20
"""As large as the part of a file that Spark gives a task: some two million events."""

WHOLE_FILE: Final = 1 << 62

CHUNK_ROWS_MAX: Final = 1 << 20
"""Rows at a time: some 100 MB of codes and numbers."""

SMALL_ROWS: Final = 1 << 14
"""Batches of fewer rows are taken together: to group one costs some milliseconds, however small it is."""

_DAY: Final = "day"

Columns = dict[str, pa.Array]
Chunk = dict[str, Coded | pa.Array]


@dataclass(frozen=True, slots=True)
class FilePart:
    """The row groups of a file whose middle byte lies in `start` (included) to `end` (excluded)."""

    path: str
    start: int = 0
    end: int = WHOLE_FILE


def parts_of(paths: Iterable[Place]) -> list[FilePart]:
    """Return parts that hold each row group of the files once; raise `OSError` for a file that is gone."""
    parts = []
    for path in paths:
        size = size_of(path)
        count = max(1, -(-size // PART_BYTES_MAX))
        edges = [size * number // count for number in range(count + 1)]
        parts += [FilePart(str(path), start, end) for start, end in pairwise(edges)]
    return parts


def chunks(
    parts: Iterable[FilePart],
    texts: Sequence[str],
    others: Sequence[str],
    rows_max: int = CHUNK_ROWS_MAX,
) -> Iterator[Chunk]:
    """Yield the columns of parts of files, chunk by chunk; raise `OSError` or `pyarrow.ArrowInvalid`.

    `texts` come as codes, `others` as the file has them, times in microseconds. A column that the file
    lacks is null, but for `day`, which its folder names; fields of structs are named with dots. Small files
    share a chunk.
    """
    small: list[Columns] = []
    count = 0
    for part in parts:
        for columns, rows in _batches(part, texts, others, rows_max):
            if rows >= SMALL_ROWS:
                yield _coded(columns, texts)
                continue
            small.append(columns)
            count += rows
            if count >= SMALL_ROWS:
                yield _coded(_together(small, texts), texts)
                small, count = [], 0
    if small:
        yield _coded(_together(small, texts), texts)


def chunk_of(batch: pa.RecordBatch, texts: Sequence[str], others: Sequence[str]) -> Chunk:
    """Return columns of a batch of rows as `chunks` does."""
    return _coded({name: _column(batch, name) for name in (*texts, *others)}, texts)


def _coded(columns: Columns, texts: Sequence[str]) -> Chunk:
    return columns | {name: coded(columns[name]) for name in texts}


def _together(batches: Sequence[Columns], texts: Sequence[str]) -> Columns:
    """Return the rows of small batches as one, whatever types their files have."""
    if len(batches) == 1:
        return batches[0]
    tables = [
        pa.table({name: _plain(column) if name in texts else column for name, column in columns.items()})
        for columns in batches
    ]
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return {name: table.column(name).combine_chunks() for name in table.column_names}


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _batches(
    part: FilePart, texts: Sequence[str], others: Sequence[str], rows_max: int
) -> Iterator[tuple[Columns, int]]:
    source = source_of(place_of(part.path))
    footer = parquet.read_metadata(source)
    groups = _row_groups(footer, part)
    if not groups:
        return
    schema = footer.schema.to_arrow_schema()
    names = [*texts, *others]
    wanted = [name for name in names if _has(schema, name)]
    # inside of structs Arrow reads no codes where a batch has several dictionaries: those are coded here
    codes = [name for name in texts if name in wanted and "." not in name]
    with parquet.ParquetFile(
        source, metadata=footer, read_dictionary=codes, coerce_int96_timestamp_unit="us"
    ) as file:
        for batch in file.iter_batches(rows_max, row_groups=groups, columns=wanted, use_threads=False):
            columns = {name: _column(batch, name) for name in names}
            if _DAY in names and _DAY not in wanted:
                columns[_DAY] = pa.repeat(_day_of(part), batch.num_rows)
            yield columns, batch.num_rows


def _day_of(part: FilePart) -> pa.Scalar:
    name = place_of(part.path).parent.name
    return pa.scalar(date.fromisoformat(name.removeprefix(f"{_DAY}=")), pa.date32())


def _row_groups(footer: parquet.FileMetaData, part: FilePart) -> list[int]:
    found = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        columns = [group.column(each) for each in range(group.num_columns)]
        start = min(each.dictionary_page_offset or each.data_page_offset for each in columns)
        middle = start + sum(each.total_compressed_size for each in columns) // 2
        if part.start <= middle < part.end:
            found.append(number)
    return found


def _has(schema: pa.Schema, name: str) -> bool:
    fields: pa.Schema | pa.DataType = schema
    for step in name.split("."):
        position = fields.get_field_index(step)
        if position < 0:
            return False
        fields = fields.field(position).type
    return True


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if not _has(batch.schema, name):
        return pa.nulls(batch.num_rows)
    head, *rest = name.split(".")
    column = batch.column(head)
    for step in rest:
        column = pc.struct_field(column, step)
    return column
