"""A short run: a thousand new lines into tables that have some days already.

- short-run-1k: seconds of `run_pipeline` by the wall, from the search for new files to the last commit,
  copies looked for and the roll-up included; `theirs` is the limit of 0.7 seconds

The session is warm: tables were filled from a file of each of the days before, and some short runs went ahead
of those that count. Each run finds one more file of Kafka's text, with the next minute of the same day. The
figure is the median of the runs; the processor time of each, of the JVM and its Python workers, is told on
standard error. A limit in seconds is for two idle cores.
"""

import tempfile
import time
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.replaying.processor import tree_seconds
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
    progress(figure.sentence())
    emit([figure])


if __name__ == "__main__":
    main()
