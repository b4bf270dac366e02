"""Staging of lines: each task writes its parsed lines with their keys into a Parquet file; and of events.

Lines are read and parsed once. They are classified on disk, and only those with a copy are shuffled.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.places import Place, make_folder, sink_of
from kustos.pipeline.stages.dedupe import (
    IDENTIFIED,
    IDENTIFIED_SCHEMA,
    MILLISECONDS_OF_A_DAY,
    identified,
    of_keys,
    repeated_keys,
    resolve_alone,
    resolve_copies,
)
from kustos.pipeline.stages.line_columns import read_lines
from kustos.pipeline.tables.reading import read_parquet
from kustos.pipeline.tables.transaction import Transaction
from kustos.pipeline.tables.writing import kept, write_rows
from kustos.runtime import SystemEntropy

_SUMS: Final = ("lines", "rows", "security", "quarantined", "total_bytes", "key_bytes")
_FOUND_SCHEMA: Final = StructType(
    [
        StructField("file", StringType()),
        *(StructField(name, LongType()) for name in (*_SUMS, "first_time_ms", "last_time_ms")),
    ]
)
_FOUND: Final = to_arrow_schema(_FOUND_SCHEMA)
_KEYS: Final = ("event_id", "line_key", "source_file", "reason")
"""Columns of text by which the driver deduplicates."""
_DISTINCT: Final = ("line", "event_id", "line_key", "position")
"""Columns with nearly no equal values, where a dictionary saves nothing."""


@dataclass(frozen=True, slots=True)
class StagedLines:
    """Files of identified lines (IDENTIFIED_SCHEMA), how many, and the span of the events' times.

    `lines` were read, `rows` were written, `security` of them logins and changes; `files` have at least one
    each. The span may be wider than that of the events that are kept. `total_bytes` is the memory of all
    columns, `key_bytes` that of the key columns: names in lines are untrusted text, and may be long.
    """

    files: tuple[Place, ...]
    lines: int
    rows: int
    security: int
    quarantined: int
    first_time_ms: int | None
    last_time_ms: int | None
    total_bytes: int
    key_bytes: int

    def days(self) -> tuple[date, date] | None:
        """Return the first and the last day that events may have, None if there is no event."""
        if self.first_time_ms is None or self.last_time_ms is None:
            return None
        return _day_of(self.first_time_ms), _day_of(self.last_time_ms)

    def may_be_of(self, day: str) -> bool:
        """Return whether an event may have this day (ISO)."""
        days = self.days()
        return days is not None and days[0] <= date.fromisoformat(day) <= days[1]

    def only_day(self) -> str | None:
        """Return the day (ISO) of all events, None if there may be several, or none."""
        days = self.days()
        return None if days is None or days[0] != days[1] else days[0].isoformat()

    def around(self, margin_ms: int) -> tuple[int, int]:
        """Return the first and the last time, extended by the margin; 0 for them if there is no event."""
        return (self.first_time_ms or 0) - margin_ms, (self.last_time_ms or 0) + margin_ms


def _day_of(time_ms: int) -> date:
    return date(1970, 1, 1) + timedelta(days=time_ms // MILLISECONDS_OF_A_DAY)


def stage_lines(lines: DataFrame, folder: Place, *, time_zone: str) -> StagedLines:
    """Write each line, parsed and with its key, below `folder`, which must not exist; read `lines` once.

    A repeated task writes another file; only the file of the successful attempt counts.
    """
    make_folder(folder)

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _staged(batches, folder, time_zone)

    found = lines.mapInArrow(stage, _FOUND_SCHEMA).collect()
    firsts = [row["first_time_ms"] for row in found if row["first_time_ms"] is not None]
    lasts = [row["last_time_ms"] for row in found if row["last_time_ms"] is not None]
    return StagedLines(
        files=tuple(sorted(folder / row["file"] for row in found)),
        first_time_ms=min(firsts, default=None),
        last_time_ms=max(lasts, default=None),
        **{name: sum(row[name] for row in found) for name in _SUMS},
    )


def _staged(batches: Iterable[pa.RecordBatch], folder: Place, time_zone: str) -> Iterator[pa.RecordBatch]:
    """Write the lines of a task into one file; yield its statistics, nothing if there is no line."""
    file = f"{SystemEntropy().uuid().hex}.parquet"
    names = [name for name in IDENTIFIED.names if name not in _DISTINCT]
    found: Counter[str] = Counter()
    spans: list[int] = []
    opened = ExitStack()
    writer: parquet.ParquetWriter | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if writer is None:
            sink = opened.enter_context(sink_of(folder / file))
            writer = parquet.ParquetWriter(sink, IDENTIFIED, use_dictionary=names, write_statistics=False)
        rows = identified(read_lines(batch, time_zone))
        writer.write_batch(rows)
        found["lines"] += batch.num_rows
        found["rows"] += rows.num_rows
        found["security"] += rows.num_rows - rows["event_type"].null_count
        found["quarantined"] += rows.num_rows - rows["reason"].null_count
        found["total_bytes"] += rows.nbytes
        found["key_bytes"] += rows.select(_KEYS).nbytes
        span = pc.min_max(rows["time_ms"]).as_py()
        spans += [each for each in span.values() if each is not None]
    if writer is not None:
        writer.close()
        opened.close()
        times = {"first_time_ms": min(spans, default=None), "last_time_ms": max(spans, default=None)}
        yield pa.RecordBatch.from_pylist([{"file": file, **found, **times}], schema=_FOUND)


@dataclass(frozen=True, slots=True)
class SortedLines:
    """Classified lines, as `rows` on disk; `may_quarantine` is False if no line can be quarantined."""

    rows: DataFrame
    may_quarantine: bool


def sort_out(spark: SparkSession, staged: StagedLines, folder: Place) -> SortedLines:
    """Return the result of `classify` for each line, written below `folder`."""
    names = [file.name for file in staged.files]
    place = staged.files[0].parent if staged.files else folder
    identified = read_parquet(spark, place, names, IDENTIFIED_SCHEMA)
    keys, repeated = kept(spark, repeated_keys(identified), folder / "repeated")
    if not repeated:
        return SortedLines(identified.transform(resolve_alone), may_quarantine=staged.quarantined > 0)
    copies = of_keys(identified, keys).transform(resolve_copies)
    resolved, _ = kept(spark, copies, folder / "settled")
    alone = of_keys(identified, keys, others=True).transform(resolve_alone)
    return SortedLines(alone.unionByName(resolved), may_quarantine=True)


def stage_by_day(
    rows: DataFrame,
    change: Transaction,
    table: str,
    schema: pa.Schema,
    *,
    are_few: bool = False,
    only_day: str | None = None,
    is_by_day: bool = False,
) -> None:
    """Write rows into the folder of a table by day, in few files a day, and add them to the transaction.

    Few rows are not shuffled, nor rows that all have the day `only_day` (ISO), nor if each task already has
    whole days (`is_by_day`).
    """
    if are_few:
        rows = rows.coalesce(1)
    if only_day is not None:  # rows of one day need no sort by day
        files = write_rows(rows, change.place(table), change.mark, schema, day=only_day)
    else:
        laid_out = rows if are_few or is_by_day else rows.hint("rebalance", "day")
        in_order = laid_out if is_by_day else laid_out.sortWithinPartitions("day")
        files = write_rows(in_order, change.place(table), change.mark, schema, by_day=True)
    change.add(table, files)
