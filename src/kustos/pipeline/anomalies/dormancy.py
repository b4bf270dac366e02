"""Dormant credentials that wake: a silence too long for how often the principal came before."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.queries.record import RECORDED_SHARE_MIN


def dormant_waking(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind DORMANT_WAKING: the first day after a long silence.

    By the rate of its active days before, a silence of that length must be improbable (Poisson), and no
    earlier silence may have been nearly as long: a monthly job is silent every month. Only days of the
    silence with a record count as silent, those on which any principal was active: a log that is off records
    no use. A principal that pauses at times may be on leave, and comes back to where it was before.
    """
    parameters = scope.parameters
    began = everybody.agg(sql.min("principal_first_day").alias("began"))
    record = days.agg(sql.collect_set("day").alias("record"))
    mine = Window.partitionBy("principal").orderBy("day")
    earlier = mine.rowsBetween(Window.unboundedPreceding, -1)
    silences = (
        _active_days(days)
        .withColumn("last_day", sql.lag("day").over(mine))
        .withColumn("silent_days", sql.date_diff("day", "last_day") - 1)
    )
    judged = (
        silences.withColumns(
            {
                "days_before": sql.count(sql.lit(1)).over(earlier),
                "longest_before": sql.coalesce(sql.max("silent_days").over(earlier), sql.lit(0)),
            }
        )
        .filter(scope.is_judged() & (sql.col("silent_days") >= parameters.dormant_days))
        .crossJoin(sql.broadcast(began))
        .crossJoin(sql.broadcast(record))
        .withColumn("recorded_days", sql.size(sql.filter("record", _is_between)).cast("long"))
        .filter(sql.col("recorded_days") >= parameters.dormant_days * RECORDED_SHARE_MIN)
    )
    rate = sql.col("days_before") / (sql.date_diff("last_day", "began") + 1)
    is_leave = (
        (sql.col("rate") < parameters.daily_share)
        & (sql.col("silent_days") < parameters.leave_days)
        & sql.col("is_where_it_was")
    )
    found = (
        judged.filter(sql.col("longest_before") < sql.col("silent_days") * parameters.periodic_share)
        .withColumn("rate", rate)
        .withColumn("surprise", sql.col("rate") * sql.col("recorded_days"))
        .filter((sql.col("surprise") >= parameters.dormant_surprise) & ~is_leave)
        .withColumns(
            {
                "resource_type": sql.lit(None).cast("string"),
                "resource_name": sql.lit(None).cast("string"),
            }
        )
    )
    reason = sql.format_string(
        "silent for %d days since %s, of which %d have a record, and used again from %s; before, its longest "
        "silence was %d days",
        "silent_days",
        sql.date_format("last_day", "yyyy-MM-dd"),
        "recorded_days",
        quoted(sql.col("hosts")),
        "longest_before",
    )
    evidence = {
        name: sql.col(name)
        for name in ("silent_days", "recorded_days", "last_day", "days_before", "longest_before", "hosts")
    }
    return candidate(found, "DORMANT_WAKING", parameters.dormant_surprise, reason, evidence)


def _active_days(days: DataFrame) -> DataFrame:
    """Return a row for each principal and day, and whether it came from networks of earlier days alone."""
    since = sql.min("day").over(Window.partitionBy("principal", "wide_network"))
    return (
        days.repartition("principal")
        .withColumn("network_since", since)
        .groupBy("principal", "day")
        .agg(
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.sum("event_count").alias("event_count"),
            sql.slice(sql.sort_array(sql.collect_set("host")), 1, NAMES_MAX).alias("hosts"),
            sql.min(sql.col("network_since") < sql.col("day")).alias("is_where_it_was"),
        )
    )


def _is_between(day: Column) -> Column:
    return (day > sql.col("last_day")) & (day < sql.col("day"))
