"""Recorded access as a replay decides it: one row for each distinct use, counted, with an example."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.deciding import with_principal
from kustos.pipeline.schemas import QUESTION_COLUMNS
from kustos.pipeline.stages.probes import way_of_access

MATCHING_ACL: Final = "MatchingAcl"

_USE: Final = (*QUESTION_COLUMNS, "access", "decision")


def rule_text(rule: Column) -> Column:
    """Return a recorded rule (a struct) as the audit line writes it; null for an event without one."""
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


def accesses_of_rollup(rollup: DataFrame, *, with_rule: bool = True, with_example: bool = True) -> DataFrame:
    """Return the roll-up over all its days: a row for each question, way of access, decision and rule.

    Without rules there is one row for all rules of a decision, and `rule` is null: quicker, and enough to
    find flips. Without examples `sample_event_id` is null: quicker too, since Spark sorts for a minimum of
    texts and not for a sum of numbers. Columns as in the roll-up but for `day` and `hours`.
    """
    aggregates = [
        sql.sum("event_count").alias("event_count"),
        sql.sum("reference_count").alias("reference_count"),
        sql.min("first_time").alias("first_time"),
        sql.max("last_time").alias("last_time"),
    ]
    example = "sample_event_id" if with_example else None
    return _grouped(rollup, aggregates, example, with_rule=with_rule)


def accesses_of_events(events: DataFrame, *, with_rule: bool = True, with_example: bool = True) -> DataFrame:
    """Return the same of `audit_events`, without a roll-up between."""
    aggregates = [
        sql.count(sql.lit(1)).alias("event_count"),
        sql.sum(sql.col("reference_count").cast("long")).alias("reference_count"),
        sql.min("time").alias("first_time"),
        sql.max("time").alias("last_time"),
    ]
    example = "event_id" if with_example else None
    # join type and name once for each use, not for each event
    keys = ("principal_type", "principal_name", *_USE[1:])
    rows = events.withColumn("access", way_of_access())
    return with_principal(_grouped(rows, aggregates, example, keys, with_rule=with_rule)).drop(*keys[:2])


def _grouped(
    rows: DataFrame,
    aggregates: list[Column],
    example: str | None,
    keys: tuple[str, ...] = _USE,
    *,
    with_rule: bool,
) -> DataFrame:
    if example is not None:
        aggregates = [*aggregates, sql.min(example).alias("sample_event_id")]
    found = rows.groupBy(*keys, "rule") if with_rule else rows.groupBy(*keys)
    accesses = found.agg(*aggregates)
    if example is None:
        accesses = accesses.withColumn("sample_event_id", sql.lit(None).cast("string"))
    if not with_rule:
        accesses = accesses.withColumn("rule", sql.lit(None).cast(rows.schema["rule"].dataType))
    return accesses
