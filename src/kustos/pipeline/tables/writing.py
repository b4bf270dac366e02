"""Rows of Spark become Parquet files: each task writes its own, where they are committed, and names them.

Workers write with Arrow, to a disk and to an object store alike, so Spark needs no file system of its own
there, and no file is renamed or copied: a repeated task writes another file, and only the files that the
successful attempt names are committed.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.places import Place, sink_of
from kustos.pipeline.tables.delta import DAY, NewFile, described, new_name
from kustos.pipeline.tables.reading import read_parquet

GROUP_BYTES_MAX: Final = 64 * 2**20
"""What a task holds before it writes a row group: some 200,000 events."""

WRITTEN_SCHEMA: Final = StructType(
    [
        StructField("table", StringType()),
        StructField("name", StringType()),
        StructField("day", StringType()),
        *(
            StructField(name, LongType())
            for name in ("rows", "size_bytes", "modified_ms", "first_time_ms", "last_time_ms")
        ),
    ]
)
"""A row for each written file, as `NewFile` has it, and the table that it is of."""

_WRITTEN: Final = to_arrow_schema(WRITTEN_SCHEMA)


def told(files: Iterable[tuple[str, NewFile]]) -> pa.RecordBatch:
    """Return rows of WRITTEN_SCHEMA for files of tables."""
    rows = [{"table": table} | {name: getattr(file, name) for name in _NAMES} for table, file in files]
    return pa.RecordBatch.from_pylist(rows, schema=_WRITTEN)


def files_told(rows: Iterable[Any], table: str) -> list[NewFile]:
    """Return the files of a table from rows of WRITTEN_SCHEMA."""
    return [NewFile(*(row[name] for name in _NAMES)) for row in rows if row["table"] == table]


_NAMES: Final = WRITTEN_SCHEMA.fieldNames()[1:]


def write_rows(
    rows: DataFrame,
    place: Place,
    mark: str,
    schema: pa.Schema,
    *,
    by_day: bool = False,
    day: str | None = None,
) -> list[NewFile]:
    """Write rows into files below a table's folder; return the files, none without rows.

    The files have the columns of `schema` (missing ones null) but for `day`. They lie in the folders of the
    rows' days (`by_day`), in that of `day` (ISO), or in none. Rows of one day should follow each other.
    """
    columns = [field for field in schema if field.name != DAY] if by_day or day is not None else list(schema)
    kept = pa.schema(columns)

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with ExitStack() as opened:
            writer = _Writer(place, mark, kept, opened)
            for batch in batches:
                if by_day:
                    for of_day, part in _parts(batch):
                        writer.write(of_day, part)
                else:
                    writer.write(day, batch)
            writer.finish()
        yield told([("", described(place, name, of_day)) for name, of_day in writer.files])

    return files_told(rows.mapInArrow(write, WRITTEN_SCHEMA).collect(), "")


def kept(spark: SparkSession, rows: DataFrame, place: Place) -> tuple[DataFrame, int]:
    """Write rows that a run needs again; return them as read from there, and their number."""
    schema = to_arrow_schema(rows.schema, timezone="UTC")
    files = write_rows(rows, place, "kept", schema)
    return read_parquet(spark, place, [file.name for file in files], rows.schema), sum(
        file.rows for file in files
    )


def _parts(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each day, in the order of their first rows."""
    days = batch.column(DAY)
    found = pc.unique(days).to_pylist()
    for day in found:
        yield day.isoformat(), batch if len(found) == 1 else batch.filter(pc.equal(days, day))


class _Writer:
    """The file that a task writes: another one when the day changes."""

    def __init__(self, place: Place, mark: str, schema: pa.Schema, opened: ExitStack) -> None:
        self.files: list[tuple[str, str | None]] = []
        self._place, self._mark, self._schema, self._opened = place, mark, schema, opened
        self._file: parquet.ParquetWriter | None = None
        self._day: str | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0

    def write(self, day: str | None, rows: pa.RecordBatch) -> None:
        """Take rows of a day, or of a table without days."""
        if not rows.num_rows:
            return
        if self._file is not None and day != self._day:
            self.finish()
        if self._file is None:
            name = new_name(self._mark, day)
            sink = self._opened.enter_context(sink_of(self._place / name))
            self._file = parquet.ParquetWriter(sink, self._schema)
            self.files.append((name, day))
            self._day = day
        columns = [self._column(rows, field) for field in self._schema]
        self._held.append(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        self._held_bytes += self._held[-1].nbytes
        if self._held_bytes >= GROUP_BYTES_MAX:
            self._flush()

    def finish(self) -> None:
        """Close the file, whole and on the disk."""
        if self._file is not None:
            self._flush()
            self._file.close()
            self._opened.close()
            self._file = None

    def _flush(self) -> None:
        if self._held and self._file is not None:
            self._file.write_table(pa.Table.from_batches(self._held))
        self._held, self._held_bytes = [], 0

    @staticmethod
    def _column(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
        position = rows.schema.get_field_index(field.name)
        if position < 0:
            return pa.nulls(rows.num_rows, field.type)
        return rows.column(position).cast(field.type)
