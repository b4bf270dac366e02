"""Recorded access as replay asks it: one row for each distinct use, counted, with an example."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.deciding import with_principal
from kustos.pipeline.schemas import QUESTION_COLUMNS

MATCHING_ACL: Final = "MatchingAcl"

_USE: Final = (*QUESTION_COLUMNS, "access", "decision")


def rule_text(rule: Column) -> Column:
    """Return a recorded rule (a struct) as the audit line writes it; null for an event that says none."""
    acl = sql.concat(
        sql.lit("MatchingAcl(acl=StandardAcl[resourceType="),
        rule["resource_type"],
        sql.lit(", resourceName="),
        rule["resource_name"],
        sql.lit(", patternType="),
        rule["pattern_type"],
        sql.lit(", principal="),
        rule["principal"],
        sql.lit(", host="),
        rule["host"],
        sql.lit(", operation="),
        rule["operation"],
        sql.lit(", permissionType="),
        rule["permission_type"],
        sql.lit("])"),
    )
    return sql.when(rule["kind"] == MATCHING_ACL, acl).otherwise(rule["kind"])


def accesses_of_rollup(rollup: DataFrame, *, with_rule: bool = True) -> DataFrame:
    """Return the roll-up over all its days: a row for each question, way of access, decision and rule.

    Without rules there is one row for all rules of a decision, and `rule` is null: quicker, and enough to
    tell what flips. Columns as in the roll-up but for `day` and `hours`.
    """
    counts = [
        sql.sum("event_count").alias("event_count"),
        sql.sum("reference_count").alias("reference_count"),
    ]
    times = [sql.min("first_time").alias("first_time"), sql.max("last_time").alias("last_time")]
    return _grouped(rollup, [*counts, *times, sql.min("sample_event_id").alias("sample_event_id")], with_rule)


def accesses_of_events(events: DataFrame, *, with_rule: bool = True) -> DataFrame:
    """Return the same of `audit_events`, without a roll-up between."""
    counts = [
        sql.count(sql.lit(1)).alias("event_count"),
        sql.sum(sql.col("reference_count").cast("long")).alias("reference_count"),
    ]
    times = [sql.min("time").alias("first_time"), sql.max("time").alias("last_time")]
    return _grouped(
        with_principal(events), [*counts, *times, sql.min("event_id").alias("sample_event_id")], with_rule
    )


def _grouped(rows: DataFrame, aggregates: list[Column], with_rule: bool) -> DataFrame:
    if with_rule:
        return rows.groupBy(*_USE, "rule").agg(*aggregates)
    kind = rows.schema["rule"].dataType
    return rows.groupBy(*_USE).agg(*aggregates).withColumn("rule", sql.lit(None).cast(kind))
