"""What is small: a thousand new lines in a warm session, and first answers over ten thousand events.

- short-run-1k: seconds of `run_pipeline` by the wall, from the search for new files to the last commit,
  copies looked for and the roll-up included; `theirs` is the limit of 0.7 seconds

The session is warm: tables were filled from a file of each of the days before, and some short runs went ahead
of those that count. Each run finds one more file of Kafka's text, with the next minute of the same day. The
figure is the median of the runs; the processor time of each, of the JVM and its Python workers, is told on
standard error. A limit in seconds is for two idle cores.

- start-review-10k, start-report-10k, start-replay-10k: seconds from the start of a command to its end, over
  tables of ten thousand events; `theirs` is a Python process that starts a Spark as PySpark does by itself,
  and counts a row

Each is a process of its own, in turns, and the figure is the median of the rounds. Standard error also has
the processor time of all processes, which differs less on a busy machine.
"""

import json
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.replaying.processor import command_seconds, tree_seconds
from benchmarks.sources.lines import BEGIN, kafka_lines
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables

LINES: Final = 1_000
DAYS: Final = 7
LINES_OF_DAY: Final = 2_000 if QUICK else 100_000
WARMING: Final = 1 if QUICK else 5
RUNS: Final = 3 if QUICK else 20
LIMIT_S: Final = 0.7

FIRST_EVENTS: Final = 1_000 if QUICK else 10_000
FIRST_ACLS: Final = 300
ROUNDS: Final = 1 if QUICK else 5

CONFIGURATION: Final = """\
version: 1
tables: {{path: {folder}/tables}}
inputs: [{{files: {folder}/audit}}]
acls: {{source: {folder}/acls.jsonl}}
"""

BARE: Final = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").getOrCreate()
"""
"""The floor: a Spark with its own settings."""

A_JOB: Final = f"{BARE}spark.range(1).count()\n"


def write_log(audit: Path, number: int, count: int, seed: int, begin: timedelta, length: timedelta) -> None:
    """Write one more broker's log, of so many lines, in so long a time after the beginning."""
    lines = kafka_lines(count, seed=seed, begin=BEGIN + begin, every=length / count)
    path = audit / f"broker-{number:03d}" / "kafka-authorizer.log"
    path.parent.mkdir()
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def fill(spark: SparkSession, audit: Path, tables: Tables) -> None:
    """Take some days into the tables."""
    day = timedelta(days=1)
    for number in range(DAYS):
        write_log(audit, number, LINES_OF_DAY, number, number * day, day)
    run_pipeline(spark, tables=tables, audit=audit)


def short_runs(spark: SparkSession, audit: Path, tables: Tables) -> list[float]:
    """Return the seconds of each short run; raise `SystemExit` unless all its lines are new events."""
    found = []
    for number in range(WARMING + RUNS):
        began = timedelta(days=DAYS, minutes=number)
        write_log(audit, DAYS + number, LINES, DAYS + number, began, timedelta(minutes=1))
        start, before = time.monotonic(), tree_seconds()
        done = run_pipeline(spark, tables=tables, audit=audit)
        took, busy = time.monotonic() - start, tree_seconds() - before
        if done.events != LINES:
            raise SystemExit(f"{LINES} new lines gave {done}")
        progress(f"run {number}: {took:.2f} s, {busy:.2f} s of processor time")
        found.append(took)
    return found[WARMING:]


def first_answers() -> list[Figure]:
    """Return the figures of commands that start a Spark for a small set."""
    with tempfile.TemporaryDirectory(prefix="bench-first-") as scratch:
        folder = Path(scratch)
        (folder / "audit").mkdir()
        for day in range(DAYS):
            begin, length = timedelta(days=day), timedelta(days=1)
            write_log(folder / "audit", day, FIRST_EVENTS // DAYS, day, begin, length)
        rule = {"resource_type": "TOPIC", "pattern_type": "PREFIXED", "host": "*", "operation": "READ"}
        lines = (
            {"principal": f"User:service-{n}", "resource_name": f"topic-{n % 97}", "permission_type": "ALLOW"}
            for n in range(FIRST_ACLS)
        )
        (folder / "acls.jsonl").write_text("".join(f"{json.dumps(rule | line)}\n" for line in lines))
        configuration = folder / "pipeline.yml"
        configuration.write_text(CONFIGURATION.format(folder=folder))
        pipeline = (sys.executable, "-m", "kustos", "pipeline")
        config = ("--config", str(configuration))
        command_seconds([*pipeline, "run", *config])
        commands = {
            "session": [sys.executable, "-c", BARE],
            "session and a job": [sys.executable, "-c", A_JOB],
            "review": [*pipeline, "review", *config],
            "report": [*pipeline, "report", "--out", str(folder / "report.html"), *config],
            "replay": [*pipeline, "replay", str(folder / "acls.jsonl"), *config],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(1, ROUNDS + 1):
            for name, command in commands.items():
                took, busy = command_seconds(command)
                taken[name].append(took)
                progress(f"round {number}: {name} {took:.1f} s, {busy:.1f} s of processor time")
    theirs = median(taken["session and a job"])
    return [
        Figure(name=f"start-{name}-10k", unit="s", ours=median(taken[name]), theirs=theirs, size=FIRST_EVENTS)
        for name in ("review", "report", "replay")
    ]


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="bench-short-") as scratch,
        open_session("benchmark") as spark,
    ):
        audit, tables = Path(scratch, "audit"), Tables(Path(scratch, "tables"))
        audit.mkdir()
        fill(spark, audit, tables)
        seconds = median(short_runs(spark, audit, tables))
    figure = Figure(name="short-run-1k", unit="s", ours=seconds, theirs=LIMIT_S, size=LINES, floor=1.0)
    figures = [figure, *first_answers()]
    for each in figures:
        progress(each.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
