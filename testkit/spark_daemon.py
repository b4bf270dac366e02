"""What Spark's Python workers are forked from in tests: a process that has imported what they need.

Spark's own has imported nothing, so each worker of a long run spends a second and a half on imports.
`tests/pipeline/test_cluster.py` and the commands of the documentation run with Spark's own.
"""

import gc
from importlib import import_module
from typing import Final

from pyspark.daemon import manager

MODULE: Final = "testkit.spark_daemon"

NEEDED: Final = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pyspark.worker",
    "kustos.pipeline.review.supports",
    "kustos.pipeline.history.judgement",
    "kustos.pipeline.privilege.recommendations",
    "kustos.pipeline.review.broken_rules",
    "kustos.pipeline.replay.of_files",
    "kustos.pipeline.review.entitled",
    "kustos.pipeline.run.files.pieces",
    "kustos.pipeline.tables.deduplication.of_runs",
)
"""Modules whose functions run in workers, and what they import."""

if __name__ == "__main__":
    for name in NEEDED:
        import_module(name)
    gc.freeze()  # a worker collects garbage after each task, and would look at all that was imported
    manager()
