"""Rows of Spark become Parquet files: each task writes its own, where they are committed, and names them.

Workers write with Arrow, to a disk and to an object store alike, so Spark needs no file system of its own
there, and no file is renamed or copied: a repeated task writes another file, and only the files that the
successful attempt names are committed.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.places import Place, sink_of
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.tables.delta import DAY, NewFile, described, new_name
from kustos.pipeline.tables.line_tasks import Lines, as_schema, mapped_in_arrow
from kustos.pipeline.tables.statistics import FileStatistics

GROUP_BYTES_MAX: Final = 64 * 2**20
"""What a task holds before it writes a row group: some 200,000 events."""

WRITTEN_SCHEMA: Final = StructType(
    [
        StructField("table", StringType()),
        StructField("name", StringType()),
        StructField("day", StringType()),
        *(StructField(name, LongType()) for name in ("rows", "size_bytes", "modified_ms")),
        StructField(
            "statistics",
            StructType(
                [
                    *(StructField(name, LongType()) for name in ("first_time_ms", "last_time_ms")),
                    *(StructField(name, StringType()) for name in ("first_cluster", "last_cluster")),
                ]
            ),
        ),
    ]
)
"""A row for each written file, as `NewFile` has it, and the table that it is of."""

_WRITTEN: Final = to_arrow_schema(WRITTEN_SCHEMA)


def rows_of_files(files: Iterable[tuple[str, NewFile]]) -> pa.RecordBatch:
    """Return rows of WRITTEN_SCHEMA for files of tables."""
    rows = [{"table": table} | asdict(file) for table, file in files]
    return pa.RecordBatch.from_pylist(rows, schema=_WRITTEN)


def written_files(rows: Iterable[Any], table: str) -> list[NewFile]:
    """Return the files of a table from rows of WRITTEN_SCHEMA."""
    return [
        NewFile(
            **{name: row[name] for name in _NAMES}, statistics=FileStatistics(**row["statistics"].asDict())
        )
        for row in rows
        if row["table"] == table
    ]


_NAMES: Final = WRITTEN_SCHEMA.fieldNames()[1:-1]


def write_rows(
    rows: Lines, place: Place, mark: str, schema: pa.Schema, *, day: str | None = None
) -> list[NewFile]:
    """Write rows into files below a table's folder, one for each task; return the files, none without rows.

    The files have the columns of `schema`, missing ones null. They lie in the folder of a day (ISO), without
    the column `day`, or in none.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield rows_of_files(("", file) for file in write_batches(batches, place, mark, schema, day=day))

    return written_files(mapped_in_arrow(rows, write, WRITTEN_SCHEMA).collect(), "")


def write_batches(
    batches: Iterable[pa.RecordBatch], place: Place, mark: str, schema: pa.Schema, *, day: str | None
) -> list[NewFile]:
    """Write rows into one file, as `write_rows` does; return it, nothing without rows."""
    kept = pa.schema([field for field in schema if day is None or field.name != DAY])
    filled = (as_schema(batch, kept) for batch in batches if batch.num_rows)
    groups = _groups(filled)
    first = next(groups, None)
    if first is None:
        return []
    name = new_name(mark, day)
    with sink_of(place / name) as sink, parquet.ParquetWriter(sink, kept) as writer:
        for group in itertools.chain([first], groups):
            writer.write_table(group)
    return [described(place, name, day)]


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches together, up to `GROUP_BYTES_MAX`."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.nbytes for each in held) >= GROUP_BYTES_MAX:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def in_tasks(
    spark: SparkSession, count: int, write: Callable[[int], Iterable[tuple[str, NewFile]]]
) -> list[Any]:
    """Return the files that so many tasks wrote, as rows of WRITTEN_SCHEMA; each calls `write` once."""

    return list(
        numbered_tasks(spark, count, lambda number: [rows_of_files(write(number))], WRITTEN_SCHEMA).collect()
    )
