"""First-seen pairs of principal and resource, and topic enumeration: many such pairs at once."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope, days_with, is_grown_up
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.sweeps import in_days_before, usual
from kustos.pipeline.anomalies.tails import negative_binomial_surprise, rarity

PAIR = ["principal", "resource_type", "resource_name"]


def unfamiliar(days: DataFrame, known: DataFrame, everybody: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return pairs new to a principal with habits and not part of a deploy, and pairs that were only denied.

    A row for each pair on its first day; `used_days`: on how many days the pair was used; `affinity` in nats,
    0 if the name has no familiar prefix.
    """
    young = sql.date_diff("first_day", "known_since") < scope.parameters.settled_days
    fresh = known.join(everybody, "principal").filter(
        (is_grown_up(scope, "first_day") & ~young) | sql.col("allowed_since").isNull()
    )
    uses = (
        days.filter(~sql.col("is_super"))
        .groupBy(*PAIR, "day")
        .agg(
            sql.sum("event_count").alias("event_count"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.max("is_allowed").alias("is_allowed"),
        )
    )
    lasting = Window.partitionBy(*PAIR)
    return (
        uses.join(fresh, PAIR)
        .withColumn("used_days", sql.count(sql.lit(1)).over(lasting))
        .filter(sql.col("day") == sql.col("first_day"))
    )


def first_seen(fresh: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind FIRST_SEEN_ACCESS from `unfamiliar`: one for a principal and day.

    An allowed access is surprising if others have long used the resource, the principal seldom uses anything
    new, the name has no familiar prefix, and the access did not become a habit.
    """
    parameters = scope.parameters
    allowed = fresh.filter("is_allowed")
    novelty = rarity(sql.col("novel_days"), sql.col("looks"))
    surprising = (
        allowed.withColumn("novel_days", days_with(scope.is_history(), "principal"))
        .filter(scope.is_judged() & (sql.col("used_days") < parameters.habit_days))
        .withColumn("surprise", novelty - sql.col("affinity") * parameters.affinity_weight)
        .filter(sql.col("surprise") >= parameters.first_seen_surprise)
    )
    grouped = surprising.groupBy("principal", "day").agg(
        sql.min("resource_type").alias("resource_type"),
        sql.when(sql.count(sql.lit(1)) == 1, sql.min("resource_name")).alias("resource_name"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.sum("event_count").alias("event_count"),
        (sql.max("surprise") + sql.ln(sql.count(sql.lit(1)))).alias("surprise"),
        sql.count(sql.lit(1)).alias("new_resources"),
        sql.sort_array(sql.collect_set(sql.concat_ws(" ", "resource_type", "resource_name"))).alias(
            "all_names"
        ),
        sql.slice(sql.sort_array(sql.collect_set("resource_name")), 1, NAMES_MAX).alias("names"),
        sql.max("novel_days").alias("novel_days"),
        sql.max("looks").alias("looks"),
    )
    reason = sql.format_string(
        "first use of %s that others have long used (%s): something new came on %d of %d days before",
        sql.when(sql.col("new_resources") == 1, sql.lit("a resource")).otherwise(
            sql.concat(sql.col("new_resources").cast("string"), sql.lit(" resources"))
        ),
        quoted(sql.col("names")),
        "novel_days",
        "looks",
    )
    evidence = {name: sql.col(name) for name in ("new_resources", "names", "novel_days", "looks")}
    return candidate(
        grouped,
        "FIRST_SEEN_ACCESS",
        parameters.first_seen_surprise,
        reason,
        evidence,
        pattern=("all_names",),
    )


def enumeration(fresh: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of kind TOPIC_ENUMERATION: many unfamiliar topics, each tried a few times.

    In a day, or in the days of a sweep: an anomaly of the day on which they became many. Topics tried more
    often, or on several days, are left out one by one: retries of one do not hide the others, and monitoring
    requests the same each day. Compared with the principal's own history of such days. For a principal
    without habits only denials count, since all its topics are new to it.
    """
    parameters = scope.parameters
    is_tried = (
        (sql.col("resource_type") == "TOPIC")
        & (sql.col("event_count") <= parameters.attempts_per_name)
        & (sql.col("used_days") < parameters.habit_days)
    )
    is_today = sql.col("tried_on") == sql.col("day")
    by_day = (
        in_days_before(fresh.filter(is_tried).repartition("principal"), scope)
        .groupBy("principal", "day")
        .agg(
            sql.count(sql.lit(1)).alias("topics"),
            sql.count_if(is_today).alias("topics_today"),
            sql.size(sql.collect_set("tried_on")).alias("tried_days"),
            sql.count_if(~sql.col("is_allowed")).alias("denied_topics"),
            sql.sum("event_count").alias("attempts"),
            sql.sum(sql.when(is_today, sql.col("event_count"))).alias("event_count"),
            sql.min(sql.when(is_today, sql.col("first_time"))).alias("first_time"),
            sql.max(sql.when(is_today, sql.col("last_time"))).alias("last_time"),
            sql.max("active_days").alias("active_days"),
            sql.slice(sql.sort_array(sql.collect_set("resource_name")), 1, NAMES_MAX).alias("names"),
        )
        .filter("topics_today > 0")
    )
    least = parameters.enumerated_topics
    became_many = (sql.col("topics") >= least) & (
        (sql.col("topics_today") >= least) | (sql.col("topics") - sql.col("topics_today") < least)
    )
    found = (
        by_day.withColumns(usual("topics", scope))
        .filter(scope.is_judged() & became_many)
        .withColumn("surprise", negative_binomial_surprise(*map(sql.col, ("topics", "mean", "variance"))))
        .filter(sql.col("surprise") >= parameters.enumeration_surprise)
        .withColumns({"resource_type": sql.lit("TOPIC"), "resource_name": sql.lit(None).cast("string")})
    )
    reason = sql.format_string(
        "tried %d topics new to it (%s) on %d days, %d of them denied, %.1f times each; usual are %.1f",
        "topics",
        quoted(sql.col("names")),
        "tried_days",
        "denied_topics",
        sql.col("attempts") / sql.col("topics"),
        "mean",
    )
    evidence = {
        name: sql.col(name)
        for name in ("topics", "tried_days", "denied_topics", "mean", "names", "active_days")
    }
    return candidate(found, "TOPIC_ENUMERATION", parameters.enumeration_surprise, reason, evidence)
