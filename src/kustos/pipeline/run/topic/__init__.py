"""Audit topics of Kafka: settings, identity, records as a batch or a stream, and the jars Spark needs."""

from kustos.pipeline.run.topic.jars import KAFKA_COORDINATES, download_jars
from kustos.pipeline.run.topic.records import check_topic, read_topic, stream_topic
from kustos.pipeline.run.topic.settings import TopicSettings
from kustos.pipeline.run.topic.topic_ids import TopicIdentity, topic_ids

__all__ = [
    "KAFKA_COORDINATES",
    "TopicIdentity",
    "TopicSettings",
    "check_topic",
    "download_jars",
    "read_topic",
    "stream_topic",
    "topic_ids",
]
