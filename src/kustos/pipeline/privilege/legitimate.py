"""Which recorded access must stay allowed, and which denied: the input of least privilege, in Spark."""

from dataclasses import dataclass
from datetime import date
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.acl import WILDCARD, PatternType, ResourcePattern
from kustos.pipeline.deciding import is_by_super_user
from kustos.pipeline.privilege.options import PrivilegeOptionError
from kustos.pipeline.schemas import QUESTION_COLUMNS
from kustos.pipeline.tables.parquet_reader import within_days

ALLOWED: Final = "ALLOWED"
DENIED: Final = "DENIED"
LISTING: Final = "LISTING"

EXCLUSIONS_MAX: Final = 1_000
"""Principals, and resources, that a reviewer may exclude by name: each is a comparison in every row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Legitimate:
    """The rules for which access is a need.

    Days (UTC) are from `from_day` to `to_day`, both included. `principals_excluded` get no ACLs.
    `resources_excluded` must not be used: recorded use of them is taken as denied. An access is a need if it
    was allowed at least `uses_min` times in all. A name that only filtered a list is no use, unless
    `with_listing`; one that was left out of a list stays hidden as any other denial does, unless
    `keeps_hidden` is false: then prefixes may show it. Super users need no ACLs; `with_super_users` gives
    them ACLs for their accesses. `super_users` (`Type:name`) names them where the event names no rule, as the
    lines of older brokers do. `coverage` below 1 leaves out a principal's rarest accesses as long as the
    rest keeps that share of its allowed events. Raises `PrivilegeOptionError`.
    """

    from_day: date | None = None
    to_day: date | None = None
    principals_excluded: tuple[str, ...] = ()
    resources_excluded: tuple[ResourcePattern, ...] = ()
    uses_min: int = 1
    with_listing: bool = False
    keeps_hidden: bool = True
    with_super_users: bool = False
    super_users: frozenset[str] = frozenset()
    coverage: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.coverage <= 1:
            raise PrivilegeOptionError(
                "`coverage` is out of range, use a share above 0 and up to 1", "coverage"
            )
        if self.uses_min < 1:
            raise PrivilegeOptionError("`uses_min` is out of range, use 1 or more", "uses_min")
        if self.from_day is not None and self.to_day is not None and self.from_day > self.to_day:
            raise PrivilegeOptionError(f"`from_day` {self.from_day} is after `to_day` {self.to_day}")
        if max(len(self.principals_excluded), len(self.resources_excluded)) > EXCLUSIONS_MAX:
            raise PrivilegeOptionError(f"more than {EXCLUSIONS_MAX} exclusions, filter the roll-up instead")


EVERY_USE: Final = Legitimate()


def in_period(rollup: DataFrame, legitimate: Legitimate) -> DataFrame:
    """Return the roll-up's rows of the period and of principals that are not excluded."""
    rollup = within_days(rollup, legitimate.from_day, legitimate.to_day)
    if legitimate.principals_excluded:
        rollup = rollup.filter(~sql.col("principal").isin(*legitimate.principals_excluded))
    return rollup


def distinct_accesses(rollup: DataFrame, legitimate: Legitimate = EVERY_USE) -> DataFrame:
    """Return each question once, with its counts and flags.

    Columns: those of a question; `event_count`, the uses that were allowed; `is_denied`: its newest decision
    denied it (of two at the same time, DENIED is the newer one; an ERROR counts only if there was no other
    decision); `is_excluded`; and `is_need`. A question that is neither a need nor denied is ignored.
    A missing principal or host is the empty text.
    """
    # a filter for rows without a principal would make Spark compute this twice; they are harmless
    filled = {name: sql.coalesce(name, sql.lit("")) for name in ("principal", "host")}
    rows = in_period(rollup, legitimate).withColumns(filled)
    if not legitimate.with_super_users:
        rows = rows.filter(~is_by_super_user(legitimate.super_users))
    allowed = sql.col("decision") == ALLOWED
    if not legitimate.keeps_hidden:
        rows = rows.filter(allowed | ~sql.col("access").eqNullSafe(LISTING))
    is_use = allowed if legitimate.with_listing else allowed & ~sql.col("access").eqNullSafe(LISTING)
    accesses = (
        rows.groupBy(*QUESTION_COLUMNS)
        .agg(
            sql.sum(sql.when(is_use, sql.col("event_count")).otherwise(sql.lit(0))).alias("event_count"),
            sql.max(sql.when(allowed, sql.col("last_time"))).alias("_allowed"),
            sql.max(sql.when(sql.col("decision") == DENIED, sql.col("last_time"))).alias("_denied"),
        )
        .withColumn(
            "is_denied",
            sql.col("_allowed").isNull()
            | sql.coalesce(sql.col("_denied") >= sql.col("_allowed"), sql.lit(False)),
        )
        .drop("_allowed", "_denied")
        .withColumn("is_excluded", _is_excluded(legitimate.resources_excluded))
    )
    is_need = (
        ~sql.col("is_denied") & ~sql.col("is_excluded") & (sql.col("event_count") >= legitimate.uses_min)
    )
    accesses = accesses.withColumn("is_need", is_need)
    return accesses if legitimate.coverage == 1 else _without_the_rarest(accesses, legitimate.coverage)


def _is_excluded(patterns: tuple[ResourcePattern, ...]) -> Column:
    found = sql.lit(False)
    for pattern in patterns:
        name = sql.col("resource_name")
        if pattern.pattern_type is PatternType.PREFIXED:
            matches = name.startswith(sql.lit(pattern.name))
        elif pattern.name == WILDCARD:
            matches = sql.lit(True)
        else:
            matches = name.eqNullSafe(sql.lit(pattern.name))
        is_type = sql.col("resource_type") == pattern.resource_type.name
        found = found | (is_type & sql.coalesce(matches, sql.lit(False)))
    return found


def _without_the_rarest(accesses: DataFrame, coverage: float) -> DataFrame:
    """Take the rarest accesses of each principal out of its needs, as long as the share is kept."""
    needed = sql.when(sql.col("is_need"), sql.col("event_count")).otherwise(sql.lit(0))
    everything = Window.partitionBy("principal")
    before = everything.orderBy(
        sql.desc("_needed"), "host", "operation", "resource_type", "resource_name"
    ).rowsBetween(Window.unboundedPreceding, -1)
    return (
        accesses.withColumn("_needed", needed)
        .withColumn("_before", sql.coalesce(sql.sum("_needed").over(before), sql.lit(0)))
        .withColumn("_all", sql.sum("_needed").over(everything))
        .withColumn(
            "is_need", sql.col("is_need") & (sql.col("_before") < sql.col("_all") * sql.lit(coverage))
        )
        .drop("_needed", "_before", "_all")
    )


def known_names(rollup: DataFrame) -> DataFrame:
    """Return the names that exist by the record: `resource_type`, `resource_name`, each once.

    These are names that any principal was allowed to use, and names checked for a list. A name that was only
    denied may be an attacker's guess.
    """
    exists = (sql.col("decision") == ALLOWED) | sql.col("access").eqNullSafe(LISTING)
    return (
        rollup.filter(exists & sql.col("resource_name").isNotNull())
        .select("resource_type", "resource_name")
        .distinct()
    )
