"""Lines of a Kafka topic: kustos' audit topic, Confluent's, or one that a log shipper writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.errors import PipelineError
from kustos.pipeline.run.topic.failures import kafka_failure
from kustos.pipeline.run.topic.settings import SECRET_KEYS, TopicSettings

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
    return _whole(spark, settings).transform(as_lines, settings.layout)


def stream_topic(spark: SparkSession, settings: TopicSettings) -> DataFrame:
    """Return the topic as it grows; raise `KafkaInputError` if there is none.

    The columns are those of INPUT_LINES_SCHEMA, but for the ones that are null in every line: each would cost
    a line more than a tenth of a microsecond on its way to Python.
    """
    check_topic(spark, settings)
    options = {**settings.options(), "maxOffsetsPerTrigger": str(settings.maximum_records)}
    records = spark.readStream.format("kafka").options(**options).load()
    unknown = ["fault", "cluster"] if settings.layout else ["fault", "cluster", "layout"]
    return as_lines(records, settings.layout).drop(*unknown)


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


def as_lines(records: DataFrame, layout: str | None = None) -> DataFrame:
    """Return Kafka's records as INPUT_LINES_SCHEMA; a record without a value is a blank line.

    An appender of log4j ends each record as its layout ends a line (`%n`): that end is not part of the line.
    `layout` is log4j's pattern of the lines; JSON, and lines in Kafka's own layout, are read beside them.

    For a topic the partition is the log, and the offset the position in it: the same record is the same line
    in every read, and equal lines at two offsets are two lines.
    """
    place = sql.concat_ws("-", "topic", sql.col("partition").cast("string"))
    return records.select(
        place.alias("file"),
        sql.coalesce(_without_end(sql.col("value")).cast("string"), sql.lit("")).alias("line"),
        sql.concat(sql.lit("topic:"), place).alias("log"),
        sql.col("offset").alias("position"),
        sql.lit(None).cast("string").alias("fault"),
        sql.lit(layout).cast("string").alias("layout"),
        sql.lit(None).cast("string").alias("cluster"),
    )


def _without_end(value: Column) -> Column:
    """Return bytes without the line feed that ends them, and a carriage return before it."""
    ends = sql.when(sql.endswith(value, sql.lit(b"\r\n")), 2).when(sql.endswith(value, sql.lit(b"\n")), 1)
    # as bytes: not every record is UTF-8, and one that is not is quarantined as it is
    return sql.substring(value, sql.lit(1), sql.length(value) - sql.coalesce(ends, sql.lit(0)))


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
