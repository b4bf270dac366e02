"""Tables as Delta Lake tables: the same staging and ledger, with Delta's own log instead of moved files.

A write has the ledger's sequence number as Delta's transaction version, so that applying an entry twice
writes once. Needs Delta's jars in the session, and `SETTINGS`; no Python package.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.errors import TablesError

SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",  # a log of some hundred entries is no work for many
}
"""What a session needs besides the jars of delta-spark, delta-storage and delta-kernel."""

APPEND, REPLACE_DAYS, REPLACE = "append", "replace_days", "replace"
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_APPLICATION: Final = "kustos-tables"


def delta_write(table: str, mode: str, days: tuple[str, ...], partitioned: bool) -> dict[str, Any]:
    """Return the description of one write for an entry; the rows are staged under the table's name."""
    return {"table": table, "mode": mode, "days": list(days), "partitioned": partitioned}


def apply_delta_write(
    spark: SparkSession, folder: Path, staging: Path, write: Mapping[str, Any], sequence: int
) -> None:
    """Write a staged table into its Delta table, unless this sequence number was written before."""
    staged = staging / write["table"]
    rows = spark.read.parquet(str(staged))
    writer = (
        rows.write.format("delta")
        .option("txnAppId", f"{_APPLICATION}-{write['table']}")
        .option("txnVersion", sequence)
    )
    if write["partitioned"]:
        writer = writer.partitionBy("day")
    target = str(folder / write["table"])
    if write["mode"] == APPEND:
        writer.mode("append").option("mergeSchema", "true").save(target)
    elif write["mode"] == REPLACE_DAYS:
        days = ", ".join(f"DATE'{_checked_day(day)}'" for day in write["days"])
        condition = f"day IN ({days})"
        if not is_delta(folder / write["table"]):
            writer.mode("append").save(target)
        else:
            writer.mode("overwrite").option("replaceWhere", condition).save(target)
    else:
        writer.mode("overwrite").option("overwriteSchema", "true").save(target)


def read_delta(spark: SparkSession, folder: Path) -> DataFrame:
    """Return a Delta table as it is now."""
    return spark.read.format("delta").load(str(folder))


def is_delta(folder: Path) -> bool:
    """Return whether the folder is a Delta table."""
    return (folder / "_delta_log").is_dir()


def optimize(spark: SparkSession, folder: Path) -> None:
    """Compact small files; Delta commits that by itself and changes no row."""
    spark.sql(f"OPTIMIZE delta.`{str(folder).replace('`', '``')}`")


def _checked_day(day: str) -> str:
    if _DAY.fullmatch(day) is None:
        raise TablesError(f"`{day}` is no day, the ledger is damaged")
    return day
