"""What changes if one set of ACLs takes the place of another: exactly, over everything that can be asked."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, AclBinding, PatternType, ResourceType
from kustos.analysis.by_host import ByHost, combined
from kustos.analysis.host_sets import HostSet
from kustos.analysis.kernel import RESOURCE_TYPES, AclSet, name_sets, walk, zone_on
from kustos.analysis.name_sets import EVERYWHERE, NameSet, Site, Zone
from kustos.analysis.principal_sets import PrincipalSet
from kustos.analysis.regions import REGIONS_MAX, Change, Direction, Region, operations_of
from kustos.analysis.rules import ACLS_ALONE, Rules
from kustos.authorizer.cells import EVERY_ALLOW

_LOST_SHIFT: Final = EVERY_ALLOW.bit_length()

Piece = tuple[int, HostSet, NameSet]
"""Operations gained, or lost (shifted); hosts; names."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes, disjoint; `is_cut` says that there are more than were asked for."""

    changes: tuple[Change, ...]
    is_cut: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether both sets mean the same."""
        return not self.changes and not self.is_cut

    def to_json(self) -> dict[str, Any]:
        """Return `same`, `cut` and the `changes`."""
        changes = [change.to_json() for change in self.changes]
        return {"same": self.is_empty, "cut": self.is_cut, "changes": changes}


def diff(
    old: Iterable[AclBinding],
    new: Iterable[AclBinding],
    rules: Rules = ACLS_ALONE,
    new_rules: Rules | None = None,
    *,
    regions_max: int = REGIONS_MAX,
) -> Difference:
    """Return the exact regions in which the decision changes; none if and only if the sets mean the same.

    `new_rules` default to `rules`. At most `regions_max` changes are returned, at least one if there is
    any; `is_cut` then says that there are more. Raises `AnalysisError` for a principal without a type.
    """
    before, after = AclSet(old, rules), AclSet(new, rules if new_rules is None else new_rules)
    return difference_of(before, after, regions_max=regions_max)


def difference_of(before: AclSet, after: AclSet, *, regions_max: int = REGIONS_MAX) -> Difference:
    """Return the difference of two sets that are kept for more questions; see `diff`."""
    collector = _Collector(max(1, regions_max))
    changed: dict[ResourceType, dict[str, set[Site]]] = defaultdict(lambda: defaultdict(set))
    for binding in before.bindings ^ after.bindings:
        site = Site(binding.pattern.name, binding.pattern.pattern_type is PatternType.LITERAL)
        changed[binding.pattern.resource_type][binding.entry.principal].add(site)
    for resource_type in RESOURCE_TYPES:
        _compare(before, after, resource_type, changed[resource_type], collector)
    return Difference(tuple(collector.changes()), collector.is_cut)


class _Collector:
    """Pieces of many principals, those that are alike joined."""

    def __init__(self, regions_max: int) -> None:
        self._regions_max = regions_max
        self._having: dict[tuple[ResourceType, Piece], list[str]] = {}
        self._looked_at: dict[ResourceType, list[str]] = defaultdict(list)
        self.is_cut = False

    def add(self, resource_type: ResourceType, principal: str, pieces: Iterable[Piece]) -> None:
        """Take in all the pieces of a principal; `User:*` stands for everyone who is not added."""
        self._looked_at[resource_type].append(principal)
        for piece in pieces:
            key = resource_type, piece
            having = self._having.get(key)
            if having is not None:
                having.append(principal)
            elif len(self._having) < self._regions_max:
                self._having[key] = [principal]
            else:
                self.is_cut = True

    def changes(self) -> list[Change]:
        """Return the joined pieces, sorted by type and principal."""
        found: list[tuple[tuple[object, ...], Change]] = []
        for (resource_type, (bits, hosts, names)), having in self._having.items():
            if EVERY_PRINCIPAL in having:
                others = set(self._looked_at[resource_type]).difference(having)
                principals = PrincipalSet(tuple(sorted(others)), is_everyone_but=True)
            else:
                principals = PrincipalSet(tuple(sorted(having)))
            direction = Direction.GAINED if bits <= EVERY_ALLOW else Direction.LOST
            operations = operations_of(bits if bits <= EVERY_ALLOW else bits >> _LOST_SHIFT)
            region = Region(principals, hosts, operations, resource_type, names)
            order = (resource_type, not principals.is_everyone_but, principals.names, names.turns, bits)
            found.append(((*order, hosts.member.steps, hosts.member.zoned), Change(direction, region)))
        return [change for _, change in sorted(found, key=_first)]


def _first(pair: tuple[tuple[object, ...], Change]) -> Any:
    return pair[0]


def _compare(
    before: AclSet,
    after: AclSet,
    resource_type: ResourceType,
    changed: dict[str, set[Site]],
    collector: _Collector,
) -> None:
    was, now = before.rules, after.rules
    sites = set(changed.get(EVERY_PRINCIPAL, ()))
    if was.allow_everyone_if_no_acl_found or now.allow_everyone_if_no_acl_found:
        # any change of anybody's may have covered or uncovered names for all
        sites = sites.union(*changed.values())
    if was.allow_everyone_if_no_acl_found is not now.allow_everyone_if_no_acl_found:
        everyones = EVERYWHERE
    else:
        everyones = Zone.of(sites)
    promoted = was.super_users ^ now.super_users
    touched = (changed.keys() | promoted) - {EVERY_PRINCIPAL}
    if not everyones.is_empty:
        collector.add(
            resource_type, EVERY_PRINCIPAL, _pieces(before, after, resource_type, EVERY_PRINCIPAL, everyones)
        )
        touched |= was.super_users | now.super_users
        for principal in before.principals(resource_type) | after.principals(resource_type):
            if principal not in touched and any(
                acls.layer(resource_type, principal).speaks_within(everyones) for acls in (before, after)
            ):
                touched.add(principal)
    for principal in sorted(touched):
        zone = EVERYWHERE
        if principal not in promoted and everyones != EVERYWHERE:
            zone = Zone.of(sites | changed.get(principal, set()))
        collector.add(resource_type, principal, _pieces(before, after, resource_type, principal, zone))


def _pieces(
    before: AclSet, after: AclSet, resource_type: ResourceType, principal: str, zone: Zone
) -> list[Piece]:
    sides = before.side(resource_type, principal), after.side(resource_type, principal)
    zone = zone_on(resource_type, zone)
    if zone.is_empty or (sides[0].is_super and sides[1].is_super):
        return []
    found = name_sets(walk(sides, zone), _delta)
    return [(bits, hosts, names) for delta, names in found.items() for bits, hosts in by_operations(delta)]


def _delta(values: tuple[ByHost, ...]) -> ByHost | None:
    old, new = values
    return (
        None if old == new else combined(old, new, lambda was, now: now & ~was | (was & ~now) << _LOST_SHIFT)
    )


def by_operations(function: ByHost) -> list[tuple[int, HostSet]]:
    """Return bits and the hosts that have them: bits of the same hosts together, gains apart from losses."""
    joined = 0
    for value in function.values():
        joined |= value
    found: dict[tuple[bool, HostSet], int] = defaultdict(int)
    while joined:
        bit = joined & -joined
        joined ^= bit
        found[bit <= EVERY_ALLOW, HostSet.where(function, bit)] += bit
    return [(bits, hosts) for (_, hosts), bits in found.items()]
