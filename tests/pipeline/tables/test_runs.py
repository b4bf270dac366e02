"""Runs over files: any split of the same logs over any runs gives the tables of one run."""

import gzip
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.tables import IngestOptions, RunSummary, Tables
from tests.pipeline.events import event_line, kafka_line

TIME_MS = 1_795_233_600_123
RUNS = 3


def counts(summary: RunSummary) -> tuple[int, int, int, int]:
    return (summary.lines, summary.events, summary.quarantined, summary.duplicates)


def json_log(random: Random, node: int) -> list[str]:
    """Make a log of events: some twice, some late by days, and junk.

    It begins with an event of its own: of two logs that begin alike the second is named by its path.
    """
    lines = [event_line(100 + node, time_ms=TIME_MS)]
    for _ in range(40):
        number = random.randrange(30)
        late_ms = number % 3 * 86_400_000  # the same event is always the same
        lines.append(event_line(number, time_ms=TIME_MS - late_ms, principal_name=f"u{number % 4}"))
    return [*lines[:10], "junk", "", "junk", *lines[10:], event_line(99)[:-9]]


def kafka_log(random: Random, node: int) -> list[str]:
    """Make a broker's log: some lines equal to one another, and to lines of other brokers.

    Its clock was set back once. Time that goes back often, among equal lines, would be exports that overlap:
    which, the lines to come show, and what an earlier run counted it cannot take back (it says its doubt).
    """
    begin, late = (kafka_line(time=f"2026-11-20 0{hour}:00:00,{node:03d}") for hour in (0, 3))
    times = [f"2026-11-{random.choice([20, 21])} 04:00:00,00{random.randrange(4)}" for _ in range(30)]
    lines = (kafka_line(time=time, principal=f"User:u{time[-1]}") for time in sorted(times))
    return [begin, *lines, late, "[note"]


def lay_out(folder: Path, logs: list[list[str]], random: Random, share: float) -> None:
    """Write the beginning of each log, under some name, packed or not, once or twice."""
    folder.mkdir(exist_ok=True)
    for number, log in enumerate(logs):
        if random.random() > share:
            continue
        shown = log[: max(1, int(len(log) * share))]
        for _ in range(random.choice([1, 1, 2])):
            name = f"{random.choice('abc')}{number}.log.{random.randrange(5)}"
            content = "".join(f"{line}\n" for line in shown).encode()
            packed = random.random() < 0.4
            path = folder / f"{name}{'.gz' if packed else ''}"
            path.unlink(missing_ok=True)
            path.write_bytes(gzip.compress(content, mtime=random.randrange(99)) if packed else content)


def contents(spark: SparkSession, tables: Tables) -> dict[str, list[Any]]:
    found = {}
    for name, left_out in (
        ("audit_events", ["source_file"]),  # the copy that was seen first
        ("audit_rollup", []),
        ("quarantine", ["file"]),
    ):
        found[name] = sorted(map(repr, tables.read(spark, name).drop(*left_out).collect()))
    return found


def test_any_split_of_logs_over_any_runs_gives_the_tables_of_one_run(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random, home = Random(seed), tmp_path_factory.mktemp("split")
    logs = [json_log(random, 1), json_log(random, 2), kafka_log(random, 1), kafka_log(random, 2)]
    pieces, whole = Tables(home / "pieces"), Tables(home / "whole")
    (home / "audit").mkdir()
    (home / "audit" / "empty").touch()
    for run in range(1, RUNS + 1):
        lay_out(home / "audit", logs, random, 1.0 if run == RUNS else run / RUNS)
        run_pipeline(spark, tables=pieces, audit=home / "audit")
    lay_out(home / "once", logs, Random(0), 1.0)
    one = run_pipeline(spark, tables=whole, audit=[home / "once"])
    assert contents(spark, pieces) == contents(spark, whole)
    assert one.lines == one.events + one.quarantined + one.duplicates
    assert len(contents(spark, whole)["audit_events"]) == one.events


def test_a_second_run_reads_only_what_is_new_and_a_callers_id_is_taken_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, tables = tmp_path / "au*dit [1]", Tables(tmp_path / "ta{b}les")
    (audit / "day=1").mkdir(parents=True)
    (audit / "day=1" / "a b%41+.log").write_text(f"{kafka_line()}\n{kafka_line()}\n")
    first = run_pipeline(spark, tables=tables, audit=audit, run_id="nightly-1")
    assert (first.files, first.new_files, *counts(first)) == (1, 1, 2, 2, 0, 0)
    idle = run_pipeline(spark, tables=tables, audit=audit)
    assert (idle.files, idle.new_files, *counts(idle)) == (1, 0, 0, 0, 0, 0)
    (audit / "day=1" / "a b%41+.log").rename(audit / "renamed")
    (audit / "copy.gz").write_bytes(gzip.compress(f"{kafka_line()}\n".encode() * 3))
    again = run_pipeline(spark, tables=tables, audit=audit, run_id="nightly-1")
    assert again.is_repeat
    assert counts(again) == counts(first)
    second = run_pipeline(spark, tables=tables, audit=audit, run_id="nightly-2")
    assert (second.files, second.new_files, *counts(second)) == (2, 1, 3, 1, 0, 2)
    files = {row["source_file"] for row in tables.read(spark, "audit_events").collect()}
    assert files == {"day=1/a b%41+.log", "copy.gz"}


def test_logs_of_brokers_with_one_banner_count_each_and_their_copies_do_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    for node in range(3):
        # equal lines but for the first: what many clients do at once
        first = kafka_line(time=f"2026-11-21 03:00:00,{node:03d}")
        lines = ["===> User", first, *(kafka_line(time=f"2026-11-21 04:00:00,{at:03d}") for at in range(99))]
        text = "".join(f"{line}\n" for line in lines).encode()
        for name in (f"b{node}/server.log", f"b{node}/server.log.1.gz"):
            (audit / name).parent.mkdir(parents=True, exist_ok=True)
            (audit / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    summary = run_pipeline(spark, tables=tables, audit=audit)
    assert (*counts(summary), summary.warnings) == (606, 300, 3, 303, ())


def test_a_doubt_about_a_log_is_said_with_the_run(spark: SparkSession, tmp_path: Path) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    for name in ("x", "y"):
        (audit / name).mkdir(parents=True)
        (audit / name / "server.log").write_text(f"{kafka_line()}\n")
    summary = run_pipeline(spark, tables=tables, audit=audit, run_id="one")
    assert counts(summary) == (2, 2, 0, 0)
    assert ["read as two logs" in each for each in summary.warnings] == [True]
    assert run_pipeline(spark, tables=tables, audit=audit, run_id="one").warnings == summary.warnings


def test_half_a_line_waits_until_it_is_whole_or_its_file_is_closed(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()
    lines = [kafka_line(time=f"2026-11-21 04:00:00,{at:03d}", principal=f"User:u{at}") for at in range(10)]
    text = "".join(f"{line}\n" for line in lines)
    # without the logger at its end the last line would be an event: of another text, and so another event
    (audit / "kafka.log").write_text(text.removesuffix(" (kafka.authorizer.logger)\n"))
    first = run_pipeline(spark, tables=tables, audit=audit)
    assert (*counts(first), first.half_lines) == (9, 9, 0, 0, 1)
    idle = run_pipeline(spark, tables=tables, audit=audit)
    assert (idle.new_files, idle.half_lines) == (0, 1)
    (audit / "kafka.log").write_text(text + "[2026-11-21 04:")
    whole = run_pipeline(spark, tables=tables, audit=audit)
    assert (*counts(whole), whole.half_lines) == (10, 1, 0, 9, 1)
    (audit / "kafka.log").rename(audit / "kafka.log.1")
    closed = run_pipeline(spark, tables=tables, audit=audit)
    assert (*counts(closed), closed.half_lines) == (11, 0, 1, 10, 0)
    assert tables.read(spark, "audit_events").count() == 10


def test_a_damaged_file_stops_the_run_or_is_quarantined_whole_and_read_once_it_is_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()
    whole = gzip.compress("\n".join(event_line(number) for number in range(2000)).encode())
    (audit / "a b.gz").write_bytes(whole[: len(whole) // 2])
    (audit / "c.gz").write_bytes(b"hello\n")
    (audit / "good").write_bytes(event_line(1).encode() + b"\n" + bytes(range(256)) + b"\n")
    with pytest.raises(AuditInputError, match=r"cannot read `/.*\.gz` to its end"):
        run_pipeline(spark, tables=tables, audit=audit)
    assert tables.inputs() == {}
    summary = run_pipeline(spark, tables=tables, audit=audit, on_damaged_file="quarantine")
    assert (summary.new_files, summary.damaged_files, *counts(summary)) == (3, 2, 5, 1, 4, 0)
    reasons = {(row["file"], row["reason"]) for row in tables.read(spark, "quarantine").collect()}
    assert reasons == {
        ("a b.gz", "file_damaged: it ends too early"),
        ("c.gz", "file_damaged: it cannot be unpacked"),
        ("good", "format_unknown"),
        ("good", "not_utf8"),
    }
    (audit / "a b.gz").write_bytes(whole)
    mended = run_pipeline(spark, tables=tables, audit=audit, options=IngestOptions(with_rollup=False))
    assert (mended.new_files, *counts(mended)) == (1, 2000, 1999, 0, 1)
