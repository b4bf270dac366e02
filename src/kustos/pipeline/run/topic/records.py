"""Lines of a Kafka topic: kustos' audit topic, Confluent's, or one that a log shipper writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.errors import PipelineError
from kustos.pipeline.lines.topic_records import PARTITION, lines_of_records
from kustos.pipeline.run.topic.failures import kafka_failure
from kustos.pipeline.run.topic.settings import SECRET_KEYS, TopicSettings
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA

REDACTION: Final = f"{SECRET_KEYS.pattern}|url"
"""Options whose values Spark redacts in plans; by default it would show `sasl.jaas.config`."""

HIDING: Final = {
    "spark.sql.redaction.options.regex": REDACTION,
    "spark.sql.redaction.string.regex": r"(?i)(?:password|jaas).*",
}
"""Settings of a session under which no plan, page or failure quotes a secret of a topic's settings."""


def read_topic(spark: SparkSession, settings: TopicSettings) -> DataFrame:
    """Return the topic's current records as INPUT_LINES_SCHEMA, one line a record.

    Raises `KafkaInputError` if it cannot be read, within `BOUNDED` times a retry; `kafka_errors` turns later
    failures, in an action, into one.
    """
    check_topic(spark, settings)
    lines = lines_of_records(_records(_whole(spark, settings), settings.layout), settings.topic)
    unknown = [field for field in INPUT_LINES_SCHEMA if field.name not in lines.columns]
    lines = lines.withColumns({each.name: sql.lit(None).cast(each.dataType) for each in unknown})
    return lines.select(INPUT_LINES_SCHEMA.fieldNames())


def stream_topic(spark: SparkSession, settings: TopicSettings) -> DataFrame:
    """Return the topic's records as it grows, as `lines.topic_records` takes them; raise `KafkaInputError`.

    Each column would cost a line more than a tenth of a microsecond on its way to Python, so there are none
    that are null in every line, and none that another one gives.
    """
    check_topic(spark, settings)
    options = {**settings.options(), "maxOffsetsPerTrigger": str(settings.maximum_records)}
    records = spark.readStream.format("kafka").options(**options).load()
    return _records(records, settings.layout)


def check_topic(spark: SparkSession, settings: TopicSettings) -> None:
    """Raise `KafkaInputError` unless the topic is there and may be read.

    A stream of a missing topic would wait for ever without an error. One record is read, since permission to
    describe a topic does not imply permission to read it.
    """
    for key, value in HIDING.items():
        spark.conf.set(key, value)
    with kafka_errors(settings):
        _whole(spark, settings).select("offset").take(1)


def _whole(spark: SparkSession, settings: TopicSettings) -> DataFrame:
    ends = {"startingOffsets": "earliest", "endingOffsets": "latest"}
    return spark.read.format("kafka").options(**{**settings.options(), **ends}).load()


def _records(records: DataFrame, layout: str | None = None) -> DataFrame:
    """Return Kafka's records as `lines.topic_records` takes them.

    `layout` is log4j's pattern of the lines; JSON, and lines in Kafka's own layout, are read beside them.
    """
    found = records.select(
        # as it is: not every record is UTF-8
        sql.col("value").cast("string").alias("line"),
        PARTITION,
        sql.col("offset").alias("position"),
    )
    return found.withColumn("layout", sql.lit(layout)) if layout else found


@contextmanager
def kafka_errors(settings: TopicSettings) -> Iterator[None]:
    """Turn errors of reading the topic within the block into `KafkaInputError`, without the JVM's text."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except PipelineError:
        raise
    except (Py4JError, PySparkException) as error:
        failure = kafka_failure(error, settings)
        if failure is None:
            raise
        raise failure from None  # the JVM's text may quote the properties
