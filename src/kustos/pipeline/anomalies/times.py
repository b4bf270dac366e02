"""Unusual hours: seasonality by hour of the day and of the week."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope, hours_in, is_grown_up
from kustos.pipeline.anomalies.rows import candidate
from kustos.pipeline.anomalies.tails import rarity

DAY_MASK = (1 << 24) - 1
HOUR = ["principal", "hour"]


def widened(mask: Column, hours: int) -> Column:
    """Return the mask with the neighbours of each set hour, around midnight too."""
    wide = mask
    for by in range(1, hours + 1):
        for left, right in ((by, 24 - by), (24 - by, by)):
            turned = sql.shiftleft(mask, left).bitwiseOR(sql.shiftright(mask, right))
            wide = wide.bitwiseOR(turned.bitwiseAND(sql.lit(DAY_MASK)))
    return wide


def habits(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return in how many weeks of the history each principal was active near an hour of a weekday."""
    return (
        days.filter(scope.is_history())
        .groupBy("principal", "day")
        .agg(sql.bit_or(sql.col("hours").cast("long")).alias("mask"))
        .withColumn("hour", sql.explode(hours_in(widened(sql.col("mask"), scope.parameters.hours_apart))))
        .groupBy("principal", sql.dayofweek("day").alias("weekday"), "hour")
        .agg(sql.count(sql.lit(1)).alias("near_weeks"))
    )


def weekdays_before(weekday: Column, first_day: Column, start: Column) -> Column:
    """Return how often a weekday (1 for a Sunday) occurs from the first day to the start, excluded."""
    until_first = sql.pmod(weekday - sql.dayofweek(first_day), sql.lit(7))
    return sql.floor((sql.date_diff(start, first_day) - until_first - 1) / 7) + 1


def judged_hours(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the hours of the window in which a grown-up principal was allowed something, with its habits.

    `exceptions`: on how many days of the history it came against its own week, or stayed away.
    """
    parameters = scope.parameters
    weeks = sql.greatest(
        sql.floor(sql.date_diff(sql.lit(scope.window.start), "principal_first_day") / 7), sql.lit(1)
    )
    occurred = weekdays_before(
        sql.col("weekday"), sql.col("principal_first_day"), sql.lit(scope.window.start)
    )
    missed = sql.greatest(occurred - sql.col("near_weeks"), sql.lit(0))
    regular = (
        habits(days, scope)
        .join(everybody, "principal")
        .groupBy(*HOUR)
        .agg(
            sql.map_from_entries(sql.collect_list(sql.struct("weekday", "near_weeks"))).alias("by_weekday"),
            sql.sum("near_weeks").alias("near_days"),
            sql.sum(sql.least("near_weeks", missed)).alias("exceptions"),
            sql.count_if(sql.col("near_weeks") >= weeks * parameters.regular_share).alias("regular_weekdays"),
        )
    )
    return (
        days.filter(scope.is_judged() & sql.col("is_allowed"))
        .groupBy("principal", "day")
        .agg(sql.bit_or(sql.col("hours").cast("long")).alias("mask"), sql.sum("event_count").alias("events"))
        .withColumn("hour", sql.explode(hours_in(sql.col("mask"))))
        .withColumn("weekday", sql.dayofweek("day"))
        .join(everybody, "principal")
        .filter(is_grown_up(scope, "day") & (sql.col("active_days") > 0))
        .withColumn("weeks", weeks)
        .join(regular, HOUR, "left")
        .withColumn("near_weeks", sql.try_element_at("by_weekday", sql.col("weekday")))
        .fillna(0, ["near_weeks", "near_days", "regular_weekdays", "exceptions"])
    )


def unusual_hours(days: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind UNUSUAL_HOURS: one for a principal and day (of UTC).

    An hour is surprising if the principal was hardly ever active near it on any day; or on this weekday,
    if it is active then on most others, and seldom makes an exception: who stays away at times, as people do,
    comes at other times too. It is not if it became a habit. Several who are up at the same time have one
    reason, and share its surprise. Denials alone are none of it: a client retries at whatever hour.
    """
    parameters = scope.parameters
    of_day = rarity(sql.col("near_days"), sql.col("active_days"))
    of_week = sql.when(
        (sql.col("regular_weekdays") >= parameters.regular_weekdays) & (sql.col("near_weeks") == 0),
        rarity(sql.col("exceptions"), sql.date_diff(sql.lit(scope.window.start), "principal_first_day")),
    ).otherwise(sql.lit(0.0))
    alone = Window.partitionBy("day", "hour")
    surprising = (
        judged_hours(days, everybody, scope)
        .withColumn("alone", sql.greatest(of_day, of_week))
        .filter(sql.col("alone") >= parameters.hours_surprise)
        .withColumn("company", sql.count(sql.lit(1)).over(alone) - 1)
        .withColumn("times", sql.count(sql.lit(1)).over(Window.partitionBy(*HOUR)))
        .filter(sql.col("times") < parameters.habit_days)
    )
    time = sql.unix_timestamp(sql.col("day").cast("timestamp"))
    found = (
        surprising.groupBy("principal", "day")
        .agg(
            sql.sort_array(sql.collect_set("hour")).alias("unusual"),
            (sql.max("alone") / (sql.max("company") + 1)).alias("surprise"),
            sql.max("active_days").alias("active_days"),
            sql.max("near_days").alias("near_days"),
            sql.max("events").alias("events"),
            sql.max("mask").alias("mask"),
        )
        .filter(sql.col("surprise") >= parameters.hours_surprise)
        .withColumns(
            {
                "first_time": sql.timestamp_seconds(time + sql.array_min("unusual") * 3600),
                "last_time": sql.timestamp_seconds(time + sql.array_max("unusual") * 3600 + 3599),
                "event_count": sql.ceil(sql.col("events") * sql.size("unusual") / sql.bit_count("mask")),
                "resource_type": sql.lit(None).cast("string"),
                "resource_name": sql.lit(None).cast("string"),
            }
        )
    )
    reason = sql.format_string(
        "active on a %s at hour %s of UTC: on %d of its %d active days before it was active about then",
        sql.date_format("day", "EEEE"),
        sql.array_join(sql.transform("unusual", lambda hour: hour.cast("string")), ", "),
        "near_days",
        "active_days",
    )
    evidence = {
        "hours": sql.col("unusual"),
        "near_days": sql.col("near_days"),
        "active_days": sql.col("active_days"),
    }
    return candidate(found, "UNUSUAL_HOURS", parameters.hours_surprise, reason, evidence)
