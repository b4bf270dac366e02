"""A stream belongs to one topic of one cluster, whatever has its name; aborted records are none."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from kustos.pipeline.errors import KafkaInputError, StreamError
from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.run.stream.checkpoint import IDENTITY, stream_checkpoint, stream_name
from kustos.pipeline.run.stream.job import CHECKPOINTS
from kustos.pipeline.run.topic import TopicIdentity, TopicSettings, open_topic, read_topic
from kustos.pipeline.tables import RunSummary, Tables
from testkit.kafka import KafkaNode, NodeFactory, NodeSettings, make_topics
from testkit.waiting import wait_until
from tests.pipeline.events import event_line
from tests.pipeline.run.topics import (
    delete_topic,
    fill,
    librdkafka_settings,
    make_topic,
    new_topic,
    settings_of,
)

NOW = StreamOptions(available_now=True)


@pytest.fixture(scope="module")
def other(kafka_node: NodeFactory) -> KafkaNode:
    """Another cluster."""
    return kafka_node(NodeSettings())


def lines(first: int, last: int) -> list[str]:
    return [event_line(number) for number in range(first, last)]


def make_anew(node: KafkaNode, topic: str) -> None:
    """Delete a topic and make one of its name."""
    former = identity_of(node, topic)
    delete_topic(node, topic)
    wait_until(lambda: topic not in node_topics(node), what="the topic is deleted")
    make_topics([node], new_topic(topic))
    wait_until(lambda: identity_of(node, topic) != former, what="the new topic is known")


def identity_of(node: KafkaNode, topic: str) -> TopicIdentity:
    with open_topic(settings_of(node, topic)) as opened:
        return opened.identity()


def node_topics(node: KafkaNode) -> set[str]:
    return set(Producer(librdkafka_settings(node)).list_topics(timeout=30).topics)


def test_a_topic_made_anew_is_refused_by_the_checkpoint_and_read_whole_without_one(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    fill(kafka, topic, lines(0, 20))
    assert run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW).events == 20
    assert run_stream(spark, settings_of(kafka, topic), tables, options=NOW).duplicates == 20
    make_anew(kafka, topic)
    fill(kafka, topic, lines(20, 60))
    with pytest.raises(StreamError, match=f"topic `{topic}` was deleted and recreated since"):
        run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)
    summary = run_stream(spark, settings_of(kafka, topic), tables, options=NOW)
    assert (summary.lines, summary.events) == (40, 40)
    assert len(list((tmp_path / "tables" / CHECKPOINTS).iterdir())) == 2


def test_a_topic_made_anew_while_its_stream_runs_ends_the_stream_and_loses_nothing(
    spark: SparkSession, kafka: KafkaNode, tmp_path: Path
) -> None:
    topic, tables = make_topic(kafka, partitions=1), Tables(tmp_path / "tables")
    fill(kafka, topic, lines(0, 10))

    def on_batch(_batch: RunSummary) -> None:
        make_anew(kafka, topic)
        fill(kafka, topic, lines(10, 40))  # more than the stream has read: by its offsets nothing is amiss

    options = StreamOptions(interval_ms=100)
    with pytest.raises(KafkaInputError, match="recreated"):
        run_stream(
            spark,
            settings_of(kafka, topic),
            tables,
            options=options,
            on_batch=on_batch,
        )
    assert run_stream(spark, settings_of(kafka, topic), tables, options=NOW).events == 30


def test_topics_of_one_name_in_two_clusters_have_a_checkpoint_each(
    spark: SparkSession, kafka: KafkaNode, other: KafkaNode, tmp_path: Path
) -> None:
    topic, tables, checkpoint = make_topic(kafka), Tables(tmp_path / "tables"), tmp_path / "checkpoint"
    make_topics([other], new_topic(topic))
    fill(kafka, topic, lines(0, 20))
    fill(other, topic, lines(20, 50))
    first = run_stream(spark, settings_of(kafka, topic), tables, options=NOW)
    second = run_stream(spark, settings_of(other, topic), tables, options=NOW)
    assert (first.events, second.events) == (20, 30)
    run_stream(spark, settings_of(kafka, topic), tables, checkpoint, options=NOW)
    with pytest.raises(StreamError, match=r"of cluster `.+`, but `.+` is cluster `.+`, give each"):
        run_stream(spark, settings_of(other, topic), tables, checkpoint, options=NOW)


def test_what_a_transaction_aborted_is_no_line(spark: SparkSession, kafka: KafkaNode, tmp_path: Path) -> None:
    topic, tables = make_topic(kafka, partitions=1), Tables(tmp_path / "tables")
    producer = Producer({**librdkafka_settings(kafka), "transactional.id": topic})
    producer.init_transactions(60)
    for numbers, is_committed in (((0, 20), False), ((20, 30), True), ((30, 50), False)):
        producer.begin_transaction()
        for line in lines(*numbers):
            producer.produce(topic, line.encode())
        assert producer.flush(60) == 0
        (producer.commit_transaction if is_committed else producer.abort_transaction)(60)
    settings = settings_of(kafka, topic)
    assert read_topic(spark, settings).count() == 10
    summary = run_stream(spark, settings, tables, options=NOW)
    assert (summary.lines, summary.events) == (10, 10)


def test_a_checkpoint_stores_a_topic_id_that_upgraded_brokers_report(tmp_path: Path) -> None:
    settings = TopicSettings(topic="audit", client_properties={"bootstrap.servers": "127.0.0.1:1"})
    before, ours, again, theirs = (
        TopicIdentity(*ids)
        for ids in (("cluster", None), ("cluster", "id-1"), ("cluster", "id-2"), ("others", "id-1"))
    )
    checkpoint = stream_checkpoint(tmp_path / "streams", settings, before)
    name = stream_name(checkpoint, settings, before)
    assert stream_name(checkpoint, settings, ours) == name
    assert json.loads((checkpoint / IDENTITY).read_text())["topic_id"] == "id-1"
    for identity in (again, theirs):
        assert stream_checkpoint(tmp_path / "streams", settings, identity) != checkpoint
        with pytest.raises(StreamError, match=r"recreated|is cluster"):
            stream_name(checkpoint, settings, identity)
    assert stream_name(checkpoint, settings, before) == name
