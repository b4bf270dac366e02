"""Failed logins: guessed passwords, one password tried on many names, and the guess that was right."""

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.activity import ActivityScope, days_with, network
from kustos.pipeline.anomalies.rows import NAMES_MAX, candidate, plain, quoted
from kustos.pipeline.anomalies.sweeps import in_days_before
from kustos.pipeline.queries import logins as queries

SOURCE = ["claimed_name", "host"]


def login_days(security: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the logins of each name and address by day: how many failed and succeeded, and when.

    `failed_before` counts those that failed before a success of the day; an event that stands for several
    attempts counts by its first one. A missing name or address is null, and so is one that stands for many.
    `is_home`: the name got in from this address on an earlier day, and few other names ever did.
    """
    first = scope.window.start - timedelta(days=scope.parameters.history_days)
    keys = [*SOURCE, "day"]
    failed = sql.col("is_failed")
    success_ms = sql.max(sql.when(~failed, sql.col("time_ms"))).over(Window.partitionBy(*keys))
    is_before = failed & (sql.col("first_time_ms") <= sql.col("success_ms"))
    got_in = sql.when(sql.col("succeeded") > 0, sql.col("claimed_name"))
    names_there = sql.size(sql.collect_set(got_in).over(Window.partitionBy("host")))
    first_in = sql.min(sql.when(sql.col("succeeded") > 0, sql.col("day"))).over(Window.partitionBy(*SOURCE))
    is_home = (first_in < sql.col("day")) & (names_there < scope.parameters.sprayed_names_min)
    return (
        queries.logins(security)
        .filter((sql.col("day") >= sql.lit(first)) & (sql.col("day") < sql.lit(scope.window.end)))
        .withColumn("success_ms", success_ms)
        .groupBy(*keys)
        .agg(
            queries.failed_attempts().alias("failed"),
            queries.succeeded_attempts().alias("succeeded"),
            sql.sum(sql.when(is_before, sql.col("attempt_count")).otherwise(0)).alias("failed_before"),
            sql.timestamp_millis(sql.min(sql.when(failed, sql.col("first_time_ms")))).alias("first_time"),
            sql.timestamp_millis(sql.max("time_ms")).alias("last_time"),
        )
        .withColumn("is_home", sql.col("host").isNotNull() & sql.coalesce(is_home, sql.lit(False)))
        .filter("failed > 0")
    )


def _anomaly(found: DataFrame, count: str, least: int) -> DataFrame:
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
    """Return anomalies PASSWORD_GUESSING and LOGIN_AFTER_FAILURES: one for a name, address and day.

    Such failures on several days of the history come from a service with an old password: no anomaly. It may
    move within its wider network, but where a login then succeeds, only the same address is such a habit. Nor
    is one where the name got in on an earlier day: a client of its own whose password was changed.
    """
    least = scope.parameters.failed_logins_min
    many = days.filter(
        (sql.col("failed") >= least) & sql.col("claimed_name").isNotNull() & ~sql.col("is_home")
    )
    near = many.withColumn("wide_network", network(sql.col("host"), is_wide=True)).repartition("claimed_name")
    is_before = scope.is_history() & sql.col("host").isNotNull()

    def is_habit(*keys: str) -> Column:
        return days_with(is_before, *keys) >= scope.parameters.habit_days

    judged = near.withColumns(
        {"is_habit": is_habit(*SOURCE), "is_near_habit": is_habit("claimed_name", "wide_network")}
    ).filter(
        scope.is_judged()
        & ~sql.col("is_habit")
        & (~sql.col("is_near_habit") | (sql.col("failed_before") >= least))
    )
    is_in = sql.col("failed_before") >= least
    facts = (
        *SOURCE, "day", "failed", "succeeded", "failed_before", "first_time", "last_time", "addresses",
    )  # fmt: skip
    here_and_there = judged.withColumn("addresses", sql.lit(1)).select(*facts)
    slowly = guessed_slowly(days, scope).join(
        judged.select("claimed_name", "day"), ["claimed_name", "day"], "left_anti"
    )
    together = scope.keep(here_and_there.unionByName(slowly.select(*facts)))
    columns = _anomaly(together, "failed", least).withColumn(
        "principal", sql.concat(sql.lit("User:"), sql.col("claimed_name"))
    )
    text = "%d logins as `%s` failed from %s"
    source = sql.coalesce(plain(sql.col("host")), sql.lit("many addresses"))
    values = ("failed", plain(sql.col("claimed_name")), source)
    evidence = {name: sql.col(name) for name in ("host", "failed", "succeeded", "failed_before", "addresses")}
    return candidate(
        columns.filter(~is_in),
        "PASSWORD_GUESSING",
        1.0,
        sql.format_string(f"{text}: somebody guesses, or a service has an old password", *values),
        evidence,
        pattern=("host",),
    ).unionByName(
        candidate(
            columns.filter(is_in),
            "LOGIN_AFTER_FAILURES",
            1.0,
            sql.format_string(f"{text}, and then one succeeded: a password that was guessed?", *values),
            evidence,
            pattern=("host",),
        )
    )


def guessed_slowly(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the names and days with enough failures in the days of a sweep, few from each of several.

    Addresses from which the name got in before are left out, and names of which this is a habit.
    """
    parameters = scope.parameters
    least = parameters.failed_logins_min
    by_day = (
        days.filter((sql.col("failed") < least) & sql.col("claimed_name").isNotNull() & ~sql.col("is_home"))
        .repartition("claimed_name")
        .groupBy("claimed_name", "day")
        .agg(
            sql.sum("failed").alias("failed"),
            sql.sum("succeeded").alias("succeeded"),
            sql.max(sql.col("failed_before") > 0).alias("got_in"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.slice(sql.sort_array(sql.collect_set("host")), 1, NAMES_MAX).alias("hosts"),
        )
    )
    is_today = sql.col("tried_on") == sql.col("day")
    today = ("succeeded", "got_in", "first_time", "last_time")
    sums = (
        in_days_before(by_day, scope)
        .groupBy("claimed_name", "day")
        .agg(
            *(sql.max(sql.when(is_today, sql.col(name))).alias(name) for name in today),
            sql.sum("failed").alias("failed"),
            sql.size(sql.array_distinct(sql.flatten(sql.collect_list("hosts")))).alias("addresses"),
        )
        .filter(sql.col("got_in").isNotNull() & (sql.col("failed") >= least) & (sql.col("addresses") > 1))
    )
    return (
        sums.withColumn("days_before", days_with(scope.is_history(), "claimed_name"))
        .filter(scope.is_judged() & (sql.col("days_before") < parameters.habit_days))
        .withColumns(
            {
                "host": sql.lit(None).cast("string"),
                "failed_before": sql.when(sql.col("got_in"), sql.col("failed")).otherwise(sql.lit(0)),
            }
        )
    )


def sprayed(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return anomalies of the kind PASSWORD_SPRAYING: one for an address and day.

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
    columns = _anomaly(by_host, "name_count", least)
    return candidate(columns, "PASSWORD_SPRAYING", 1.0, reason, evidence, pattern=("host",))


def failed_logins(security: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return all anomalies about failed logins of the window, of a table `security_events`."""
    days = scope.keep(login_days(security, scope))
    return guessed(days, scope).unionByName(sprayed(days, scope))
