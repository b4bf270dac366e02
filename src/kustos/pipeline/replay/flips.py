"""Flips: recorded access decided again; the differences, with their evidence."""

from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.deciding import ShippedAcls, decide_each, with_principal
from kustos.pipeline.replay.accesses import rule_text
from kustos.pipeline.replay.comparing import ALLOWED, compared, compared_with_recorded
from kustos.pipeline.schemas import DECISIONS_SCHEMA, FLIPS_SCHEMA, QUESTION_COLUMNS

LOST: Final = "LOST"
"""Allowed before, and no longer."""
GAINED: Final = "GAINED"
"""Not allowed before, and now."""
RULE_CHANGED: Final = "RULE_CHANGED"
"""The same outcome, for another reason."""

_ROWS: Final = (*QUESTION_COLUMNS, "access")
_FROM: Final[dict[str, Any]] = {"decision_column": "from_decision", "rule_column": "from_rule"}
_TO: Final[dict[str, Any]] = {"decision_column": "to_decision", "rule_column": "to_rule"}


def decisions(accesses: DataFrame, shipped: ShippedAcls) -> DataFrame:
    """Return the table `decisions`: each recorded access beside the ACLs' decision on it."""
    recorded = accesses.withColumns(
        {"recorded_decision": sql.col("decision"), "recorded_rule": sql.col("rule")}
    )
    return decide_each(recorded, shipped).select(*DECISIONS_SCHEMA.fieldNames())


def flips(
    accesses: DataFrame,
    candidate: ShippedAcls,
    baseline: ShippedAcls | None = None,
    *,
    rule_changes: bool = True,
) -> DataFrame:
    """Return the table `replay_flips`: recorded access that the candidate decides differently than before.

    Before is the recorded decision or, with a `baseline`, that of those ACLs: then changes since the record
    do not count as the candidate's. `accesses` come from `accesses_of_rollup` or `accesses_of_events`, which
    need no rules unless the recorded ones are compared. Without `rule_changes` only lost and gained access is
    found, at half the cost, and only these rows have rules; a recorded decision has one only if the
    `accesses` have rules.

    A question about any resource of a type has no single rule, only one of several: its rule never changes.
    Nor does one that was not recorded, or where neither side allows and one is an ERROR.
    """
    if baseline is None:
        recorded = _recorded(accesses)
        decided = (
            decide_each(recorded, candidate, **_TO)
            if rule_changes
            else compared_with_recorded(recorded, candidate)
        )
    elif rule_changes:
        decided = decide_each(decide_each(_uses(accesses), baseline, **_FROM), candidate, **_TO)
    else:
        decided = compared(_uses(accesses), baseline, candidate)
    found = decided.withColumn("kind", kind_of_flip(rule_changes=rule_changes))
    return found.filter(sql.col("kind").isNotNull()).select(*FLIPS_SCHEMA.fieldNames())


def kind_of_flip(*, rule_changes: bool) -> Column:
    """Return the kind of flip from `from_*` to `to_*`, null for none; any decision but ALLOWED denies."""
    before = sql.col("from_decision").eqNullSafe(ALLOWED)
    after = sql.col("to_decision").eqNullSafe(ALLOWED)
    kind = sql.when(before & ~after, LOST).when(~before & after, GAINED)
    if not rule_changes:
        return kind
    same = sql.col("from_decision").eqNullSafe(sql.col("to_decision"))
    is_named = sql.col("resource_name").isNotNull()
    return kind.when(same & is_named & (sql.col("from_rule") != sql.col("to_rule")), RULE_CHANGED)


def _recorded(accesses: DataFrame) -> DataFrame:
    return accesses.withColumns(
        {
            "from_decision": sql.col("decision"),
            "from_rule": rule_text(sql.col("rule")),
            "recorded_allowed_count": sql.when(
                sql.col("decision") == ALLOWED, sql.col("event_count")
            ).otherwise(sql.lit(0).cast("long")),
        }
    ).drop("decision", "rule")


def _uses(accesses: DataFrame) -> DataFrame:
    """Return accesses of every recorded decision, with the number that were allowed then."""
    allowed = sql.when(sql.col("decision") == ALLOWED, sql.col("event_count")).otherwise(
        sql.lit(0).cast("long")
    )
    return accesses.groupBy(*_ROWS).agg(
        sql.sum("event_count").alias("event_count"),
        sql.sum("reference_count").alias("reference_count"),
        sql.sum(allowed).alias("recorded_allowed_count"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
        sql.min("sample_event_id").alias("sample_event_id"),
    )


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
    before = decided.withColumn("from_decision", sql.col("decision"))
    return before.withColumn("flip", kind_of_flip(rule_changes=False)).drop("from_decision", "principal")
