"""Findings from the set of ACLs alone, and the record of each ACL: before the choice of ACLs to remove."""

from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis import Rules, necessity
from kustos.analysis.lint import acl_text, lint
from kustos.pipeline.columns.probes import ACCESS, PROBE
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.review.deciding_acls import names_acl
from kustos.pipeline.review.existing_names import Existing
from kustos.pipeline.review.kinds import Cause, FindingKind, FindingSeverity, breadth, severity_of
from kustos.pipeline.review.period import ACL_COLUMNS
from kustos.pipeline.review.recorded_questions import NUMBERED_ACL_SCHEMA, numbered
from kustos.pipeline.session import frame_of_rows

FOUND_SCHEMA: Final = StructType(
    [
        StructField("kind", StringType()),
        StructField("cause", StringType()),
        StructField("severity", StringType()),
        StructField("score", DoubleType()),
        StructField("reason", StringType()),
        StructField("code", StringType()),
        StructField("fix", StringType()),
        StructField("related", ArrayType(StringType())),
    ]
)
"""One finding: `code` and `fix` are those of `kustos lint`, `related` other ACLs in words; else null."""

HELD_SCHEMA: Final = StructType(
    [
        *NUMBERED_ACL_SCHEMA.fields,
        StructField("text", StringType()),
        StructField("severity", StringType()),
        StructField("rank", IntegerType()),
        StructField("lacks_user", BooleanType()),
        StructField("of_the_set", ArrayType(FOUND_SCHEMA)),
    ]
)
"""The ACLs with their numbers and texts, their rank in the order of removal, and the findings from the set
alone."""


class _LintFinding(NamedTuple):
    kind: FindingKind
    cause: Cause
    severity: FindingSeverity | None


_BY_CODE: Final = {
    "KUS002": _LintFinding(FindingKind.SHADOWED_ACL, Cause.DENIED, FindingSeverity.MEDIUM),
    "KUS003": _LintFinding(FindingKind.SHADOWED_ACL, Cause.DENIED, FindingSeverity.MEDIUM),
    "KUS004": _LintFinding(FindingKind.REDUNDANT_ACL, Cause.SAID_BY_OTHERS, FindingSeverity.LOW),
    "KUS005": _LintFinding(FindingKind.REDUNDANT_ACL, Cause.DENIES_NOTHING, FindingSeverity.LOW),
    "KUS006": _LintFinding(FindingKind.REDUNDANT_ACL, Cause.OF_A_SUPER_USER, FindingSeverity.LOW),
    "KUS208": _LintFinding(FindingKind.ORPHANED_ACL, Cause.NO_SUCH_RESOURCE, None),
}
"""The lint findings that are findings here; a severity of None follows from the ACL's breadth."""


def held_acls(spark: SparkSession, acls: AclsInForce, existing: Existing) -> DataFrame:
    """Return the ACLs as HELD_SCHEMA, with exact findings from the set, its settings and `existing`."""
    bindings = numbered(acls.bindings)
    ranks = {binding: rank for rank, binding in enumerate(sorted(bindings, key=breadth))}
    found = _of_the_set(bindings, acls.rules, existing)
    rows = [
        (
            number,
            tuple(texts_of(binding).values()),
            acl_text(binding),
            severity_of(binding).value,
            ranks[binding],
            existing.lacks_user(binding.entry.principal),
            found.get(number, []),
        )
        for number, binding in enumerate(bindings)
    ]
    return frame_of_rows(spark, rows, HELD_SCHEMA)


def _of_the_set(
    bindings: tuple[AclBinding, ...], rules: Rules, existing: Existing
) -> dict[int, list[tuple[object, ...]]]:
    needed = necessity(bindings, rules)
    rows: dict[int, list[tuple[object, ...]]] = {}
    for found in lint(bindings, rules, existing.listing()):
        finding = _BY_CODE.get(found.code)
        # an ALLOW whose own operation is denied may still allow DESCRIBE: then it is not shadowed
        if finding is None or (found.code == "KUS002" and needed.effective[found.number]):
            continue
        # a super user's ACL may be all that keeps a resource from being open by default: not redundant
        if finding.cause is Cause.OF_A_SUPER_USER and needed.matters[found.number]:
            continue
        severity = finding.severity or severity_of(bindings[found.number])
        related = [acl_text(bindings[number]) for number in found.related]
        fields = (finding.kind.value, finding.cause.value, severity.value, 1.0, found.message, found.code)
        rows.setdefault(found.number, []).append((*fields, found.fix, related))
    return rows


def decided(recorded: DataFrame, held: DataFrame, worked_out: DataFrame) -> DataFrame:
    """Return for each ACL (`number`) that ever was the deciding rule when and how often, without listings.

    `worked_out` has the rules of events that do not name theirs (`with_deciding_acls`); their events are
    counted in `worked_out_event_count`, too. A DENY that only answered probes counts as deciding.
    """
    rule = sql.col("rule")
    counted = ("access", "event_count", "first_time", "last_time")
    named = recorded.filter(names_acl()).select(
        sql.struct(*[rule.getField(name).alias(name) for name in ACL_COLUMNS]).alias("acl"), *counted
    )
    counted_rows = held.select("number", "acl").join(named, "acl").select("number", *counted)
    known = counted_rows.withColumn("is_worked_out", sql.lit(False)).unionByName(
        worked_out.select("number", *counted).withColumn("is_worked_out", sql.lit(True))
    )
    is_use, zero = sql.col("access").isin(ACCESS, PROBE), sql.lit(0).cast("long")
    count = sql.col("event_count")
    return known.groupBy("number").agg(
        sql.min(sql.when(is_use, sql.col("first_time"))).alias("first_decided"),
        sql.max(sql.when(is_use, sql.col("last_time"))).alias("last_decided"),
        sql.sum(sql.when(is_use, count).otherwise(zero)).alias("decided_event_count"),
        sql.sum(sql.when(is_use, zero).otherwise(count)).alias("listing_event_count"),
        sql.sum(sql.when(is_use & sql.col("is_worked_out"), count).otherwise(zero)).alias(
            "worked_out_event_count"
        ),
    )


def last_seen(recorded: DataFrame) -> DataFrame:
    """Return the time of each principal's last event, allowed or not."""
    return recorded.groupBy("principal").agg(sql.max("last_time").alias("last_seen"))


def deleted_users(scram_history: DataFrame, as_of: datetime) -> DataFrame:
    """Return the principals whose last SCRAM credential ended by `as_of`, and when (`deleted_at`)."""
    at = sql.lit(as_of)
    ended = sql.when(sql.col("valid_to_time") <= at, sql.col("valid_to_time"))
    begun = scram_history.filter(sql.col("valid_from_time") <= at)
    users = begun.groupBy(sql.concat(sql.lit("User:"), "user").alias("principal")).agg(
        sql.max(ended).alias("deleted_at"), sql.bool_and(ended.isNotNull()).alias("_is_gone")
    )
    return users.filter("_is_gone").drop("_is_gone")
