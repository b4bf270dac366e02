"""Sweeps: an administrative operation tried over many names, each once or a few times."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import GOVERNING, ActivityScope
from kustos.pipeline.anomalies.findings import NAMES_MAX, candidate, quoted
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
    """Return for each principal and day with rows those of the day and of the days before, by `tried_on`."""
    days = tried.select("principal", "day").distinct()
    age = sql.date_diff("day", "tried_on")
    together = tried.withColumnRenamed("day", "tried_on").join(days, "principal")
    return together.filter((age >= 0) & (age < scope.parameters.sweep_days))


def swept(tried: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return for each principal and day with tries what it tried then and in the days before."""
    name = sql.struct("resource_type", "resource_name")
    is_today = sql.col("tried_on") == sql.col("day")
    return (
        in_days_before(tried, scope)
        .groupBy("principal", "day")
        .agg(
            sql.count_distinct(name).alias("tried"),
            sql.count_distinct(sql.when(sql.col("is_denied"), name)).alias("denied_names"),
            sql.count_distinct("tried_on").alias("tried_days"),
            sql.sum(sql.when(is_today, sql.col("event_count"))).alias("event_count"),
            sql.min(sql.when(is_today, sql.col("first_time"))).alias("first_time"),
            sql.max(sql.when(is_today, sql.col("last_time"))).alias("last_time"),
            sql.sort_array(sql.collect_set("operation")).alias("operations"),
            sql.when(sql.count_distinct("resource_type") == 1, sql.min("resource_type")).alias(
                "resource_type"
            ),
            sql.slice(sql.sort_array(sql.collect_set("resource_name")), 1, NAMES_MAX).alias("names"),
        )
    )


def sweeps(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return findings of kind SWEEP: one for a principal and day, over the names of the days before too.

    Compared with the principal's own history of such days, so that automation which makes topics every day
    is none. Some of the names must have been denied: all allowed are a deploy.
    """
    parameters = scope.parameters
    counted = scope.keep(swept(tries(days, scope), scope))
    history = (
        counted.filter(scope.is_history())
        .groupBy("principal")
        .agg(
            sql.sum("tried").alias("tried_before"),
            sql.sum(sql.col("tried") * sql.col("tried")).alias("squares_before"),
        )
    )
    looks = sql.greatest(sql.col("active_days"), sql.lit(1))
    mean = (sql.coalesce("tried_before", sql.lit(0)) + 0.5) / looks
    variance = (sql.coalesce("squares_before", sql.lit(0)) + 0.5) / looks + mean
    found = (
        counted.filter(
            scope.is_judged()
            & (sql.col("tried") >= parameters.swept_names)
            & (sql.col("denied_names") >= parameters.swept_names_denied)
        )
        .join(history, "principal", "left")
        .join(everybody, "principal")
        .withColumn("mean", mean)
        .withColumn("surprise", negative_binomial_surprise(sql.col("tried"), sql.col("mean"), variance))
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
