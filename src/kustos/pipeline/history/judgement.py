"""The stage that judges events by the ACLs in force when they happened.

First it counts the questions: events of kustos by the offset whose ACLs decided (`acl_offset`), others by a
short span of time. Then it puts changes of ACLs and questions into one order and partitions them by
principal, each partition with the ACLs that concern its principals; a worker goes through time once
(`kustos.pipeline.history.walk`). Spark sorts and spills; a worker holds the ACLs of one bucket at one moment.
"""

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from kustos.acl import EVERY_PRINCIPAL, AclValueError
from kustos.authorizer import RuleKind, parse_super_users
from kustos.pipeline.columns.decision_counts import decision_count
from kustos.pipeline.columns.probes import way_of_access
from kustos.pipeline.deciding import principal_text
from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.history.walk import (
    ADDED,
    FIRST_ORDER,
    QUERY,
    REMOVED,
    WALK_COLUMNS,
    Settings,
    Walk,
)
from kustos.pipeline.schemas import ACL_SCHEMA, JUDGED_SCHEMA, QUESTION_COLUMNS
from kustos.pipeline.task_errors import map_in_arrow

TOLERANCE_MS: Final = 2_000
"""How far the clocks of the deciding node and of the log may differ, and a broker may be behind its log."""
SPAN_MS: Final = 60_000
"""Events without an offset are counted together over this span; a decision agrees if it was right at any
moment of it."""
BUCKETS: Final = 16
"""Partitions of principals: a worker holds the ACLs of one at a time."""

BY_OFFSET: Final = "OFFSET"
BY_TIME: Final = "TIME"
NOT_BY_ACLS: Final = (
    RuleKind.CUSTOM.value,
    RuleKind.SHADOW_MODE.value,
    RuleKind.AUTHORIZATION_OFF.value,
    "Error",
)
"""Kinds of rules that do not come from ACLs."""

ANSWER_SCHEMA: Final = StructType(
    [
        StructField("decision", StringType()),
        StructField("rule", StringType()),
        StructField("verdict", StringType()),
        StructField("is_same_rule", BooleanType()),
    ]
)
"""What the walk adds to a row."""

_LANES: Final = {BY_OFFSET: 0, BY_TIME: 1}
_COUNTED: Final = (
    *QUESTION_COLUMNS,
    "access",
    "recorded_decision",
    "recorded_rule",
    "acl_offset",
    "event_count",
    "reference_count",
    "first_time",
    "last_time",
    "sample_event_id",
)


EVENT_COLUMNS: Final = (
    "event_id",
    "time_ms",
    "time",
    "principal_type",
    "principal_name",
    "host",
    "operation",
    "resource_type",
    "resource_name",
    "decision",
    "access",
    "rule",
    "acl_offset",
    "log_if_denied",
    "decision_count",
    "reference_count",
)
"""The columns of `audit_events` that a judgement reads."""


def judged_by_history(
    rows: DataFrame,
    history: DataFrame,
    *,
    log_range: DataFrame | None = None,
    super_users: str | None = None,
    allow_everyone_if_no_acl_found: bool = False,
    tolerance_ms: int = TOLERANCE_MS,
    span_ms: int = SPAN_MS,
    buckets: int = BUCKETS,
) -> DataFrame:
    """Return each recorded decision beside that of the ACLs then in force, as JUDGED_SCHEMA.

    `rows`: AUDIT_EVENTS_SCHEMA, of nodes that follow the log of this history, or AUDIT_ROLLUP_SCHEMA, which
    has no offsets: its rows agree if the answer was right at any moment between first and last. `history`:
    ACL_HISTORY_SCHEMA. `log_range`: METADATA_RANGE_SCHEMA of the same log; without it the history begins at
    its first snapshot, or without ACLs if there is no snapshot. `super_users` as in Kafka's setting; None
    trusts recorded super users (NOT_JUDGED), since ACLs cannot confirm them, and what was allowed by a rule
    that the event does not name is UNCERTAIN unless ACLs allow it. Every event is counted in exactly one
    row. Raises `MetadataHistoryError` for invalid super users; a history that mixes several logs fails the
    query.
    """
    settings = Settings(
        _super_users(super_users),
        allow_everyone_if_no_acl_found,
        knows_super_users=super_users is not None,
    )
    counted = _counted(rows, span_ms)
    placed = _placed(counted, _bounds(history, log_range), judges_super_users=super_users is not None)
    walked = (
        _questions(placed, tolerance_ms, buckets)
        .unionByName(
            _changes(history, buckets, to_all=allow_everyone_if_no_acl_found), allowMissingColumns=True
        )
        .repartition(buckets, "lane", "bucket")
        .sortWithinPartitions("lane", "bucket", "order", "is_question", "offset", "step")
        .drop("is_question", "offset")
    )
    kept = [field for field in walked.schema.fields if field.name not in WALK_COLUMNS]

    def walk(batches: Iterator[Any]) -> Iterator[Any]:
        yield from Walk(settings).judged(batches)

    return _summed(map_in_arrow(walked, walk, StructType([*kept, *ANSWER_SCHEMA.fields])))


def _super_users(text: str | None) -> frozenset[str]:
    try:
        return parse_super_users(text or "")
    except AclValueError as error:
        raise MetadataHistoryError(str(error)) from None


def _counted(rows: DataFrame, span_ms: int) -> DataFrame:
    """Return the questions, each with its counts and times."""
    if "event_count" in rows.columns:
        return rows.select(
            *QUESTION_COLUMNS,
            "access",
            sql.col("decision").alias("recorded_decision"),
            sql.col("rule").alias("recorded_rule"),
            sql.lit(None).cast("long").alias("acl_offset"),
            *_COUNTED[-5:],
        )
    span = sql.floor(sql.col("time_ms") / sql.lit(span_ms))
    return (
        rows.withColumns({"principal": principal_text(), "access": way_of_access()})
        .groupBy(
            *QUESTION_COLUMNS,
            "access",
            sql.col("decision").alias("recorded_decision"),
            sql.col("rule").alias("recorded_rule"),
            "acl_offset",
            sql.when(sql.col("acl_offset").isNull(), span).alias("span"),
        )
        .agg(
            sql.sum(decision_count()).alias("event_count"),
            sql.sum("reference_count").alias("reference_count"),
            sql.min("time").alias("first_time"),
            sql.max("time").alias("last_time"),
            sql.min("event_id").alias("sample_event_id"),
        )
        .select(*_COUNTED)
    )


def _bounds(history: DataFrame, log_range: DataFrame | None) -> DataFrame:
    """Return one row with the offsets between which the state is known, null where there is no bound."""
    if log_range is not None:
        return log_range.select("from_offset", "from_time", "to_offset")
    return history.where("is_in_first_snapshot").agg(
        sql.max("valid_from_offset").alias("from_offset"),
        sql.max("valid_from_time").alias("from_time"),
        sql.lit(None).cast("long").alias("to_offset"),
    )


def _placed(counted: DataFrame, bounds: DataFrame, *, judges_super_users: bool) -> DataFrame:
    """Add `judged_by`, and the verdict on rows that cannot be judged."""
    beliefs = NOT_BY_ACLS if judges_super_users else (*NOT_BY_ACLS, RuleKind.SUPER_USER.value)
    has_offset = sql.col("acl_offset").isNotNull()
    is_outside = sql.when(
        has_offset,
        (sql.col("acl_offset") < sql.col("from_offset")) | (sql.col("acl_offset") > sql.col("to_offset")),
    ).otherwise(sql.col("first_time") < sql.col("from_time"))
    return (
        counted.crossJoin(sql.broadcast(bounds))
        .withColumn("judged_by", sql.when(has_offset, sql.lit(BY_OFFSET)).otherwise(sql.lit(BY_TIME)))
        .withColumn(
            "preset",
            sql.when(sql.col("recorded_rule.kind").isin(*beliefs), sql.lit("NOT_JUDGED"))
            .when(sql.coalesce(is_outside, sql.lit(False)), sql.lit("OUT_OF_RANGE"))
            .when(~has_offset & sql.col("first_time").isNull(), sql.lit("UNCERTAIN"))
            .cast(StringType()),
        )
        .select(*_COUNTED, "judged_by", "preset")
    )


def _bucket(column: str, buckets: int) -> Column:
    return sql.pmod(sql.xxhash64(column), sql.lit(buckets)).cast("int")


def _questions(placed: DataFrame, tolerance_ms: int, buckets: int) -> DataFrame:
    has_offset = sql.col("judged_by") == sql.lit(BY_OFFSET)
    slack_us = sql.lit(tolerance_ms * 1000)
    first, last = sql.unix_micros("first_time") - slack_us, sql.unix_micros("last_time") + slack_us
    return placed.select(
        "*",
        sql.when(has_offset, _LANES[BY_OFFSET]).otherwise(_LANES[BY_TIME]).alias("lane"),
        _bucket("principal", buckets).alias("bucket"),
        sql.when(has_offset, sql.col("acl_offset")).otherwise(first).alias("order"),
        sql.when(has_offset, sql.col("acl_offset")).otherwise(last).alias("until"),
        sql.lit(1).alias("is_question"),
        sql.lit(0).cast("long").alias("offset"),
        sql.lit(QUERY).alias("step"),
    )


def _changes(history: DataFrame, buckets: int, *, to_all: bool) -> DataFrame:
    """Return every change for both lanes, and for each bucket that it concerns."""
    everywhere = sql.sequence(sql.lit(0), sql.lit(buckets - 1))
    of_one = sql.array(_bucket("principal", buckets))
    of_all = sql.lit(True) if to_all else sql.col("principal") == sql.lit(EVERY_PRINCIPAL)
    is_first, ends = sql.col("is_in_first_snapshot"), sql.col("valid_to_offset").isNotNull()
    added = _change(ADDED, "valid_from", is_first)
    removed = _change(REMOVED, "valid_to", sql.lit(False))
    return (
        history.where(is_first | ~ends | (sql.col("valid_to_offset") > sql.col("valid_from_offset")))
        .select(
            "acl_id",
            sql.struct(*ACL_SCHEMA.fieldNames()).alias("acl"),
            sql.when(of_all, everywhere).otherwise(of_one).alias("_buckets"),
            sql.when(ends, sql.array(*added, *removed)).otherwise(sql.array(*added)).alias("_changes"),
        )
        .select("acl_id", "acl", "_buckets", sql.explode("_changes").alias("_change"))
        .select("acl_id", "acl", "_change.*", sql.explode("_buckets").alias("bucket"))
    )


def _change(step: int, column: str, is_first: Column) -> list[Column]:
    """Return a change as each lane places it: by its offset, and by its time."""
    offset, time_us = sql.col(f"{column}_offset"), sql.unix_micros(f"{column}_time")
    return [
        sql.struct(
            sql.lit(lane).alias("lane"),
            sql.when(is_first, sql.lit(FIRST_ORDER)).otherwise(order).alias("order"),
            sql.lit(0).alias("is_question"),
            offset.alias("offset"),
            sql.lit(step).alias("step"),
        )
        for lane, order in ((_LANES[BY_OFFSET], offset), (_LANES[BY_TIME], time_us))
    ]


def _summed(answered: DataFrame) -> DataFrame:
    """Sum rows with equal questions, records and answers."""
    alike = [
        name
        for name in JUDGED_SCHEMA.fieldNames()
        if name not in {*_COUNTED[-5:], "first_acl_offset", "last_acl_offset"}
    ]
    return (
        answered.groupBy(*alike)
        .agg(
            sql.sum("event_count").alias("event_count"),
            sql.sum("reference_count").alias("reference_count"),
            sql.min("first_time").alias("first_time"),
            sql.max("last_time").alias("last_time"),
            sql.min("sample_event_id").alias("sample_event_id"),
            sql.min("acl_offset").alias("first_acl_offset"),
            sql.max("acl_offset").alias("last_acl_offset"),
        )
        .select(*JUDGED_SCHEMA.fieldNames())
    )
