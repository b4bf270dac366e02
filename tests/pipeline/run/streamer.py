"""A stream in a process of its own, to be killed: tells each batch once it is committed, and ends with none.

After `BATCHES_MAX` it only waits: who is to kill it amid its work may be slow to hear of the first.
"""

import os
import sys
from itertools import count
from pathlib import Path
from threading import Event

from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.run.topic import TopicSettings
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import RunSummary, Tables
from testkit.spark_quick import SETTINGS

BATCHES_MAX = 2
"""Less than half of what the test has in its topic."""

_batches = count(1)


def tell(batch: RunSummary) -> None:
    """Say what was committed, at once; the last time for ever."""
    print("committed", batch.lines, flush=True)
    if next(_batches) == BATCHES_MAX:
        Event().wait()


def main() -> None:
    """Stream until killed; the JVM is in the same process group."""
    os.setpgrp()
    bootstrap, topic, folder = sys.argv[1:]
    settings = TopicSettings(
        topic=topic, client_properties={"bootstrap.servers": bootstrap}, maximum_records=1000
    )
    with open_session("kustos stream", settings=SETTINGS) as spark:
        options = StreamOptions(interval_ms=100)
        tables, checkpoint = Tables(Path(folder, "tables")), Path(folder, "checkpoint")
        run_stream(spark, settings, tables, checkpoint, options=options, on_batch=tell)


if __name__ == "__main__":
    main()
