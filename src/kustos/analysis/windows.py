"""The fewest ACLs that can replace a window, a few ACLs among many, with the same meaning.

The other ACLs stay unchanged. The questions that the window can affect are divided into cells (principal,
class of names, piece of the host line, operation). Each candidate ACL built from the window's own values
covers some cells, and `cover` chooses the fewest candidates.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import product
from typing import Final, NamedTuple

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclPermissionType,
    ResourcePattern,
)
from kustos.analysis.by_host import ByHost, HostPlace, host_pattern, place_of, summed
from kustos.analysis.cover import Allow, smallest_choice
from kustos.analysis.kernel import Class, PrincipalView, walk, zone_on
from kustos.analysis.layers import Layer, Row
from kustos.analysis.name_sets import Site, Zone, site_of
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW, HOSTED, binding_mask

_OPERATION_BITS: Final = EVERY_ALLOW.bit_length()

CELL_GROUPS_MAX: Final = 512
"""Largest window, in cells without their operations: larger windows stay unchanged."""


class _RawSide(PrincipalView):
    """A view that returns the raw allows and denies instead of the decision."""

    __slots__ = ()

    def decide(self, row: Row) -> ByHost:
        """Return allows and denies by host."""
        return summed(row, lambda mask: mask)


@dataclass(frozen=True, slots=True)
class View:
    """One principal's view of a window: the original decisions, and the layers without the window."""

    principal: str
    original: PrincipalView
    others: tuple[Layer, ...]


class _CellGroup(NamedTuple):
    """Cells that differ only in their operation."""

    principal: str
    site: Site
    place: HostPlace
    wanted: int
    others: int


def replacement(window: list[AclBinding], views: Iterable[View]) -> list[AclBinding] | None:
    """Return the fewest ACLs that can replace a window, None if the window is too large.

    Returns the window itself if the search finds no smaller set.

    The new ACLs combine the window's principals, patterns and hosts (and `*`, and the union of two half
    ranges) with any operation, ALLOW or DENY. `views`: the views of all affected principals.
    """
    hosts = _hosts_of(window)
    groups = list(_groups(window, views, hosts))
    if len(groups) > CELL_GROUPS_MAX:
        return None
    wanted, allowed, denied, required = _totals(groups)
    debts = allowed & ~wanted & ~denied
    allows: dict[Allow, AclBinding] = {}
    denies: dict[int, AclBinding] = {}
    for binding, cells in _candidates(window, hosts, groups):
        # the first of several candidates with the same effect is closest to the original
        if binding.entry.permission_type is not AclPermissionType.ALLOW:
            if not cells & wanted:
                denies.setdefault(cells & ~denied, binding)
        elif cells & required:
            allows.setdefault(Allow(cells & required, cells & ~wanted & ~denied), binding)
    choice = smallest_choice(required, debts, tuple(allows), tuple(denies), pieces_max=len(window) - 1)
    if choice is None:
        return list(window)
    allowing, denying = list(allows.values()), list(denies.values())
    return [*(allowing[place] for place in choice.allows), *(denying[place] for place in choice.denies)]


def _totals(groups: list[_CellGroup]) -> tuple[int, int, int, int]:
    """Return all groups as cells: wanted, allowed and denied by other ACLs, wanted but not allowed."""
    wanted = allowed = denied = 0
    for number, group in enumerate(groups):
        shift = number * _OPERATION_BITS
        wanted |= group.wanted << shift
        allowed |= (group.others & EVERY_ALLOW) << shift
        denied |= (group.others >> _OPERATION_BITS & EVERY_ALLOW) << shift
    return wanted, allowed, denied, wanted & ~allowed


def _groups(window: Sequence[AclBinding], views: Iterable[View], hosts: list[str]) -> Iterator[_CellGroup]:
    sites = [site_of(binding.pattern) for binding in window]
    zone = zone_on(window[0].pattern.resource_type, Zone.of(sites))
    # every pattern of the window divides the names, even for principals without an ACL on it
    dividing = PrincipalView((Layer.marking(*sites),), is_super=False, is_open=False)
    for view in views:
        others = _RawSide(view.others, is_super=False, is_open=False)
        for found in walk((view.original, others, dividing), zone):
            for place in _places(found, hosts):
                decided, denied_and_allowed, _ = (value.at(place) for value in found.values)
                yield _CellGroup(view.principal, found.site, place, decided, denied_and_allowed)


def _places(found: Class, hosts: list[str]) -> Iterator[HostPlace]:
    """Yield one place in each piece of the line, as divided by a class's functions and the hosts."""
    starts = {start for value in found.values for start, _ in value.steps}
    texts = {text for value in found.values for text, _ in value.zoned}
    for host in hosts:
        pattern = host_pattern(host)
        starts.update(start for piece in pattern.pieces for start in piece)
        if pattern.zoned is not None:
            texts.add(pattern.zoned)
    yield from (
        HostPlace(start, None) for start in sorted(starts) if start < host_pattern(WILDCARD).pieces[0][1]
    )
    yield from (place for text in sorted(texts) if (place := place_of(text)) is not None)


def _hosts_of(window: Sequence[AclBinding]) -> list[str]:
    """Return the window's hosts, `*`, and each range whose two halves are among them."""
    hosts = dict.fromkeys([*(binding.entry.host for binding in window), WILDCARD])
    waiting = [host for host in hosts if "/" in host and not host_pattern(host).matches_nobody]
    while waiting:
        whole = _whole_of(waiting.pop(), hosts)
        if whole is not None and whole not in hosts:
            hosts[whole] = None
            waiting.append(whole)
    return list(hosts)


def _whole_of(half: str, hosts: Iterable[str]) -> str | None:
    try:
        network = ip_network(half, strict=False)
        whole = network.supernet()
    except ValueError:
        return None
    halves = {host_pattern(str(part)) for part in whole.subnets()} if network.prefixlen else set()
    return str(whole) if halves and halves <= {host_pattern(host) for host in hosts} else None


def _candidates(
    window: Sequence[AclBinding], hosts: list[str], groups: list[_CellGroup]
) -> Iterator[tuple[AclBinding, int]]:
    """Yield every candidate ACL with its cells: first the existing ACLs, then the narrowest."""
    principals = sorted(
        {binding.entry.principal for binding in window}, key=lambda name: name == EVERY_PRINCIPAL
    )
    patterns = dict.fromkeys(binding.pattern for binding in window)
    there = dict.fromkeys(window)
    candidates: list[tuple[AclBinding, int]] = []
    for principal, pattern, host in product(principals, patterns, hosts):
        spots = _spots(groups, principal, pattern, host)
        if spots:
            for operation, permission in product(ALLOWS, _PERMISSIONS):
                binding = AclBinding(pattern, AccessControlEntry(principal, host, operation, permission))
                mask = binding_mask(binding) & ~HOSTED
                # every group is as wide as a mask, so this places the mask at every spot
                candidates.append(
                    (binding, spots * (mask if mask <= EVERY_ALLOW else mask >> _OPERATION_BITS))
                )
    yield from sorted(candidates, key=lambda pair: pair[0] not in there)


_PERMISSIONS: Final = (AclPermissionType.ALLOW, AclPermissionType.DENY)


def _spots(groups: list[_CellGroup], principal: str, pattern: ResourcePattern, host: str) -> int:
    """Return the first cell of every group that an ACL with these fields matches."""
    matches_name = _site_matcher(site_of(pattern))
    hosts = host_pattern(host)
    spots = 0
    for number, group in enumerate(groups):
        if (
            principal in {group.principal, EVERY_PRINCIPAL}
            and matches_name(group.site)
            and _matches_host(hosts, group.place)
        ):
            spots |= 1 << number * _OPERATION_BITS
    return spots


def _site_matcher(site: Site) -> Callable[[Site], bool]:
    """Return a predicate for patterns that match the class of this site."""
    if not site.is_literal:
        return lambda found: found.name.startswith(site.name)
    if site.name == WILDCARD:
        return lambda found: found == site or found.name[:1] != WILDCARD
    return lambda found: found == site


def _matches_host(hosts: tuple[tuple[tuple[int, int], ...], str | None], place: HostPlace) -> bool:
    pieces, zoned = hosts
    return any(start <= place.number < end for start, end in pieces) or (
        zoned is not None and zoned == place.zoned
    )
