"""Errors of tasks reach the driver as they were raised, whatever their text, on both kinds of sessions."""

import errno
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.errors import (
    AuditInputError,
    DamagedRecordsError,
    KafkaInputError,
    MetadataHistoryError,
    PipelineError,
    SparkFailedError,
)
from kustos.pipeline.history.source import HistoryOptions
from kustos.pipeline.run import DamagedFileError
from kustos.pipeline.run.topic import kafka_errors
from kustos.pipeline.run.topic.settings import TopicSettings
from kustos.pipeline.session import numbered_tasks
from kustos.pipeline.task_errors import refusal, task_errors, task_failure

MESSAGES = (
    "topic `a` is\non two lines",
    "a 'quoted' \"text\" with a \\ and ${name} and %s",
    "cannot use `/x`: [Errno 28] No space left on device\nMetadataHistoryError: another SQLSTATE: P0001",
    '[USER_RAISED_EXCEPTION] KafkaInputError: not this one\n  File "x.py", line 1',
    "Grüße aus \U0001f4a5 \udcff",
    "",
)


def failing(spark: SparkSession, error_of: Callable[..., Exception], *arguments: object) -> DataFrame:
    """Return the rows of two tasks; the second one fails after its first row."""

    def work(number: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"name": pa.array([f"row {number}"])})
        if number:
            raise error_of(*arguments)

    return numbered_tasks(spark, 2, work, "name string")


@pytest.mark.parametrize("kind", [KafkaInputError, AuditInputError, MetadataHistoryError])
def test_an_error_has_its_type_and_its_whole_text(spark: SparkSession, kind: type[PipelineError]) -> None:
    for message in MESSAGES:
        with pytest.raises(PipelineError) as caught, task_errors():
            failing(spark, kind, message).collect()
        assert type(caught.value) is kind
        assert str(caught.value) == message


def test_the_error_that_a_task_raises_counts_not_those_that_it_is_from(spark: SparkSession) -> None:
    def work(_: int) -> Iterator[pa.RecordBatch]:
        try:
            try:
                HistoryOptions.of({})
            except MetadataHistoryError as error:
                raise ValueError("KafkaInputError: the second") from error
        except ValueError as error:
            raise DamagedRecordsError("the third\nand last") from error
        yield

    with pytest.raises(DamagedRecordsError) as caught, task_errors():
        numbered_tasks(spark, 1, work, "name string").collect()
    assert str(caught.value) == "the third\nand last"
    assert caught.value.__cause__ is None


def test_attributes_of_an_error_arrive(spark: SparkSession) -> None:
    path = "/audit/it's `a`\nfile.gz"
    with pytest.raises(DamagedFileError) as caught, task_errors():
        failing(spark, DamagedFileError, path).collect()
    assert caught.value.path == path
    assert str(caught.value) == str(DamagedFileError(path))


def test_a_full_disk_and_a_file_without_permission_say_what_to_do(spark: SparkSession) -> None:
    told = {
        errno.ENOSPC: "no space left on a disk that Spark writes to",
        errno.EACCES: "cannot use `/audit/it's.log`: permission denied, check its permissions",
    }
    for number, text in told.items():
        with pytest.raises(SparkFailedError) as caught, task_errors():
            failing(spark, OSError, number, "anything", "/audit/it's.log").collect()
        assert str(caught.value).startswith(text)


def test_no_filter_drops_the_row_that_fails(spark: SparkSession) -> None:
    """Spark moves conditions on columns next to the files; the failing row has null in all of them."""
    rows = failing(spark, AuditInputError, "lost")
    queries = (
        rows.where(sql.col("name") == "row 0"),
        rows.where(sql.col("name").isNotNull()).groupBy("name").count(),
        rows.join(rows.withColumnRenamed("name", "other"), sql.col("name") == sql.col("other")),
        rows.select(sql.lit(1)),
        rows.dropna().distinct(),
    )
    for query in queries:
        with pytest.raises(AuditInputError, match="lost"), task_errors():
            query.collect()


def test_other_failures_of_a_query_stay_as_they_are(spark: SparkSession) -> None:
    for text in ("KafkaInputError: not ours", '{"kustos_error": 5}', '{"args": ["text"]}', "[1]"):
        query = spark.range(1).select(sql.raise_error(sql.lit(text)))
        with pytest.raises(PySparkException) as caught, task_errors():
            query.collect()
        assert task_failure(caught.value) is None
    with pytest.raises(PySparkException, match="KafkaInputError: not typed"), task_errors():
        failing(spark, RuntimeError, "KafkaInputError: not typed").collect()
    with pytest.raises(ValueError, match="of the driver"), task_errors():
        raise ValueError("of the driver")


def test_a_column_can_refuse_rows(spark: SparkSession) -> None:
    refused = sql.when(sql.col("id") > 0, refusal(MetadataHistoryError("too `early`\n")).cast("boolean"))
    assert spark.range(1).select(refused).count() == 1
    with pytest.raises(MetadataHistoryError, match="too `early`\n"), task_errors():
        spark.range(2).where(refused.otherwise(sql.lit(True))).collect()


def test_a_topic_that_a_task_cannot_read_is_told_by_its_error(spark: SparkSession) -> None:
    settings = TopicSettings(topic="audit", client_properties={"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(KafkaInputError) as caught, kafka_errors(settings):
        failing(spark, KafkaInputError, "the login was refused:\nuser `a`").collect()
    assert str(caught.value) == "the login was refused:\nuser `a`"
