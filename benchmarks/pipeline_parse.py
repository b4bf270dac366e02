"""Kafka's audit text to events: five million lines of text into Parquet, beside a bare copy of the text.

- parse-5m: lines/s of reading and parsing text and writing what it says with what each line is known by, as
  every run does it; `theirs` reads the same text and writes it to Parquet as it is
- parse-5m-rate: the same beside the 250,000 lines/s that two cores shall do
- parse-5m-settled: the whole run into empty tables, copies found, without a roll-up

What a line costs in processor time, of the JVM and its Python workers, is told on standard error: it says
more than seconds do where others work on the same machine.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.figures import QUICK, Figure, emit, progress
from benchmarks.replaying.processor import tree_seconds
from benchmarks.sources.lines import kafka_lines
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import IngestOptions, Tables, ingest
from kustos.pipeline.tables.staging import stage_lines

SIZE = 100_000 if QUICK else 5_000_000
FILES = 8
ROUNDS = 2 if QUICK else 3
RATE_FLOOR = 250_000
MEMORY = "6g"

Write = Callable[[DataFrame, Path], None]


def write_text(folder: Path) -> None:
    """Write the lines into as many files as brokers would."""
    folder.mkdir()
    each = SIZE // FILES
    for number in range(FILES):
        with (folder / f"kafka-authorizer.log.{number}").open("w") as file:
            file.writelines(f"{line}\n" for line in kafka_lines(each, seed=number))


def read(spark: SparkSession, folder: Path) -> DataFrame:
    text = spark.read.text(str(folder))
    return text.selectExpr("_metadata.file_name AS file", "value AS line")


def written(transform: Callable[[DataFrame], DataFrame]) -> Write:
    """Return what writes the transformed lines."""

    def write(lines: DataFrame, out: Path) -> None:
        transform(lines).write.parquet(str(out))

    return write


def parsed(lines: DataFrame, out: Path) -> None:
    """Write what each line says, as a run of kustos does before it looks for copies."""
    staged = stage_lines(lines, out, time_zone="UTC")
    if not staged.rows == sum(staged.days().values()) == SIZE // FILES * FILES:
        raise SystemExit(f"{SIZE} lines gave {staged}")


def settled(lines: DataFrame, out: Path) -> None:
    """Take the lines into tables, where none is stored yet, without a roll-up."""
    ingest(lines.sparkSession, lines, Tables(out), "run", options=IngestOptions(with_rollup=False))


def seconds(lines: DataFrame, write: Write, out: Path) -> tuple[float, float]:
    """Return how long the whole way into Parquet takes, and its processor time."""
    shutil.rmtree(out, ignore_errors=True)
    start, before = time.monotonic(), tree_seconds()
    write(lines, out)
    return time.monotonic() - start, tree_seconds() - before


def main() -> None:
    settings: dict[str, Any] = {"spark.driver.memory": MEMORY}
    writes = {"bare": written(lambda lines: lines), "parse": parsed, "settle": settled}
    taken: dict[str, list[float]] = {name: [] for name in writes}
    with tempfile.TemporaryDirectory(prefix="bench-parse-") as scratch:
        folder = Path(scratch)
        progress(f"writing {SIZE} lines")
        write_text(folder / "text")
        with open_session("benchmark", settings=settings) as spark:
            lines = read(spark, folder / "text")
            for number in range(ROUNDS + 1):
                for name, write in writes.items():
                    took, busy = seconds(lines, write, folder / name)
                    microseconds = busy / SIZE * 1_000_000
                    progress(
                        f"round {number} {name}: {took:.2f} s, {microseconds:.1f} µs of processor a line"
                    )
                    if number:  # the first round warms the JVM up
                        taken[name].append(took)
            events = Tables(folder / "settle").read(spark, "audit_events").count()
            if events != SIZE // FILES * FILES:
                raise SystemExit(f"{events} events of {SIZE} lines")
    rate = {name: SIZE / statistics.median(found) for name, found in taken.items()}
    common: dict[str, Any] = {"unit": "lines/s", "size": SIZE, "higher_is_better": True}
    figures = [
        Figure(name="parse-5m", ours=rate["parse"], theirs=rate["bare"], floor=0.1, **common),
        Figure(name="parse-5m-rate", ours=rate["parse"], theirs=RATE_FLOOR, floor=1.0, **common),
        Figure(name="parse-5m-settled", ours=rate["settle"], theirs=rate["bare"], **common),
    ]
    for figure in figures:
        progress(figure.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
