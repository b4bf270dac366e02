"""Which ACLs nobody needs, by the words of the docs alone, asking every question recorded and every other.

A rule that an event does not name is known only where a single ACL can have decided: otherwise a number lies
between the least and the most.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.pipeline.plain_entitlements import (
    ACL_NAMES,
    HOSTS,
    IMPLIED,
    TYPES,
    Acl,
    Plain,
    holds,
    is_for,
    operations,
)
from tests.pipeline.plain_record import DAY, day_of

DAY_MS = 86_400_000
OF_THE_SET = {"REDUNDANT_ACL", "SHADOWED_ACL"}


@dataclass(frozen=True)
class Speaking:
    """The ACLs that allow a question, that deny it, and that name its resource."""

    allows: tuple[Acl, ...]
    denies: tuple[Acl, ...]
    naming: tuple[Acl, ...]

    def needed(self, is_open: bool) -> set[Acl]:
        """Return the ACLs without each of which the decision is another."""
        alone = {self.naming[0]} if is_open and len(self.naming) == 1 else set()
        if self.denies:
            if len(self.denies) > 1:
                return set()
            return {*self.denies} if self.allows else alone
        if self.allows:
            return {*self.allows} - alone if len(self.allows) == 1 else set()
        return alone


def speaking(acls: Iterable[Acl], who: str, host: str, operation: str, kind: str, name: str) -> Speaking:
    naming = tuple(one for one in acls if holds(one, kind, name))
    mine = [one for one in naming if is_for(one, who, host)]
    return Speaking(
        tuple(one for one in mine if one[6] == "ALLOW" and operation in operations(one)),
        tuple(one for one in mine if one[6] == "DENY" and one[5] in (operation, "ALL")),
        naming,
    )


def useless(plain: Plain) -> set[Acl]:
    """Return the ACLs without each of which every decision on a named resource is the same."""
    needed: set[Acl] = set()
    clients = {one[3] for one in plain.acls} - {"User:*"} - plain.super_users | {"User:~"}
    hosts = {*HOSTS, "~"} - {"*"}
    for kind, supported in TYPES.items():
        names = {name for one in plain.acls for name in (one[1], f"{one[1]}~")} - {"*", "*~"} | {"~"}
        for who, host, operation, name in product(clients, hosts, supported, names):
            needed |= speaking(plain.acls, who, host, operation, kind, name).needed(plain.is_open)
    return {*plain.acls} - needed


def is_meant(acl: Acl, plain: Plain) -> bool:
    """Return whether an ACL that changes nothing is not a finding of the set.

    So is DESCRIBE beside an equal ALLOW that implies it, and an ALLOW beside an equal DENY that leaves
    DESCRIBE of it.
    """
    if acl[6] == "DENY" or acl[3] in plain.super_users or is_void(acl, plain):
        return False
    beside = [one for one in plain.acls if one[:5] == acl[:5]]
    if acl[5] == "DESCRIBE":
        return any(one[6] == "ALLOW" and IMPLIED.get(one[5]) == "DESCRIBE" for one in beside)
    return any(one[6] == "DENY" and one[5] == acl[5] for one in beside) and acl[5] in IMPLIED


def is_void(acl: Acl, plain: Plain) -> bool:
    return all(plain.effect(acl, operation)[0] == "VOID" for operation in operations(acl))


@dataclass
class Counted:
    """Events that an ACL decided at least, and at most, with the last of them."""

    least: int = 0
    most: int = 0
    least_last: int = -1
    most_last: int = -1
    listing_least: int = 0
    listing_most: int = 0
    matching: int = 0
    needed: int = 0


class PlainFindings:
    """The findings that a review must have; `rows` are recorded with `rule` and `rule_acl`."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self.of = {acl: Counted() for acl in plain.acls}
        self.unnamed = 0
        """Events about any topic, for which Kafka has other rules."""
        keys = {"|".join(acl): acl for acl in plain.acls}
        cache: dict[Any, Speaking] = {}
        for row in plain.recorded:
            if row["rule_acl"] in keys:
                self._decided(row, [keys[row["rule_acl"]]])
            question = (row["principal"], row["host"], row["operation"], "TOPIC", row["resource_name"])
            if row["resource_name"] is None:
                self.unnamed += 1
                continue
            if question not in cache:
                cache[question] = speaking(plain.acls, *question)
            found = cache[question]
            is_allowed, is_super = row["decision"] == "ALLOWED", row["principal"] in plain.super_users
            if row["rule"] is None and row["decision"] != "ERROR" and not (is_allowed and is_super):
                self._decided(row, found.allows if is_allowed else found.denies)
            if not is_super:
                for acl in (*found.allows, *found.denies):
                    self.of[acl].matching += 1
                for acl in found.needed(plain.is_open):
                    self.of[acl].needed += 1

    def _decided(self, row: Mapping[str, Any], by: Sequence[Acl]) -> None:
        for acl in by:
            counted, is_sole = self.of[acl], len(by) == 1
            if row["access"] == "LISTING":
                counted.listing_most += 1
                counted.listing_least += is_sole
                continue
            counted.most += 1
            counted.most_last = max(counted.most_last, row["time_ms"])
            if is_sole:
                counted.least += 1
                counted.least_last = max(counted.least_last, row["time_ms"])

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Check every row of `findings`, and that none is missing."""
        by_kind: dict[tuple[str, str], set[Acl]] = {}
        for row in rows:
            evidence = json.loads(row["evidence"])
            acl = tuple(row["acl"][name] for name in ACL_NAMES)
            by_kind.setdefault((row["kind"], evidence["cause"]), set()).add(acl)
            self._check_counts(row, evidence, self.of[acl])
        assert len({row["finding_id"] for row in rows}) == len(rows)
        limit = self._plain.as_of_ms - self._plain.limit_days * DAY_MS
        unused = by_kind.get(("UNUSED_ACL", "NEVER_DECIDED"), set())
        can_tell = self._plain.is_enough()
        assert unused >= {acl for acl, one in self.of.items() if can_tell and one.most_last <= limit}
        assert not unused & {acl for acl, one in self.of.items() if not can_tell or one.least_last > limit}
        seen = {row["principal"] for row in self._plain.recorded if row["time_ms"] > limit}
        unseen = {acl for acl in self._plain.acls if acl[3] not in seen | {"User:*"}}
        assert by_kind.get(("ORPHANED_ACL", "PRINCIPAL_NOT_SEEN"), set()) == (unseen if can_tell else set())
        of_the_set = set().union(*(acls for (kind, _), acls in by_kind.items() if kind in OF_THE_SET))
        assert of_the_set == {acl for acl in useless(self._plain) if not is_meant(acl, self._plain)}
        void = {acl for acl in self._plain.acls if acl[6] == "ALLOW" and is_void(acl, self._plain)}
        shadowed = by_kind.get(("SHADOWED_ACL", "DENIED"), set())
        assert shadowed == void
        self._check_together(rows)

    def _check_counts(self, row: Mapping[str, Any], evidence: Mapping[str, Any], one: Counted) -> None:
        decided = evidence.get("decided_event_count") or 0
        listing = evidence.get("listing_event_count") or 0
        assert row["event_count"] == decided
        assert one.least <= decided <= one.most
        assert one.listing_least <= listing <= one.listing_most
        matching = evidence.get("matching_event_count") or 0
        needed = evidence.get("needed_event_count") or 0
        assert one.matching <= matching <= one.matching + self.unnamed
        assert one.needed <= needed <= one.needed + self.unnamed
        by_record = evidence["cause"] not in ("SAID_BY_OTHERS", "DENIES_NOTHING", "OF_A_SUPER_USER", "DENIED")
        too_early = by_record and not self._plain.is_enough()
        assert row["is_safe_to_remove"] is (False if needed else None if too_early else True)
        end = day_of(self._plain.as_of_ms)
        window = {end - (n + 1) * DAY for n in range(self._plain.limit_days)}
        share = len(window & self._plain.recorded_days()) / self._plain.limit_days
        is_sure = evidence["cause"] not in ("NEVER_DECIDED", "PRINCIPAL_NOT_SEEN")
        assert row["score"] == (1.0 if is_sure else share)

    def _check_together(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Check that without all ACLs marked so every recorded question is decided as with them."""
        gone = set(self._together(rows))
        left = Plain(
            [acl for acl in self._plain.acls if acl not in gone], self._plain.super_users,
            self._plain.is_open, [], 0, 1,
        )  # fmt: skip
        names = ("principal", "host", "operation", "resource_name")
        for question in {tuple(row[name] for name in names) for row in self._plain.recorded}:
            assert left.allows(*question) == self._plain.allows(*question), question

    def _together(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
        for row in rows:
            if json.loads(row["evidence"])["is_safe_together"]:
                assert row["is_safe_to_remove"]
                yield tuple(row["acl"][name] for name in ACL_NAMES)
