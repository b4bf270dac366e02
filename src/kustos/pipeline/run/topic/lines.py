"""The records of a topic as lines, which the tasks that parse them read.

For a topic the partition is the log, and the offset the position in it: the same record is the same line in
every read, and equal lines at two offsets are two lines. A worker keeps its connections from task to task, as
Spark keeps its workers: a stream would otherwise log in for each batch, and get a token for that from a
provider.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.columns.codes import CODED, repeated
from kustos.pipeline.run.topic.blocking_reader import BlockingReader
from kustos.pipeline.run.topic.decoding import decode, next_offset
from kustos.pipeline.run.topic.failures import kafka_errors, no_progress
from kustos.pipeline.run.topic.open_topic import open_topic
from kustos.pipeline.run.topic.settings import TopicSettings
from kustos.pipeline.run.topic.spans import Span, spans, tasks_of
from kustos.pipeline.tables import LineTasks
from kustos.pipeline.worker_cache import kept_in_worker

BATCH_LINES: Final = 10_000
BATCH_BYTES: Final = 1 << 24
"""Lines are handed on when there are so many, or of so many bytes: each of a few takes longer to parse."""

_LOG_BEGIN: Final = "topic:"

READERS_MAX: Final = 4
"""Readers that a worker keeps: streams of one application share its workers. Each has a connection to each
broker."""

EMPTY_PAUSE_S: Final = 0.05
"""The pause after an answer without a record below an offset that the broker named as the end."""


def read_topic(spark: SparkSession, settings: TopicSettings) -> DataFrame:
    """Return the topic's current records as INPUT_LINES_SCHEMA, one line a record.

    Raises `KafkaInputError` if it cannot be read; `kafka_errors` turns later failures, in an action, into
    one. Records that are written later are not among them.
    """
    with open_topic(settings) as topic:
        topic_id = topic.identity().topic_id
        found = spans(topic.first_offsets(), topic.end_offsets())
    return lines_of_spans(spark, settings, topic_id, found).frame()


def lines_of_spans(
    spark: SparkSession, settings: TopicSettings, topic_id: str | None, found: Sequence[Span]
) -> LineTasks:
    """Return the records of these spans as lines that tasks read."""
    tasks = tasks_of(found)

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return read_spans(settings, topic_id, tasks[number])

    return LineTasks(spark, len(tasks), read)


def read_spans(
    settings: TopicSettings, topic_id: str | None, wanted: Iterable[Span]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of these spans as lines; raise `KafkaInputError`.

    With a `topic_id` those of a topic that was recreated meanwhile are refused by the broker.
    """
    with kafka_errors(settings):
        reader = _reader(settings, topic_id)
        for span in wanted:
            yield from _lines(settings, reader, span)


def _key(settings: TopicSettings, topic_id: str | None) -> tuple[object, ...]:
    """Return what two readers have in common that can replace each other: topic and properties."""
    properties = frozenset(settings.client_properties.items())
    return topic_id, settings.topic, properties


def _close(evicted: list[BlockingReader]) -> None:
    for reader in evicted:
        reader.close()


@kept_in_worker(READERS_MAX, key=_key, evicted=_close)
def _reader(settings: TopicSettings, topic_id: str | None) -> BlockingReader:
    return BlockingReader(settings, topic_id)


def _lines(settings: TopicSettings, reader: BlockingReader, span: Span) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a span; the next answer is on its way while one is decoded and parsed."""
    give_up_s = settings.fetch_limits().default_api_timeout_ms / 1000
    position, size_bytes, moved_s = span.first, 0, time.monotonic()
    offsets: list[int] = []
    values: list[bytes | None] = []
    fetching = reader.begin_fetch(span.partition, position)
    try:
        while position < span.end:
            fetched = reader.end_fetch(fetching)
            following = next_offset(fetched.records, position)
            if following == position:
                # right after a leader was elected, or from a slow tier; a broker may say so at once
                if time.monotonic() - moved_s > give_up_s:
                    raise no_progress(settings, span.partition, position, span.end)
                time.sleep(EMPTY_PAUSE_S)
            else:
                moved_s = time.monotonic()
            if following < span.end:
                fetching = reader.begin_fetch(span.partition, following)
            for found in decode(fetched.records, fetched.aborted, position, span.end):
                offsets += found.offsets
                values += found.values
                size_bytes += found.size_bytes
                if len(offsets) >= BATCH_LINES or size_bytes >= BATCH_BYTES:
                    reader.wait(fetching)  # whoever takes the lines may take long
                    yield lines_of_records(settings.topic, span.partition, offsets, values, settings.layout)
                    offsets, values, size_bytes = [], [], 0
            position = following
        if offsets:
            yield lines_of_records(settings.topic, span.partition, offsets, values, settings.layout)
    finally:
        reader.give_up(fetching)


def lines_of_records(
    topic: str,
    partition: int,
    offsets: Sequence[int],
    values: Sequence[bytes | None],
    layout: str | None = None,
) -> pa.RecordBatch:
    """Return records of a partition as lines (`file`, `line`, `log`, `position`, `layout` if there is one).

    A record without a value is a blank line. An appender of log4j ends each record as its layout ends a line
    (`%n`): that end is not part of the line. `layout` is log4j's pattern of lines that a log shipper wrote;
    JSON, and lines in Kafka's own layout, are read beside them. The texts that all lines share are codes.
    """
    file = f"{topic}-{partition}"
    columns = {
        "file": repeated(file, CODED, len(values)),
        "line": _without_ends(pa.array(values, pa.binary()).fill_null(b"")),
        "log": repeated(f"{_LOG_BEGIN}{file}", CODED, len(values)),
        "position": pa.array(offsets, pa.int64()),
    }
    if layout is not None:
        columns["layout"] = pa.repeat(pa.scalar(layout), len(values))
    return pa.RecordBatch.from_pydict(columns)


def _without_ends(values: pa.Array) -> pa.Array:
    """Return lines without the line feed that ends them, and a carriage return before it."""
    has_end = pc.ends_with(values, b"\n")
    if pc.any(has_end).as_py():
        has_both = pc.ends_with(values, b"\r\n")
        values = pc.if_else(has_end, pc.binary_slice(values, 0, -1), values)
        values = pc.if_else(has_both, pc.binary_slice(values, 0, -1), values)
    return values.view(pa.string())  # not all of them are UTF-8, which a cast would refuse
