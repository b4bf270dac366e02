"""A stream in a process of its own, to be killed: tells each batch once it is committed."""

import os
import sys
from pathlib import Path

from kustos.pipeline.run.stream import StreamOptions, run_stream
from kustos.pipeline.run.topic import TopicSettings
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import RunSummary, Tables
from testkit.spark_jars import SPARK_KAFKA, spark_jars
from testkit.spark_quick import SETTINGS


def tell(batch: RunSummary) -> None:
    """Say what was committed, at once."""
    print("committed", batch.lines, flush=True)


def main() -> None:
    """Stream until killed; the JVM is in the same process group."""
    os.setpgrp()
    bootstrap, topic, folder = sys.argv[1:]
    settings = TopicSettings(
        topic=topic, client_properties={"bootstrap.servers": bootstrap}, maximum_records=1000
    )
    with open_session("kustos stream", settings={**SETTINGS, "spark.jars": spark_jars(SPARK_KAFKA)}) as spark:
        options = StreamOptions(interval_ms=100)
        tables, checkpoint = Tables(Path(folder, "tables")), Path(folder, "checkpoint")
        run_stream(spark, settings, tables, checkpoint, options=options, on_batch=tell)


if __name__ == "__main__":
    main()
