"""Flips: their kinds, recorded rows beside the ACLs' decision on them, and sums of flips for people."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.columns.probes import ACCESS, LISTING, PROBE, is_flip_of_use
from kustos.pipeline.deciding import ShippedAcls, decide_each, with_principal
from kustos.pipeline.schemas import (
    DECISIONS_SCHEMA,
    FLIPS_BY_KIND_SCHEMA,
    FLIPS_BY_PRINCIPAL_SCHEMA,
    FLIPS_BY_RESOURCE_SCHEMA,
    QUESTION_COLUMNS,
)

LOST: Final = "LOST"
"""Allowed before, and no longer."""
GAINED: Final = "GAINED"
"""Not allowed before, and now."""
RULE_CHANGED: Final = "RULE_CHANGED"
"""The same outcome, for another reason."""

ALLOWED: Final = "ALLOWED"

_USE: Final = (*QUESTION_COLUMNS, "access", "decision")
_RESOURCE: Final = ("resource_type", "resource_name")
_URGENCY: Final = {
    (LOST, ACCESS): 0,
    (GAINED, ACCESS): 1,
    (GAINED, PROBE): 1,
    (LOST, LISTING): 2,
    (GAINED, LISTING): 3,
}
_LEAST_URGENT: Final = 4


def decisions(rollup: DataFrame, shipped: ShippedAcls) -> DataFrame:
    """Return DECISIONS_SCHEMA: each access of `audit_rollup` beside the ACLs' decision on it."""
    accesses = rollup.groupBy(*_USE, "rule").agg(
        sql.sum("event_count").alias("event_count"),
        sql.sum("reference_count").alias("reference_count"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.min("sample_event_id").alias("sample_event_id"),
    )
    recorded = accesses.withColumnsRenamed({"decision": "recorded_decision", "rule": "recorded_rule"})
    return decide_each(recorded, shipped).select(*DECISIONS_SCHEMA.fieldNames())


def verdict_on_each_event(events: DataFrame, candidate: ShippedAcls, *, with_rule: bool = False) -> DataFrame:
    """Return `audit_events` with `to_decision`, `to_rule` (`with_rule`), and `flip` (LOST, GAINED or null).

    For the events themselves; to count flips, use the roll-up.
    """
    decided = decide_each(
        with_principal(events),
        candidate,
        with_rule=with_rule,
        decision_column="to_decision",
        rule_column="to_rule",
    )
    before = sql.col("decision").eqNullSafe(ALLOWED)
    after = sql.col("to_decision").eqNullSafe(ALLOWED)
    flip = sql.when(before & ~after, LOST).when(~before & after, GAINED)
    return decided.withColumn("flip", flip).drop("principal")


def flips_by_principal(flips: DataFrame) -> DataFrame:
    """Return the table `replay_by_principal`."""
    resources = sql.count_distinct(_never_null(_RESOURCE)).alias("resource_count")
    return flips.groupBy("principal").agg(resources, *_sums()).select(*FLIPS_BY_PRINCIPAL_SCHEMA.fieldNames())


def flips_by_resource(flips: DataFrame) -> DataFrame:
    """Return the table `replay_by_resource`."""
    principals = sql.count_distinct(_never_null(("principal",))).alias("principal_count")
    return flips.groupBy(*_RESOURCE).agg(principals, *_sums()).select(*FLIPS_BY_RESOURCE_SCHEMA.fieldNames())


def flips_by_kind(flips: DataFrame) -> DataFrame:
    """Return the table `replay_by_kind`."""
    return (
        flips.groupBy("kind", "access")
        .agg(
            sql.count(sql.lit(1)).alias("flip_count"),
            sql.count_distinct(_never_null(("principal",))).alias("principal_count"),
            sql.count_distinct(_never_null(_RESOURCE)).alias("resource_count"),
            *[
                sql.sum(name).alias(name)
                for name in ("event_count", "reference_count", "recorded_allowed_count")
            ],
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.min("sample_event_id").alias("sample_event_id"),
        )
        .select(*FLIPS_BY_KIND_SCHEMA.fieldNames())
    )


def top_flips(flips: DataFrame, limit: int) -> DataFrame:
    """Return the `limit` most urgent flips: uses before listings, lost before gained, then by events."""
    return (
        flips.withColumn("_urgency", urgency())
        .orderBy(
            "_urgency", sql.desc("event_count"), *QUESTION_COLUMNS, "from_decision", "from_rule", "access"
        )
        .limit(limit)
        .drop("_urgency")
    )


def urgency() -> Column:
    """Return a number for the kind and the way of access of a flip: 0 breaks a use."""
    order = sql.lit(_LEAST_URGENT)
    for (kind, access), number in reversed(_URGENCY.items()):
        order = sql.when((sql.col("kind") == kind) & (sql.col("access") == access), number).otherwise(order)
    return order


def _never_null(names: Sequence[str]) -> Column:
    """Return a struct, which is never null: so rows with null fields count too."""
    return sql.struct(*names)


def _sums() -> list[Column]:
    is_listing = sql.col("access") == LISTING
    return [
        _events(LOST, is_flip_of_use()).alias("lost_count"),
        _events(GAINED, is_flip_of_use()).alias("gained_count"),
        _events(RULE_CHANGED, is_flip_of_use()).alias("rule_changed_count"),
        _events(LOST, is_listing).alias("lost_listing_count"),
        _events(GAINED, is_listing).alias("gained_listing_count"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.min(sql.struct(urgency(), "sample_event_id"))["sample_event_id"].alias("sample_event_id"),
    ]


def _events(kind: str, is_counted: Column) -> Column:
    is_one = (sql.col("kind") == kind) & is_counted
    return sql.sum(sql.when(is_one, sql.col("event_count")).otherwise(sql.lit(0).cast("long")))
