"""What changes if one set of ACLs takes the place of another: exactly, over everything that can be asked."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, AclBinding, ResourceType
from kustos.analysis.by_host import ByHost, combined
from kustos.analysis.everyone import Answers, Crowd
from kustos.analysis.host_sets import HostSet, by_bits
from kustos.analysis.kernel import RESOURCE_TYPES, AclSet, Values
from kustos.analysis.name_sets import EVERYWHERE, NameSet, Site, Zone, site_of
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
    changed: dict[ResourceType, dict[str, set[Site]]] = defaultdict(lambda: defaultdict(set))
    for binding in before.bindings ^ after.bindings:
        site = site_of(binding.pattern)
        changed[binding.pattern.resource_type][binding.entry.principal].add(site)
    changes: list[Change] = []
    is_cut = False
    for resource_type in RESOURCE_TYPES:
        room = regions_max - len(changes) if changes else max(1, regions_max)
        crowd = _compared(before, after, resource_type, changed[resource_type], room)
        changes += _changes(crowd, resource_type)
        is_cut = is_cut or crowd.is_cut
    return Difference(tuple(changes), is_cut)


def _compared(
    before: AclSet,
    after: AclSet,
    resource_type: ResourceType,
    changed: dict[str, set[Site]],
    regions_max: int,
) -> Crowd[Piece]:
    """Return who gains and loses what; `changed` are the changed patterns by principal."""
    was, now = before.rules, after.rules
    sites = changed.get(EVERY_PRINCIPAL, set())
    if was.allow_everyone_if_no_acl_found or now.allow_everyone_if_no_acl_found:
        # any change of anybody's may have covered or uncovered names for all
        sites = sites.union(*changed.values())
    is_same_default = was.allow_everyone_if_no_acl_found is now.allow_everyone_if_no_acl_found
    zone = Zone.of(sites) if is_same_default else EVERYWHERE
    answers = Answers((before, after), resource_type, zone, _delta)
    crowd: Crowd[Piece] = Crowd(regions_max)
    crowd.add(EVERY_PRINCIPAL, _pieces(answers.of_everyone_else()))
    touched = changed.keys() | (was.super_users ^ now.super_users) | answers.named
    for principal in sorted(touched - {EVERY_PRINCIPAL}):
        found = answers.of(principal, changed.get(principal, ()))
        if found is not None:
            crowd.add(principal, _pieces(found))
    return crowd


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


def _delta(values: Values) -> ByHost | None:
    old, new = values
    return (
        None if old == new else combined(old, new, lambda was, now: now & ~was | (was & ~now) << _LOST_SHIFT)
    )
