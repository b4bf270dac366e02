"""The processing of micro-batches, and the sums of a stream."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from kustos.pipeline.tables import (
    WARNINGS_MAX,
    Dropped,
    IngestOptions,
    LineTasks,
    RunSummary,
    Tables,
    compact_tables,
    drop_expired,
    ingest,
    refresh_rollup,
    when_free,
)
from kustos.runtime import Clock, SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSummary:
    """The sums of one run of a stream; `lines == events + security_events + quarantined + duplicates`.

    `warnings` are the first ones of its batches, at most WARNINGS_MAX.
    """

    batches: int = 0
    lines: int = 0
    events: int = 0
    security_events: int = 0
    quarantined: int = 0
    duplicates: int = 0
    too_late: int = 0
    conflicts: int = 0
    warnings: tuple[str, ...] = ()
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
            conflicts=self.conflicts + batch.conflicts,
            warnings=(*self.warnings, *batch.warnings)[:WARNINGS_MAX],
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


class Batches:
    """Takes one batch after the other into the tables, and keeps them up in between.

    A batch and the offsets at which the next one begins are one commit: none is lost, and none taken twice,
    whenever the process is killed.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        tables: Tables,
        options: IngestOptions,
        *,
        refresh_interval_ms: int,
        on_batch: Callable[[RunSummary], None],
        clock: Clock | None = None,
    ) -> None:
        self.summary = StreamSummary()
        self._spark, self._name, self._tables, self._options = spark, name, tables, options
        self._on_batch: Final = on_batch
        self._clock = clock or SystemClock()
        self._refresh_interval_ms: Final = refresh_interval_ms
        self._refreshed_ms = self._clock.monotonic_ms()

    def take(self, number: int, lines: LineTasks, ends: Mapping[int, int]) -> RunSummary:
        """Ingest a batch; `ends` are the offsets at which the next one begins, by partition.

        An answer that refreshes the roll-up meanwhile is waited for.
        """
        batch = when_free(
            lambda: ingest(
                self._spark,
                lines,
                self._tables,
                f"{self._name}@{number}",
                options=self._options,
                ends=ends,
                clock=self._clock,
            )
        )
        self.summary = self.summary.with_batch(batch)
        self._on_batch(batch)
        if self._clock.monotonic_ms() - self._refreshed_ms >= self._refresh_interval_ms:
            self.upkeep()
            self._refreshed_ms = self._clock.monotonic_ms()
        return batch

    def upkeep(self) -> None:
        """Roll up new events, drop rows older than their retention, and compact small files."""
        retention = self._options.retention
        when_free(lambda: refresh_rollup(self._spark, self._tables))
        if retention is not None:
            dropped = when_free(lambda: drop_expired(self._tables, retention, clock=self._clock))
            self.summary = self.summary.with_dropped(dropped)
        when_free(lambda: compact_tables(self._tables))
