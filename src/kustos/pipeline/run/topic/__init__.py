"""Audit topics of Kafka: settings, identity, and records as lines, read by tasks with kustos' own client."""

from kustos.pipeline.run.topic.failures import kafka_errors, records_deleted
from kustos.pipeline.run.topic.lines import lines_of_spans, read_topic
from kustos.pipeline.run.topic.open_topic import Topic, TopicIdentity, open_topic
from kustos.pipeline.run.topic.settings import TopicSettings
from kustos.pipeline.run.topic.spans import Span, limited, spans

__all__ = [
    "Span",
    "Topic",
    "TopicIdentity",
    "TopicSettings",
    "kafka_errors",
    "limited",
    "lines_of_spans",
    "open_topic",
    "read_topic",
    "records_deleted",
    "spans",
]
