"""Lines are judged as plain Python judges them one by one, in one bucket and many, by one task and more."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.pipeline.lines.generated_ids import line_digest
from kustos.pipeline.lines.line_columns import read_lines
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables import IngestOptions, Tables, ingest, line_writer
from kustos.pipeline.tables.deduplication.keys import identified, line_digests, suspects
from kustos.pipeline.tables.deduplication.outcomes import (
    STORED,
    SUSPECTS,
    are_told_by_text,
    content_digests,
    outcomes,
)
from tests.pipeline.events import event_line, kafka_line, login_line
from tests.pipeline.tables.ways import LIMITS, compared

DAY_MS = 86_400_000
TIME_MS = 1_795_233_600_123
SECRET = "0123456789abcdef"
Row = tuple[str, str | None, str | None, int | None, str | None, None, str | None]
Judged = list[tuple[str, str | None, str | None, str | None]]
NO_TEXTS = pa.nulls(120, pa.string())


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
        return file, text, "topic:topic-0", random.randrange(6), None, None, None
    fault = "unreadable" if "User:3" in text else None
    return file, text, None, None, fault, None, random.choice([None, None, "payments"])


def lines_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return lines as a task identifies them."""
    names = ["file", "line", "log", "position", "fault", "layout", "cluster"]
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    types = {name: pa.int64() if name == "position" else pa.string() for name in names}
    batch = pa.RecordBatch.from_arrays([pa.array(columns[n], types[n]) for n in names], names)
    return identified(read_lines(batch))


def by_python(
    lines: Sequence[dict[str, Any]], stored: dict[Any, dict[Any, str]], oldest: int | None
) -> Judged:
    """Judge each line: its outcome, reason and, if it is quarantined, line id."""
    numbers: Counter[Any] = Counter()
    groups: dict[Any, list[int]] = {}
    occurrences = []
    for at, line in enumerate(lines):
        key = line["cluster"], line["key"]
        numbers[key, line["source_file"]] += line["is_counted"]
        occurrence = numbers[key, line["source_file"]] if line["is_counted"] else 1
        occurrences.append(occurrence)
        groups.setdefault((key, line["day"], occurrence, line["content"]), []).append(at)
    found: dict[int, tuple[str, str | None]] = {}
    for group in groups.values():
        first, *others = sorted(
            group, key=lambda at: (lines[at]["source_file"], lines[at]["line_digest"] or "")
        )
        head = lines[first]
        event_id = head["key"] if head["brings_id"] else f"{head['key']}-{occurrences[first]}"
        contents = stored.get((head["day"], head["cluster"], event_id), {})
        known = head["content"] in contents
        for at in (first, *others):
            line = lines[at]
            if at != first or (line["brings_id"] and known):
                found[at] = "duplicate", line["reason"]
            elif line["reason"]:
                found[at] = "quarantined", line["reason"]
            elif known:
                found[at] = "duplicate", None
            elif oldest is not None and line["time_ms"] < oldest:
                found[at] = "quarantined", "too_late"
            else:
                found[at] = "event", None
    judged: Judged = []
    conflicts = conflicting_files(lines, found, stored)
    for at, line in enumerate(lines):
        own = f"line-{line['line_digest']}" if line["brings_id"] else f"{line['key']}-{occurrences[at]}"
        judged.append((*found[at], own if found[at][0] == "quarantined" else None, conflicts.get(at)))
    return judged


def conflicting_files(
    lines: Sequence[dict[str, Any]],
    found: dict[int, tuple[str, str | None]],
    stored: dict[Any, dict[int, str]],
) -> dict[int, str]:
    """Return for each event whose id another one has the file of that one: stored, else the first."""
    named: dict[Any, list[str]] = {}
    for (_, cluster, event_id), contents in stored.items():
        named.setdefault((cluster, event_id), []).extend(contents.values())
    firsts = {key: min(files) for key, files in named.items()}
    conflicts: dict[int, str] = {}
    events = [at for at, line in enumerate(lines) if line["brings_id"] and found[at][0] == "event"]
    for at in sorted(events, key=lambda at: (lines[at]["source_file"], lines[at]["line_digest"])):
        key = lines[at]["cluster"], lines[at]["key"]
        if key in firsts:
            conflicts[at] = firsts[key]
        firsts.setdefault(key, lines[at]["source_file"])
    return conflicts


@given(seed=st.integers(0, 2**32), count=st.integers(1, 120), days=st.none() | st.integers(0, 4))
def test_lines_are_judged_as_one_by_one(seed: int, count: int, days: int | None) -> None:
    random = Random(seed)
    oldest = None if days is None else TIME_MS - days * DAY_MS
    identified_lines = lines_of([drawn(random) for _ in range(count)])
    held = suspects(identified_lines, 0, SECRET).to_pylist()
    for line, digest in zip(held, line_digests(identified_lines).to_pylist(), strict=True):
        line["line_digest"] = digest if line["brings_id"] else None
    stored_rows = suspects(lines_of([drawn(random) for _ in range(20)]), 0, SECRET).to_pylist()
    stored: dict[Any, dict[Any, str]] = {}
    for row in stored_rows:
        if row["reason"] is None:
            event_id = row["key"] if row["brings_id"] else f"{row['key']}-{random.randrange(1, 3)}"
            stored.setdefault((row["day"], row["cluster"], event_id), {})[row["content"]] = row["source_file"]
    lines = pa.Table.from_pylist(held, schema=SUSPECTS)
    rows = [
        dict(zip(STORED.names, (*key, *each), strict=True))
        for key, same in stored.items()
        for each in same.items()
    ]
    known = pa.Table.from_pylist(rows, schema=STORED)
    found = outcomes(lines, known, oldest).to_pylist()
    told = [(one["outcome"], one["reason"], one["line_id"], one["conflicting_file"]) for one in found]
    assert [each[:2] for each in told] == [each[:2] for each in by_python(held, stored, oldest)]
    assert told == by_python(held, stored, oldest)
    without = lines.set_column(
        at := lines.schema.get_field_index("line_digest"), "line_digest", NO_TEXTS[:count]
    )
    is_told = pa.array(are_told_by_text(without, outcomes(without, known, oldest)))
    some = pa.compute.if_else(is_told, lines["line_digest"], None)
    assert outcomes(lines.set_column(at, "line_digest", some), known, oldest).to_pylist() == found


def test_texts_are_not_asked_for_where_copies_are_of_two_files() -> None:
    rows: list[Row] = [(file, event_line(1), None, None, None, None, None) for file in ("a", "b")]
    lines = pa.table(suspects(lines_of(rows), 0, SECRET))
    judged = outcomes(lines)
    assert judged["outcome"].to_pylist() == ["event", "duplicate"]
    assert not are_told_by_text(lines, judged).any()


@given(seed=st.integers(0, 2**32))
def test_contents_are_equal_exactly_if_their_digests_are(seed: int) -> None:
    random = Random(seed)
    lines = lines_of([drawn(random) for _ in range(60)])
    events = lines.filter(pa.compute.is_valid(lines["event_id"]))
    names = [name for name in events.schema.names if name in CONTENT]
    texts = [str(row) for row in events.select(names).to_pylist()]
    digests = content_digests(events, SECRET).to_pylist()
    assert len(set(zip(texts, digests, strict=True))) == len(set(texts)) == len(set(digests))


CONTENT = {
    field.name
    for field in lines_of([]).schema
    if field.name not in ("source_file", "line", "log", "position")
} - {"cluster", "cluster_id", "source_format", "time", "day", "reason", "brings_id", "line_key", "is_counted"}


def outcome(spark: SparkSession, folder: Path, runs: Sequence[Sequence[Row]], options: IngestOptions) -> Any:
    """Return what runs over these lines leave: their counts and the rows of all tables."""
    tables = Tables(folder)
    told: list[tuple[Any, ...]] = []
    for number, lines in enumerate(runs):
        frame = spark.createDataFrame(list(lines), INPUT_LINES_SCHEMA)
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


def test_many_buckets_and_many_tasks_end_as_one(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    random = Random(seed)
    runs = [[drawn(random) for _ in range(150)] for _ in range(2)]
    options = IngestOptions(with_rollup=False, watermark_days=random.choice([None, 2]))
    alone = outcome(spark, tmp_path_factory.mktemp("alone"), runs, options)
    assert sum(told[0] for told in alone[0]) == len(alone[4])
    monkeypatch.setattr(line_writer, "FEW_LINES", 0)
    for limit in (50, 1):  # by staged file, then by day
        monkeypatch.setattr(line_writer, "PIECES_MAX", limit)
        monkeypatch.setattr(line_writer, "TASK_EVENTS", 30)
        with compared(list(LIMITS)[1]):
            assert outcome(spark, tmp_path_factory.mktemp("many"), runs, options) == alone


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
