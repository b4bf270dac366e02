"""What a recommendation must hold, by trying every principal, operation and topic."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise, product
from typing import Any, Self

import duckdb

from tests.pipeline.plain_entitlements import IMPLIED, TYPES, Acl, Plain, holds, operations

Asked = Mapping[str, Any]
"""A question as it was recorded: its texts, `events` (uses), and whether it `is_denied` or `is_need`."""


def plain_acl(binding: Any) -> Acl:
    pattern, entry = binding.pattern, binding.entry
    return (
        pattern.resource_type.name, pattern.name, pattern.pattern_type.name, entry.principal, entry.host,
        entry.operation.name, entry.permission_type.name,
    )  # fmt: skip


QUESTIONS = """
    WITH asked AS (
        SELECT principal, host, operation, resource_name,
               count_if(decision = 'ALLOWED' AND access <> 'LISTING') AS events,
               max(time_ms) FILTER (decision = 'ALLOWED') AS allowed,
               max(time_ms) FILTER (decision = 'DENIED') AS denied
        FROM decisions WHERE cluster = $cluster AND rule IS DISTINCT FROM 'SuperUser' GROUP BY ALL),
    judged AS (SELECT *, allowed IS NULL OR coalesce(denied >= allowed, false) AS is_denied FROM asked)
    SELECT principal, host, operation, resource_name, events, is_denied, NOT is_denied AND events > 0
    FROM judged"""
NAMES = ("principal", "host", "operation", "resource_name", "events", "is_denied", "is_need")
TOPICS = """
    SELECT DISTINCT resource_name FROM decisions WHERE cluster = $cluster AND resource_name IS NOT NULL
    AND (decision = 'ALLOWED' OR access = 'LISTING')"""

DAYS = """
    SELECT DISTINCT time_ms // 86400000 FROM decisions
    WHERE cluster = $cluster AND decision = 'ALLOWED' ORDER BY 1"""


def granted_names(acls: Iterable[Acl], principals: Collection[str], topics: Collection[str]) -> int:
    """Return how many (principal, operation, topic) are allowed from some host and denied not from every."""
    count = 0
    for who, operation, topic in product(principals, TYPES["TOPIC"], topics):
        own = [one for one in acls if one[3] in (who, "User:*") and holds(one, "TOPIC", topic)]
        is_allowed = any(one[6] == "ALLOW" and operation in operations(one) for one in own)
        is_denied = any(one[6] == "DENY" and one[4] == "*" and one[5] in (operation, "ALL") for one in own)
        count += is_allowed and not is_denied
    return count


@dataclass(frozen=True)
class PlainRecommendation:
    """The recorded questions and days of a cluster, the known topics, and the ACLs that were recommended."""

    asked: Sequence[Asked]
    topics: Collection[str]
    acls: Sequence[Acl]
    days: Sequence[int]
    """Days since 1970 on which something was allowed, in order."""

    @classmethod
    def of(cls, raw: duckdb.DuckDBPyConnection, cluster: str, acls: Sequence[Acl]) -> Self:
        """Return that of the raw lines; the newest decision on a question says if it is denied."""
        rows = raw.execute(QUESTIONS, {"cluster": cluster}).fetchall()
        topics = raw.execute(TOPICS, {"cluster": cluster}).fetchall()
        days = raw.execute(DAYS, {"cluster": cluster}).fetchall()
        asked = [dict(zip(NAMES, row, strict=True)) for row in rows]
        return cls(asked, {row[0] for row in topics}, acls, [row[0] for row in days])

    def granted_names(self, acls: Iterable[Acl]) -> int:
        """Return how much some ACLs grant to the principals of the record on the known topics."""
        return granted_names(list(acls), {one["principal"] for one in self.asked}, self.topics)

    def numbers(self) -> dict[str, int]:
        """Return the numbers that follow."""
        needs = [one for one in self.asked if one["is_need"]]
        denied = [one for one in self.asked if one["is_denied"]]
        left_out = [one for one in self.asked if not one["is_need"] and one["events"]]
        lost = [one for one in needs if not self._allows(one)]
        opened = sum(self._allows(one) for one in denied)
        return {
            "principals": len({one["principal"] for one in self.asked}),
            "acls": len(self.acls),
            "prefixes": sum(one[2] == "PREFIXED" for one in self.acls),
            "wildcards": sum(one[1:3] == ("*", "LITERAL") for one in self.acls),
            "denies": sum(one[6] == "DENY" for one in self.acls),
            "over_grants": sum(self._over_grants(one, needs) for one in self.acls if one[6] == "ALLOW"),
            "over_granted_hosts": sum(self._over_granted_hosts(one, needs) for one in self.acls),
            "needed_accesses": len(needs),
            "needed_events": sum(one["events"] for one in needs),
            "lost_accesses": len(lost),
            "lost_events": sum(one["events"] for one in lost),
            "left_out_accesses": len(left_out),
            "left_out_events": sum(one["events"] for one in left_out),
            "denied_accesses": len(denied),
            "opened_accesses": opened,
            "unserved": len(lost),
            "overruled": opened,
            "granted_names": self.granted_names(self.acls),
        }

    def numbers_beside(self, today: Sequence[Acl], regions: Mapping[str, int]) -> dict[str, Any]:
        """Return the numbers beside today's ACLs, from which so many regions were gained and lost."""
        numbers = self.numbers()
        allowed = numbers["needed_events"] + numbers["left_out_events"]
        return {
            "acls_today": len(today),
            "granted_names_today": self.granted_names(today),
            "regions_gained": regions["GAINED"],
            "regions_lost": regions["LOST"],
            "is_difference_cut": False,
            "coverage": (numbers["needed_events"] - numbers["lost_events"]) / allowed,
        }

    def record(self) -> dict[str, Any]:
        """Return the days on which the proof rests."""
        first, last = (str(date(1970, 1, 1) + timedelta(days=day)) for day in (self.days[0], self.days[-1]))
        gaps = [following - day - 1 for day, following in pairwise(self.days)]
        return {
            "recorded_days": len(self.days),
            "recorded_from": first,
            "recorded_to": last,
            "recorded_gap_days": max(gaps, default=0),
        }

    def superfluous(self) -> list[Acl]:
        """Return the ALLOWs without which every need that is allowed still is."""
        served = [one for one in self.asked if one["is_need"] and self._allows(one)]
        return [
            acl
            for acl in self.acls
            if acl[6] == "ALLOW"
            and all(
                _alone([other for other in self.acls if other != acl]).allows(*_question(one))
                for one in served
                if one["principal"] == acl[3]
            )
        ]

    def _allows(self, one: Asked) -> bool:
        return _alone(self.acls).allows(*_question(one))

    def _over_granted_hosts(self, acl: Acl, needs: Iterable[Asked]) -> int:
        """Return how many known hosts an ALLOW admits that used nothing of it."""
        alone = _alone([acl, *(one for one in self.acls if one[6] == "DENY")])
        used = {one["host"] for one in needs if one["principal"] == acl[3] and alone.allows(*_question(one))}
        known = {one["host"] for one in self.asked if one["events"] and acl[4] in ("*", one["host"])}
        return len(known - used) if acl[6] == "ALLOW" else 0

    def _over_grants(self, acl: Acl, needs: Iterable[Asked]) -> int:
        """Return on how many topics that it grants its operation, or each one of ALL, was not used."""
        used = {
            (one["resource_name"], operation)
            for one in needs
            if one["principal"] == acl[3]
            for operation in (one["operation"], IMPLIED.get(one["operation"]))
        }
        named = TYPES["TOPIC"] if acl[5] == "ALL" else (acl[5],)
        # a name that an ACL writes counts also if it is not known, such as `hardcode` for any topic
        is_name = acl[2] == "LITERAL" and acl[1] != "*"
        granted = [acl[1]] if is_name else [name for name in self.topics if holds(acl, "TOPIC", name)]
        return sum(pair not in used for pair in product(granted, named))


def _alone(acls: Sequence[Acl]) -> Plain:
    return Plain(list(acls), frozenset(), is_open=False, recorded=[], as_of_ms=0, limit_days=1)


def _question(one: Asked) -> tuple[str, str, str, str | None]:
    return one["principal"], one["host"], one["operation"], one["resource_name"]
