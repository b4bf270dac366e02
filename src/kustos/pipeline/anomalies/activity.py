"""The detectors' input: days of access, in the history and in the window."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.parameters import AnomalyParameters
from kustos.pipeline.anomalies.parameters import Window as JudgedWindow
from kustos.pipeline.columns.decision_counts import decision_count
from kustos.pipeline.columns.probes import ACCESS, way_of_access
from kustos.pipeline.deciding import is_by_super_user
from kustos.pipeline.schemas import ROLLUP_GRAIN

SEGMENTS = r"[._\-/:]+"
"""Separators between the segments of a name."""
SEGMENTS_MAX = 4
"""Deeper prefixes add no information, and each is a row."""

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


def unchanged(frame: DataFrame) -> DataFrame:
    """Return the frame itself: each read computes it again."""
    return frame


@dataclass(frozen=True, slots=True)
class ActivityScope:
    """The window, the parameters, and `keep`, which gets each frame that is read more than once.

    `super_users` (`Type:name`) are the super users where an event names no rule.
    """

    window: JudgedWindow
    parameters: AnomalyParameters
    keep: Callable[[DataFrame], DataFrame] = unchanged
    super_users: frozenset[str] = frozenset()

    def is_history(self, day: str = "day") -> Column:
        """Return whether a day lies before the window."""
        return sql.col(day) < sql.lit(self.window.start)

    def is_judged(self, day: str = "day") -> Column:
        """Return whether a day lies in the window."""
        return (sql.col(day) >= sql.lit(self.window.start)) & (sql.col(day) < sql.lit(self.window.end))


def rollup_of_events(events: DataFrame) -> DataFrame:
    """Return `audit_events` in the columns of `audit_rollup` that the detectors read, an hour a row.

    Finer than the roll-up's rows of a day: bursts are judged by their worst hour.
    """
    return (
        events.withColumn("day", sql.to_date("time"))
        .withColumn("principal", sql.concat("principal_type", sql.lit(":"), "principal_name"))
        .withColumn("access", way_of_access())
        .groupBy(*ROLLUP_GRAIN, sql.hour("time").alias("hour"))
        .agg(
            sql.sum(decision_count()).alias("event_count"),
            sql.min("time").alias("first_time"),
            sql.max("time").alias("last_time"),
        )
        .withColumn("hours", sql.expr("shiftleft(1, hour)"))
        .drop("hour")
    )


def network(host: Column, *, is_wide: bool = False) -> Column:
    """Return the network of an address: IPv4 /24 (wide: /16), IPv6 /64 (/48); other text is its own."""
    dots, colons = sql.split(host, r"\."), sql.split(host, ":")
    four, six = (2, 3) if is_wide else (3, 4)
    return (
        sql.when(sql.size(dots) == 4, sql.array_join(sql.slice(dots, 1, four), "."))
        .when(sql.size(colons) > 2, sql.array_join(sql.slice(colons, 1, six), ":"))
        .otherwise(host)
    )


def activity(rollup: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return the uses (no listings, no probes) of history and window, with networks and flags.

    The decision after a probe is an event of the same request, so no use is missed. An ERROR counts as
    denied. Rows without a day, principal or host are left out.
    """
    first = scope.window.start - timedelta(days=scope.parameters.history_days)
    is_allowed = sql.col("decision") == "ALLOWED"
    return (
        rollup.filter(
            (sql.col("day") >= sql.lit(first))
            & (sql.col("day") < sql.lit(scope.window.end))
            & (sql.coalesce("access", sql.lit(ACCESS)) == ACCESS)
            & sql.col("principal").isNotNull()
            & sql.col("host").isNotNull()
        )
    ).select(
        "day",
        "principal",
        "host",
        network(sql.col("host")).alias("network"),
        network(sql.col("host"), is_wide=True).alias("wide_network"),
        "operation",
        "resource_type",
        "resource_name",
        is_allowed.alias("is_allowed"),
        # who was denied was no super user then
        (is_allowed & is_by_super_user(scope.super_users)).alias("is_super"),
        "event_count",
        "first_time",
        "last_time",
        "hours",
    )


def principals(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return each principal's first day, and on how many days of the history it was active.

    `looks` counts the active days after the first weeks, on which something new would be a surprise.
    """
    first = sql.min("day").over(Window.partitionBy("principal"))
    is_news = sql.date_diff("day", "principal_first_day") >= scope.parameters.learning_days
    return (
        days.select("principal", "day")
        .distinct()
        .withColumn("principal_first_day", first)
        .groupBy("principal")
        .agg(
            sql.min("day").alias("principal_first_day"),
            sql.count_if(scope.is_history()).alias("active_days"),
            sql.greatest(sql.count_if(scope.is_history() & is_news), sql.lit(1)).alias("looks"),
        )
    )


def is_grown_up(scope: ActivityScope, day: str) -> Column:
    """Return whether the principal was known long enough on that day to have habits."""
    return sql.date_diff(sql.col(day), "principal_first_day") >= scope.parameters.learning_days


def prefixes(name: Column) -> Column:
    """Return the proper prefixes of a name, cut at its separators: `a.b.c` has `a` and `a.b`."""
    parts = sql.split(name, SEGMENTS)
    depth = sql.least(sql.size(parts) - 1, sql.lit(SEGMENTS_MAX))
    return sql.when(
        depth > 0,
        sql.transform(
            sql.sequence(sql.lit(1), depth), lambda n: sql.array_join(sql.slice(parts, 1, n), "\u0001")
        ),
    ).otherwise(sql.array().cast("array<string>"))


def only(name: str) -> Column:
    """Return the value of a column that all rows of a group share, null if there are several."""
    return sql.when(sql.min(name) == sql.max(name), sql.min(name))


def days_with(condition: Column, *keys: str, day: str = "day") -> Column:
    """Return on how many days rows with the same keys meet a condition, for each row."""
    days = sql.collect_set(sql.when(condition, sql.col(day)))
    return sql.size(days.over(Window.partitionBy(*keys)))


def pairs(days: DataFrame) -> DataFrame:
    """Return each principal's resources: first day of any use, of an allowed one, of anybody's use.

    Uses as a super user are left out: no ACL grants them.
    """
    resource = ["resource_type", "resource_name"]
    mine = sql.when(~sql.col("is_super"), sql.col("day"))
    return (
        days.filter(sql.col("resource_name").isNotNull())
        .groupBy("principal", *resource)
        .agg(
            sql.min("day").alias("used_since"),
            sql.min(mine).alias("first_day"),
            sql.min(sql.when(sql.col("is_allowed"), mine)).alias("allowed_since"),
        )
        .withColumn("known_since", sql.min("used_since").over(Window.partitionBy(*resource)))
        .filter(sql.col("first_day").isNotNull())
        .drop("used_since")
    )


def affinity(pairs: DataFrame) -> DataFrame:
    """Return for each principal and resource of `pairs` how familiar its name's prefix is, in nats.

    A prefix is familiar to a principal that was allowed to use other names of it before. The fewer of all
    resources have one of the prefixes (of this depth) that the principal uses, the higher the affinity: a
    prefix that all names share adds nothing. A pair without such a prefix has no row.
    """
    resources = pairs.select("resource_type", "resource_name").distinct()
    total = resources.agg(sql.count(sql.lit(1)).alias("resources"))
    by_prefix = (
        resources.withColumn("prefix", sql.explode(prefixes(sql.col("resource_name"))))
        .groupBy("prefix")
        .agg(sql.count(sql.lit(1)).alias("sharing"))
    )
    used = pairs.withColumn("prefix", sql.explode(prefixes(sql.col("resource_name")))).withColumn(
        "depth", sql.size(sql.split("prefix", "\u0001"))
    )
    familiar = (
        used.groupBy("principal", "prefix", "depth")
        .agg(sql.min("allowed_since").alias("familiar_since"))
        .filter(sql.col("familiar_since").isNotNull())
        .join(by_prefix, "prefix")
        .withColumn("covered", sql.sum("sharing").over(Window.partitionBy("principal", "depth")))
        .select("principal", "prefix", "familiar_since", "covered")
    )
    return (
        used.join(familiar, ["principal", "prefix"])
        .filter(sql.col("familiar_since") < sql.col("first_day"))
        .crossJoin(sql.broadcast(total))
        .groupBy("principal", "resource_type", "resource_name")
        .agg(sql.max(sql.ln(sql.col("resources") / sql.col("covered"))).alias("affinity"))
    )


def known_pairs(days: DataFrame, scope: ActivityScope) -> DataFrame:
    """Return `pairs` with their `affinity`, 0 if the name has no familiar prefix."""
    known = scope.keep(pairs(days))
    return known.join(affinity(known), ["principal", "resource_type", "resource_name"], "left").fillna(
        0.0, ["affinity"]
    )


def hours_in(mask: Column) -> Column:
    """Return the hours whose bits are set, as an array."""
    every = sql.sequence(sql.lit(0), sql.lit(23))
    return sql.filter(every, lambda hour: sql.call_function("getbit", mask, hour) == 1)
