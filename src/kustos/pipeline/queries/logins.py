"""Queries on logins, over `security_events`: failures by name, address and time."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

LOGIN_TYPES = ("LOGIN", "REAUTHENTICATION")
LOGIN_COLUMNS = (
    "event_type",
    "result",
    "claimed_name",
    "host",
    "failure",
    "attempt_count",
    "first_time_ms",
    "time_ms",
)
"""The columns of `security_events` that these queries read."""

REASONS_MAX = 3
"""Reasons of a source that are shown: there are a handful."""


def logins(security: DataFrame) -> DataFrame:
    """Return the logins and re-authentications, with `is_failed`."""
    found = security.filter(sql.col("event_type").isin(*LOGIN_TYPES))
    return found.withColumn("is_failed", sql.col("result") == "FAILURE")


def failed_attempts() -> Column:
    """Return the sum of attempts that failed: an event may stand for many."""
    return sql.sum(sql.when(sql.col("is_failed"), sql.col("attempt_count")).otherwise(0))


def succeeded_attempts() -> Column:
    """Return the sum of attempts that did not fail."""
    return sql.sum(sql.when(sql.col("is_failed"), 0).otherwise(sql.col("attempt_count")))


def login_totals(logins: DataFrame) -> DataFrame:
    """Return one row: `succeeded`, `failed`, `names` and `hosts` that failed, and between which times."""
    failed = sql.col("is_failed")
    return logins.agg(
        sql.coalesce(succeeded_attempts(), sql.lit(0)).alias("succeeded"),
        sql.coalesce(failed_attempts(), sql.lit(0)).alias("failed"),
        sql.count_distinct(sql.when(failed, sql.col("claimed_name"))).alias("names"),
        sql.count_distinct(sql.when(failed, sql.col("host"))).alias("hosts"),
        sql.min("first_time_ms").alias("first_time_ms"),
        sql.max("time_ms").alias("last_time_ms"),
    )


def login_activity(logins: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return succeeded and failed attempts of each bucket that has any, unordered.

    `bucket_start` is in Unix seconds. Attempts of one event count at the time of the last one, at most five
    minutes after the first.
    """
    bucket = sql.floor(sql.col("time_ms") / (bucket_seconds * 1000)) * bucket_seconds
    return logins.groupBy(bucket.alias("bucket_start")).agg(
        succeeded_attempts().alias("succeeded"), failed_attempts().alias("failed")
    )


def failure_sources(logins: DataFrame, limit: int) -> DataFrame:
    """Return the names tried from an address that failed most: attempts, times, reasons, and successes.

    A null name means none or many, a null address many.
    """
    failed = sql.col("is_failed")
    sources = logins.groupBy("claimed_name", "host").agg(
        failed_attempts().alias("failed"),
        succeeded_attempts().alias("succeeded"),
        sql.min(sql.when(failed, sql.col("first_time_ms"))).alias("first_time_ms"),
        sql.max(sql.when(failed, sql.col("time_ms"))).alias("last_time_ms"),
        sql.slice(
            sql.sort_array(sql.collect_set(sql.when(failed, sql.col("failure")))), 1, REASONS_MAX
        ).alias("reasons"),
    )
    order = (sql.desc("failed"), sql.asc_nulls_first("claimed_name"), sql.asc_nulls_first("host"))
    return sources.filter("failed > 0").orderBy(*order).limit(limit)
