"""A stream from a real broker: each event is in the tables once, whatever is killed or comes again."""

import json
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import KafkaInputError, StreamError
from kustos.pipeline.run.stream import StreamOptions, StreamSummary, run_stream
from kustos.pipeline.run.stream.checkpoint import IDENTITY, stream_name
from kustos.pipeline.run.topic import Span, lines_of_spans, open_topic
from kustos.pipeline.tables import RunSummary, Tables, ingest
from testkit.kafka import KafkaNode
from testkit.processes import Server
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.run.topics import (
    add_partitions,
    delete_records,
    delete_topic,
    fill,
    make_topic,
    settings_of,
)

NOW = StreamOptions(available_now=True)


def stored(spark: SparkSession, tables: Tables) -> Counter[str]:
    rows = tables.read(spark, "audit_events").select("event_id").collect()
    return Counter(row["event_id"] for row in rows)


def identifiers(*numbers: int) -> Counter[str]:
    return Counter(json.loads(event_line(number))["event_id"] for number in numbers)


def test_what_the_topic_holds_is_taken_in_once_and_what_comes_later_too(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    fill(kafka, topic, [event_line(1), event_line(2), event_line(2), "junk", None])
    batches: list[RunSummary] = []
    first = run_stream(
        spark, settings_of(kafka, topic), tables, checkpoint, options=NOW, on_batch=batches.append
    )
    assert (first.lines, first.events, first.quarantined, first.duplicates) == (5, 2, 2, 1)
    assert sum(batch.lines for batch in batches) == 5
    fill(kafka, topic, [event_line(2), event_line(3), kafka_line(), kafka_line()])
    second = run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)
    assert (second.lines, second.events, second.duplicates) == (4, 3, 1)  # two lines of a log are two events
    assert stored(spark, tables).total() == 5
    assert tables.read(spark, "audit_rollup").selectExpr("sum(event_count) AS n").collect()[0]["n"] == 5
    shutil.rmtree(checkpoint)
    third = run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)
    assert (third.lines, third.events, third.duplicates) == (9, 0, 9)


def test_a_running_stream_goes_on_until_it_is_told_to_stop(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, stop = make_topic(kafka), Tables(tmp_path / "tables"), threading.Event()
    fill(kafka, topic, [event_line(1)])

    def on_batch(batch: RunSummary) -> None:
        number = len(seen)
        seen.append(batch.events)
        if number == 0:
            fill(kafka, topic, [event_line(2)])
        else:
            stop.set()

    seen: list[int] = []
    options = StreamOptions(interval_ms=100)
    summary = run_stream(
        spark,
        settings_of(kafka, topic),
        tables,
        tmp_path / "checkpoint",
        options=options,
        stop=stop,
        on_batch=on_batch,
    )
    assert (summary.batches, summary.events, seen) == (2, 2, [1, 1])
    assert stored(spark, tables) == identifiers(1, 2)


def test_a_stream_killed_amid_its_work_loses_no_event_and_takes_none_twice(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, numbers = make_topic(kafka), range(1, 4001)
    fill(kafka, topic, [line for n in numbers for line in [event_line(n)] * (1 + (n % 10 == 0))])
    command = [sys.executable, "-m", "tests.pipeline.run.streamer", kafka.bootstrap, topic, str(tmp_path)]
    child = Server("stream", command, tmp_path / "output")
    try:
        child.wait_ready(lambda: child.output.read_text().count("committed") >= 1, timeout_s=300)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.kill()
    tables = Tables(tmp_path / "tables")
    half_way = stored(spark, tables)
    assert 0 < half_way.total() < len(numbers)
    summary = run_stream(spark, settings_of(kafka, topic), tables, tmp_path / "checkpoint", options=NOW)
    assert stored(spark, tables) == identifiers(*numbers)
    assert summary.events == len(numbers) - half_way.total()


def test_a_topic_that_vanishes_ends_the_stream_with_its_name(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables = make_topic(kafka), Tables(tmp_path / "tables")
    fill(kafka, topic, [event_line(1)])
    stop = threading.Event()

    def vanish(_batch: RunSummary) -> None:
        delete_topic(kafka, topic)

    with pytest.raises(KafkaInputError, match=f"topic `{topic}`"):
        run_stream(
            spark,
            settings_of(kafka, topic),
            tables,
            tmp_path / "checkpoint",
            options=StreamOptions(interval_ms=100),
            stop=stop,
            on_batch=vanish,
        )
    assert stored(spark, tables) == identifiers(1)


def test_a_checkpoint_of_something_else_is_refused(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    fill(kafka, topic, [event_line(1)])
    run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)
    with pytest.raises(StreamError, match=f"is the checkpoint of topic `{topic}`"):
        run_stream(spark, settings_of(kafka, make_topic(kafka)), tables, checkpoint, options=NOW)
    (checkpoint / IDENTITY).rename(checkpoint / "another")
    with pytest.raises(StreamError, match="holds something else"):
        run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)


def test_tables_know_themselves_how_far_their_stream_has_read(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    """Other tables with the same checkpoint miss nothing, nor does an older copy that was put back."""
    topic, checkpoint = make_topic(kafka), tmp_path / "checkpoint"
    tables, others = Tables(tmp_path / "tables"), Tables(tmp_path / "others")
    fill(kafka, topic, [event_line(1), event_line(2)])
    run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)
    shutil.copytree(tmp_path / "tables", tmp_path / "copy")
    fill(kafka, topic, [event_line(3)])
    assert run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW).lines == 1
    for each, new in ((others, 3), (Tables(tmp_path / "copy"), 1)):
        found = run_stream(spark, settings_of(kafka, topic), each, checkpoint, options=NOW)
        assert (found.lines, found.events) == (new, new)
        assert stored(spark, each) == identifiers(1, 2, 3)


def test_of_two_streams_with_one_checkpoint_each_takes_what_the_other_has_not(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    settings = settings_of(kafka, topic, maximum_records=10)
    fill(kafka, topic, [event_line(n) for n in range(40)])
    others: list[StreamSummary] = []

    def on_batch(_batch: RunSummary) -> None:
        if not others:
            others.append(run_stream(spark, settings, tables, checkpoint, options=NOW))
            fill(kafka, topic, [event_line(n) for n in range(40, 45)])

    first = run_stream(spark, settings, tables, checkpoint, options=NOW, on_batch=on_batch)
    assert first.events + others[0].events == 40
    assert run_stream(spark, settings, tables, checkpoint, options=NOW).events == 5
    assert stored(spark, tables) == identifiers(*range(45))


def test_a_stream_from_the_latest_record_keeps_where_it_began(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    settings = replace(settings_of(kafka, topic), starting="latest")
    fill(kafka, topic, [event_line(1)])
    assert run_stream(spark, settings, tables, checkpoint, options=NOW).lines == 0
    fill(kafka, topic, [event_line(2)])
    with pytest.raises(StreamError, match="has nothing of the stream"):
        run_stream(spark, settings, Tables(tmp_path / "others"), checkpoint, options=NOW)
    assert run_stream(spark, settings, tables, checkpoint, options=NOW).lines == 1
    assert stored(spark, tables) == identifiers(2)


def test_partitions_that_a_topic_gets_are_read_from_their_beginning(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables = make_topic(kafka, partitions=1), Tables(tmp_path / "tables")
    fill(kafka, topic, [event_line(1)])
    run_stream(spark, settings_of(kafka, topic), tables, options=NOW)
    add_partitions(kafka, topic, 3)
    fill(kafka, topic, [event_line(n) for n in range(2, 30)])
    assert run_stream(spark, settings_of(kafka, topic), tables, options=NOW).lines == 28
    assert stored(spark, tables) == identifiers(*range(1, 30))


def test_records_deleted_before_they_were_read_end_the_stream(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables = make_topic(kafka, partitions=1), Tables(tmp_path / "tables")
    fill(kafka, topic, [event_line(1)])
    run_stream(spark, settings_of(kafka, topic), tables, options=NOW)
    fill(kafka, topic, [event_line(n) for n in range(2, 10)])
    delete_records(kafka, topic, 5)
    with pytest.raises(KafkaInputError, match=f"`{topic}` were deleted before they were read"):
        run_stream(spark, settings_of(kafka, topic), tables, options=NOW)
    assert stored(spark, tables) == identifiers(1)


def test_a_stream_whose_batches_stored_no_offsets_is_refused(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka, 1), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    fill(kafka, topic, [event_line(1)])
    with open_topic(settings_of(kafka, topic)) as opened:
        identity = opened.identity()
    name = stream_name(checkpoint, settings_of(kafka, topic), identity)
    lines = lines_of_spans(spark, settings_of(kafka, topic), identity.topic_id, [Span(0, 0, 1)])
    ingest(spark, lines, tables, f"{name}@0")
    with pytest.raises(StreamError, match=r"batch 0 of `.+` stored no offsets"):
        run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)


def test_an_error_of_a_batch_comes_out_as_it_is(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic = make_topic(kafka)
    fill(kafka, topic, [event_line(1)])

    def fail(_batch: RunSummary) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_stream(
            spark,
            settings_of(kafka, topic),
            Tables(tmp_path / "tables"),
            tmp_path / "checkpoint",
            options=NOW,
            on_batch=fail,
        )
