"""Lines read, told apart and laid aside: each task writes what its lines say into a Parquet file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame

from kustos.pipeline.stages.settling import MILLISECONDS_OF_A_DAY

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_FOUND: Final = (
    "file string, lines long, rows long, quarantined long, first_time_ms long, last_time_ms long, "
    "total_bytes long, key_bytes long"
)
_KEYS: Final = ("event_id", "line_key", "source_file", "reason")
"""Columns of text by which a driver tells lines apart."""
_DISTINCT: Final = ("line", "event_id", "line_key", "position")
"""Columns of which nearly no two values are equal: a dictionary of them helps nobody."""


@dataclass(frozen=True, slots=True)
class StagedLines:
    """Files of identified lines (IDENTIFIED_SCHEMA), how many, and the span of the events' times.

    `lines` were read, `rows` were written; `files` hold at least one each. The span may be wider than that
    of the events that stay. `total_bytes` is what all columns take in memory, `key_bytes` what those do that
    lines are told apart by: names in lines are somebody's text, and may be long.
    """

    files: tuple[Path, ...]
    lines: int
    rows: int
    quarantined: int
    first_time_ms: int | None
    last_time_ms: int | None
    total_bytes: int
    key_bytes: int

    def may_be_of(self, day: str) -> bool:
        """Return whether an event may be of the day (ISO)."""
        if self.first_time_ms is None or self.last_time_ms is None:
            return False
        return _iso_day(self.first_time_ms) <= day <= _iso_day(self.last_time_ms)

    def only_day(self) -> str | None:
        """Return the day (ISO) that all events are of, None if there may be more, or none."""
        if self.first_time_ms is None or self.last_time_ms is None:
            return None
        first, last = _iso_day(self.first_time_ms), _iso_day(self.last_time_ms)
        return first if first == last else None

    def around(self, margin_ms: int) -> tuple[int, int]:
        """Return the first and the last time, so much further out; 0 where there is no event."""
        return (self.first_time_ms or 0) - margin_ms, (self.last_time_ms or 0) + margin_ms


def _iso_day(time_ms: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=time_ms // MILLISECONDS_OF_A_DAY)).isoformat()


def stage_lines(lines: DataFrame, folder: Path, *, time_zone: str) -> StagedLines:
    """Write below `folder`, which is not there yet, what each line says and is known by; read `lines` once.

    A task that is done again writes another file; only what the task that counted names is taken.
    """
    folder.mkdir()
    place = str(folder)

    def stage(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        return _staged(batches, place, time_zone)

    found = lines.mapInArrow(stage, _FOUND).collect()
    firsts = [row["first_time_ms"] for row in found if row["first_time_ms"] is not None]
    lasts = [row["last_time_ms"] for row in found if row["last_time_ms"] is not None]
    return StagedLines(
        files=tuple(sorted(folder / row["file"] for row in found)),
        lines=sum(row["lines"] for row in found),
        rows=sum(row["rows"] for row in found),
        quarantined=sum(row["quarantined"] for row in found),
        first_time_ms=min(firsts, default=None),
        last_time_ms=max(lasts, default=None),
        total_bytes=sum(row["total_bytes"] for row in found),
        key_bytes=sum(row["key_bytes"] for row in found),
    )


def _staged(batches: "Iterable[RecordBatch]", folder: str, time_zone: str) -> "Iterator[RecordBatch]":
    """Write the lines of a task into one file; yield what it holds, nothing if there is no line."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    from kustos.pipeline.stages.line_columns import read_lines
    from kustos.pipeline.stages.line_keys import IDENTIFIED, identified
    from kustos.runtime import SystemEntropy

    file = f"{SystemEntropy().uuid().hex}.parquet"
    names = [name for name in IDENTIFIED.names if name not in _DISTINCT]
    lines = rows = quarantined = total_bytes = key_bytes = 0
    spans: list[int] = []
    writer: parquet.ParquetWriter | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if writer is None:
            path = f"{folder}/{file}"
            writer = parquet.ParquetWriter(path, IDENTIFIED, use_dictionary=names, write_statistics=False)
        told = identified(read_lines(batch, time_zone))
        writer.write_batch(told)
        lines, rows = lines + batch.num_rows, rows + told.num_rows
        quarantined += told.num_rows - told["reason"].null_count
        total_bytes, key_bytes = total_bytes + told.nbytes, key_bytes + told.select(_KEYS).nbytes
        span = pc.min_max(told["time_ms"]).as_py()
        spans += [each for each in span.values() if each is not None]
    if writer is not None:
        writer.close()
        first, last = min(spans, default=None), max(spans, default=None)
        found = (file, lines, rows, quarantined, first, last, total_bytes, key_bytes)
        columns = [pa.array([found[0]]), *(pa.array([each], pa.int64()) for each in found[1:])]
        heads = [column.partition(" ")[0] for column in _FOUND.split(", ")]
        yield pa.RecordBatch.from_arrays(columns, names=heads)
