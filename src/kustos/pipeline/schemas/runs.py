"""The tables in which kustos keeps what it has done: `runs` and `inputs`."""

from typing import Final

from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

RUNS_SCHEMA: Final = StructType(
    [
        StructField("number", LongType()),
        StructField("run_id", StringType()),
        StructField("kind", StringType()),
        StructField("summary", StringType()),
        StructField("newest_time_ms", LongType()),
        StructField("stale_days", ArrayType(StringType())),
        StructField("closed_before", StringType()),
        StructField("versions", StringType()),
    ]
)
"""`summary` and `versions` are JSON: counts of a run, and the version of each table after it."""

INPUTS_SCHEMA: Final = StructType(
    [
        StructField("path", StringType()),
        StructField("size_bytes", LongType()),
        StructField("modified_ns", LongType()),
        StructField("inode", StringType()),  # 64 bits without a sign, which Delta does not know
        StructField("log", StringType()),
        StructField("number", LongType()),
        StructField("beginning", StringType()),
        StructField("source", StringType()),
        StructField("cluster", StringType()),
    ]
)
"""`source` is null for an input without one; `cluster` is empty for an input without one."""
