"""What changes if one set of ACLs takes the place of another: exactly, over everything that can be asked."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, AclBinding, PatternType, ResourceType
from kustos.analysis.by_host import ByHost, combined
from kustos.analysis.host_sets import HostSet
from kustos.analysis.kernel import RESOURCE_TYPES, AclSet, Side, Values, turns_of, walk, zone_on
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
        _Comparison(before, after, resource_type).run(changed[resource_type], collector)
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


class _Comparison:
    """Two sets on one resource type, everyone else first, then those who differ from everyone else."""

    def __init__(self, before: AclSet, after: AclSet, resource_type: ResourceType) -> None:
        self._sets = before, after
        self._rules = before.rules, after.rules
        self._type = resource_type
        self._everyone = self._sides(EVERY_PRINCIPAL)
        self._zone = EVERYWHERE
        self._turns: dict[ByHost, list[Site]] = {}

    def run(self, changed: dict[str, set[Site]], collector: _Collector) -> None:
        """Collect the pieces of all whom the changed patterns, by principal, can touch."""
        was, now = self._rules
        self._zone = zone_on(self._type, self._everyones_zone(changed))
        promoted = was.super_users ^ now.super_users
        touched = (changed.keys() | promoted) - {EVERY_PRINCIPAL}
        if not self._zone.is_empty:
            turns = turns_of(walk(self._everyone, self._zone), _delta)
            self._turns = {delta: sorted(sites) for delta, sites in turns.items()}
            if self._turns:
                collector.add(self._type, EVERY_PRINCIPAL, _pieces(self._turns))
            touched |= was.super_users | now.super_users
            touched = touched.union(*(acls.principals(self._type) for acls in self._sets))
        for principal in sorted(touched):
            if principal in promoted:
                turns = turns_of(walk(self._sides(principal), zone_on(self._type, EVERYWHERE)), _delta)
            elif principal in was.super_users:
                turns = {}
            else:
                zone = self._own_zone(principal, changed.get(principal, set()))
                if zone.is_empty:
                    continue
                turns = self._turns_of(principal, zone)
            collector.add(self._type, principal, _pieces(turns))

    def _sides(self, principal: str) -> tuple[Side, Side]:
        before, after = self._sets
        return before.side(self._type, principal), after.side(self._type, principal)

    def _everyones_zone(self, changed: dict[str, set[Site]]) -> Zone:
        opens = [rules.allow_everyone_if_no_acl_found for rules in self._rules]
        if opens[0] is not opens[1]:
            return EVERYWHERE
        if any(opens):
            # any change of anybody's may have covered or uncovered names for all
            return Zone.of(set().union(*changed.values()))
        return Zone.of(changed.get(EVERY_PRINCIPAL, ()))

    def _own_zone(self, principal: str, changed: set[Site]) -> Zone:
        """Return where a principal may differ from everyone else."""
        own = [acls.layer(self._type, principal).sites_within(self._zone) for acls in self._sets]
        return zone_on(self._type, Zone.of(changed.union(*own)))

    def _turns_of(self, principal: str, zone: Zone) -> dict[ByHost, list[Site]]:
        turns = turns_of(walk(self._sides(principal), zone, self._everyone), _delta)
        for delta, sites in self._turns.items():
            turns[delta] = zone.cut_out_of(sites) + turns.get(delta, [])
        return {delta: sorted(sites) for delta, sites in turns.items() if sites}


def _pieces(turns: dict[ByHost, list[Site]]) -> Iterator[Piece]:
    for delta, sites in turns.items():
        names = NameSet(tuple(sorted(sites)))
        for bits, hosts in by_operations(delta):
            yield bits, hosts, names


def _delta(values: Values) -> ByHost | None:
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
