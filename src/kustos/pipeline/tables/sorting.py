"""Lines sorted out on disk: read and parsed once, and only those with a copy brought together."""

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from kustos.pipeline.stages.parsing import parse_lines
from kustos.pipeline.stages.settling import (
    MILLISECONDS_OF_A_DAY,
    identify,
    of_keys,
    repeated_keys,
    settle,
    settled_alone,
)
from kustos.pipeline.tables.reading import rows_on_disk, spark_path
from kustos.pipeline.tables.transaction import data_files


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedLines:
    """What `classify` says of lines, as `rows` on disk; how many lines, and the span of the events' times.

    The span may be wider than that of the events that stay. `may_quarantine` is False if no line can be.
    """

    rows: DataFrame
    lines: int
    first_time_ms: int | None
    last_time_ms: int | None
    may_quarantine: bool

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


def sort_out(spark: SparkSession, lines: DataFrame, folder: Path, *, time_zone: str) -> SortedLines:
    """Write below `folder`, which is not there yet, what `classify` says of each line; return it from there.

    `lines` is read once.
    """
    read, told = Observation("lines read"), Observation("lines identified")
    counted = lines.observe(read, sql.count(sql.lit(1)).alias("lines"))
    identified = counted.transform(parse_lines, time_zone=time_zone).transform(identify)
    is_event = sql.col("reason").isNull()
    time_ms = sql.when(is_event, sql.col("time_ms"))
    watched = identified.observe(
        told,
        sql.min(time_ms).alias("first"),
        sql.max(time_ms).alias("last"),
        sql.count_if(~is_event).alias("quarantined"),
    )
    staged, count = _written(spark, watched, folder / "identified", identified.schema)
    if not count:  # Spark observes nothing where it plans no work
        return SortedLines(
            rows=settled_alone(staged),
            lines=lines.count(),
            first_time_ms=None,
            last_time_ms=None,
            may_quarantine=False,
        )
    found = repeated_keys(staged)
    keys, repeated = _written(spark, found, folder / "repeated", found.schema)
    rows = staged
    if repeated:
        copies = of_keys(staged, keys).transform(settle)
        settled, _ = _written(spark, copies, folder / "settled", copies.schema)
        rows = of_keys(staged, keys, others=True).transform(settled_alone).unionByName(settled)
    else:
        rows = staged.transform(settled_alone)
    span = told.get
    return SortedLines(
        rows=rows,
        lines=int(read.get["lines"]),
        first_time_ms=span["first"],
        last_time_ms=span["last"],
        may_quarantine=bool(span["quarantined"] or repeated),
    )


def _written(spark: SparkSession, rows: DataFrame, folder: Path, schema: StructType) -> tuple[DataFrame, int]:
    """Write rows; return them as they are read from there, and their number."""
    rows.write.parquet(str(folder))
    return spark.read.schema(schema).parquet(spark_path(folder)), rows_on_disk(folder, data_files(folder))
