"""A period of days (UTC) of a table by day."""

from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql


def within_days(rows: DataFrame, first_day: date | None, last_day: date | None) -> DataFrame:
    """Return the rows from the first to the last day, both included; None leaves that end open."""
    if first_day is not None:
        rows = rows.filter(sql.col("day") >= sql.lit(first_day))
    return rows if last_day is None else rows.filter(sql.col("day") <= sql.lit(last_day))
