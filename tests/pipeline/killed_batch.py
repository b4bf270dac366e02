"""A stream's batch in a process of its own, killed -9 between its commit and the roll-up of its events.

`killed_batch AUDIT TABLES`: the lines of a file are the batch.
"""

import os
import signal
import sys
from pathlib import Path

from kustos.pipeline.run.stream import batches
from kustos.pipeline.schemas.events import LINES_SCHEMA
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import IngestOptions, Tables
from testkit.spark_quick import INTERPRETED, PLANNED_ONCE, SETTINGS


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(audit: str, tables: str) -> None:
    setattr(batches, "refresh_rollup", die)  # noqa: B010 -- a name that the module imports
    with open_session("kustos killed", settings=SETTINGS | INTERPRETED | PLANNED_ONCE) as spark:
        lines = [("topic", line) for line in Path(audit).read_text().splitlines()]
        stream = batches.Batches(
            spark,
            "stream",
            Tables(Path(tables)),
            IngestOptions(with_rollup=False),
            refresh_interval_ms=0,
            on_batch=lambda _: None,
        )
        stream.take(0, spark.createDataFrame(lines, LINES_SCHEMA), {0: len(lines)})  # type: ignore[arg-type]


if __name__ == "__main__":
    main(*sys.argv[1:])
