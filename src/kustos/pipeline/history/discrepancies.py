"""Discrepancies: the recorded decision differs from that of the ACLs then in force.

Causes are clock skew, a node behind its log, an authorizer that is not Kafka's, or a tampered record. The
score is the certainty.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.history.judgement import BY_OFFSET
from kustos.pipeline.schemas import DISCREPANCIES_SCHEMA, QUESTION_COLUMNS

DECISION_DIFFERS: Final = "DECISION_DIFFERS"
RULE_DIFFERS: Final = "RULE_DIFFERS"

SURE: Final = 1.0
"""The score where the event names the offset whose ACLs decided."""
BY_CLOCK: Final = 0.7
"""The score where only clocks identify the ACLs."""
OTHER_RULE: Final = 0.3
"""The score where only the rule differs."""


def discrepancies(judged: DataFrame) -> DataFrame:
    """Return what differs in JUDGED_SCHEMA as DISCREPANCIES_SCHEMA.

    An access that no ACL allowed then is HIGH, a refusal that no ACL explains MEDIUM. LOW: the same decision,
    by the ACLs of the event's own offset, with another rule than recorded.
    """
    differs = sql.col("verdict") == sql.lit("DIFFERS")
    is_exact = sql.col("judged_by") == sql.lit(BY_OFFSET)
    other_rule = (sql.col("verdict") == sql.lit("AGREES")) & is_exact & ~sql.col("is_same_rule")
    was_allowed = sql.col("recorded_decision") == sql.lit("ALLOWED")
    high, medium = sql.lit("HIGH"), sql.lit("MEDIUM")
    severity = sql.when(~differs, "LOW").when(was_allowed, high).otherwise(medium)
    columns: dict[str, Column] = {
        "discrepancy_id": _identity(),
        "kind": sql.when(differs, DECISION_DIFFERS).otherwise(RULE_DIFFERS),
        "severity": severity,
        "score": sql.when(~differs, OTHER_RULE).when(is_exact, SURE).otherwise(BY_CLOCK),
        "day": sql.to_date("first_time"),
        "reason": _reason(differs, is_exact),
        "evidence": _evidence(),
    }
    found = judged.where(differs | sql.coalesce(other_rule, sql.lit(False)))
    return found.select("*", *[column.alias(name) for name, column in columns.items()]).select(
        *DISCREPANCIES_SCHEMA.fieldNames()
    )


def gravest_discrepancies(discrepancies: DataFrame, limit: int, *, with_rules: bool = False) -> DataFrame:
    """Return the `limit` gravest of DISCREPANCIES_SCHEMA, the surest and most frequent first.

    `with_rules` includes those in which only the rule differs.
    """
    if not with_rules:
        discrepancies = discrepancies.where(sql.col("kind") != RULE_DIFFERS)
    gravity = sql.when(sql.col("severity") == "HIGH", 0).when(sql.col("severity") == "MEDIUM", 1).otherwise(2)
    order = (gravity, sql.desc("score"), sql.desc("event_count"), "first_time", "discrepancy_id")
    return discrepancies.orderBy(*order).limit(limit)


def _identity() -> Column:
    key = sql.to_json(
        sql.struct(
            *QUESTION_COLUMNS, "access", "recorded_decision", "decision", "judged_by", "verdict", "rule"
        )
    )
    return sql.sha2(key, 256)


def _reason(differs: Column, is_exact: Column) -> Column:
    which = sql.when(
        is_exact, sql.concat(sql.lit("the ACLs of offset "), sql.col("first_acl_offset").cast("string"))
    ).otherwise(sql.lit("the ACLs in force then"))
    return sql.concat(
        sql.lit("recorded as "),
        sql.col("recorded_decision"),
        sql.when(differs, sql.lit(", but ")).otherwise(sql.lit(" for another reason than here: ")),
        which,
        sql.lit(" decide "),
        sql.col("decision"),
        sql.lit(" by "),
        sql.col("rule"),
    )


def _evidence() -> Column:
    names = (
        "host", "operation", "access", "recorded_decision", "recorded_rule", "decision", "rule", "judged_by",
        "first_acl_offset", "last_acl_offset", "event_count", "sample_event_id",
    )  # fmt: skip
    return sql.to_json(sql.struct(*names))
