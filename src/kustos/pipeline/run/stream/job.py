"""The streaming job: a topic into the tables, until stopped or up to the topic's current end."""

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from kustos.pipeline.errors import StreamError
from kustos.pipeline.places import StorePath, spark_path
from kustos.pipeline.run.stream.batches import Batches, StoppedError, StreamSummary
from kustos.pipeline.run.stream.identity import check_identity, stream_checkpoint, stream_name
from kustos.pipeline.run.topic import TopicSettings, stream_topic, topic_ids
from kustos.pipeline.run.topic.records import kafka_errors
from kustos.pipeline.run.topic.topic_ids import TopicIdentities
from kustos.pipeline.session import is_connect
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables

CHECKPOINTS: Final = "_streams"
"""The folder of checkpoints below that of the tables."""

LOOK_INTERVAL_S: Final = 0.2
"""How often a running stream checks whether to stop."""


LOOK_AROUND_MS: Final = 60_000
"""A short batch is compared with few stored events, else each would read the last hour's."""


def _streamed() -> IngestOptions:
    return IngestOptions(with_rollup=False, look_around_ms=LOOK_AROUND_MS)


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
) -> StreamSummary:
    """Ingest a topic's records into the tables, each once even after kills; return the sums of this run.

    `checkpoint` is the stream's own folder, with its progress; by default one in the folder `checkpoints`,
    for each topic of each cluster: `_streams` of the tables' folder, unless they are in an object store. Once
    `stop` is set the stream finishes the current micro-batch and begins no other. It calls `on_batch` with
    each committed batch.

    Raises `KafkaInputError` if the topic cannot be read, then or later, `StreamError` for a checkpoint of
    another stream, a topic that was recreated, or a session of Spark Connect (its batches would run in
    another process), and what `ingest` raises. After any error, a new call continues where the tables end.
    """
    if is_connect(spark):
        raise StreamError("a stream needs a session of its own, not one of Spark Connect; leave `remote` out")
    stop = stop or threading.Event()
    with topic_ids(spark, settings) as ids:
        return _run(spark, settings, tables, checkpoint, checkpoints, options, stop, on_batch, ids)


def _below(tables: Tables) -> Path:
    """Return the folder of checkpoints in that of the tables."""
    if isinstance(tables.folder, StorePath):
        raise StreamError("a stream into an object store needs a folder for its progress, give `checkpoints`")
    return tables.folder / CHECKPOINTS


def _run(
    spark: SparkSession,
    settings: TopicSettings,
    tables: Tables,
    checkpoint: Path | None,
    checkpoints: Path | None,
    options: StreamOptions,
    stop: threading.Event,
    on_batch: Callable[[RunSummary], None],
    ids: TopicIdentities,
) -> StreamSummary:
    lines = stream_topic(spark, settings)
    identity = ids.ask()
    if checkpoint is None:
        checkpoint = stream_checkpoint(checkpoints or _below(tables), settings, identity)
    checkpoint = checkpoint.resolve()

    def check() -> None:
        check_identity(checkpoint, asdict(identity), settings, ids.ask())

    batches = Batches(
        stream_name(checkpoint, settings, tables, identity),
        tables,
        replace(options.ingest, topic=settings.topic),
        stop=stop,
        refresh_interval_ms=options.refresh_interval_ms,
        on_batch=on_batch,
        check=check,
    )
    when: dict[str, Any] = (
        {"availableNow": True}
        if options.available_now
        else {"processingTime": f"{options.interval_ms} milliseconds"}
    )
    with kafka_errors(settings):
        writer = lines.writeStream.foreachBatch(batches).trigger(**when)
        query = writer.option("checkpointLocation", spark_path(checkpoint)).start()
        _watch(query, batches, stop)
    batches.upkeep(spark)
    return batches.summary


def _watch(query: Any, batches: Batches, stop: threading.Event) -> None:
    """Return when the stream has ended; raise what ended it."""
    from pyspark.errors import StreamingQueryException

    try:
        while not query.awaitTermination(LOOK_INTERVAL_S):
            if stop.is_set() and not batches.is_working:
                query.stop()
    except StreamingQueryException:
        if isinstance(batches.failure, StoppedError):
            return
        if batches.failure is not None:
            raise batches.failure from None
        raise
    finally:
        if query.isActive:
            query.stop()
