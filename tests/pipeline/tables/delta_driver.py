"""Batches taken into Delta tables by a process of its own: `delta_driver TABLES kill|check`."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import RunSummary, Tables, compact_tables, delta, ingest
from kustos.pipeline.tables.transaction import is_unfinished
from testkit.spark_jars import SPARK_DELTA, spark_jars
from testkit.spark_quick import SETTINGS
from tests.pipeline.events import event_line
from tests.pipeline.tables.test_runs import contents

TIME_MS = 1_795_233_600_123
BATCHES = (
    [event_line(1), event_line(2), "junk"],
    [event_line(2), event_line(3), event_line(4, time_ms=TIME_MS + 86_400_000), "more junk"],
)


def take(spark: SparkSession, tables: Tables, batch: int) -> RunSummary:
    lines = spark.createDataFrame([("f", line) for line in BATCHES[batch]], LINES_SCHEMA)
    return ingest(spark, lines, tables, f"s@{batch}")


def killed_within_the_second_batch(spark: SparkSession, tables: Tables) -> None:
    """Die when Delta has committed two of three tables."""
    take(spark, tables, 0)
    honest = delta.apply_delta_write
    written: list[Any] = []

    def killing(*args: Any) -> None:
        honest(*args)
        written.append(args)
        if len(written) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    replacement: Callable[..., Any] = killing
    delta.apply_delta_write = replacement
    take(spark, tables, 1)


def checked(spark: SparkSession, tables: Tables) -> dict[str, Any]:
    """Return what is found after the kill, and after all that should change no row."""
    found: dict[str, Any] = {"was_unfinished": is_unfinished(tables.folder)}
    found["finished"] = contents(spark, tables)
    found["is_unfinished"] = is_unfinished(tables.folder)
    found["is_repeat"] = take(spark, tables, 1).is_repeat
    compact_tables(spark, tables)
    found["compacted"] = contents(spark, tables)
    tables.replace(spark, "spans", spark.range(2))
    tables.replace(spark, "spans", tables.read(spark, "spans").limit(1))
    return found | {"spans": tables.read(spark, "spans").count()}


def main(folder: str, what: str) -> None:
    settings = {**SETTINGS, **delta.SETTINGS, "spark.jars": spark_jars(SPARK_DELTA)}
    with open_session("kustos delta", settings=settings) as spark:
        tables = Tables(Path(folder), "delta")
        if what == "kill":
            killed_within_the_second_batch(spark, tables)
        print(json.dumps(checked(spark, tables)))


if __name__ == "__main__":
    main(*sys.argv[1:])
