"""Staging of lines: each task writes its parsed lines with their keys into a Parquet file.

Lines are read and parsed once. Of the files others read the columns that they need.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.lines.clusters import UNDECLARED, DeclaredCluster
from kustos.pipeline.lines.line_columns import read_lines
from kustos.pipeline.places import Place, make_folder, sink_of
from kustos.pipeline.tables.deduplication.keys import IDENTIFIED, identified
from kustos.pipeline.tables.delta import dictionary_paths
from kustos.runtime import SystemEntropy

_SUMS: Final = ("lines", "rows", "total_bytes", "key_bytes")
_FOUND_SCHEMA: Final = StructType(
    [
        StructField("file", StringType()),
        StructField("days", StringType()),
        *(StructField(name, LongType()) for name in (*_SUMS, "first_time_ms", "last_time_ms")),
    ]
)
_FOUND: Final = to_arrow_schema(_FOUND_SCHEMA)
_KEYS: Final = ("event_id", "line_key", "source_file", "reason")
"""Columns of text by which lines are compared."""
_DISTINCT: Final = ("line", "event_id", "line_key", "position", "part")
"""Columns with nearly no equal values, where a dictionary saves nothing."""

PARTS: Final = 1 << 16
"""Lines are distinguished by a number below this, so that those of one key come into one bucket of some."""

STAGED: Final = IDENTIFIED.append(pa.field("part", pa.int32()))

CODED_TEXTS: Final = [
    field.name for field in STAGED if field.type == pa.string() and field.name not in _DISTINCT
]
"""Columns of text of which a file has codes, and which are read as such at half the cost.

Those within a struct are not: Arrow fails where such a column has more than one dictionary."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A file of identified lines (STAGED), and how many events of each day it has."""

    place: Place
    days: dict[date, int]


@dataclass(frozen=True, slots=True)
class StagedLines:
    """Files of identified lines, how many, and the span of the events' times.

    `lines` were read, `rows` were written; `files` have at least one each. The span may be wider than that of
    the events that are kept. `total_bytes` is the memory of all columns, `key_bytes` that of the key columns:
    names in lines are untrusted text, and may be long.
    """

    files: tuple[StagedFile, ...]
    lines: int
    rows: int
    first_time_ms: int | None
    last_time_ms: int | None
    total_bytes: int
    key_bytes: int

    def days(self) -> dict[date, int]:
        """Return how many events there are of each day, copies included."""
        days: Counter[date] = Counter()
        for file in self.files:
            days.update(file.days)
        return dict(days)

    def around(self, margin_ms: int) -> tuple[int, int]:
        """Return the first and the last time, extended by the margin; 0 for them if there is no event."""
        return (self.first_time_ms or 0) - margin_ms, (self.last_time_ms or 0) + margin_ms


def stage_lines(
    lines: DataFrame, folder: Place, *, time_zone: str, cluster: DeclaredCluster = UNDECLARED
) -> StagedLines:
    """Write each line, parsed and with its key, below `folder`, which must not exist; read `lines` once.

    A repeated task writes another file; only the file of the successful attempt counts.
    """
    make_folder(folder)

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _staged(batches, folder, time_zone, cluster)

    found = lines.mapInArrow(stage, _FOUND_SCHEMA).collect()
    return staged_of([row.asDict() for row in found], folder)


def staged_of(found: Iterable[dict[str, object]], folder: Place) -> StagedLines:
    """Return the lines that tasks staged, by the rows that they yielded."""
    rows = sorted(found, key=lambda row: str(row["file"]))
    firsts = [int(str(row["first_time_ms"])) for row in rows if row["first_time_ms"] is not None]
    lasts = [int(str(row["last_time_ms"])) for row in rows if row["last_time_ms"] is not None]
    return StagedLines(
        files=tuple(StagedFile(folder / str(row["file"]), _days(str(row["days"]))) for row in rows),
        first_time_ms=min(firsts, default=None),
        last_time_ms=max(lasts, default=None),
        **{name: sum(int(str(row[name])) for row in rows) for name in _SUMS},
    )


def _days(text: str) -> dict[date, int]:
    return {date(1970, 1, 1) + timedelta(days=int(day)): rows for day, rows in json.loads(text).items()}


def _staged(
    batches: Iterable[pa.RecordBatch], folder: Place, time_zone: str, cluster: DeclaredCluster = UNDECLARED
) -> Iterator[pa.RecordBatch]:
    """Write the lines of a task into one file; yield its statistics, nothing if there is no line."""
    file = f"{SystemEntropy().uuid().hex}.parquet"
    names = dictionary_paths(STAGED, _DISTINCT)
    found: Counter[str] = Counter()
    days: Counter[int] = Counter()
    spans: list[int] = []
    opened = ExitStack()
    writer: parquet.ParquetWriter | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if writer is None:
            sink = opened.enter_context(sink_of(folder / file))
            writer = parquet.ParquetWriter(sink, STAGED, use_dictionary=names, write_statistics=["day"])
        rows = identified(read_lines(batch, time_zone, cluster))
        parts = parts_of_keys(pc.coalesce(rows["event_id"], rows["line_key"]))
        writer.write_batch(pa.RecordBatch.from_arrays([*rows.columns, pa.array(parts)], schema=STAGED))
        found["lines"] += batch.num_rows
        found["rows"] += rows.num_rows
        found["total_bytes"] += rows.nbytes
        found["key_bytes"] += rows.select(_KEYS).nbytes
        span = pc.min_max(rows["time_ms"]).as_py()
        spans += [each for each in span.values() if each is not None]
        for day, count in _days_of(rows):
            days[day] += count
    if writer is not None:
        writer.close()
        opened.close()
        times = {"first_time_ms": min(spans, default=None), "last_time_ms": max(spans, default=None)}
        found_here = {"file": file, "days": json.dumps(days), **found, **times}
        yield pa.RecordBatch.from_pylist([found_here], schema=_FOUND)


def _days_of(rows: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield each day, in days since 1970, and how many events are of it."""
    counts = pc.value_counts(rows["day"].cast(pa.int32()).drop_null())
    yield from zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)


_TAIL_BYTES: Final = 16


def parts_of_keys(keys: pa.Array) -> npt.NDArray[np.int32]:
    """Return a number below PARTS for each key, by its last bytes, which vary most; equal for equal keys."""
    _, offsets_buffer, data = keys.buffers()
    ends = np.frombuffer(offsets_buffer, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    lengths = np.diff(ends)
    found = np.zeros(len(keys), np.uint64)
    is_long = lengths >= _TAIL_BYTES
    if is_long.any():
        count = data.size - 7
        words = np.ndarray((count,), np.dtype("<u8"), buffer=data, strides=(1,))
        at = ends[1:][is_long]
        mixed = words[at - 8] * np.uint64(0x9E3779B97F4A7C15) ^ words[at - _TAIL_BYTES]
        found[is_long] = mixed * np.uint64(0xC2B2AE3D27D4EB4F)
    for row in np.flatnonzero(~is_long):
        found[row] = zlib.crc32(keys[int(row)].as_py().encode()) << 32  # none of a broker is so short
    return (found >> np.uint64(48)).astype(np.int32)
