"""Staging of lines: each task writes its parsed lines with their keys into a file (`staged_files`).

Lines are read and parsed once. Of the files others read the columns that they need.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.lines.clusters import UNDECLARED, DeclaredCluster
from kustos.pipeline.lines.line_columns import read_lines
from kustos.pipeline.places import Place, make_folder
from kustos.pipeline.tables.deduplication.keys import IDENTIFIED, identified
from kustos.pipeline.tables.key_numbers import numbers_of_keys
from kustos.pipeline.tables.line_tasks import Lines, mapped_in_arrow
from kustos.pipeline.tables.staged_files import StagedWriter, staged_writer
from kustos.runtime import SystemEntropy, freeze_imports

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
KEY_NUMBER: Final = "key_number"
"""The column of a number that equal keys have in common, and others nearly never."""

STAGED: Final = IDENTIFIED.append(pa.field(KEY_NUMBER, pa.uint64()))


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
    lines: Lines, folder: Place, *, time_zone: str, cluster: DeclaredCluster = UNDECLARED
) -> StagedLines:
    """Write each line, parsed and with its key, below `folder`, which must not exist; read `lines` once.

    A repeated task writes another file; only the file of the successful attempt counts.
    """
    make_folder(folder)

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _staged(batches, folder, time_zone, cluster)

    found = mapped_in_arrow(lines, stage, _FOUND_SCHEMA).collect()
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
    batches: Iterable[pa.RecordBatch],
    folder: Place,
    time_zone: str,
    cluster: DeclaredCluster = UNDECLARED,
) -> Iterator[pa.RecordBatch]:
    """Write the lines of a task into one file; yield its statistics, nothing if there is no line.

    After each task PySpark has the collector look at all objects of a worker, nearly all of them imported
    ones, which takes as long as 8,000 lines do: once they are frozen, it passes over them.
    """
    file = f"{SystemEntropy().uuid().hex}.lines"
    found: Counter[str] = Counter()
    days: Counter[int] = Counter()
    spans: list[int] = []
    with ExitStack() as opened:
        writer: StagedWriter | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            writer = writer or opened.enter_context(staged_writer(folder / file))
            rows = identified(read_lines(batch, time_zone, cluster))
            numbers = pa.array(numbers_of_keys(pc.coalesce(rows["event_id"], rows["line_key"])))
            writer.write(rows.append_column(KEY_NUMBER, numbers))
            found["lines"] += batch.num_rows
            found["rows"] += rows.num_rows
            found["total_bytes"] += rows.nbytes
            found["key_bytes"] += rows.select(_KEYS).nbytes
            span = pc.min_max(rows["time_ms"]).as_py()
            spans += [each for each in span.values() if each is not None]
            for day, count in _days_of(rows):
                days[day] += count
    freeze_imports()
    if writer is not None:
        times = {"first_time_ms": min(spans, default=None), "last_time_ms": max(spans, default=None)}
        found_here = {"file": file, "days": json.dumps(days), **found, **times}
        yield pa.RecordBatch.from_pylist([found_here], schema=_FOUND)


def _days_of(rows: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield each day, in days since 1970, and how many events are of it."""
    counts = pc.value_counts(rows["day"].cast(pa.int32()).drop_null())
    yield from zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
