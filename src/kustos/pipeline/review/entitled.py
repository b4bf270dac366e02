"""The table `entitlements`: what each ACL entitles to, with the counts of what it is for and of its uses.

One row for each ALLOW and operation, however many principals and names it stands for: they are counted, by
the record and by lists of names that exist. Super users, and the default for what no ACL names, have a row of
their own.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from kustos.acl import EVERY_PRINCIPAL, AclBinding, AclPermissionType, ResourcePattern, ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis import Breadth, Effect, breadth_of, entitlements
from kustos.authorizer import RuleKind
from kustos.pipeline.columns.probes import LISTING
from kustos.pipeline.deciding import AclsInForce, ShippedAcls, evaluated_once
from kustos.pipeline.queries.record import RecordCoverage, record_of
from kustos.pipeline.review.access import DORMANT_DAYS, with_dormancy
from kustos.pipeline.review.matcher import Naming
from kustos.pipeline.review.period import until, with_grant_time, with_team
from kustos.pipeline.review.recorded_questions import matcher_of, numbered
from kustos.pipeline.schemas import ACL_SCHEMA, ENTITLEMENTS_SCHEMA
from kustos.pipeline.session import frame_of_rows
from kustos.pipeline.worker_cache import kept_in_worker

_ENTITLED_SCHEMA: Final = StructType(
    [
        StructField("number", IntegerType()),
        StructField("operation", StringType()),
        StructField("is_implied", BooleanType()),
        StructField("breadth", StringType()),
        StructField("effect", StringType()),
        StructField("denied_by", ArrayType(ACL_SCHEMA)),
        StructField("deny_count", IntegerType()),
        StructField("acl", ACL_SCHEMA),
        StructField("pattern", IntegerType()),
    ]
)
_NAME: Final = ("resource_type", "resource_name")
_NAMES_SCHEMA: Final = StructType([StructField(name, StringType()) for name in _NAME])


def entitlement_rows(
    spark: SparkSession,
    rollup: DataFrame,
    acls: AclsInForce,
    shipped: ShippedAcls,
    *,
    as_of: datetime,
    questions: DataFrame,
    dormant_days: int = DORMANT_DAYS,
    record: RecordCoverage | None = None,
    teams: Mapping[str, str] | None = None,
    history: DataFrame | None = None,
    names: Mapping[str, Iterable[str]] | None = None,
    principals: Iterable[str] = (),
) -> DataFrame:
    """Return the table `entitlements` of a roll-up and the ACLs in force at `as_of`.

    `questions` is the result of `review_questions`. `history` (ACL_HISTORY_SCHEMA) has the time of creation
    of each ACL. `names` are those that exist, by resource type: for other types the record has them.
    `principals` are known besides the principals in the record and in the ACLs. `record` is the result of
    `record_of`, if the caller has it. Raises `ReviewError` for a time without a zone.
    """
    recorded = until(rollup, as_of)
    used = questions.filter("use_count > 0")
    everyone = _principals(spark, recorded, acls, principals)
    rows = _of_acls(spark, acls, shipped, used, history, as_of, _names(spark, recorded, names or {}))
    rows = rows.unionByName(_beyond_acls(spark, acls, used))
    counted = rows.crossJoin(sql.broadcast(everyone)).withColumn(
        "principal_count",
        sql.when(sql.col("principal") == EVERY_PRINCIPAL, sql.col("_everyone")).otherwise(_zero() + 1),
    )
    dated = with_dormancy(counted, as_of, record or record_of(rollup, as_of, dormant_days))
    return with_team(dated, teams or {}).select(*ENTITLEMENTS_SCHEMA.fieldNames())


def _of_acls(
    spark: SparkSession,
    acls: AclsInForce,
    shipped: ShippedAcls,
    used: DataFrame,
    history: DataFrame | None,
    as_of: datetime,
    names: DataFrame,
) -> DataFrame:
    acl = sql.col("acl")
    held = frame_of_rows(spark, _entitled_rows(acls), _ENTITLED_SCHEMA)
    uses = (
        used.select("*", sql.explode("allows").alias("number"))
        .groupBy("number", "operation")
        .agg(*sums_of_uses())
    )
    reached = (
        names.select(sql.explode(_patterns_of(shipped)).alias("pattern"))
        .groupBy("pattern")
        .agg(sql.count(sql.lit(1)).alias("name_count"))
    )
    found = held.join(uses, ["number", "operation"], "left").join(reached, "pattern", "left")
    return with_grant_time(found, history, as_of).select(
        *[acl.getField(name).alias(name) for name in ("principal", *_NAME, "pattern_type", "host")],
        *["operation", "is_implied", "breadth", "effect", "denied_by", "deny_count", "granted_since"],
        sql.lit(RuleKind.MATCHING_ACL.value).alias("basis"),
        sql.array(acl).alias("granted_by"),
        *_filled_counts("name_count"),
        "last_used",
    )


def _entitled_rows(acls: AclsInForce) -> list[tuple[object, ...]]:
    bindings = numbered(acls.bindings)
    patterns = {pattern: place for place, pattern in enumerate(patterns_of(bindings))}
    texts = [tuple(texts_of(binding).values()) for binding in bindings]
    return [
        (
            one.number,
            one.operation.name,
            one.operation is not binding.entry.operation,
            breadth_of(binding).value,
            one.effect.value,
            [texts[number] for number in one.denied_by],
            one.deny_count,
            texts[one.number],
            patterns[binding.pattern],
        )
        for one in entitlements(bindings, acls.rules)
        for binding in [bindings[one.number]]
    ]


def _beyond_acls(spark: SparkSession, acls: AclsInForce, used: DataFrame) -> DataFrame:
    """Return a row for each super user, and one for the default that allows what no ACL names."""
    rows = [(name, RuleKind.SUPER_USER.value) for name in sorted(acls.super_users)]
    if acls.allow_everyone_if_no_acl_found:
        rows.append((EVERY_PRINCIPAL, RuleKind.DEFAULT_ALLOW.value))
    schema = StructType([StructField("principal", StringType()), StructField("basis", StringType())])
    held = frame_of_rows(spark, rows, schema)
    who = sql.when(sql.col("basis") == RuleKind.DEFAULT_ALLOW.value, EVERY_PRINCIPAL).otherwise(
        sql.col("principal")
    )
    beyond = used.filter(sql.col("basis").isin(RuleKind.SUPER_USER.value, RuleKind.DEFAULT_ALLOW.value))
    uses = beyond.groupBy(who.alias("_who"), "basis").agg(*sums_of_uses())
    acl_array = ArrayType(ACL_SCHEMA)
    return (
        held.join(uses.withColumnRenamed("_who", "principal"), ["principal", "basis"], "left")
        .withColumn("name_count", sql.lit(None).cast("long"))
        .select(
            "principal",
            "basis",
            sql.lit("ALL").alias("operation"),
            sql.lit("ANY").alias("resource_type"),
            sql.lit("*").alias("resource_name"),
            sql.lit("ANY").alias("pattern_type"),
            sql.lit("*").alias("host"),
            sql.lit(False).alias("is_implied"),
            sql.when(who == EVERY_PRINCIPAL, Breadth.EVERYONE.value)
            .otherwise(Breadth.WILDCARD.value)
            .alias("breadth"),
            sql.lit(Effect.WHOLE.value).alias("effect"),
            sql.array().cast(acl_array).alias("denied_by"),
            sql.lit(0).alias("deny_count"),
            sql.array().cast(acl_array).alias("granted_by"),
            sql.lit(None).cast("timestamp").alias("granted_since"),
            *_filled_counts(),
            "name_count",
            "last_used",
        )
    )


def sums_of_uses() -> tuple[Column, ...]:
    """Return the sums over questions with `use_count` and `last_used` that the table has."""
    return (
        sql.sum("use_count").alias("use_count"),
        sql.count_distinct("principal").alias("used_by_count"),
        sql.count_distinct("resource_name").alias("used_name_count"),
        sql.max("last_used").alias("last_used"),
    )


def _zero() -> Column:
    return sql.lit(0).cast("long")


def _filled_counts(*more: str) -> list[Column]:
    names = ("use_count", "used_by_count", "used_name_count", *more)
    return [sql.coalesce(name, _zero()).alias(name) for name in names]


def _principals(
    spark: SparkSession, recorded: DataFrame, acls: AclsInForce, more: Iterable[str]
) -> DataFrame:
    """Return one row with the number of known principals, `_everyone`."""
    named = {binding.entry.principal for binding in acls.bindings} | {*acls.super_users, *more}
    schema = StructType([StructField("principal", StringType())])
    known = frame_of_rows(spark, [(name,) for name in sorted(named - {EVERY_PRINCIPAL})], schema)
    return (
        recorded.select("principal")
        .unionByName(known)
        .agg(sql.count_distinct("principal").alias("_everyone"))
    )


def _names(spark: SparkSession, recorded: DataFrame, listed: Mapping[str, Iterable[str]]) -> DataFrame:
    """Return the known names: those listed, and of other types those that were allowed or checked for a list.

    A name that was only denied may be an attacker's guess.
    """
    exists = (sql.col("decision") == "ALLOWED") | sql.col("access").eqNullSafe(LISTING)
    known = recorded.filter(exists & sql.col("resource_name").isNotNull()).select(*_NAME).distinct()
    rows = [(kind, name) for kind, names in listed.items() for name in sorted(set(names))]
    if listed:
        known = known.filter(~sql.col("resource_type").isin(*listed))
    return known.unionByName(frame_of_rows(spark, rows, _NAMES_SCHEMA))


def patterns_of(bindings: Iterable[AclBinding]) -> list[ResourcePattern]:
    """Return the distinct patterns of ALLOWs, in the order that gives each its number."""
    allows = [one for one in bindings if one.entry.permission_type is AclPermissionType.ALLOW]
    return list(dict.fromkeys(binding.pattern for binding in allows))


NAMINGS_MAX: Final = 1
"""Kept in a process: a query has one, of the patterns of its ACLs."""


@kept_in_worker(NAMINGS_MAX, key=lambda shipped: shipped.digest)
def _naming_of(shipped: ShippedAcls) -> Naming:
    return Naming(patterns_of(matcher_of(shipped).bindings))


def _patterns_of(shipped: ShippedAcls) -> Column:
    """Return the numbers of the patterns that match each row's name."""

    def match(resource_type: pa.Array, name: pa.Array) -> pa.Array:
        naming = _naming_of(shipped)
        pairs = zip(resource_type.to_pylist(), name.to_pylist(), strict=True)
        found = [naming.of(ResourceType.from_text(kind), text) for kind, text in pairs]
        return pa.array(found, pa.list_(pa.int32()))

    return evaluated_once(match, ArrayType(IntegerType()), *_NAME)
