"""Sweeps: an administrative operation tried over many names, each once or a few times."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import GOVERNING, ActivityScope, only
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.tails import negative_binomial_surprise

TRIED = ["principal", "operation", "resource_type", "resource_name"]


def tries(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return by day the names on which a principal tried an administrative operation a few times.

    Those that were denied, and those that are new to it; on whatever hosts and in whatever hours.
    """
    first = Window.partitionBy(*TRIED)
    return (
        days.filter(
            ~sql.col("is_super")
            & sql.col("operation").isin(*GOVERNING)
            & (sql.col("resource_type") != "CLUSTER")
            & sql.col("resource_name").isNotNull()
        )
        .repartition("principal")  # these are few, and all that follows is about one principal at a time
        .groupBy(*TRIED, "day")
        .agg(
            sql.sum("event_count").alias("event_count"),
            sql.max(~sql.col("is_allowed")).alias("is_denied"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
        )
        .withColumn("is_new", sql.min("day").over(first) == sql.col("day"))
        .filter(
            (sql.col("is_denied") | sql.col("is_new"))
            & (sql.col("event_count") <= scope.parameters.attempts_per_name)
        )
    )


def in_days_before(tried: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return each row for its day, `tried_on`, and for the days after it in which a sweep may go on.

    A caller leaves out days on which nothing was tried.
    """
    last = sql.date_add("tried_on", scope.parameters.sweep_days - 1)
    # `explode` would make a `day` that is never null: as the first in a union with days that may be, Spark
    # loses track of it when the rows of the union are kept and read twice
    days = sql.explode_outer(sql.sequence("tried_on", last))
    return tried.withColumnRenamed("day", "tried_on").withColumn("day", days)


def swept(tried: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return for each principal and day with tries what it tried then and in the days before."""
    name = sql.struct("resource_type", "resource_name")
    is_today = sql.col("tried_on") == sql.col("day")
    return (
        in_days_before(tried, scope)
        .groupBy("principal", "day")
        .agg(
            sql.size(sql.collect_set(name)).alias("tried"),
            sql.size(sql.collect_set(sql.when(sql.col("is_denied"), name))).alias("denied_names"),
            sql.size(sql.collect_set("tried_on")).alias("tried_days"),
            sql.sum(sql.when(is_today, sql.col("event_count"))).alias("event_count"),
            sql.min(sql.when(is_today, sql.col("first_time"))).alias("first_time"),
            sql.max(sql.when(is_today, sql.col("last_time"))).alias("last_time"),
            sql.sort_array(sql.collect_set("operation")).alias("operations"),
            only("resource_type").alias("resource_type"),
            sql.slice(sql.sort_array(sql.collect_set("resource_name")), 1, NAMES_MAX).alias("names"),
        )
        .filter(sql.col("event_count").isNotNull())
    )


def usual(count: str, scope: ActivityScope) -> dict[str, Column]:
    """Return `mean` and `variance` of a count by day, over a principal's active days of the history."""
    before = sql.when(scope.is_history(), sql.col(count).cast("long"))
    mine = Window.partitionBy("principal")
    sums = [sql.coalesce(sql.sum(each).over(mine), sql.lit(0)) for each in (before, before * before)]
    mean, squares = [(each + 0.5) / sql.greatest("active_days", sql.lit(1)) for each in sums]
    return {"mean": mean, "variance": squares + mean}


def sweeps(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind SWEEP: one for a principal and day, over the names of the days before too.

    Compared with the principal's own history of such days, so that automation which makes topics every day
    is none. Some of the names must have been denied: all allowed are a deploy.
    """
    parameters = scope.parameters
    found = (
        swept(tries(days, scope), scope)
        .join(everybody, "principal")
        .withColumns(usual("tried", scope))
        .filter(
            scope.is_judged()
            & (sql.col("tried") >= parameters.swept_names)
            & (sql.col("denied_names") >= parameters.swept_names_denied)
        )
        .withColumn("surprise", negative_binomial_surprise(*map(sql.col, ("tried", "mean", "variance"))))
        .filter(sql.col("surprise") >= parameters.enumeration_surprise)
        .withColumn("resource_name", sql.lit(None).cast("string"))
    )
    reason = sql.format_string(
        "tried %s on %d names (%s) in %d days, %d of them denied; usual are %.1f: somebody looks for what it "
        "may change",
        sql.array_join("operations", ", "),
        "tried",
        quoted(sql.col("names")),
        "tried_days",
        "denied_names",
        "mean",
    )
    evidence = {
        name: sql.col(name) for name in ("operations", "tried", "denied_names", "tried_days", "mean", "names")
    }
    return candidate(found, "SWEEP", parameters.enumeration_surprise, reason, evidence)
