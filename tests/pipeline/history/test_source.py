"""The data source `kafka_metadata` in a session: its tables, its options, its refusals."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.history.lives import rows_of
from kustos.pipeline.history.source import (
    TABLES,
    HistoryOptions,
    acls_as_of,
    read_history,
    register,
)
from kustos.pipeline.schemas import ACL_SCHEMA
from kustos.pipeline.task_errors import task_errors
from kustos.runtime import FileSystemStorage
from tests.pipeline.history.test_lives import acls_of
from tests.pipeline.history.worlds import T0_MS, World, random_world


@pytest.fixture(scope="module")
def world() -> World:
    return random_world(Random(11), batches=12)


@pytest.fixture(scope="module")
def directory(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.write(tmp_path_factory.mktemp("history") / "log")


def micros(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_holds_the_rows_of_the_walk(spark: SparkSession, directory: Path, table: str) -> None:
    frame = read_history(spark, directory, table)
    assert frame.schema == TABLES[table]
    found = [tuple(map(micros, row)) for row in frame.collect()]
    expected = list(rows_of(directory, table, FileSystemStorage()))
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert expected


def test_options_are_read_as_they_are_written(spark: SparkSession, directory: Path, world: World) -> None:
    register(spark)
    reader = spark.read.format("kafka_metadata").option("path", str(directory / "__cluster_metadata-0"))
    end = world.ends[3] + 1
    (log_range,) = reader.option("table", "range").option("endOffset", str(end)).load().collect()
    assert (log_range["from_offset"], log_range["to_offset"]) == (-1, world.ends[3])
    assert "acl_id" in spark.read.format("kafka_metadata").load(str(directory)).columns


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "lacks the option `path`"),
        ({"path": "x", "tabel": "acls"}, "option `tabel` is not known"),
        ({"path": "x", "table": "topics"}, "table `topics` is not known, give one of acls"),
        ({"path": "x", "endOffset": "-1"}, "option `endOffset` is `-1`"),
    ],
)
def test_wrong_options_are_told(options: dict[str, str], said: str) -> None:
    with pytest.raises(MetadataHistoryError, match=said):
        HistoryOptions.of(options)


def test_a_schema_of_ones_own_is_refused(spark: SparkSession, directory: Path) -> None:
    register(spark)
    reader = spark.read.format("kafka_metadata").schema("a int")
    with pytest.raises(PySparkException, match="has a schema of its own"):
        reader.load(str(directory)).collect()


def test_what_cannot_be_read_is_told_and_nothing_is_answered(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(MetadataHistoryError) as caught, task_errors():
        read_history(spark, tmp_path).collect()
    assert str(caught.value).startswith(f"`{tmp_path}` is neither a segment (`.log`), a snapshot")


def test_the_acls_of_a_past_moment_are_those_of_the_log(
    spark: SparkSession, directory: Path, world: World
) -> None:
    history = read_history(spark, directory).persist()
    states = world.states()
    frames: list[Any] = []
    expected: list[set[tuple[Any, ...]]] = []
    for offset in range(0, len(states), 5):
        frames.append(acls_as_of(history, offset).selectExpr(f"{len(expected)} AS world", "*"))
        expected.append({acl[1:] for acl in acls_of(states[offset])})
    latest = max(world.times_ms)
    for time_ms in range(T0_MS - 1000, latest + 1500, 2500):
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
        frames.append(acls_as_of(history, moment).selectExpr(f"{len(expected)} AS world", "*"))
        expected.append({acl[1:] for acl in acls_of(world.state_at(time_ms))})
    together = frames[0]
    for frame in frames[1:]:
        together = together.union(frame)
    rows = together.collect()
    found = [{tuple(row)[1:] for row in rows if row["world"] == number} for number in range(len(frames))]
    assert found == expected
    assert any(expected)
    assert together.columns[1:] == ACL_SCHEMA.fieldNames()
    history.unpersist()


def test_a_moment_before_the_history_fails_the_query(
    spark: SparkSession, world: World, tmp_path: Path
) -> None:
    cut = world.write(tmp_path / "cut", first=6, snapshots=[5])
    history = read_history(spark, cut)
    assert acls_as_of(history, world.ends[5]).count() == len(world.states()[world.ends[5]].acls) > 0
    for moment in (world.ends[5] - 1, "2023-01-01"):
        with pytest.raises(MetadataHistoryError) as caught, task_errors():
            acls_as_of(history, moment).collect()
        assert str(caught.value) == f"the history begins after {moment}"


def test_a_moment_that_is_none_is_refused(spark: SparkSession, directory: Path) -> None:
    history = read_history(spark, directory)
    with pytest.raises(MetadataHistoryError, match="neither an offset nor a time"):
        acls_as_of(history, "yesterday")
    with pytest.raises(MetadataHistoryError, match="has no time zone"):
        acls_as_of(history, datetime(2026, 1, 1))  # noqa: DTZ001
