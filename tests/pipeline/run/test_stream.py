"""A stream from a real broker: each event is in the tables once, whatever is killed or comes again."""

import json
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import KafkaInputError, StreamError
from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.run.stream.identity import IDENTITY
from kustos.pipeline.tables import RunSummary, Tables
from testkit.kafka import KafkaNode
from testkit.processes import Server
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.run.topics import delete_topic, fill, make_topic, settings_of

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
    with pytest.raises(StreamError, match="wrote into other tables"):
        run_stream(spark, settings_of(kafka, topic), Tables(tmp_path / "others"), checkpoint, options=NOW)
    with pytest.raises(StreamError, match=f"is the checkpoint of topic `{topic}`"):
        run_stream(spark, settings_of(kafka, make_topic(kafka)), tables, checkpoint, options=NOW)
    (checkpoint / IDENTITY).unlink()
    with pytest.raises(StreamError, match="holds something else"):
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
