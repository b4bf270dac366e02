"""Probing of rights: many kinds of operations, each tried once or a few times and denied."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import GOVERNING, ActivityScope
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.sweeps import in_days_before


def refusals(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return by day the operations on names that a principal was denied a few times.

    Left out are those on a type of resource that it did or tried more than the days of a sweep before: a
    client that is denied each day looks for nothing.
    """
    kind = ["principal", "operation", "resource_type"]
    first = sql.min("day").over(Window.partitionBy(*kind))
    by_name = days.filter(~sql.col("is_super")).groupBy(*kind, "resource_name", "day")
    return (
        by_name.agg(
            sql.sum("event_count").alias("event_count"),
            sql.max("is_allowed").alias("is_allowed"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
        )
        .repartition("principal")
        .withColumn("known_days", sql.date_diff("day", first))
        .filter(
            ~sql.col("is_allowed")
            & (sql.col("known_days") < scope.parameters.sweep_days)
            & (sql.col("event_count") <= scope.parameters.attempts_per_name)
        )
    )


def probed_rights(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind PRIVILEGE_PROBING: one for a principal and day.

    Counts the operations denied on the day and in the days before, the administrative ones twice.
    """
    least = scope.parameters.probed_operations
    is_today = sql.col("tried_on") == sql.col("day")
    governing = sql.when(sql.col("operation").isin(*GOVERNING), sql.col("operation"))
    name = sql.concat_ws(" ", "resource_type", "resource_name")
    found = (
        in_days_before(refusals(days, scope), scope)
        .groupBy("principal", "day")
        .agg(
            sql.sort_array(sql.collect_set("operation")).alias("operations"),
            (sql.size(sql.collect_set("operation")) + sql.size(sql.collect_set(governing))).alias("weight"),
            sql.sum(sql.when(is_today, sql.col("event_count"))).alias("event_count"),
            sql.min(sql.when(is_today, sql.col("first_time"))).alias("first_time"),
            sql.max(sql.when(is_today, sql.col("last_time"))).alias("last_time"),
            sql.slice(sql.sort_array(sql.collect_set(name)), 1, NAMES_MAX).alias("names"),
        )
        .filter(scope.is_judged() & sql.col("event_count").isNotNull() & (sql.col("weight") >= least))
        .withColumns(
            {
                "surprise": sql.ln(sql.col("weight") / sql.lit(float(least))) + sql.lit(1.0),
                "resource_type": sql.lit(None).cast("string"),
                "resource_name": sql.lit(None).cast("string"),
            }
        )
    )
    reason = sql.format_string(
        "was denied %s on %s, each a few times and none of them before: somebody finds out what the "
        "credential may do",
        sql.array_join("operations", ", "),
        quoted(sql.col("names")),
    )
    evidence = {name: sql.col(name) for name in ("operations", "weight", "names")}
    return candidate(found, "PRIVILEGE_PROBING", 1.0, reason, evidence)
