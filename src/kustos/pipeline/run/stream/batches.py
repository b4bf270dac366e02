"""The processing of micro-batches, and the sums of a stream."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.tables import (
    Dropped,
    IngestOptions,
    RunSummary,
    Tables,
    compact_tables,
    drop_expired,
    ingest,
    refresh_rollup,
)
from kustos.runtime import Clock, SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSummary:
    """The sums of one run of a stream; `lines == events + security_events + quarantined + duplicates`."""

    batches: int = 0
    lines: int = 0
    events: int = 0
    security_events: int = 0
    quarantined: int = 0
    duplicates: int = 0
    too_late: int = 0
    dropped_days: int = 0
    dropped_events: int = 0
    dropped_rollup_days: int = 0
    dropped_lines: int = 0

    def with_batch(self, batch: RunSummary) -> "StreamSummary":
        """Return the sums with one more batch; one that a former run committed adds nothing."""
        if batch.is_repeat:
            return self
        return replace(
            self,
            batches=self.batches + 1,
            lines=self.lines + batch.lines,
            events=self.events + batch.events,
            security_events=self.security_events + batch.security_events,
            quarantined=self.quarantined + batch.quarantined,
            duplicates=self.duplicates + batch.duplicates,
            too_late=self.too_late + batch.too_late,
        )

    def with_dropped(self, dropped: Dropped) -> "StreamSummary":
        """Return the sums with the rows that the retention dropped."""
        return replace(
            self,
            dropped_days=self.dropped_days + len(dropped.event_days),
            dropped_events=self.dropped_events + dropped.events,
            dropped_rollup_days=self.dropped_rollup_days + len(dropped.rollup_days),
            dropped_lines=self.dropped_lines + dropped.lines,
        )


class StoppedError(Exception):
    """A batch was not begun because the stream is stopping; the next start reads its records again."""


class Batches:
    """Ingests each micro-batch into the tables; its number is the run id, so none is ingested twice.

    `check` raises if the topic is not that of the checkpoint any more. `failure` keeps the error of a batch,
    since Spark wraps it in texts of its own.
    """

    def __init__(
        self,
        name: str,
        tables: Tables,
        options: IngestOptions,
        *,
        stop: threading.Event,
        refresh_interval_ms: int,
        on_batch: Callable[[RunSummary], None],
        check: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        self.summary = StreamSummary()
        self.failure: BaseException | None = None
        self.is_working = False
        self._name: Final = name
        self._tables, self._options, self._on_batch = tables, options, on_batch
        self._check = check
        self._stop, self._clock = stop, clock or SystemClock()
        self._refresh_interval_ms = refresh_interval_ms
        self._refreshed_ms = self._clock.monotonic_ms()

    def __call__(self, lines: DataFrame, number: int) -> None:
        """Ingest one micro-batch."""
        self.is_working = True
        try:
            self._take(lines, number)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self.is_working = False

    def _take(self, lines: DataFrame, number: int) -> None:
        if self._stop.is_set():
            raise StoppedError
        self._check()  # the offsets of this batch may be of a topic that was recreated meanwhile
        spark = lines.sparkSession
        run_id = f"{self._name}@{number}"
        batch = ingest(spark, lines, self._tables, run_id, options=self._options, clock=self._clock)
        self.summary = self.summary.with_batch(batch)
        self._on_batch(batch)
        if self._clock.monotonic_ms() - self._refreshed_ms >= self._refresh_interval_ms:
            self.upkeep(spark)
            self._refreshed_ms = self._clock.monotonic_ms()

    def upkeep(self, spark: SparkSession) -> None:
        """Roll up new events, drop rows older than their retention, and compact small files."""
        retention = self._options.retention
        refresh_rollup(spark, self._tables)
        if retention is not None:
            dropped = drop_expired(self._tables, retention, clock=self._clock)
            self.summary = self.summary.with_dropped(dropped)
        compact_tables(self._tables)
