"""Where lines of audit come from: folders of files, and topics of a Kafka cluster, whole or as they grow."""

from kustos.pipeline.errors import KafkaInputError
from kustos.pipeline.inputs.files import read_files
from kustos.pipeline.inputs.jars import KAFKA_COORDINATES, bring_jars
from kustos.pipeline.inputs.settings import TopicSettings
from kustos.pipeline.inputs.topic import check_topic, read_topic, stream_topic

__all__ = [
    "KAFKA_COORDINATES",
    "KafkaInputError",
    "TopicSettings",
    "bring_jars",
    "check_topic",
    "read_files",
    "read_topic",
    "stream_topic",
]
