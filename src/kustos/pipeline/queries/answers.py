"""The report's queries on the tables `replay_flips`, `access_review` and `findings`: sums and first rows."""

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.pipeline.columns.probes import LISTING, is_flip_of_use

_WHAT: Final = ("principal", "operation", "resource_type", "resource_name")

AGES: Final = ("1 day", "7 days", "30 days", "90 days", "365 days", "longer ago", "no use recorded")
"""Classes of grants by the time since their last use, in order."""

_AGE_DAYS: Final = (1, 7, 30, 90, 365)
_SEVERITIES: Final = ("HIGH", "MEDIUM", "LOW")


def replay_totals(flips: DataFrame) -> DataFrame:
    """Return one row of events: `lost`, `gained`, `rule_changed`, `listing` (lost or gained), `principals`.

    Names that only filtered a list are in `listing` alone; of probes those that would be allowed count.
    """
    used, kind = is_flip_of_use(), sql.col("kind")
    lost_or_gained = kind != "RULE_CHANGED"
    return flips.agg(
        _count(used & (kind == "LOST")).alias("lost"),
        _count(used & (kind == "GAINED")).alias("gained"),
        _count(used & (kind == "RULE_CHANGED")).alias("rule_changed"),
        _count((sql.col("access") == LISTING) & lost_or_gained).alias("listing"),
        sql.count_distinct(sql.when(used & lost_or_gained, sql.col("principal"))).alias("principals"),
    )


def _count(condition: Column) -> Column:
    return sql.coalesce(sql.sum(sql.when(condition, sql.col("event_count"))), sql.lit(0))


def largest_flips(flips: DataFrame, limit: int) -> DataFrame:
    """Return the `limit` largest of what is lost and of what is gained, each by its `place`."""
    is_allowed = (sql.col("kind") == "GAINED").alias("allowed")
    grouped = (
        flips.filter(is_flip_of_use() & (sql.col("kind") != "RULE_CHANGED"))
        .groupBy(*_WHAT, is_allowed)
        .agg(
            sql.sum("event_count").alias("requests"),
            sql.count_distinct("host").alias("hosts"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.min("sample_event_id").alias("sample_event_id"),
        )
    )
    order = Window.partitionBy("allowed").orderBy(sql.desc("requests"), *_WHAT)
    return grouped.withColumn("place", sql.row_number().over(order)).filter(sql.col("place") <= limit)


def grants_by_age(review: DataFrame) -> DataFrame:
    """Return `age` (one of AGES) and how many rows of a review have it.

    `grants` are those that an ACL grants, `dormant` all that are, `unknown` those of them without a use and
    a time of their grant, `too_early` all for which it is too early to say whether they are dormant.
    """
    days = sql.col("dormant_days")
    age = sql.when(sql.col("last_used").isNull(), sql.lit(AGES[-1]))
    for limit, label in zip(_AGE_DAYS, AGES, strict=False):
        age = age.when(days <= limit, sql.lit(label))
    return review.groupBy(age.otherwise(sql.lit(AGES[-2])).alias("age")).agg(
        sql.count_if(sql.size("granted_by") > 0).alias("grants"),
        sql.count_if("is_dormant").alias("dormant"),
        sql.count_if(sql.col("is_dormant") & days.isNull()).alias("unknown"),
        sql.count_if(sql.col("is_dormant").isNull()).alias("too_early"),
    )


def record_of_review(review: DataFrame) -> DataFrame:
    """Return one row: `recorded_days` and `covered_since`, which are the same in each row of a review."""
    return review.agg(*(sql.max(name).alias(name) for name in ("recorded_days", "covered_since")))


def review_sums(review: DataFrame) -> DataFrame:
    """Return one row: `rows`, `used`, `dormant`, `too_early`, `principals` of an access review."""
    return review.agg(
        sql.count(sql.lit(1)).alias("rows"),
        sql.count_if(sql.col("use_count") > 0).alias("used"),
        sql.count_if(sql.col("is_dormant")).alias("dormant"),
        sql.count_if(sql.col("is_dormant").isNull()).alias("too_early"),
        sql.count_distinct("principal").alias("principals"),
    )


BREADTHS: Final = ("NAMED", "PREFIXED", "WILDCARD", "EVERYONE", "SUPER_USER", "DEFAULT")
"""How broad entitlements are, the broadest ones last; the last two are beyond ACLs."""


def entitlement_sums(entitlements: DataFrame) -> DataFrame:
    """Return for each `breadth` (one of BREADTHS) its `rows`, and how many of them are what.

    `used` and `unused` have a recorded use or none, `dormant` had none for long, `too_early`: the record does
    not say yet. A `void` one counts only as that.
    """
    basis, is_void = sql.col("basis"), sql.col("effect") == "VOID"
    breadth = (
        sql.when(basis == "SuperUser", BREADTHS[-2])
        .when(basis == "DefaultAllow", BREADTHS[-1])
        .otherwise(sql.col("breadth"))
    )
    is_used = sql.col("use_count") > 0
    sums = entitlements.groupBy(breadth.alias("breadth")).agg(
        sql.count(sql.lit(1)).alias("rows"),
        sql.count_if(~is_void & is_used).alias("used"),
        sql.count_if(~is_void & ~is_used).alias("unused"),
        sql.count_if(~is_void & sql.col("is_dormant")).alias("dormant"),
        sql.count_if(~is_void & sql.col("is_dormant").isNull()).alias("too_early"),
        sql.count_if(is_void).alias("void"),
    )
    return sums.orderBy(sql.array_position(sql.array(*map(sql.lit, BREADTHS)), sql.col("breadth")))


def most_dormant(review: DataFrame, limit: int) -> DataFrame:
    """Return the `limit` dormant rows that were longest without use, those of unknown age first."""
    return (
        review.filter("is_dormant")
        .select("team", *_WHAT, "pattern_type", "granted_since", "last_used", "dormant_days")
        .orderBy(sql.desc_nulls_first("dormant_days"), *_WHAT)
        .limit(limit)
    )


def _is_about_acl() -> Column:
    return sql.endswith("kind", sql.lit("_ACL"))


def _gravity() -> Column:
    place = sql.array_position(sql.array(*(sql.lit(name) for name in _SEVERITIES)), sql.col("severity"))
    return sql.when(place == 0, sql.lit(len(_SEVERITIES) + 1)).otherwise(place)


_OF_STATES: Final = {
    "state": "string",
    "acknowledged_by": "string",
    "recorded_at": "timestamp",
    "is_safe_to_remove": "boolean",
}
"""Columns that either findings on ACLs lack, or `anomaly_states`."""

_STATES: Final = ("open", "acknowledged", "suppressed", "resolved")

_FINDING: Final = (
    "finding_id",
    "state",
    "is_new",
    "acknowledged_by",
    "kind",
    "severity",
    "score",
    "principal",
    "resource_type",
    "resource_name",
    "first_time",
    "last_time",
    "reason",
    "is_safe_to_remove",
    "is_about_acl",
)


def with_state(findings: DataFrame, since: datetime | None) -> DataFrame:
    """Return findings with the columns of those with states and those without, null if missing, and two more.

    `is_new`: first recorded after `since`; none is without an earlier page. `is_about_acl`: it says
    whether an ACL is needed.
    """
    missing = {
        name: sql.lit(None).cast(kind) for name, kind in _OF_STATES.items() if name not in findings.columns
    }
    is_new = sql.lit(False) if since is None else sql.col("recorded_at") > sql.lit(since)
    return findings.withColumns(
        {**missing, "is_new": sql.coalesce(is_new, sql.lit(False)), "is_about_acl": _is_about_acl()}
    )


def finding_sums(findings: DataFrame) -> DataFrame:
    """Return one row: `new`, the number in each state, and `recorded_at`, the newest, of `with_state`."""
    states = {name: sql.count_if(sql.col("state") == name.upper()) for name in _STATES}
    is_shown = sql.coalesce(sql.col("state") != "SUPPRESSED", sql.lit(True))
    return findings.agg(
        sql.count_if(sql.col("is_new") & is_shown).alias("new"),
        *(count.alias(name) for name, count in states.items()),
        sql.max("recorded_at").alias("recorded_at"),
    )


def findings_by_kind(findings: DataFrame) -> DataFrame:
    """Return `kind`, `count` and `high` (of them HIGH), the gravest kind first."""
    return (
        findings.groupBy("kind")
        .agg(
            sql.count(sql.lit(1)).alias("count"),
            sql.count_if(sql.col("severity") == "HIGH").alias("high"),
            sql.min(_gravity()).alias("gravity"),
        )
        .orderBy("gravity", sql.desc("high"), sql.desc("count"), "kind")
        .drop("gravity")
    )


def findings_by_safety(findings: DataFrame) -> DataFrame:
    """Return `kind`, `count`, `safe_to_remove` (shown by a replay) and `too_early` to say so, by kind."""
    safe, is_unclear = sql.col("is_safe_to_remove"), sql.col("is_safe_to_remove").isNull()
    return (
        findings.groupBy("kind")
        .agg(
            sql.count(sql.lit(1)).alias("count"),
            sql.count_if(sql.coalesce(safe, sql.lit(False))).alias("safe_to_remove"),
            sql.count_if(is_unclear & _is_about_acl()).alias("too_early"),
        )
        .orderBy("kind")
    )


def gravest_of_each_kind(findings: DataFrame, limit: int) -> DataFrame:
    """Return the `limit` gravest findings of each kind, each with its `place` there."""
    is_settled = sql.coalesce(sql.col("state") != "OPEN", sql.lit(False))
    order = Window.partitionBy("kind").orderBy(is_settled, _gravity(), sql.desc("score"), "finding_id")
    return (
        findings.withColumn("place", sql.row_number().over(order))
        .filter(sql.col("place") <= limit)
        .select("place", *_FINDING)
    )


def gravest_in_time(findings: DataFrame, limit: int) -> DataFrame:
    """Return the `limit` gravest findings that have a time."""
    return (
        findings.filter(sql.col("first_time").isNotNull() & sql.col("last_time").isNotNull())
        .orderBy(_gravity(), sql.desc("score"), "finding_id")
        .limit(limit)
        .select(*_FINDING)
    )
