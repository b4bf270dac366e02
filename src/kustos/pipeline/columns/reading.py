"""Parquet columns as Arrow arrays of bounded length, texts as the file's dictionary codes.

Files are cut into parts of similar size by their bytes alone: planning reads no footer.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from kustos.pipeline.columns.coding import Coded, coded
from kustos.pipeline.places import Place, place_of, size_of, source_of

PART_BYTES_MAX: Final = 128 << 20
"""As large as the part of a file that Spark gives a task: some two million events."""

WHOLE_FILE: Final = 1 << 62

CHUNK_ROWS_MAX: Final = 1 << 20
"""Rows at a time: some 100 MB of codes and numbers."""

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
    part: FilePart, texts: Sequence[str], others: Sequence[str], rows_max: int = CHUNK_ROWS_MAX
) -> Iterator[Chunk]:
    """Yield the columns of a part of a file, chunk by chunk; raise `OSError` or `pyarrow.ArrowInvalid`.

    `texts` come as codes, `others` as the file has them, times in microseconds. A column that the file
    lacks is null; fields of structs are named with dots.
    """
    source = source_of(place_of(part.path))
    footer = parquet.read_metadata(source)
    groups = _row_groups(footer, part)
    if not groups:
        return
    schema = footer.schema.to_arrow_schema()
    wanted = [name for name in (*texts, *others) if _has(schema, name)]
    # inside of structs Arrow reads no codes where a batch has several dictionaries: those are coded here
    codes = [name for name in texts if name in wanted and "." not in name]
    with parquet.ParquetFile(
        source, metadata=footer, read_dictionary=codes, coerce_int96_timestamp_unit="us"
    ) as file:
        batches = file.iter_batches(rows_max, row_groups=groups, columns=wanted, use_threads=False)
        for batch in batches:
            chunk: Chunk = {name: coded(_column(batch, name)) for name in texts}
            chunk |= {name: _column(batch, name) for name in others}
            yield chunk


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
