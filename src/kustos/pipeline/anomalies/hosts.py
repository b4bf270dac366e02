"""New hosts: a principal in a network that it never came from."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope, days_with, is_grown_up
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.tails import rarity


def _company(scope: ActivityScope) -> Column:
    """Return for each arrival how many other principals came to the network within days."""
    days = scope.parameters.company_days
    near = Window.partitionBy("network").orderBy(sql.unix_date("first_day")).rangeBetween(-days, days)
    return sql.size(sql.collect_set("principal").over(near)) - 1


def arrivals(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return each principal's networks with their first day, and what makes them more or less surprising.

    `is_foreign`: in the history no principal came from the range of the network.
    """
    of_range = Window.partitionBy("wide_network")
    ranges = Window.partitionBy("principal", "wide_network")
    total = everybody.agg(sql.count(sql.lit(1)).alias("principals"))
    # the range is in it so that the rows need not move again
    of_network = Window.partitionBy("wide_network", "network")
    residents = sql.count_if(scope.is_history("first_day")).over(of_network)
    return (
        days.groupBy("principal", "network", "wide_network")
        .agg(sql.min("day").alias("first_day"), sql.size(sql.collect_set("day")).alias("used_days"))
        .withColumn("is_range_known", sql.min("first_day").over(ranges) < sql.col("first_day"))
        .withColumn("is_foreign", sql.count_if(scope.is_history("first_day")).over(of_range) == 0)
        .withColumn("residents", residents)
        .join(everybody, "principal")
        .filter(is_grown_up(scope, "first_day"))
        .withColumn("company", _company(scope))
        .crossJoin(sql.broadcast(total))
        .withColumn("resident_share", sql.col("residents") / sql.col("principals"))
    )


def _discount(scope: ActivityScope) -> Column:
    parameters = scope.parameters
    is_shared = sql.col("resident_share") >= parameters.shared_network_share
    return (
        sql.col("company") * parameters.company_surprise
        + sql.when(sql.col("is_range_known"), sql.lit(parameters.known_range_surprise)).otherwise(
            sql.lit(0.0)
        )
        + sql.when(is_shared, sql.lit(parameters.known_range_surprise)).otherwise(sql.lit(0.0))
    )


def new_hosts(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind NEW_HOST: one for a principal and day.

    A new address in a known network is a new pod. A new network is less surprising for a principal that often
    changes networks (ranges, if the range is new too), if its wider range is known, or if other principals
    came at the same time; and not at all if the principal stays there. It is HIGH if anything was allowed
    from a foreign range. By its score it never is: 90 days of history give a surprise of 5 at most.
    """
    parameters = scope.parameters
    is_before = scope.is_history("first_day")
    novel = sql.when(sql.col("is_range_known"), days_with(is_before, "principal", day="first_day")).otherwise(
        days_with(is_before & ~sql.col("is_range_known"), "principal", day="first_day")
    )
    judged = (
        arrivals(days, everybody, scope)
        .withColumn("novel_days", novel)
        .filter(scope.is_judged("first_day") & (sql.col("used_days") < parameters.habit_days))
    )
    surprising = judged.withColumn(
        "surprise", rarity(sql.col("novel_days"), sql.col("looks")) - _discount(scope)
    ).filter(sql.col("surprise") >= parameters.new_host_surprise)
    uses = days.join(surprising.drop("wide_network"), ["principal", "network"]).filter(
        sql.col("day") == sql.col("first_day")
    )
    grouped = uses.groupBy("principal", "day").agg(
        sql.lit(None).cast("string").alias("resource_type"),
        sql.lit(None).cast("string").alias("resource_name"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.sum("event_count").alias("event_count"),
        sql.sum(sql.when(sql.col("is_allowed"), sql.lit(0)).otherwise(sql.col("event_count"))).alias(
            "denied"
        ),
        sql.sum(
            sql.when(sql.col("is_foreign") & sql.col("is_allowed"), sql.col("event_count")).otherwise(0)
        ).alias("foreign_uses"),
        sql.max("surprise").alias("surprise"),
        sql.max("novel_days").alias("novel_days"),
        sql.max("looks").alias("looks"),
        sql.slice(sql.sort_array(sql.collect_set("host")), 1, NAMES_MAX).alias("hosts"),
        sql.sort_array(sql.collect_set("network")).alias("networks"),
    )
    reason = sql.format_string(
        "came from %s, a network it never used: on %d of its %d active days before it came from a new one",
        quoted(sql.col("hosts")),
        "novel_days",
        "looks",
    )
    evidence = {name: sql.col(name) for name in ("hosts", "denied", "foreign_uses", "novel_days", "looks")}
    return candidate(
        grouped,
        "NEW_HOST",
        parameters.new_host_surprise,
        reason,
        evidence,
        pattern=("networks",),
        is_grave=sql.col("foreign_uses") > 0,
    )
