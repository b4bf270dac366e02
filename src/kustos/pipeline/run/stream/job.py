"""The streaming job: a topic into the tables, until stopped or up to the topic's current end."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from kustos.pipeline.errors import StreamError
from kustos.pipeline.places import StorePath
from kustos.pipeline.run.stream.batches import Batches, StreamSummary
from kustos.pipeline.run.stream.checkpoint import (
    NextBatch,
    check_tables,
    is_stream,
    next_batch,
    stream_checkpoint,
    stream_name,
)
from kustos.pipeline.run.topic import (
    Topic,
    TopicSettings,
    kafka_errors,
    limited,
    lines_of_spans,
    open_topic,
    records_deleted,
    spans,
)
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables
from kustos.runtime import Clock, SystemClock

CHECKPOINTS: Final = "_streams"
"""The folder of checkpoints below that of the tables."""

LOOK_INTERVAL_MS: Final = 100
"""How often a stream that has read everything looks for new records."""


def _streamed() -> IngestOptions:
    return IngestOptions(with_rollup=False)


def _silent(_batch: RunSummary) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How a stream runs.

    `available_now` ends with the records that the topic had at the start; else a micro-batch begins
    `interval_ms` after the last one began, or at once if that took longer. Each `refresh_interval_ms`, and at
    the end, new events are rolled up, rows older than the retention dropped, and small files compacted.
    `ingest` has the options of ingestion.
    """

    available_now: bool = False
    interval_ms: int = 1_000
    refresh_interval_ms: int = 300_000
    ingest: IngestOptions = field(default_factory=_streamed)

    def __post_init__(self) -> None:
        if self.interval_ms < 0 or self.refresh_interval_ms < 0:
            raise StreamError("intervals are numbers of milliseconds, from 0 up")


def run_stream(
    spark: SparkSession,
    settings: TopicSettings,
    tables: Tables,
    checkpoint: Path | None = None,
    *,
    checkpoints: Path | None = None,
    options: StreamOptions = StreamOptions(),
    stop: threading.Event | None = None,
    on_batch: Callable[[RunSummary], None] = _silent,
    clock: Clock | None = None,
) -> StreamSummary:
    """Ingest a topic's records into the tables, each once even after kills; return the sums of this run.

    `checkpoint` is the stream's own folder, with its name; by default one in the folder `checkpoints`, for
    each topic of each cluster: `_streams` of the tables' folder, unless they are in an object store. Once
    `stop` is set the stream finishes the current micro-batch and begins no other. It calls `on_batch` with
    each committed batch.

    Raises `KafkaInputError` if the topic cannot be read, then or later, or was recreated meanwhile,
    `StreamError` for a checkpoint of another topic, and what `ingest` raises. After any error, a new call
    continues where the tables end.
    """
    clock = clock or SystemClock()
    with open_topic(settings) as topic:
        identity = topic.identity()
        if checkpoint is None:
            checkpoint = stream_checkpoint(checkpoints or _below(tables), settings, identity)
        checkpoint = checkpoint.resolve()
        was_there = is_stream(checkpoint)
        name = stream_name(checkpoint, settings, identity)
        batches = Batches(
            spark,
            name,
            tables,
            options.ingest,
            refresh_interval_ms=options.refresh_interval_ms,
            on_batch=on_batch,
            clock=clock,
        )
        stream = _Stream(spark, topic, tables, checkpoint, name, identity.topic_id, batches)
        if was_there:
            check_tables(checkpoint, name, settings, tables)
        with kafka_errors(settings):
            stream.run(options, stop or threading.Event(), clock)
    batches.upkeep()
    return batches.summary


def _below(tables: Tables) -> Path:
    """Return the folder of checkpoints in that of the tables."""
    if isinstance(tables.folder, StorePath):
        raise StreamError("a stream into an object store needs a folder for its name, give `checkpoints`")
    return tables.folder / CHECKPOINTS


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream that was opened; `topic_id` is that of the topic as it was then."""

    spark: SparkSession
    topic: Topic
    tables: Tables
    checkpoint: Path
    name: str
    topic_id: str | None
    batches: Batches

    def run(self, options: StreamOptions, stop: threading.Event, clock: Clock) -> None:
        """Take batch after batch until told to stop, or up to the ends that the topic has now."""
        last_ends = self.topic.end_offsets() if options.available_now else None
        batch = self._next()
        while not stop.is_set():
            begun_ms = clock.monotonic_ms()
            batch, has_taken = self._take(batch, last_ends)
            if last_ends is None:
                pause_ms = max(options.interval_ms, 0 if has_taken else LOOK_INTERVAL_MS)
                stop.wait(max(0, begun_ms + pause_ms - clock.monotonic_ms()) / 1000)
            elif not has_taken:
                return

    def _next(self) -> NextBatch:
        return next_batch(self.name, self.tables)

    def _take(self, batch: NextBatch, last_ends: Mapping[int, int] | None) -> tuple[NextBatch, bool]:
        """Take a batch if there are records for it; return the one that is next, and whether it was taken."""
        settings, ends = self.topic.settings, self.topic.end_offsets()
        begin = self._begin(batch, ends)
        if last_ends is not None:
            ends = {number: min(end, last_ends.get(number, 0)) for number, end in ends.items()}
        found = limited(spans(begin, ends), settings.maximum_records)
        # one without records keeps where a stream begins that is to read what comes from now on
        if not found and not self._begins_now(batch):
            return batch, False
        # not at each look, which an object store counts: another process may have gone on with the stream
        current = self._next()
        if current != batch:
            return self._take(current, last_ends)
        following = {**(batch.begin or {}), **begin, **{span.partition: span.end for span in found}}
        lines = lines_of_spans(self.spark, settings, self.topic_id, found)
        taken = self.batches.take(batch.number, lines, following)
        return self._next() if taken.is_repeat else NextBatch(batch.number + 1, following), True

    def _begins_now(self, batch: NextBatch) -> bool:
        return batch.begin is None and self.topic.settings.starting == "latest"

    def _begin(self, batch: NextBatch, ends: Mapping[int, int]) -> dict[int, int]:
        """Return where a batch begins by partition; raise `KafkaInputError` for one that was truncated."""
        if self._begins_now(batch):
            return dict(ends)
        if batch.begin is None:
            first = self.topic.first_offsets()
            return {number: first.get(number, 0) for number in ends}
        if any(offset > ends.get(number, offset) for number, offset in batch.begin.items()):
            raise records_deleted(self.topic.settings)
        # a partition that was added begins at 0: if records of it are gone by now, reading them says so
        return {number: batch.begin.get(number, 0) for number in ends}
