"""The complete recommendation: ACLs, the proof by replay, and the difference from today's ACLs."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from kustos.acl import AclPermissionType, PatternType, ResourceType
from kustos.analysis import Difference, Direction, Rules, diff
from kustos.pipeline.deciding import AclsInForce, decide_each, ship
from kustos.pipeline.privilege.group import OVERRULED, UNSERVED
from kustos.pipeline.privilege.legitimate import EVERY_USE, Legitimate, distinct_accesses, known_names
from kustos.pipeline.privilege.options import (
    DEFAULT_OPTIONS,
    PrivilegeOptionError,
    PrivilegeOptions,
)
from kustos.pipeline.privilege.reach import granted_on_known_names
from kustos.pipeline.privilege.recommendations import recommend_for, recommended_acls
from kustos.pipeline.privilege.values import RecommendedAcl
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.queries.record import longest_gap_days, recorded_days
from kustos.pipeline.tables.parquet_reader import within_days

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS: Final = (
    "choosing ACLs for each principal",
    "replaying all access against them",
    "counting what they grant on known names",
    "comparing them with today's ACLs",
)

REGIONS_SHOWN_MAX: Final = 1_000
"""Regions of the difference that are kept: more are unreadable, and `kustos diff` has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegeNumbers:
    """The numbers of a recommendation. Those about today's ACLs are None without them.

    `lost_*` count needs that a replay denies, all of them UNSERVED, and `opened_accesses` denials that it
    allows, all of them OVERRULED: else `is_proven` is false. `left_out_*` were allowed and are no needs
    (excluded, rare, or withdrawn by a newer denial). `granted_*` count (principal, operation, known name).
    Nothing is proven of what was not recorded: `recorded_days` have a record, from `recorded_from` to
    `recorded_to` (ISO dates), with at most `recorded_gap_days` in a row without one between them.
    """

    principals: int
    acls: int
    prefixes: int
    wildcards: int
    denies: int
    over_grants: int
    needed_accesses: int
    needed_events: int
    lost_accesses: int
    lost_events: int
    left_out_accesses: int
    left_out_events: int
    denied_accesses: int
    opened_accesses: int
    unserved: int
    overruled: int
    granted_names: int
    recorded_days: int
    recorded_from: str | None
    recorded_to: str | None
    recorded_gap_days: int
    acls_today: int | None = None
    granted_names_today: int | None = None
    regions_gained: int | None = None
    regions_lost: int | None = None
    is_difference_cut: bool | None = None
    is_within_today: bool | None = None

    @property
    def is_proven(self) -> bool:
        """Whether a replay allows every need that an ACL can serve and denies all that must stay denied.

        With `within_today` also whether nothing is allowed that is not allowed today.
        """
        is_kept = self.lost_accesses == self.unserved and self.opened_accesses == self.overruled
        return is_kept and not (self.is_within_today and self.regions_gained)

    @property
    def coverage(self) -> float:
        """The share of allowed events that stays allowed; 1 if there were none."""
        events = self.needed_events + self.left_out_events
        return (self.needed_events - self.lost_events) / events if events else 1.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The ACLs, the numbers, and the exact difference from today's (None without them)."""

    acls: tuple[RecommendedAcl, ...]
    numbers: PrivilegeNumbers
    difference: Difference | None
    candidate: AclsInForce

    def to_json(self) -> str:
        """Return the numbers and the difference as one JSON object, without the ACLs."""
        numbers = asdict(self.numbers) | {
            "is_proven": self.numbers.is_proven,
            "coverage": self.numbers.coverage,
        }
        changed = None if self.difference is None else self.difference.to_json()
        return json.dumps(numbers | {"difference": changed}, indent=2)


def recommendation(
    spark: "SparkSession",
    rollup: "DataFrame",
    options: PrivilegeOptions = DEFAULT_OPTIONS,
    legitimate: Legitimate = EVERY_USE,
    *,
    names: "DataFrame | None" = None,
    today: AclsInForce | None = None,
    within_today: bool = False,
    progress: Progress = silent,
) -> Recommendation:
    """Return least privilege for all of a roll-up, proven by replay and compared with `today`'s ACLs.

    The replay uses the ACLs alone, without super users and without allow-by-default. In the comparison
    today's super users stay; today's default does not. `within_today`: nothing is granted that today's ACLs
    do not allow; needs beyond them are UNSERVED, and the proof includes that nothing is gained. Raises
    `PrivilegeOptionError` for `within_today` without `today`. Spark persists what it reads meanwhile, on disk
    where memory is too small.
    """
    if within_today and today is None:
        raise PrivilegeOptionError("`within_today` needs today's ACLs, give them too")
    known = (
        known_names(rollup) if names is None else names.select("resource_type", "resource_name").distinct()
    )
    accesses = distinct_accesses(rollup, legitimate).persist()
    known = known.persist()
    try:
        progress(STEPS[0])
        within = today if within_today else None
        table = recommend_for(accesses, known, options, within=within).persist()
        try:
            acls = tuple(recommended_acls(table))
            outcomes = _outcome_counts(table)
        finally:
            table.unpersist()
        candidate = AclsInForce.of("recommended", [acl.binding for acl in acls])
        progress(STEPS[1])
        counts = _replayed(accesses, spark, candidate).collect()[0].asDict()
        progress(STEPS[2])
        by_type = _by_type(known)
        principals = [row["principal"] for row in accesses.select("principal").distinct().collect()]
        days = recorded_days(within_days(rollup, legitimate.from_day, legitimate.to_day))
    finally:
        accesses.unpersist()
        known.unpersist()
    numbers: dict[str, Any] = counts | outcomes | _shape(acls)
    numbers |= {
        "principals": len(principals),
        "granted_names": granted_on_known_names(candidate.bindings, by_type, principals),
        "recorded_days": len(days),
        "recorded_from": str(days[0]) if days else None,
        "recorded_to": str(days[-1]) if days else None,
        "recorded_gap_days": longest_gap_days(days),
    }
    difference = None
    if today is not None:
        progress(STEPS[3])
        difference = _difference(today, candidate)
        numbers |= _today(today, difference, by_type, principals) | {"is_within_today": within_today}
    return Recommendation(acls, PrivilegeNumbers(**numbers), difference, candidate)


def _outcome_counts(table: "DataFrame") -> dict[str, int]:
    """Return how many accesses are unserved, and how many distinct questions of all parts are overruled."""
    from pyspark.sql import functions as sql

    question = sql.struct("principal", "host", "operation", "resource_type")
    unserved = sql.sum(sql.when(sql.col("outcome") == UNSERVED, sql.col("access_count")))
    overruled = sql.count_distinct(sql.when(sql.col("outcome") == OVERRULED, question))
    row = table.agg(unserved.alias("unserved"), overruled.alias("overruled")).collect()[0]
    return {"unserved": row["unserved"] or 0, "overruled": row["overruled"]}


def _replayed(accesses: "DataFrame", spark: "SparkSession", candidate: AclsInForce) -> "DataFrame":
    """Return one row: needs and denials, and how many of them the candidate decides differently."""
    from pyspark.sql import functions as sql

    decided = decide_each(accesses, ship(spark, candidate), with_rule=False)
    is_allowed = sql.col("decision") == "ALLOWED"
    must_be_denied = (sql.col("is_denied") | sql.col("is_excluded")) & ~sql.col("is_need")
    kinds = {
        "needed": sql.col("is_need"),
        "lost": sql.col("is_need") & ~is_allowed,
        "left_out": ~sql.col("is_need") & (sql.col("event_count") > 0),
    }
    sums = []
    for name, holds in kinds.items():
        events = sql.sum(sql.when(holds, sql.col("event_count")).otherwise(sql.lit(0)))
        sums += [
            sql.count_if(holds).alias(f"{name}_accesses"),
            sql.coalesce(events, sql.lit(0)).alias(f"{name}_events"),
        ]
    sums += [
        sql.count_if(must_be_denied).alias("denied_accesses"),
        sql.count_if(must_be_denied & is_allowed).alias("opened_accesses"),
    ]
    return decided.agg(*sums)


def _by_type(known: "DataFrame") -> dict[ResourceType, list[str]]:
    found: dict[ResourceType, list[str]] = defaultdict(list)
    table = known.toArrow()
    pairs = zip(*(column.to_pylist() for column in table.columns), strict=True)
    for kind, name in pairs:
        found[ResourceType[kind]].append(name)
    return found


def _shape(acls: Collection[RecommendedAcl]) -> dict[str, int]:
    patterns = [acl.binding.pattern for acl in acls]
    return {
        "acls": len(acls),
        "prefixes": sum(pattern.pattern_type is PatternType.PREFIXED for pattern in patterns),
        "wildcards": sum(p.pattern_type is PatternType.LITERAL and p.name == "*" for p in patterns),
        "denies": sum(acl.binding.entry.permission_type is AclPermissionType.DENY for acl in acls),
        "over_grants": sum(acl.over_grant_count for acl in acls),
    }


def _difference(today: AclsInForce, candidate: AclsInForce) -> Difference:
    before = Rules(
        super_users=today.super_users, allow_everyone_if_no_acl_found=today.allow_everyone_if_no_acl_found
    )
    after = Rules(super_users=today.super_users)
    return diff(today.bindings, candidate.bindings, before, after, regions_max=REGIONS_SHOWN_MAX)


def _today(
    today: AclsInForce,
    difference: Difference,
    names: Mapping[ResourceType, Collection[str]],
    principals: Collection[str],
) -> dict[str, Any]:
    directions = [change.direction for change in difference.changes]
    return {
        "acls_today": len(today.bindings),
        "granted_names_today": granted_on_known_names(today.bindings, names, principals),
        "regions_gained": directions.count(Direction.GAINED),
        "regions_lost": directions.count(Direction.LOST),
        "is_difference_cut": difference.is_cut,
    }
