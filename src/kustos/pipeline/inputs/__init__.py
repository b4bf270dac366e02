"""Sources of audit lines: folders of files, and topics of a Kafka cluster, as a batch or a stream."""

from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.files import read_files
from kustos.pipeline.inputs.jars import KAFKA_COORDINATES, download_jars
from kustos.pipeline.inputs.settings import TopicSettings
from kustos.pipeline.inputs.topic import check_topic, read_topic, stream_topic
from kustos.pipeline.inputs.topic_ids import TopicIdentity, topic_ids

__all__ = [
    "KAFKA_COORDINATES",
    "KafkaInputError",
    "TopicIdentity",
    "TopicSettings",
    "check_topic",
    "download_jars",
    "read_files",
    "read_topic",
    "stream_topic",
    "topic_ids",
]
