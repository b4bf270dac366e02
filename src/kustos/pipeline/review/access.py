"""The access review: principal, operation, resource; the ACLs that grant it; when it was last used.

A use is an ACCESS that was recorded as allowed: with names that only filtered a list every grant would look
used. A row is

- a resource that a principal used, with the ACLs that allow it at `as_of` (`granted_by`), or
- an ALLOW without any use: the pattern, for the principal that it names, or
- a super user, whom no ACL limits: everything (`ANY`, `*`).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from kustos.acl import EVERY_PRINCIPAL, WILDCARD, AclBinding
from kustos.acl.forms import texts_of
from kustos.analysis import necessity
from kustos.authorizer import RuleKind
from kustos.pipeline.deciding import AclsInForce, decide, distinct_questions, ship
from kustos.pipeline.queries.record import RecordCoverage, record_of
from kustos.pipeline.review.matcher import NOBODY
from kustos.pipeline.review.period import moment, until, with_grant_time, with_team
from kustos.pipeline.review.recorded_questions import NUMBERED_ACL_SCHEMA, numbered, review_questions
from kustos.pipeline.schemas import ACCESS_REVIEW_SCHEMA
from kustos.pipeline.session import frame_of_rows
from kustos.signoff import Flipped, ReplayFunction, RowChoice

HOSTS_MAX: Final = 100
"""Hosts that one row names, the first in order: a longer list cannot be reviewed."""

DORMANT_DAYS: Final = 90
"""Days without use after which a grant is dormant, by default."""

_RESOURCE: Final = ("principal", "operation", "resource_type", "resource_name")
_BASES: Final = (
    NOBODY,
    RuleKind.DEFAULT_ALLOW.value,
    RuleKind.MATCHING_ACL.value,
    RuleKind.SUPER_USER.value,
)

_GRANT_SCHEMA: Final = StructType([*NUMBERED_ACL_SCHEMA.fields, StructField("basis", StringType())])
_SUPER_USER_SCHEMA: Final = StructType([StructField("principal", StringType())])

FLIPS_MAX: Final = 10_000
"""Accesses that a replay names: a longer list is unreadable."""


def access_review(
    spark: SparkSession,
    rollup: DataFrame,
    acls: AclsInForce,
    *,
    as_of: datetime,
    dormant_days: int = DORMANT_DAYS,
    teams: Mapping[str, str] | None = None,
    history: DataFrame | None = None,
    questions: DataFrame | None = None,
    record: RecordCoverage | None = None,
) -> DataFrame:
    """Return the table `access_review` of a roll-up and the ACLs in force at `as_of`.

    `history` (ACL_HISTORY_SCHEMA) has the time of creation of each ACL. `teams` as in `with_team`.
    `questions` is the result of `review_questions`, if the caller has persisted it: it is read several times.
    `record` is the result of `record_of`, if the caller has it. Raises `ReviewError` for a time without a
    zone.
    """
    moment(as_of)
    covered = record or record_of(rollup, as_of, dormant_days)
    matched = review_questions(rollup, ship(spark, acls), as_of) if questions is None else questions
    grants = _grants(spark, acls, history, as_of)
    used = _used_rows(matched, grants)
    rows = (
        used.drop("numbers")
        .unionByName(_unused_rows(used, grants))
        .unionByName(_super_user_rows(spark, matched, acls))
    )
    finished = with_dormancy(rows, as_of, covered)
    return with_team(finished, teams or {}).select(*ACCESS_REVIEW_SCHEMA.fieldNames())


def with_dormancy(rows: DataFrame, as_of: datetime, record: RecordCoverage) -> DataFrame:
    """Return rows with `last_used` and `granted_since` with what the record says of their use.

    These are `as_of`, `dormant_days`, `is_dormant`, `recorded_days` and `covered_since`. A row is dormant if
    it had no use in the window of the record, the record covers it, and the grant is not younger, as far as
    that is known; `is_dormant` is null where it is too early to say.
    """

    limit = moment(as_of - timedelta(days=record.window_days))
    is_used, is_young = (
        sql.coalesce(sql.col(time) > limit, sql.lit(False)) for time in ("last_used", "granted_since")
    )
    can_tell = sql.lit(record.is_enough) & ~is_young
    since = sql.greatest("last_used", "granted_since")
    return rows.withColumn("as_of", moment(as_of)).withColumns(
        {
            "dormant_days": sql.date_diff(sql.to_date("as_of"), sql.to_date(since)),
            "is_dormant": sql.when(is_used, sql.lit(False)).when(can_tell, sql.lit(True)),
            **record.columns(),
        }
    )


def _grants(spark: SparkSession, acls: AclsInForce, history: DataFrame | None, as_of: datetime) -> DataFrame:
    """Return the ACLs with their numbers, their time of creation, and the basis on which an ALLOW grants."""
    rules = acls.rules
    bindings = numbered(acls.bindings)
    speaks = necessity(bindings, rules).effective
    rows = []
    for number, (binding, is_heard) in enumerate(zip(bindings, speaks, strict=True)):
        basis = RuleKind.MATCHING_ACL.value if is_heard else NOBODY
        if binding.entry.principal in rules.super_users:
            basis = RuleKind.SUPER_USER.value
        rows.append((number, tuple(texts_of(binding).values()), basis))
    held = frame_of_rows(spark, rows, _GRANT_SCHEMA)
    return with_grant_time(held, history, as_of).select(*held.columns, "granted_since")


def _used_rows(matched: DataFrame, grants: DataFrame) -> DataFrame:
    """Return the rows of what was used, with the `numbers` of the ACLs that allow it."""
    is_used = sql.col("use_count") > 0
    rank = sql.array_position(sql.lit(list(_BASES)), sql.col("basis"))
    by_acl = is_used & (sql.col("basis") == RuleKind.MATCHING_ACL.value)
    resources = (
        matched.groupBy(*_RESOURCE)
        .agg(
            _hosts_used().alias("hosts"),
            sql.max_by("basis", sql.when(is_used, rank)).alias("basis"),
            sql.sum("use_count").alias("use_count"),
            sql.sum("denied_count").alias("denied_count"),
            sql.max("last_used").alias("last_used"),
            sql.array_sort(
                sql.array_distinct(sql.flatten(sql.collect_list(sql.when(by_acl, sql.col("allows")))))
            ).alias("numbers"),
        )
        .filter(is_used)
    )
    # exploded into numbers and grouped again: if Spark broadcasts the ACLs, no row is shuffled for it
    each = resources.withColumn("number", sql.explode_outer("numbers")).join(
        grants.select("number", "acl", "granted_since"), "number", "left"
    )
    kept = [name for name in resources.columns if name not in _RESOURCE]
    return (
        each.groupBy(*_RESOURCE)
        .agg(
            *[sql.first(name).alias(name) for name in kept],
            sql.array_sort(sql.collect_list("acl")).alias("granted_by"),
            sql.min("granted_since").alias("granted_since"),
        )
        .withColumn("pattern_type", sql.when(sql.col("resource_name").isNotNull(), sql.lit("LITERAL")))
    )


def _hosts_used() -> Column:
    hosts = sql.collect_set(sql.when(sql.col("use_count") > 0, sql.col("host")))
    return sql.slice(sql.array_sort(hosts), 1, HOSTS_MAX)


def _unused_rows(used: DataFrame, grants: DataFrame) -> DataFrame:
    numbers = used.select(sql.explode("numbers").alias("number")).distinct()
    acl = sql.col("acl")
    allows = grants.filter(acl.getField("permission_type") == "ALLOW")
    return allows.join(numbers, "number", "left_anti").select(
        acl.getField("principal").alias("principal"),
        acl.getField("operation").alias("operation"),
        acl.getField("resource_type").alias("resource_type"),
        acl.getField("resource_name").alias("resource_name"),
        acl.getField("pattern_type").alias("pattern_type"),
        sql.array(acl.getField("host")).alias("hosts"),
        "basis",
        sql.array(acl).alias("granted_by"),
        "granted_since",
        sql.lit(None).cast("timestamp").alias("last_used"),
        sql.lit(0).cast("long").alias("use_count"),
        sql.lit(0).cast("long").alias("denied_count"),
    )


def _super_user_rows(spark: SparkSession, matched: DataFrame, acls: AclsInForce) -> DataFrame:
    """Return a row for each super user: reviewers must see them, used or not."""
    names = frame_of_rows(spark, [(name,) for name in sorted(acls.super_users)], _SUPER_USER_SCHEMA)
    zero = sql.lit(0).cast("long")
    totals = (
        matched.join(sql.broadcast(names), "principal", "left_semi")
        .groupBy("principal")
        .agg(
            _hosts_used().alias("hosts"),
            sql.sum("use_count").alias("use_count"),
            sql.sum("denied_count").alias("denied_count"),
            sql.max("last_used").alias("last_used"),
        )
    )
    return names.join(totals, "principal", "left").select(
        "principal",
        sql.lit("ALL").alias("operation"),
        sql.lit("ANY").alias("resource_type"),
        sql.lit("*").alias("resource_name"),
        sql.lit("ANY").alias("pattern_type"),
        sql.coalesce("hosts", sql.array().cast("array<string>")).alias("hosts"),
        sql.lit(RuleKind.SUPER_USER.value).alias("basis"),
        sql.array().cast(ACCESS_REVIEW_SCHEMA["granted_by"].dataType).alias("granted_by"),
        sql.lit(None).cast("timestamp").alias("granted_since"),
        "last_used",
        sql.coalesce("use_count", zero).alias("use_count"),
        sql.coalesce("denied_count", zero).alias("denied_count"),
    )


def of_team(review: DataFrame, team: str | None) -> DataFrame:
    """Return the rows for which a team answers; None: those for which nobody does."""
    return review.filter(sql.col("team").eqNullSafe(sql.lit(team)))


def under(review: DataFrame, resource_type: str, prefix: str) -> DataFrame:
    """Return the rows of resources that begin with a prefix, and of patterns that match some of them."""
    name, is_prefix = sql.col("resource_name"), sql.col("pattern_type") == "PREFIXED"
    is_wildcard = (sql.col("pattern_type") == "LITERAL") & (name == "*")
    wanted = sql.lit(prefix)
    stands_for_some = sql.startswith(name, wanted) | is_wildcard | (is_prefix & sql.startswith(wanted, name))
    return review.filter((sql.col("resource_type") == resource_type) & stands_for_some)


def chosen_rows(table: DataFrame, choice: RowChoice) -> DataFrame:
    """Return the chosen rows of `entitlements` or `access_review`, and a few others that `takes` excludes.

    Not for a choice `as_written`, which is one of documents.
    """
    is_beyond = sql.col("resource_type") == "ANY"
    found: Column = sql.lit(True)
    if choice.principal is not None:
        found = found & sql.col("principal").isin(choice.principal, EVERY_PRINCIPAL)
    if choice.operation is not None:
        found = found & (is_beyond | (sql.col("operation") == choice.operation.name))
    if choice.resource_type is not None:
        found = found & (is_beyond | (sql.col("resource_type") == choice.resource_type.name))
    if choice.resource_name is not None:
        name, wanted = sql.col("resource_name"), sql.lit(choice.resource_name)
        is_prefix = (sql.col("pattern_type") == "PREFIXED") & sql.startswith(wanted, name)
        found = found & (is_beyond | is_prefix | (name == wanted) | (name == WILDCARD))
    if choice.pattern_type is not None:
        how = choice.pattern_type.name
        found = found & sql.exists("granted_by", lambda acl: acl.getField("pattern_type") == how)
    if choice.team is not None:
        found = found & (sql.col("team") == choice.team)
    if choice.is_unused:
        found = found & (sql.col("use_count") == 0) & sql.coalesce("is_dormant", sql.lit(False))
    return table.filter(found)


def lost_uses(
    spark: SparkSession, rollup: DataFrame, acls: AclsInForce, *, as_of: datetime
) -> ReplayFunction:
    """Return a function that names the recorded uses that `acls` allow and the remaining ACLs do not.

    Each call runs one query and names at most FLIPS_MAX, the first in order.
    """
    used = until(rollup, as_of).filter("access = 'ACCESS' and decision = 'ALLOWED'")
    shipped = ship(spark, acls)
    decided = decide(distinct_questions(used), shipped, with_rule=False, decision_column="before")
    allowed = decided.filter(sql.col("before") == "ALLOWED")

    def replay(left: Sequence[AclBinding]) -> list[Flipped]:
        remaining = ship(spark, acls.with_bindings(f"{acls.name} after the review", left))
        after = decide(allowed, remaining, with_rule=False, decision_column="after")
        names = ("principal", "operation", "resource_type", "resource_name")
        lost = after.filter(sql.col("after") != "ALLOWED").select(*names).distinct()
        return [tuple(row) for row in lost.orderBy(*names).limit(FLIPS_MAX).collect()]

    return replay
