"""The complete recommendation: ACLs, the proof by replay, and the difference from today's ACLs.

The proof compares sets, not counts: each need that the replay denies must be UNSERVED, each denial that it
allows OVERRULED.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kustos.acl import AclOperation, AclPermissionType, PatternType, ResourceType, host_matches
from kustos.analysis import Difference, Direction, Rules, diff
from kustos.pipeline.deciding import AclsInForce, decide_each, ship
from kustos.pipeline.privilege.granted_names import granted_on_known_names
from kustos.pipeline.privilege.group import OVERRULED, UNSERVED
from kustos.pipeline.privilege.legitimate import EVERY_USE, Legitimate, distinct_accesses, known_names
from kustos.pipeline.privilege.options import (
    DEFAULT_OPTIONS,
    PrivilegeOptionError,
    PrivilegeOptions,
)
from kustos.pipeline.privilege.recommendations import recommend_for, recommended_acls
from kustos.pipeline.privilege.values import RecommendedAcl
from kustos.pipeline.progress import Progress, silent
from kustos.pipeline.queries.record import RecordCoverage, longest_gap_days, recorded_days
from kustos.pipeline.review.access import DORMANT_DAYS
from kustos.pipeline.schemas import QUESTION_COLUMNS
from kustos.pipeline.tables.parquet_reader import within_days

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECOMMEND_STEPS: Final = (
    "choosing ACLs for each principal",
    "replaying all access against them",
    "counting what they grant on known names",
    "comparing them with today's ACLs",
)

UNPROVEN_SHOWN_MAX: Final = 20
"""Accesses shown that the replay decides otherwise: one is a fault, and more say no more."""

REGIONS_SHOWN_MAX: Final = 1_000
"""Regions of each direction that are kept: more are unreadable, and `kustos diff` has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivilegeNumbers:
    """The numbers of a recommendation. Those about today's ACLs are None without them.

    `lost_*` count needs that a replay denies, of which `unserved` are UNSERVED, and `opened_accesses` denials
    that it allows, of which `overruled` are OVERRULED: all of them, else `is_proven` is false. `left_out_*`
    were allowed and are no needs (excluded, rare, or withdrawn by a newer denial). `granted_*` count
    (principal, operation, known name). `over_grants` are names that an ACL grants and its principal did not
    use, of all known ones; `over_granted_hosts` likewise hosts, of all from which anybody was allowed
    something. Nothing is proven of what was not recorded: `recorded_days` have a record, from
    `recorded_from` to `recorded_to` (ISO dates), with at most `recorded_gap_days` in a row without one
    between them.
    """

    principals: int
    acls: int
    prefixes: int
    wildcards: int
    denies: int
    over_grants: int
    over_granted_hosts: int
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
    """The ACLs, the numbers, and the exact difference from today's (None without them).

    `unproven` are accesses for which the proof fails, as rows of `QUESTION_COLUMNS` and `outcome` (LOST or
    OPENED), at most `UNPROVEN_SHOWN_MAX`. `record`: what the record covers of the days before.
    """

    acls: tuple[RecommendedAcl, ...]
    numbers: PrivilegeNumbers
    difference: Difference | None
    candidate: AclsInForce
    unproven: tuple[Mapping[str, Any], ...]
    record: RecordCoverage

    def to_json(self) -> str:
        """Return the numbers and the difference as one JSON object, without the ACLs."""
        numbers = asdict(self.numbers) | {
            "is_proven": self.numbers.is_proven,
            "coverage": self.numbers.coverage,
            "unproven": self.unproven,
            "record": self.record.as_dict(),
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
    as_of: datetime | None = None,
    window_days: int = DORMANT_DAYS,
    progress: Progress = silent,
) -> Recommendation:
    """Return least privilege for all of a roll-up, proven by replay and compared with `today`'s ACLs.

    The replay uses the ACLs alone, without super users and without allow-by-default. In the comparison
    today's super users stay; today's default does not. `within_today`: nothing is granted that today's ACLs
    do not allow; needs beyond them are UNSERVED, and the proof includes that nothing is gained. `record` is
    about the `window_days` up to `as_of`, by default the end of the last recorded day. Raises
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
        progress(RECOMMEND_STEPS[0])
        within = today if within_today else None
        table = recommend_for(accesses, known, options, within=within).persist()
        try:
            acls = tuple(recommended_acls(table))
            candidate = AclsInForce.of("recommended", [acl.binding for acl in acls])
            progress(RECOMMEND_STEPS[1])
            counts, unproven = _proof(_replayed(spark, accesses, table, candidate))
        finally:
            table.unpersist()
        progress(RECOMMEND_STEPS[2])
        by_type = _by_type(known)
        principals = [row["principal"] for row in accesses.select("principal").distinct().collect()]
        hosts = [
            row["host"] for row in accesses.filter("event_count > 0").select("host").distinct().collect()
        ]
        days = recorded_days(within_days(rollup, legitimate.from_day, legitimate.to_day))
    finally:
        accesses.unpersist()
        known.unpersist()
    numbers: dict[str, Any] = counts | _shape(acls)
    numbers |= {
        "over_granted_hosts": _over_granted_hosts(acls, hosts),
        "principals": len(principals),
        "granted_names": granted_on_known_names(candidate.bindings, by_type, principals),
        "recorded_days": len(days),
        "recorded_from": str(days[0]) if days else None,
        "recorded_to": str(days[-1]) if days else None,
        "recorded_gap_days": longest_gap_days(days),
    }
    difference = None
    if today is not None:
        progress(RECOMMEND_STEPS[3])
        difference = _difference(today, candidate)
        numbers |= _today(today, difference, by_type, principals) | {"is_within_today": within_today}
    if as_of is None:
        as_of = datetime.combine(days[-1] + timedelta(days=1) if days else datetime.now(UTC), time(), UTC)
    record = RecordCoverage.of(days, as_of, window_days)
    return Recommendation(acls, PrivilegeNumbers(**numbers), difference, candidate, unproven, record)


def _replayed(
    spark: "SparkSession", accesses: "DataFrame", table: "DataFrame", candidate: AclsInForce
) -> "DataFrame":
    """Return the accesses with what the proof asks of each.

    `is_lost`: a need that the candidate denies. `is_opened`: what must stay denied and is allowed.
    `is_excused`: the solver said so.
    """
    from pyspark.sql import functions as sql

    too_much = table.filter(sql.col("outcome").eqNullSafe(UNSERVED) & sql.col("operation").isNull())
    principals = [row["principal"] for row in too_much.select("principal").distinct().collect()]
    said = (
        table.filter(sql.col("outcome").isin(UNSERVED, OVERRULED))
        .select(*(sql.col(name).alias(f"said_{name}") for name in QUESTION_COLUMNS))
        .distinct()
        .withColumn("is_said", sql.lit(True))
    )
    decided = decide_each(accesses, ship(spark, candidate), with_rule=False)
    known = {"operation": AclOperation, "resource_type": ResourceType}
    is_same = sql.lit(True)
    for name in QUESTION_COLUMNS:
        text = sql.col(name)
        if name in known:  # the solver has values, and one for all texts that name none
            text = sql.when(text.isin(*known[name].__members__), text).otherwise(sql.lit("UNKNOWN"))
        is_same &= text.eqNullSafe(sql.col(f"said_{name}"))
    is_allowed = sql.col("decision") == "ALLOWED"
    must_be_denied = (sql.col("is_denied") | sql.col("is_excluded")) & ~sql.col("is_need")
    is_excused = sql.col("is_said").isNotNull() | sql.col("principal").isin(*principals)
    return decided.join(said, is_same, "left").withColumns(
        {
            "must_be_denied": must_be_denied,
            "is_lost": sql.col("is_need") & ~is_allowed,
            "is_opened": must_be_denied & is_allowed,
            "is_excused": is_excused,
        }
    )


def _proof(replayed: "DataFrame") -> tuple[dict[str, int], tuple[Mapping[str, Any], ...]]:
    """Return the numbers of the proof, and the first accesses for which it fails."""
    from pyspark.sql import functions as sql

    counted = {
        "needed": sql.col("is_need"),
        "lost": sql.col("is_lost"),
        "left_out": ~sql.col("is_need") & (sql.col("event_count") > 0),
    }
    sums = []
    for name, holds in counted.items():
        events = sql.sum(sql.when(holds, sql.col("event_count")).otherwise(sql.lit(0)))
        sums += [
            sql.count_if(holds).alias(f"{name}_accesses"),
            sql.coalesce(events, sql.lit(0)).alias(f"{name}_events"),
        ]
    sums += [
        sql.count_if("must_be_denied").alias("denied_accesses"),
        sql.count_if("is_opened").alias("opened_accesses"),
        sql.count_if(sql.col("is_lost") & sql.col("is_excused")).alias("unserved"),
        sql.count_if(sql.col("is_opened") & sql.col("is_excused")).alias("overruled"),
    ]
    counts: dict[str, int] = replayed.agg(*sums).collect()[0].asDict()
    if counts["lost_accesses"] == counts["unserved"] and counts["opened_accesses"] == counts["overruled"]:
        return counts, ()
    outcome = sql.when(sql.col("is_lost"), sql.lit("LOST")).otherwise(sql.lit("OPENED"))
    failed = (
        replayed.filter((sql.col("is_lost") | sql.col("is_opened")) & ~sql.col("is_excused"))
        .select(*QUESTION_COLUMNS, outcome.alias("outcome"))
        .orderBy(*QUESTION_COLUMNS)
        .limit(UNPROVEN_SHOWN_MAX)
    )
    return counts, tuple(row.asDict() for row in failed.collect())


def _over_granted_hosts(acls: Collection[RecommendedAcl], hosts: Collection[str]) -> int:
    """Return of how many of these hosts the ACLs were not used, summed over the ACLs."""
    granted: dict[str, int] = {}
    total = 0
    for acl in acls:
        entry = acl.binding.entry
        if entry.permission_type is not AclPermissionType.ALLOW:
            continue
        if entry.host not in granted:
            granted[entry.host] = sum(host_matches(entry.host, host) for host in hosts)
        total += max(0, granted[entry.host] - acl.host_count)
    return total


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
    """Return what changes; where it is cut, gains come first and are not cut away by losses."""
    before = Rules(
        super_users=today.super_users, allow_everyone_if_no_acl_found=today.allow_everyone_if_no_acl_found
    )
    after = Rules(super_users=today.super_users)
    compare = partial(diff, today.bindings, candidate.bindings, before, after, regions_max=REGIONS_SHOWN_MAX)
    both = compare()
    if not both.is_cut:
        return both
    gained, lost = compare(only=Direction.GAINED), compare(only=Direction.LOST)
    return Difference((*gained.changes, *lost.changes), is_cut=True)


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
