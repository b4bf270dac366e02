"""Bursts of denials: an attacker who tries operations, or a service that lost an ACL."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope, hours_in
from kustos.pipeline.anomalies.findings import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.tails import negative_binomial_surprise

ATTEMPT = ["principal", "operation", "resource_type", "resource_name"]
QUARTILES_APART = 1.349
"""The quartiles of a normal distribution are so many standard deviations apart."""
HABIT_SURPRISE = 10.0
"""Counts of daily denials vary; a count that chance makes once in 20,000 days is not habit."""
FAMILIAR_AFFINITY = 0.5
"""A name counts as the principal's own, if fewer than 60 % of all resources have a prefix that it uses."""
GOVERNING = (
    "CREATE",
    "DELETE",
    "ALTER",
    "ALTER_CONFIGS",
    "DESCRIBE_CONFIGS",
    "CLUSTER_ACTION",
    "CREATE_TOKENS",
)
"""Operations that services hardly ever start to use: trying them suggests an attacker."""


def attempts(days: DataFrame) -> DataFrame:
    """Return the denials of each principal, operation and resource by day, with the worst hour.

    A row of a day has only a mask of hours: its events count as spread evenly over them.
    """
    hours = hours_in(sql.col("hours"))
    by_hour = (
        days.filter(~sql.col("is_allowed"))
        .withColumn("resource_name", sql.coalesce("resource_name", sql.lit("")))
        .withColumn("each", sql.col("event_count") / sql.greatest(sql.size(hours), sql.lit(1)))
        .withColumn("hour", sql.explode(hours))
        .groupBy(*ATTEMPT, "day", "hour")
        .agg(
            sql.sum("each").alias("denied"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
        )
    )
    return by_hour.groupBy(*ATTEMPT, "day").agg(
        sql.sum("denied").alias("denied"),
        sql.max("denied").alias("worst_hour"),
        sql.collect_set("hour").alias("denied_hours"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
    )


def _spread(value: Column) -> Column:
    quartiles = sql.percentile(value, sql.array(sql.lit(0.25), sql.lit(0.75)))
    return (quartiles[1] - quartiles[0]) / QUARTILES_APART


def excess(tried: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the attempts that are more than a habit, with `excess`: how many above what is usual.

    Denials on several days of the history are a habit, described by their median and quartiles.
    """
    usual = (
        tried.filter(scope.is_history())
        .groupBy(*ATTEMPT)
        .agg(
            sql.count(sql.lit(1)).alias("denied_days"),
            sql.median("denied").alias("usual"),
            _spread(sql.col("denied")).alias("spread"),
            sql.median("worst_hour").alias("usual_hour"),
            _spread(sql.col("worst_hour")).alias("spread_hour"),
        )
        .filter(sql.col("denied_days") >= scope.parameters.habit_days)
    )

    def surprise(count: str, mean: str, deviation: str) -> Column:
        return negative_binomial_surprise(
            sql.col(count), sql.col(mean), sql.pow(sql.col(deviation), sql.lit(2.0)) + sql.col(mean)
        )

    swing = sql.greatest(
        surprise("denied", "usual", "spread"), surprise("worst_hour", "usual_hour", "spread_hour")
    )
    return (
        tried.join(usual, ATTEMPT, "left")
        .filter(sql.col("usual").isNull() | (swing >= HABIT_SURPRISE))
        .withColumn(
            "excess",
            sql.greatest(
                sql.col("denied") - sql.coalesce("usual", sql.lit(0.0)),
                sql.col("worst_hour") - sql.coalesce("usual_hour", sql.lit(0.0)),
            ),
        )
    )


def denied_days(days: DataFrame, known: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return each principal's days with more denials than its habits, and the resources they concern."""
    pair = ["principal", "resource_type", "resource_name"]
    familiar = known.select(*pair, "allowed_since", "affinity")
    over = excess(scope.keep(attempts(days)), scope).join(familiar, pair, "left")
    is_own = sql.coalesce(sql.col("allowed_since") < sql.col("day"), sql.lit(False)) | (
        sql.coalesce("affinity", sql.lit(0.0)) >= FAMILIAR_AFFINITY
    )
    name = sql.concat_ws(" ", "operation", "resource_type", "resource_name")
    return over.groupBy("principal", "day").agg(
        sql.sum("excess").alias("excess"),
        sql.size(sql.array_distinct(sql.flatten(sql.collect_list("denied_hours")))).alias("hours"),
        sql.count_distinct("operation").alias("operations"),
        sql.count_distinct("resource_type", "resource_name").alias("resources"),
        (sql.sum(sql.when(is_own, sql.col("excess")).otherwise(0.0)) / sql.sum("excess")).alias("own_share"),
        (
            sql.sum(sql.when(sql.col("operation").isin(*GOVERNING), sql.col("excess")).otherwise(0.0))
            / sql.sum("excess")
        ).alias("governing_share"),
        sql.when(sql.count_distinct("resource_type") == 1, sql.min("resource_type")).alias("resource_type"),
        sql.when(sql.count_distinct("resource_type", "resource_name") == 1, sql.min("resource_name")).alias(
            "resource_name"
        ),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.slice(sql.sort_array(sql.collect_set(name)), 1, NAMES_MAX).alias("names"),
    )


def bursts(days: DataFrame, known: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the days of the window with far more denials than a day with denials has, and a `suspicion`.

    The baseline is the days of all principals in the history, as logarithms (counts of failures are skewed).
    `suspicion` above 0 suggests an attack, below 0 a mistake. Foreign resources, governing operations and
    many different ones raise it.
    """
    parameters = scope.parameters
    by_day = scope.keep(denied_days(days, known, scope).filter(sql.col("excess") >= 1))
    usual = (
        by_day.filter(scope.is_history())
        .agg(
            sql.count(sql.lit(1)).alias("looks"),
            sql.median(sql.ln("excess")).alias("center"),
            _spread(sql.ln("excess")).alias("width"),
        )
        .select(
            sql.when(sql.col("looks") >= parameters.denials_days_min, sql.col("center"))
            .otherwise(sql.ln(sql.lit(parameters.denials_median)))
            .alias("center"),
            sql.when(
                sql.col("looks") >= parameters.denials_days_min,
                sql.greatest("width", sql.lit(parameters.denials_deviation)),
            )
            .otherwise(sql.lit(parameters.denials_deviation))
            .alias("width"),
        )
    )
    suspicion = (
        (sql.col("operations") - 2) * 0.7
        + (sql.col("resources") - 3) * 0.3
        + sql.col("governing_share") * 2
        + (sql.lit(1.0) - sql.col("own_share") * 2) * 3
    )
    is_tour = (sql.col("resources") >= parameters.enumerated_topics) & (
        sql.col("excess") <= sql.col("resources") * parameters.attempts_per_name
    )
    lasting = (sql.col("hours") >= 2) & (sql.col("deviations") >= parameters.denials_lasting_deviations)
    return (
        by_day.filter(scope.is_judged() & (sql.col("excess") >= parameters.denials_min) & ~is_tour)
        .crossJoin(sql.broadcast(usual))
        .withColumn("deviations", (sql.ln("excess") - sql.col("center")) / sql.col("width"))
        .filter((sql.col("deviations") >= parameters.denials_deviations) | lasting)
        .withColumns(
            {
                "surprise": sql.col("deviations") * sql.col("deviations") / 2,
                "suspicion": suspicion,
                "event_count": sql.round("excess").cast("long"),
            }
        )
    )


def denial_bursts(days: DataFrame, known: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return findings of the kinds BRUTE_FORCE and MISCONFIGURATION: one for a principal and day."""
    found = scope.keep(bursts(days, known, scope))
    threshold = scope.parameters.denials_lasting_deviations**2 / 2
    facts = (
        "excess",
        "hours",
        "operations",
        "resources",
        "own_share",
        "governing_share",
        "suspicion",
        "names",
    )
    evidence = {name: sql.col(name) for name in facts}
    summary = (
        "%d denials above the usual in %d hours, of %d operations on %d resources (%s), %.0f %% of them on "
        "its own resources"
    )
    numbers = (
        "event_count",
        "hours",
        "operations",
        "resources",
        quoted(sql.col("names")),
        sql.col("own_share") * 100,
    )
    tried = sql.format_string(f"{summary}: somebody tries what it can do", *numbers)
    broken = sql.format_string(f"{summary}: it looks like an ACL that is missing or was taken away", *numbers)
    return candidate(
        found.filter(sql.col("suspicion") > 0), "BRUTE_FORCE", threshold, tried, evidence
    ).unionByName(
        candidate(found.filter(sql.col("suspicion") <= 0), "MISCONFIGURATION", threshold, broken, evidence)
    )
