"""A topic of a real Kafka into the tables, each event once, beside the same stream bare.

- stream-kafka: events/s from a topic that is full already (`availableNow`) until the last one is in the
  table; `theirs` is a stream of Spark's own Kafka connector that writes the records' values to Parquet and
  does nothing else
- stream-kafka-upkeep: the same until the stream has ended, with what it does every five minutes: the roll-up
  and small files put together
- stream-kafka-s3: as stream-kafka, with the tables in an object store, a server of S3 on the same machine;
  `theirs` are ours in a folder
- stream-kafka-end-to-end: seconds from an event's birth until it is in the table, of the slowest in twenty,
  while events come at a steady rate; `theirs` is the three seconds that it may take
- stream-kafka-lag: the same, the last third of the time beside the first: a lag that grows shows here
"""

import os
import random
import statistics
import tempfile
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.sources.lines import event
from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.run.topic import TopicSettings
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import RunSummary, Tables
from testkit.kafka import KafkaNode
from testkit.object_store import ObjectStore, object_store
from testkit.spark_jars import SPARK_KAFKA, spark_jars

SIZE = 20_000 if QUICK else 2_000_000
ROUNDS = 1 if QUICK else 3
PARTITIONS = 4
BATCH = 10_000 if QUICK else 500_000
RATE = 200 if QUICK else 2_000
STEADY_S = 15 if QUICK else 120
FETCHED = {
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": str(4 << 20),
    "max.poll.records": "4000",
    "receive.buffer.bytes": "-1",
    "isolation.level": "read_committed",
}
"""What Spark's source gets at a time: a third faster here than with the defaults of its Kafka client."""

DUPLICATE_EVERY = 100
"""A sink that tries again sends an event twice now and then."""

END_TO_END_S = 3.0
FEWEST_BATCHES = 6


def make_topic(node: KafkaNode, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(timeout=30)


class Source:
    """Puts events into a topic and knows when each was born."""

    def __init__(self, node: KafkaNode, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5})
        self._topic, self._rng = topic, random.Random(1)
        self._line = ""
        self.born: list[float] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            number, now = len(self.born), time.time()
            if number % DUPLICATE_EVERY != 1:
                self._line = event(number, int(now * 1000), self._rng)
            while True:
                try:
                    self._producer.produce(self._topic, self._line, partition=number % PARTITIONS)
                    break
                except BufferError:
                    self._producer.poll(0.05)
            self.born.append(now)
        self._producer.poll(0)

    def flush(self) -> None:
        if self._producer.flush(60):
            raise SystemExit("the broker does not take the events")


def settings_of(node: KafkaNode, topic: str) -> TopicSettings:
    properties = {"bootstrap.servers": node.bootstrap}
    return TopicSettings(topic=topic, client_properties=properties, maximum_records=BATCH)


def bare_seconds(spark: SparkSession, settings: TopicSettings, folder: Path) -> float:
    start = time.monotonic()
    source = spark.readStream.format("kafka").options(
        subscribe=settings.topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=str(settings.maximum_records),
        **{f"kafka.{key}": value for key, value in {**FETCHED, **settings.client_properties}.items()},
    )
    writer = source.load().selectExpr("cast(value AS string) AS line").writeStream.format("parquet")
    options = {"checkpointLocation": str(folder / "checkpoint"), "path": str(folder / "out")}
    writer.options(**options).trigger(availableNow=True).start().awaitTermination()
    return time.monotonic() - start


def our_seconds(
    spark: SparkSession, settings: TopicSettings, tables: Tables, checkpoint: Path
) -> tuple[float, float]:
    """Return the seconds until the last event is in the table, and until the upkeep is done."""
    start = time.monotonic()
    committed: list[float] = []
    done = run_stream(
        spark,
        settings,
        tables,
        checkpoint,
        options=StreamOptions(available_now=True),
        on_batch=lambda _batch: committed.append(time.monotonic() - start),
    )
    if done.lines != SIZE or done.duplicates == 0:
        raise SystemExit(f"not all of the topic came: {done}")
    return committed[-1], time.monotonic() - start


def full_topic(
    spark: SparkSession, node: KafkaNode, store: ObjectStore, folder: Path
) -> tuple[float, float, float, float]:
    """Return median seconds over a full topic: ours, also with its upkeep, ours in the store, and theirs."""
    make_topic(node, "full")
    source = Source(node, "full")
    source.send(SIZE)
    source.flush()
    settings = settings_of(node, "full")
    rounds = []
    for number in range(ROUNDS + 1):
        tables, there = Tables(folder / f"ours-{number}"), Tables.at(store.address(f"stream-{number}"))
        mine, kept_up = our_seconds(spark, settings, tables, folder / f"checkpoint-{number}")
        stored, _ = our_seconds(spark, settings, there, folder / f"checkpoint-s3-{number}")
        bare = bare_seconds(spark, settings, folder / f"bare-{number}")
        progress(
            f"round {number}: ours {mine:.2f} s, with upkeep {kept_up:.2f} s, in S3 {stored:.2f} s, "
            f"bare {bare:.2f} s"
        )
        if number:  # the first round warms the JVM up
            rounds.append((mine, kept_up, stored, bare))
    ours, upkeep, in_store, theirs = (statistics.median(each) for each in zip(*rounds, strict=True))
    return ours, upkeep, in_store, theirs


def steady(spark: SparkSession, node: KafkaNode, folder: Path) -> list[tuple[float, float]]:
    """Return (moment, age) of the oldest event of each batch once it is in the tables, at a steady rate."""
    make_topic(node, "steady")
    source, stop, over = Source(node, "steady"), threading.Event(), threading.Event()
    ages: list[tuple[float, float]] = []
    taken = 0

    def feed() -> None:
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < STEADY_S:
            source.send(int(passed * RATE) - len(source.born))
            over.wait(0.02)
        source.flush()
        stop.set()

    def on_batch(batch: RunSummary) -> None:
        nonlocal taken
        if batch.lines:
            now = time.time()
            ages.append((now, now - source.born[taken]))
            taken += batch.lines

    source.send(RATE)
    source.flush()
    feeder = threading.Thread(target=feed)
    feeder.start()
    options = StreamOptions(interval_ms=0)
    try:
        run_stream(
            spark,
            settings_of(node, "steady"),
            Tables(folder / "tables"),
            folder / "checkpoint",
            options=options,
            stop=stop,
            on_batch=on_batch,
        )
    finally:
        over.set()
        feeder.join()
    return ages[2:]  # the first batches are the start's


def figures_of(
    ours: float, upkeep: float, in_store: float, theirs: float, ages: list[tuple[float, float]]
) -> list[Figure]:
    if len(ages) < FEWEST_BATCHES:
        raise SystemExit(f"only {len(ages)} batches in {STEADY_S} s say nothing: this machine has other work")
    begin, end = ages[0][0], ages[-1][0]
    first = [age for at, age in ages if at <= begin + (end - begin) / 3]
    last = [age for at, age in ages if at >= end - (end - begin) / 3]
    slow = sorted(age for _, age in ages)[int(len(ages) * 0.95)]
    common: dict[str, Any] = {"unit": "events/s", "size": SIZE, "higher_is_better": True}
    return [
        Figure(name="stream-kafka", ours=SIZE / ours, theirs=SIZE / theirs, floor=0.6, **common),
        Figure(name="stream-kafka-upkeep", ours=SIZE / upkeep, theirs=SIZE / theirs, **common),
        Figure(name="stream-kafka-s3", ours=SIZE / in_store, theirs=SIZE / ours, **common),
        Figure(
            name="stream-kafka-end-to-end", unit="s", ours=slow, theirs=END_TO_END_S, size=RATE, floor=1.0
        ),
        Figure(
            name="stream-kafka-lag",
            unit="s",
            ours=statistics.mean(last),
            theirs=statistics.mean(first),
            size=RATE,
            floor=0.8,
        ),
    ]


def _session(settings: dict[str, str], store: ObjectStore) -> AbstractContextManager[SparkSession]:
    os.environ.update(store.environment)  # before the JVM starts, from which the workers have theirs
    return open_session("benchmark", settings=settings)


def main() -> None:
    settings = {"spark.jars": spark_jars(SPARK_KAFKA), "spark.driver.memory": "6g"}
    with (
        tempfile.TemporaryDirectory(prefix="bench-stream-") as scratch,
        KafkaNode(Path(scratch, "kafka")) as node,
        object_store(Path(scratch), optimized=True) as store,
        _session(settings, store) as spark,
    ):
        ours, upkeep, in_store, theirs = full_topic(spark, node, store, Path(scratch, "full"))
        progress(f"{RATE} events/s for {STEADY_S} s")
        ages = steady(spark, node, Path(scratch, "steady"))
    figures = figures_of(ours, upkeep, in_store, theirs, ages)
    for figure in figures:
        progress(figure.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
