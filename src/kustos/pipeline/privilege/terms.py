"""The ACLs for the clients of one host term (`*`, a range, an address), on one resource type.

Without a conflict every ACL gets the term: one tree, solved exactly. An access conflicts if it was denied
from another host that the term matches; then it is granted to the addresses that used it. There the two
depend on each other, so names that share prefixes with such a conflict are solved separately: of two plans
(these addresses get only the conflicting accesses, or all that they need) the cheaper one is improved by a
bounded search over all possible ACLs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from kustos.acl import ResourceType
from kustos.pipeline.privilege.options import PREFIXABLE, PrivilegeOptions, cutter
from kustos.pipeline.privilege.placements import HostedPlacement, Index, pruned
from kustos.pipeline.privilege.search import NEEDS_MAX, cheapest_cover
from kustos.pipeline.privilege.tree import Beyond, Demand, cheapest_acls, possible_acls
from kustos.pipeline.privilege.values import CLOSURES, KnownNames, answering, bits_of, closure, reduced

ByHost = dict[str, dict[str, int]]
"""Operations by host and name."""

Denied = tuple[dict[str, int], int, Beyond]
"""Operations denied by name, on every name, and by prefix."""

HOSTS_SEARCHED_MAX: Final = 8
"""Addresses of one conflict that are searched: each adds all its candidates."""


class TypeRecord(Protocol):
    """The record of the type."""

    resource_type: ResourceType
    options: PrivilegeOptions
    known: KnownNames

    def denied_at(self, term: str) -> Denied:
        """Return what is denied to some host of a term."""


def cheapest_for_term(recorded: TypeRecord, term: str, needs: ByHost) -> list[HostedPlacement]:
    """Return ACLs that allow the needs of a term's clients and nothing that is denied to any of its hosts."""
    denied = recorded.denied_at(term)
    apart = _apart(needs, denied)
    if not apart:
        return _plan(recorded, term, needs, {}, denied)
    part_of = _parting(recorded, needs)
    conflicts = {part_of(name) for names in apart.values() for name in names}
    parts: dict[str | None, ByHost] = defaultdict(lambda: defaultdict(dict))
    for host, names in needs.items():
        for name, mask in names.items():
            part = part_of(name)
            parts[part if part in conflicts else None][host][name] = mask
    found = _plan(recorded, term, parts.pop(None, {}), {}, denied)
    for part_needs in parts.values():
        found += _cheapest_part(recorded, term, part_needs, denied)
    return found


class _parting:  # noqa: N801 (it is called as a function is)
    """Return the text that names must share for any ACL to match more than one of them."""

    def __init__(self, recorded: TypeRecord, needs: ByHost) -> None:
        options = recorded.options
        has_prefixes = recorded.resource_type in PREFIXABLE and options.has_prefixes
        names = {name for names in needs.values() for name in names}
        self._is_one = (
            has_prefixes and options.wildcard_share is not None and len(names) >= options.wildcard_members_min
        )
        self._cuts = cutter(options) if has_prefixes else None

    def __call__(self, name: str) -> str:
        if self._is_one:
            return ""
        cuts = self._cuts(name) if self._cuts is not None else []
        return cuts[0] if cuts else name


def _apart(needs: ByHost, denied: Denied) -> ByHost:
    """Return the accesses that the term must not be granted even literally, by address."""
    by_name, closed, _ = denied
    found: ByHost = {}
    if not closed and not any(by_name.values()):
        return found
    for host, names in needs.items():
        own: dict[str, int] = {}
        for name, mask in names.items():
            # a question for any resource of a type ignores implied operations
            against = by_name.get(name, 0)
            apart = sum(
                [bit for bit in bits_of(mask) if answering(bit) & closed or CLOSURES[bit] & against]
                if against or closed
                else ()
            )
            if apart:
                own[name] = apart
        if own:
            found[host] = own
    return found


def _cheapest_part(recorded: TypeRecord, term: str, needs: ByHost, denied: Denied) -> list[HostedPlacement]:
    apart = _apart(needs, denied)
    wholly = {host: needs[host] for host in apart}
    plans = [_plan(recorded, term, needs, each, denied) for each in (apart, wholly)]
    options = recorded.options
    wanted = [
        (host, name, bit) for host in needs for name, mask in needs[host].items() for bit in bits_of(mask)
    ]
    best = min([pruned(plan, _servers(plan, wanted, options)) for plan in plans], key=_cost)
    if len(wanted) > NEEDS_MAX or len(needs) > HOSTS_SEARCHED_MAX:
        return best
    candidates = _candidates(recorded, term, needs, denied)
    masks = [0] * len(candidates)
    for position, servers in enumerate(_servers(candidates, wanted, options)):
        for number in servers:
            masks[number] |= 1 << position
    costs = [(each.placement.cost, mask) for each, mask in zip(candidates, masks, strict=True)]
    better = cheapest_cover(costs, _cost(best))
    return best if better is None else [candidates[number] for number in better]


def _candidates(recorded: TypeRecord, term: str, needs: ByHost, denied: Denied) -> list[HostedPlacement]:
    found = [
        HostedPlacement(placement, host)
        for host, names in needs.items()
        for placement in possible_acls(
            _demand(recorded, {host: names}, names, recorded.denied_at(host), wholly=True)
        )
    ]
    merged = _merged(needs.values())
    return found + [
        HostedPlacement(placement, term)
        for placement in possible_acls(_demand(recorded, needs, merged, denied, wholly=True))
    ]


def _servers(
    acls: list[HostedPlacement], wanted: list[tuple[str, str, int]], options: PrivilegeOptions
) -> list[list[int]]:
    index = Index(acls, options)
    return [list(index.serving(host, name, bit)) for host, name, bit in wanted]


def _cost(acls: Iterable[HostedPlacement]) -> float:
    return sum([acl.placement.cost for acl in acls])


def _merged(all_names: Iterable[Mapping[str, int]]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for names in all_names:
        for name, mask in names.items():
            merged[name] = merged.get(name, 0) | mask
    return merged


def _plan(
    recorded: TypeRecord, term: str, needs: ByHost, apart: ByHost, denied: Denied
) -> list[HostedPlacement]:
    """Return a plan that grants the `apart` accesses to their addresses, the rest to the term."""
    found: list[HostedPlacement] = []
    rest: list[Mapping[str, int]] = []
    for host, names in needs.items():
        own = apart.get(host)
        if not own:
            rest.append(names)
            continue
        left = {name: mask & ~closure(own.get(name, 0)) for name, mask in names.items()}
        rest.append({name: mask for name, mask in left.items() if mask})
        demand = _demand(recorded, {host: names}, own, recorded.denied_at(host))
        found += [HostedPlacement(placement, host) for placement in cheapest_acls(demand)]
    demand = _demand(recorded, needs, _merged(rest), denied)
    return found + [HostedPlacement(placement, term) for placement in cheapest_acls(demand)]


def _demand(
    recorded: TypeRecord, used: ByHost, needs: Mapping[str, int], denied: Denied, *, wholly: bool = False
) -> Demand:
    """Return the input of a tree; all uses of these hosts count for prefixes.

    Needs exclude implied ones unless `wholly`.
    """
    return Demand(
        recorded.resource_type,
        dict(needs) if wholly else {name: reduced(mask) for name, mask in needs.items()},
        {name: closure(mask) for name, mask in _merged(used.values()).items()},
        *denied,
        recorded.known,
        recorded.options,
    )
