"""Bursts of denials: an attacker who tries operations, or a service that retries what it has no right to."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import GOVERNING, ActivityScope, hours_in, only
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, quoted
from kustos.pipeline.anomalies.tails import negative_binomial_surprise

ATTEMPT = ["principal", "operation", "resource_type", "resource_name"]
QUARTILES_APART = 1.349
"""The quartiles of a normal distribution are so many standard deviations apart."""
HABIT_SURPRISE = 10.0
"""Counts of daily denials vary; a count that chance makes once in 20,000 days is not habit."""
FAMILIAR_AFFINITY = 0.5
"""A name counts as the principal's own, if fewer than 60 % of all resources have a prefix that it uses."""


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
    return (
        by_hour.repartition(*ATTEMPT)
        .groupBy(*ATTEMPT, "day")
        .agg(
            sql.sum("denied").alias("denied"),
            sql.max("denied").alias("worst_hour"),
            sql.collect_set("hour").alias("denied_hours"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
        )
    )


def _quartiles(value: Column) -> Column:
    return sql.percentile(value, sql.array(sql.lit(0.25), sql.lit(0.75)))


def _spread(quartiles: Column) -> Column:
    return (quartiles[1] - quartiles[0]) / QUARTILES_APART


def excess(tried: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the attempts that are more than a habit, with `excess`: how many above what is usual.

    `denied_days`: on how many days the same was denied.

    Denials on several days of the history are a habit, described by their median and quartiles.
    """
    alike = Window.partitionBy(*ATTEMPT)
    is_habit = sql.count_if(scope.is_history()).over(alike) >= scope.parameters.habit_days
    usual = {}
    for name, end in (("denied", ""), ("worst_hour", "_hour")):
        before = sql.when(scope.is_history(), sql.col(name))
        usual[f"usual{end}"] = sql.when(is_habit, sql.median(before).over(alike))
        usual[f"spread{end}"] = sql.when(is_habit, _spread(_quartiles(before).over(alike)))

    def surprise(count: str, mean: str, deviation: str) -> Column:
        return negative_binomial_surprise(
            sql.col(count), sql.col(mean), sql.pow(sql.col(deviation), sql.lit(2.0)) + sql.col(mean)
        )

    swing = sql.greatest(
        surprise("denied", "usual", "spread"), surprise("worst_hour", "usual_hour", "spread_hour")
    )
    return (
        tried.withColumns(usual)
        .withColumn("denied_days", sql.count(sql.lit(1)).over(alike))
        .filter(sql.col("usual").isNull() | (swing >= HABIT_SURPRISE))
        .withColumn(
            "excess",
            sql.greatest(
                sql.col("denied") - sql.coalesce("usual", sql.lit(0.0)),
                sql.col("worst_hour") - sql.coalesce("usual_hour", sql.lit(0.0)),
            ),
        )
    )


def without_swept(tried: DataFrame, swept: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the attempts without what was tried a few times on the days of `swept` (principal, day).

    Those are in an anomaly already; what was retried on such a day is judged by itself.
    """
    marked = swept.select("principal", "day").distinct().withColumn("is_swept", sql.lit(True))
    is_part = sql.col("is_swept").isNotNull() & (sql.col("denied") <= scope.parameters.attempts_per_name)
    return tried.join(sql.broadcast(marked), ["principal", "day"], "left").filter(~is_part).drop("is_swept")


def denied_days(days: DataFrame, known: DataFrame, swept: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return each principal's days with more denials than its habits, and the resources they concern.

    Shares are of the distinct things tried, whatever their counts: retries of one thing hide nothing.
    `brief_resources` were each tried a few times and on few days.
    `missing` names those that were retried, or all if none was.
    """
    pair = ["principal", "resource_type", "resource_name"]
    familiar = known.select(*pair, "allowed_since", "affinity")
    tried = without_swept(excess(attempts(days), scope), swept, scope)
    over = tried.filter(sql.col("excess") > 0).join(familiar, pair, "left")
    is_own = sql.coalesce(sql.col("allowed_since") < sql.col("day"), sql.lit(False)) | (
        sql.coalesce("affinity", sql.lit(0.0)) >= FAMILIAR_AFFINITY
    )
    asked = sql.nullif(sql.col("resource_name"), sql.lit(""))  # no name: the question was for any
    name = sql.concat_ws(" ", "operation", "resource_type", asked)
    is_governing = sql.col("operation").isin(*GOVERNING)
    things, resource = sql.count(sql.lit(1)), sql.struct("resource_type", "resource_name")
    retried = sql.collect_set(sql.when(sql.col("excess") > scope.parameters.attempts_per_name, name))
    is_brief = (sql.col("denied") <= scope.parameters.attempts_per_name) & (
        sql.col("denied_days") < scope.parameters.habit_days
    )
    named = over.groupBy("principal", "day").agg(
        sql.sum("excess").alias("excess"),
        things.alias("things"),
        sql.size(sql.array_distinct(sql.flatten(sql.collect_list("denied_hours")))).alias("hours"),
        sql.size(sql.collect_set("operation")).alias("operations"),
        sql.size(sql.collect_set(sql.when(is_governing, sql.col("operation")))).alias("governing_operations"),
        sql.size(sql.collect_set(resource)).alias("resources"),
        sql.size(sql.collect_set(sql.when(~is_own, resource))).alias("foreign_resources"),
        sql.size(sql.collect_set(sql.when(is_brief, resource))).alias("brief_resources"),
        (sql.count_if(is_own) / things).alias("own_share"),
        (sql.count_if(is_governing) / things).alias("governing_share"),
        only("resource_type").alias("resource_type"),
        sql.when(sql.min(resource) == sql.max(resource), sql.min("resource_name")).alias("resource_name"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.sort_array(retried).alias("retried"),
        sql.sort_array(sql.collect_set(name)).alias("names"),
    )
    missing = sql.when(sql.size("retried") > 0, sql.col("retried")).otherwise(sql.col("names"))
    return named.withColumns(
        {"missing": sql.slice(missing, 1, NAMES_MAX), "names": sql.slice("names", 1, NAMES_MAX)}
    )


def bursts(days: DataFrame, known: DataFrame, swept: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the days of the window with far more denials than a day with denials has, and `is_attack`.

    Denials spread thin over many names, a tour, count if the names are new and the principal has not often
    toured before: a program that watches all topics is denied the same names each day.

    The baseline is the days of all principals in the history, as logarithms (counts of failures are skewed).
    A client that lacks a right requests the same few things again and again. Among many things,
    `suspicion` above 0 suggests an attack: foreign resources, governing operations and many different ones
    raise it, and however many resources of its own are lost ACLs.
    """
    parameters = scope.parameters
    by_day = scope.keep(denied_days(days, known, swept, scope).filter(sql.col("excess") >= 1))
    usual = (
        by_day.filter(scope.is_history())
        .agg(
            sql.count(sql.lit(1)).alias("looks"),
            sql.median(sql.ln("excess")).alias("center"),
            _spread(_quartiles(sql.ln("excess"))).alias("width"),
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
        + (sql.col("foreign_resources") - 3) * 0.3
        + sql.col("governing_share") * 2
        + (sql.lit(1.0) - sql.col("own_share") * 2) * 3
    )
    is_few = (sql.col("things") <= parameters.retried_things) & (sql.col("governing_operations") <= 1)
    is_tour = (sql.col("resources") >= parameters.enumerated_topics) & (
        sql.col("excess") <= sql.col("resources") * parameters.attempts_per_name
    )
    is_many = sql.col("brief_resources") >= parameters.enumerated_topics
    tours_before = sql.count_if(scope.is_history() & is_many).over(Window.partitionBy("principal"))
    lasting = (sql.col("hours") >= 2) & (sql.col("deviations") >= parameters.denials_lasting_deviations)
    return (
        by_day.withColumn("is_new_tour", is_many & (tours_before < parameters.habit_days))
        .filter(scope.is_judged() & (sql.col("excess") >= parameters.denials_min))
        .filter(~is_tour | sql.col("is_new_tour"))
        .crossJoin(sql.broadcast(usual))
        .withColumn("deviations", (sql.ln("excess") - sql.col("center")) / sql.col("width"))
        .filter((sql.col("deviations") >= parameters.denials_deviations) | lasting)
        .withColumns(
            {
                "surprise": sql.col("deviations") * sql.col("deviations") / 2,
                "suspicion": suspicion,
                "is_attack": (suspicion > 0) & ~is_few,
                "event_count": sql.round("excess").cast("long"),
            }
        )
    )


def denial_bursts(days: DataFrame, known: DataFrame, swept: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of the kinds BRUTE_FORCE and MISSING_RIGHT: one for a principal and day.

    `swept` has the principals and days with a sweep, as in `without_swept`.
    """
    found = scope.keep(bursts(days, known, swept, scope))
    threshold = scope.parameters.denials_lasting_deviations**2 / 2
    facts = (
        "excess",
        "hours",
        "things",
        "operations",
        "resources",
        "own_share",
        "governing_share",
        "suspicion",
        "names",
    )
    evidence = {name: sql.col(name) for name in facts}
    tried = sql.format_string(
        "%d denials above the usual in %d hours, of %d operations on %d resources (%s), %.0f %% of them its "
        "own: somebody tries what it can do",
        "event_count",
        "hours",
        "operations",
        "resources",
        quoted(sql.col("names")),
        sql.col("own_share") * 100,
    )
    retried = sql.format_string(
        "%d denials above the usual in %d hours, all of %s: a client retries what it has no right to, an ACL "
        "is missing or a name is misspelled",
        "event_count",
        "hours",
        quoted(sql.col("missing")),
    )
    return candidate(found.filter("is_attack"), "BRUTE_FORCE", threshold, tried, evidence).unionByName(
        candidate(
            found.filter("not is_attack"),
            "MISSING_RIGHT",
            threshold,
            retried,
            evidence | {"missing": sql.col("missing")},
            pattern=("missing",),
        )
    )
