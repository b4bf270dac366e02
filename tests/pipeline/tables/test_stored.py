"""What the tables hold is found in both ways, whoever wrote it and whatever it is called."""

import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from kustos.pipeline.lines.generated_ids import line_digest
from kustos.pipeline.places import in_parallel
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables import IngestOptions, Tables, ingest, stored
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.tables.ways import both_ways

TIME_MS = 1_795_233_600_123
HOUR_MS = 3_600_000
ID = "00000000-0000-0000-0000-000000000001"

Counts = tuple[int, int, int]


def taken(spark: SparkSession, folder: Path, *runs: Sequence[str], first: int = 0) -> list[Counts]:
    """Take runs of lines of one file; return of each the events, quarantined lines and duplicates."""
    told = []
    for number, lines in enumerate(runs, first):
        frame = spark.createDataFrame(
            [("f", line, None, None, None, None, None) for line in lines], INPUT_LINES_SCHEMA
        )
        options = IngestOptions(with_rollup=False)
        run = ingest(spark, frame, Tables(folder), f"s@{number}", options=options)
        told.append((run.events, run.quarantined, run.duplicates))
    return told


@both_ways
def test_an_empty_id_is_an_id(spark: SparkSession, tmp_path: Path) -> None:
    line = event_line().replace(ID, "")
    assert taken(spark, tmp_path, [line, line], [line]) == [(1, 0, 1), (0, 0, 1)]


@both_ways
@pytest.mark.parametrize("end", ["", "-1", "-2"])
def test_nobody_brings_the_id_that_another_line_gets(spark: SparkSession, tmp_path: Path, end: str) -> None:
    honest = kafka_line()
    forged = event_line().replace(ID, f"kafka-{line_digest('f', None, honest.encode())}{end}")
    found = taken(spark, tmp_path, [forged], [honest, honest, forged], [honest, forged, honest])
    assert found == [(0, 1, 0), (2, 0, 1), (0, 0, 3)]
    rows = Tables(tmp_path).read(spark, "quarantine").collect()
    assert [row["reason"] for row in rows] == ["event_id_reserved"]


@both_ways
def test_of_two_stored_events_of_an_id_each_is_known_again(spark: SparkSession, tmp_path: Path) -> None:
    early, late = event_line(), event_line(time_ms=TIME_MS + 3 * HOUR_MS)
    between = event_line(2, time_ms=TIME_MS + HOUR_MS)
    found = taken(
        spark, tmp_path, [early], [late], [early], [late], [early, late, between], [early, late, between]
    )
    assert found[:4] == [(1, 0, 0), (1, 0, 0), (0, 0, 1), (0, 0, 1)]
    assert found[4:] == [(1, 0, 2), (0, 0, 3)]


@both_ways
def test_a_file_without_rows_hinders_no_run(spark: SparkSession, tmp_path: Path) -> None:
    assert taken(spark, tmp_path, [event_line()]) == [(1, 0, 0)]
    (file,) = (tmp_path / "audit_events").rglob("*.parquet")
    # as Spark writes it for a first task that has nothing: without a group of rows
    empty = file.with_name("part-0-empty.parquet")
    parquet.ParquetWriter(empty, parquet.read_schema(file)).close()
    assert parquet.read_metadata(empty).num_row_groups == 0
    assert taken(spark, tmp_path, [event_line(), event_line(2)], first=1) == [(1, 0, 1)]


@both_ways
def test_tables_may_be_called_as_one_likes(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "[1] a b=c {x}é"
    lines = [event_line(), kafka_line(), "junk"]
    assert taken(spark, folder, lines, [*lines, event_line(2)]) == [(2, 1, 0), (1, 0, 3)]


def test_ids_of_quarantined_lines_are_looked_up_in_parts_and_not_held(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's memory does not grow with the lines that were ever quarantined."""
    of_run, at_once, runs = 20, 30, 6
    junk = [[f"junk {run} {number}" for number in range(of_run)] for run in range(runs)]
    assert taken(spark, tmp_path, *junk) == [(0, of_run, 0)] * runs
    looked_up: list[int] = []
    held: list[int] = []
    known: list[weakref.ref[pa.Array]] = []

    def counted(files: Sequence[Any], read: Callable[[Any], pa.Array]) -> list[pa.Array]:
        held.append(sum(len(array) for array in (one() for one in known) if array is not None))
        ids = in_parallel(files, read)
        looked_up.append(sum(map(len, ids)))
        known.extend(map(weakref.ref, ids))
        return ids

    monkeypatch.setattr(stored, "in_parallel", counted)
    monkeypatch.setattr(stored, "CHUNK_ROWS_MAX", at_once)
    lines = [line for some in junk for line in some]
    assert taken(spark, tmp_path, [*lines, "new"], first=runs) == [(0, 1, of_run * runs)]
    assert sum(looked_up) == of_run * runs
    # files are taken until the limit is reached, so a look-up has one file more at most
    assert max(looked_up) < at_once + of_run
    assert max(held) < at_once + of_run, "while one part is read, the one before may still be there"


@both_ways
def test_of_nothing_nothing_becomes(spark: SparkSession, tmp_path: Path) -> None:
    nothing = spark.createDataFrame([], INPUT_LINES_SCHEMA)
    for number, (frame, is_kept) in enumerate(
        (frame, is_kept) for frame in (nothing, nothing.repartition(3)) for is_kept in (False, True)
    ):
        options = IngestOptions(keep_raw=is_kept)
        run = ingest(spark, frame, Tables(tmp_path), f"s@{number}", options=options)
        assert (run.lines, run.events, run.quarantined, run.duplicates) == (0, 0, 0, 0)


@both_ways
def test_what_is_no_utf8_is_quarantined_alike(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        b"\xff" * 3,
        b"\xff" * 4,
        b"\xed\xa0\x80",
        b"{\xff}",
        b"\xff" * 5_000,
        b"a\x00b",
        b"\xef\xbb\xbf{}",
    ]
    frame = spark.createDataFrame(list(enumerate(lines)), "number int, line binary")
    frame = frame.selectExpr("'f' file", "cast(line as string) line")
    wanted = [(7, 0), (0, 7)]
    for number, counts in enumerate(wanted):
        run = ingest(spark, frame, Tables(tmp_path), f"s@{number}", options=IngestOptions(with_rollup=False))
        assert (run.quarantined, run.duplicates) == counts
    rows = Tables(tmp_path).read(spark, "quarantine").collect()
    assert sorted((row["line_length"], row["reason"]) for row in rows if row["reason"] == "not_utf8") == [
        (length, "not_utf8") for length in (3, 3, 3, 4, 5_000)
    ]
    assert len({row["line_id"] for row in rows}) == 7
