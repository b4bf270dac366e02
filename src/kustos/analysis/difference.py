"""The exact changes if one set of ACLs replaces another, over every possible request."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, AclBinding, ResourceType
from kustos.analysis.by_host import ByHost, combined
from kustos.analysis.everyone import Answers, Crowd
from kustos.analysis.host_sets import HostSet, by_bits
from kustos.analysis.kernel import ACLS_ALONE, RESOURCE_TYPES, AclSet, Rules, Values
from kustos.analysis.name_sets import EVERYWHERE, NameSet, Site, Zone, site_of
from kustos.analysis.regions import REGIONS_MAX, Change, Direction, Region, operations_of
from kustos.authorizer.index import EVERY_ALLOW

_LOST_SHIFT: Final = EVERY_ALLOW.bit_length()

Piece = tuple[int, HostSet, NameSet]
"""Gained operations, or lost operations (shifted); hosts; names."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes, disjoint; `is_cut` if there are more changes than requested."""

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
    only: Direction | None = None,
) -> Difference:
    """Return the exact regions where the decision changes; empty if and only if the sets mean the same.

    `new_rules` defaults to `rules`. Returns at most `regions_max` changes, and at least one if the sets
    differ; `is_cut` reports that there are more. `only`: the one direction to return; changes in the other
    direction do not count against the limit. Raises `AnalysisError` for a principal without a type.
    """
    before, after = AclSet(old, rules), AclSet(new, rules if new_rules is None else new_rules)
    return difference_of(before, after, regions_max=regions_max, only=only)


def difference_of(
    before: AclSet, after: AclSet, *, regions_max: int = REGIONS_MAX, only: Direction | None = None
) -> Difference:
    """Return the difference of two prepared sets, which can serve further questions; see `diff`."""
    changed: dict[ResourceType, dict[str, set[Site]]] = defaultdict(lambda: defaultdict(set))
    for binding in before.bindings ^ after.bindings:
        site = site_of(binding.pattern)
        changed[binding.pattern.resource_type][binding.entry.principal].add(site)
    crowds: list[tuple[_Comparison, Crowd[Piece]]] = []
    room = max(1, regions_max)
    for resource_type in RESOURCE_TYPES:
        compared = _Comparison(before, after, resource_type, changed[resource_type], only)
        crowd = compared.everyone(room)
        room -= len(crowd)
        crowds.append((compared, crowd))
    # changes for everyone on any type are never cut in favour of single principals on another type
    for compared, crowd in crowds:
        known = len(crowd)
        crowd.keys_max = known + room
        compared.add_principals(crowd)
        room -= len(crowd) - known
    changes = [change for compared, crowd in crowds for change in _changes(crowd, compared.resource_type)]
    return Difference(tuple(changes), any(crowd.is_cut for _, crowd in crowds))


class _Comparison:
    """The gains and losses of all principals on one type; `changed`: principal → its changed patterns."""

    def __init__(
        self,
        before: AclSet,
        after: AclSet,
        resource_type: ResourceType,
        changed: dict[str, set[Site]],
        only: Direction | None,
    ) -> None:
        self.resource_type = resource_type
        self._changed = changed
        was, now = before.rules, after.rules
        sites = changed.get(EVERY_PRINCIPAL, set())
        if was.allow_everyone_if_no_acl_found or now.allow_everyone_if_no_acl_found:
            # a change to any principal's ACLs may cover or uncover names for all principals
            sites = sites.union(*changed.values())
        is_same_default = was.allow_everyone_if_no_acl_found is now.allow_everyone_if_no_acl_found
        zone = Zone.of(sites) if is_same_default else EVERYWHERE
        self._answers = Answers((before, after), resource_type, zone, _DELTAS[only])
        self._promoted = was.super_users ^ now.super_users

    def everyone(self, regions_max: int) -> Crowd[Piece]:
        """Return a crowd with everyone else."""
        crowd: Crowd[Piece] = Crowd(regions_max)
        crowd.add(EVERY_PRINCIPAL, _pieces(self._answers.of_everyone_else()))
        return crowd

    def add_principals(self, crowd: Crowd[Piece]) -> None:
        """Add the principals that differ from everyone else."""
        affected = self._changed.keys() | self._promoted | self._answers.named
        for principal in sorted(affected - {EVERY_PRINCIPAL}):
            found = self._answers.of(principal, self._changed.get(principal, ()))
            if found is not None:
                crowd.add(principal, _pieces(found))


def _pieces(found: dict[ByHost, NameSet]) -> Iterator[Piece]:
    for delta, names in found.items():
        for bits, hosts in by_bits(delta, EVERY_ALLOW):
            yield bits, hosts, names


def _changes(crowd: Crowd[Piece], resource_type: ResourceType) -> list[Change]:
    """Return the pieces as changes, sorted by principals and names."""
    found: list[tuple[tuple[object, ...], Change]] = []
    for (bits, hosts, names), principals in crowd.items():
        direction = Direction.GAINED if bits <= EVERY_ALLOW else Direction.LOST
        operations = operations_of(bits if bits <= EVERY_ALLOW else bits >> _LOST_SHIFT)
        region = Region(principals, hosts, operations, resource_type, names)
        order = (not principals.is_everyone_but, principals.names, names.turns, bits, hosts.order)
        found.append((order, Change(direction, region)))
    return [change for _, change in sorted(found, key=_first)]


def _first(pair: tuple[tuple[object, ...], Change]) -> Any:
    return pair[0]


def _changed(values: Values) -> ByHost | None:
    old, new = values
    return (
        None if old == new else combined(old, new, lambda was, now: now & ~was | (was & ~now) << _LOST_SHIFT)
    )


def _gained(values: Values) -> ByHost | None:
    old, new = values
    return None if old == new else combined(old, new, lambda was, now: now & ~was)


def _lost(values: Values) -> ByHost | None:
    old, new = values
    return None if old == new else combined(old, new, lambda was, now: (was & ~now) << _LOST_SHIFT)


_DELTAS: Final[Mapping[Direction | None, Callable[[Values], ByHost | None]]] = {
    None: _changed,
    Direction.GAINED: _gained,
    Direction.LOST: _lost,
}
