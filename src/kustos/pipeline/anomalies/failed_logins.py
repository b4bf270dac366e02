"""Failed logins: guessed passwords, one password tried on many names, and the guess that was right."""

from datetime import timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope
from kustos.pipeline.anomalies.findings import NAMES_MAX, candidate, plain, quoted
from kustos.pipeline.stages import logins as stages

SOURCE = ["claimed_name", "host"]


def login_days(security: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the logins of each name and address by day: how many failed and succeeded, and when.

    `failed_before` counts those that failed before a success of the day; an event that stands for several
    attempts counts by its first one. A missing name or address is null, and so is one that stands for many.
    """
    first = scope.window.start - timedelta(days=scope.parameters.history_days)
    keys = [*SOURCE, "day"]
    failed = sql.col("is_failed")
    success_ms = sql.max(sql.when(~failed, sql.col("time_ms"))).over(Window.partitionBy(*keys))
    is_before = failed & (sql.col("first_time_ms") <= sql.col("success_ms"))
    return (
        stages.logins(security)
        .filter((sql.col("day") >= sql.lit(first)) & (sql.col("day") < sql.lit(scope.window.end)))
        .withColumn("success_ms", success_ms)
        .groupBy(*keys)
        .agg(
            stages.failed_attempts().alias("failed"),
            stages.succeeded_attempts().alias("succeeded"),
            sql.sum(sql.when(is_before, sql.col("attempt_count")).otherwise(0)).alias("failed_before"),
            sql.timestamp_millis(sql.min(sql.when(failed, sql.col("first_time_ms")))).alias("first_time"),
            sql.timestamp_millis(sql.max("time_ms")).alias("last_time"),
        )
        .filter("failed > 0")
    )


def _finding(found: DataFrame, count: str, least: int) -> DataFrame:
    """Add the columns that `candidate` needs; the least count has a score of one half."""
    nothing = sql.lit(None).cast("string")
    return found.withColumns(
        {
            "resource_type": nothing,
            "resource_name": nothing,
            "event_count": sql.col("failed"),
            "surprise": sql.ln(sql.col(count) / sql.lit(float(least))) + sql.lit(1.0),
        }
    )


def guessed(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return findings PASSWORD_GUESSING and LOGIN_AFTER_FAILURES: one for a name, address and day.

    Such failures on several days of the history come from a service with an old password: no finding.
    """
    least = scope.parameters.failed_logins_min
    many = days.filter((sql.col("failed") >= least) & sql.col("claimed_name").isNotNull())
    habits = (
        many.filter(scope.is_history())
        .groupBy(*SOURCE)
        .agg(sql.count(sql.lit(1)).alias("failed_days"))
        .filter(sql.col("failed_days") >= scope.parameters.habit_days)
    )
    judged = many.filter(scope.is_judged()).join(habits, SOURCE, "left_anti")
    is_in = sql.col("failed_before") >= least
    columns = _finding(judged, "failed", least).withColumn(
        "principal", sql.concat(sql.lit("User:"), sql.col("claimed_name"))
    )
    text = "%d logins as `%s` failed from %s"
    source = sql.coalesce(plain(sql.col("host")), sql.lit("many addresses"))
    values = ("failed", plain(sql.col("claimed_name")), source)
    evidence = {name: sql.col(name) for name in ("host", "failed", "succeeded", "failed_before")}
    identity = ("principal", "host", "day")
    return candidate(
        columns.filter(~is_in),
        "PASSWORD_GUESSING",
        1.0,
        sql.format_string(f"{text}: somebody guesses, or a service has an old password", *values),
        evidence,
        identity=identity,
    ).unionByName(
        candidate(
            columns.filter(is_in),
            "LOGIN_AFTER_FAILURES",
            1.0,
            sql.format_string(f"{text}, and then one succeeded: a password that was guessed?", *values),
            evidence,
            identity=identity,
        )
    )


def sprayed(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return findings of the kind PASSWORD_SPRAYING: one for an address and day.

    Many names failed from the address, and none succeeded there that day: people who share an address mistype
    and then log in.
    """
    least = scope.parameters.sprayed_names_min
    failing = days.filter(scope.is_judged() & sql.col("host").isNotNull() & (sql.col("succeeded") == 0))
    by_host = (
        failing.groupBy("host", "day")
        .agg(
            sql.count_distinct("claimed_name").alias("name_count"),
            sql.sum("failed").alias("failed"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.slice(sql.sort_array(sql.collect_set("claimed_name")), 1, NAMES_MAX).alias("names"),
        )
        .filter(sql.col("name_count") >= least)
        .withColumn("principal", sql.lit(None).cast("string"))
    )
    reason = sql.format_string(
        "%d logins from %s failed, of %d names or more (%s), and none got in: a password is tried on many",
        "failed",
        plain(sql.col("host")),
        "name_count",
        quoted(sql.col("names")),
    )
    evidence = {name: sql.col(name) for name in ("host", "failed", "name_count", "names")}
    columns = _finding(by_host, "name_count", least)
    return candidate(
        columns, "PASSWORD_SPRAYING", 1.0, reason, evidence, identity=("principal", "host", "day")
    )


def failed_logins(security: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return all findings about failed logins of the window, of a table `security_events`."""
    days = scope.keep(login_days(security, scope))
    return guessed(days, scope).unionByName(sprayed(days, scope))
