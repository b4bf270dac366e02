"""What a weight brings: ACLs, names granted in vain, and how much of the next ten days they serve already."""

from collections import Counter
from dataclasses import dataclass

from benchmarks.privilege.estate import LATER, Access, Estate
from kustos.acl import AclOperation, ResourceType, host_matches
from kustos.authorizer.index import IMPLIED_OPERATIONS
from kustos.pipeline.privilege import (
    Denial,
    PrivilegeOptions,
    Problem,
    RecommendedAcl,
    Use,
    least_privilege,
)
from kustos.pipeline.privilege.options import cutter
from kustos.pipeline.privilege.values import KnownNames

WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, float("inf"))


@dataclass(slots=True)
class Point:
    """Sums over all principals looked at; `later` accesses were new after the days that were learned from."""

    weight: float
    acls: int = 0
    over_grants: int = 0
    used: int = 0
    later: int = 0
    later_served: int = 0

    @property
    def excess(self) -> float:
        """Names granted in vain, for each that was used."""
        return self.over_grants / self.used

    @property
    def foresight(self) -> float:
        """The share of later new accesses that is allowed already."""
        return self.later_served / self.later


def known_of(estate: Estate) -> KnownNames:
    """Return the counts of known names by their beginnings."""
    cuts = cutter(PrivilegeOptions())
    known: Counter[tuple[ResourceType, str]] = Counter()
    for kind, name in estate.names():
        known.update([(ResourceType[kind], beginning) for beginning in ("", *cuts(name))])
    return known


def points(estate: Estate, every: int) -> list[Point]:
    """Return a point for each weight, over every so-manieth principal."""
    known = known_of(estate)
    found = [Point(weight) for weight in WEIGHTS]
    for number, size in list(enumerate(estate.sizes()))[::every]:
        accesses = estate.accesses_of(number, size)
        early = [access for access in accesses if access[5] < LATER]
        uses = tuple(Use(*_question(access), access[6] * access[7]) for access in early if access[4])
        denials = tuple(Denial(*_question(access)) for access in early if not access[4])
        later = [access for access in accesses if access[5] >= LATER and access[4]]
        for point in found:
            options = PrivilegeOptions(over_grant_weight=point.weight)
            answer = least_privilege(Problem(f"User:app-{number:04d}", uses, denials, known), options)
            point.acls += len(answer.acls)
            point.over_grants += sum(acl.over_grant_count for acl in answer.acls)
            point.used += len({(use.operation, use.resource_type, use.name) for use in uses})
            point.later += len(later)
            point.later_served += _served(answer.acls, later)
    return found


def _question(access: Access) -> tuple[str, AclOperation, ResourceType, str]:
    return access[0], AclOperation[access[1]], ResourceType[access[2]], access[3]


def _served(acls: tuple[RecommendedAcl, ...], accesses: list[Access]) -> int:
    cuts = cutter(PrivilegeOptions())
    hosts: dict[tuple[ResourceType, str, str, AclOperation], list[str]] = {}
    for acl in acls:
        pattern, entry = acl.binding.pattern, acl.binding.entry
        for operation in (entry.operation, IMPLIED_OPERATIONS.get(entry.operation)):
            if operation is not None:
                key = (pattern.resource_type, pattern.pattern_type.name, pattern.name, operation)
                hosts.setdefault(key, []).append(entry.host)
    count = 0
    for access in accesses:
        host, operation, kind, name = _question(access)
        patterns = [("LITERAL", name), ("LITERAL", "*"), *[("PREFIXED", prefix) for prefix in cuts(name)]]
        granted = [each for how, text in patterns for each in hosts.get((kind, how, text, operation), ())]
        count += any(host_matches(each, host) for each in granted)
    return count
