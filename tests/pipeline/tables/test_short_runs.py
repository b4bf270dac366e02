"""Runs that the driver settles end as those that Spark settles, and as plain rules say."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.stages import dedupe as settling
from kustos.pipeline.stages.generated_ids import line_digest
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables, ingest, short_runs
from tests.pipeline.events import event_line, kafka_line, login_line
from tests.pipeline.tables.ways import INGEST, LIMITS, settled

DAY_MS = 86_400_000
TIME_MS = 1_795_233_600_123
Row = tuple[str, str | None, str | None, int | None, str | None]


def drawn(random: Random) -> Row:
    """Return a line of few different ones, where it stands."""
    number = random.randrange(12)
    forged = "kafka-" + line_digest("a", None, kafka_line().encode())
    text = random.choice(
        [
            event_line(number),
            event_line(number),
            event_line(number, client_id=random.choice("xy")),
            event_line(number, time_ms=TIME_MS + random.choice([-3, 1]) * DAY_MS),
            event_line(20 + number, time_ms=TIME_MS - random.randrange(5) * DAY_MS),
            event_line(1).replace("00000000-0000-0000-0000-000000000001", forged),
            f" {event_line(number)}",
            login_line(number),
            login_line(number, attempt_count=random.choice([1, 2])),
            login_line(number, time_ms=TIME_MS + DAY_MS),
            login_line(number).replace("0002-", "0000-"),
            kafka_line(),
            kafka_line() + "\r",
            kafka_line(principal=f"User:{number}"),
            "junk",
            "",
            "{",
            "\ufffd" * 5_000,
        ]
    )
    file = random.choice(["a", "a.gz", "b", "topic-0"])
    if file == "topic-0":
        return file, text, "topic:topic-0", random.randrange(6), None
    return file, text, None, None, "unreadable" if "User:3" in text else None


def outcome(spark: SparkSession, folder: Path, runs: Sequence[Sequence[Row]], options: IngestOptions) -> Any:
    """Return what runs over these lines leave: their counts and the rows of all tables."""
    tables = Tables(folder)
    told: list[tuple[Any, ...]] = []
    for number, lines in enumerate(runs):
        frame = spark.createDataFrame([(*line, None) for line in lines], INPUT_LINES_SCHEMA)
        run = ingest(spark, frame, tables, f"s@{number}", options=options)
        assert run.lines == run.events + run.security_events + run.quarantined + run.duplicates
        told.append(
            (run.events, run.security_events, run.quarantined, run.duplicates, run.too_late, run.days)
        )
    found = (
        sorted(str(row) for row in tables.read(spark, name).drop("event_id").collect())
        for name in ("audit_events", "security_events", "quarantine")
    )
    ids = sorted(row["event_id"] for row in tables.read(spark, "audit_events").select("event_id").collect())
    return told, *found, ids, tables.state().newest_time_ms


def test_the_driver_settles_runs_as_spark_does(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random = Random(seed)
    runs = [[drawn(random) for _ in range(150)] for _ in range(2)]
    options = IngestOptions(with_rollup=False, watermark_days=random.choice([None, 2]))
    found = []
    for way in LIMITS:
        with settled(way):
            found.append(outcome(spark, tmp_path_factory.mktemp("tables"), runs, options))
    assert found[0] == found[1]
    assert sum(told[0] for told in found[0][0]) == len(found[0][4])


def test_many_tasks_write_what_one_would(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(7)
    lines = [drawn(random) for _ in range(90)]
    options = IngestOptions(with_rollup=False)
    alone = outcome(spark, tmp_path / "one", [lines], options)
    monkeypatch.setattr(INGEST, "FEW_LINES", 0)
    assert outcome(spark, tmp_path / "many", [lines], options) == alone


@pytest.mark.parametrize("limit", ["STORED_ROWS_MAX", "SUSPECTS_MAX"])
def test_where_the_driver_would_have_too_much_spark_settles(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    tables = Tables(tmp_path)

    def take(number: int) -> RunSummary:
        lines = spark.createDataFrame([("f", event_line(1), None, None, None, None)], INPUT_LINES_SCHEMA)
        return ingest(spark, lines, tables, f"s@{number}", options=IngestOptions(with_rollup=False))

    assert take(0).events == 1
    monkeypatch.setattr(short_runs, limit, 0)
    monkeypatch.setattr(INGEST, "write_short", None)
    assert take(1).duplicates == 1


@given(
    log=st.text(max_size=4),
    position=st.none() | st.integers(0, 2**40),
    line=st.text(max_size=20) | st.text("\r", max_size=3),
)
@settings(max_examples=200)
def test_a_digest_is_of_log_position_and_line(log: str, position: int | None, line: str) -> None:
    place = "" if position is None else str(position)
    wanted = hashlib.sha256(f"{log}\n{place}\n{line.rstrip(chr(13))}".encode()).hexdigest()[:32]
    assert line_digest(log, position, line.encode()) == wanted


def test_spark_makes_the_same_digests(spark: SparkSession) -> None:
    random = Random(3)
    texts = ["", "\r", "a\r\r", "é\ufffd", "{}", "x" * 100]
    rows = [
        (f"l{random.randrange(3)}", random.choice([None, 0, 7, 2**40]), random.choice(texts))
        for _ in range(60)
    ]
    frame = spark.createDataFrame(rows, "log string, position long, line string")
    found = frame.select("log", "position", "line", settling._digest().alias("digest")).collect()
    for row in found:
        assert row["digest"] == line_digest(row["log"], row["position"], row["line"].encode())
    binary = spark.createDataFrame([(b"\xff\x00a\r",)], "line binary").select(
        sql.lit("l").alias("log"),
        sql.lit(None).cast("long").alias("position"),
        sql.col("line").cast("string").alias("line"),
    )
    assert binary.select(settling._digest()).collect()[0][0] == line_digest("l", None, b"\xff\x00a\r")
