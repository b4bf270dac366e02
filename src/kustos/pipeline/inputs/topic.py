"""Lines of a Kafka topic: kustos' audit topic, Confluent's, or one that a log shipper writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.errors import PipelineError
from kustos.pipeline.inputs.failures import kafka_failure
from kustos.pipeline.inputs.settings import SECRET_KEYS, TopicSettings

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
    return _whole(spark, settings).transform(as_lines)


def stream_topic(spark: SparkSession, settings: TopicSettings) -> DataFrame:
    """Return the topic as it grows, as INPUT_LINES_SCHEMA; raise `KafkaInputError` if there is none."""
    check_topic(spark, settings)
    options = {**settings.options(), "maxOffsetsPerTrigger": str(settings.maximum_records)}
    return spark.readStream.format("kafka").options(**options).load().transform(as_lines)


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


def as_lines(records: DataFrame) -> DataFrame:
    """Return Kafka's records as INPUT_LINES_SCHEMA; a record without a value is a blank line.

    For a topic the partition is the log, and the offset the position in it: the same record is the same line
    in every read, and equal lines at two offsets are two lines.
    """
    place = sql.concat_ws("-", "topic", sql.col("partition").cast("string"))
    return records.select(
        place.alias("file"),
        sql.coalesce(sql.col("value").cast("string"), sql.lit("")).alias("line"),
        sql.concat(sql.lit("topic:"), place).alias("log"),
        sql.col("offset").alias("position"),
        sql.lit(None).cast("string").alias("fault"),
        sql.lit(None).cast("string").alias("layout"),
    )


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
