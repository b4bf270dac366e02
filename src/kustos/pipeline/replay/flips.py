"""Kinds of flips, and recorded rows with the ACLs' decision beside them."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.deciding import ShippedAcls, decide_each, with_principal
from kustos.pipeline.schemas import DECISIONS_SCHEMA, QUESTION_COLUMNS

LOST: Final = "LOST"
"""Allowed before, and no longer."""
GAINED: Final = "GAINED"
"""Not allowed before, and now."""
RULE_CHANGED: Final = "RULE_CHANGED"
"""The same outcome, for another reason."""

ALLOWED: Final = "ALLOWED"

_USE: Final = (*QUESTION_COLUMNS, "access", "decision")


def decisions(rollup: DataFrame, shipped: ShippedAcls) -> DataFrame:
    """Return the table `decisions`: each access of `audit_rollup` beside the ACLs' decision on it."""
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
