"""The questions that changed ACLs match: ACLs that differ in only one field form one scope.

A decision changes only where a changed ACL applies, so every region of a difference is in these scopes. A
scope is simpler than the regions in it, because it ignores other ACLs: `User:*` on topic `*` is one scope,
but one region for each principal with its own ACLs.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from kustos.acl import CLUSTER_NAME, EVERY_PRINCIPAL, WILDCARD, AclBinding, AclPermissionType, ResourceType
from kustos.analysis.by_host import HOST_PATTERNS_MAX, HostPattern, host_pattern, place_of, summed
from kustos.analysis.host_sets import ANYWHERE, HostSet
from kustos.analysis.name_sets import WILDCARD_NAMES, NameSet, Site, Zone, site_of
from kustos.analysis.regions import Direction, PrincipalSet, Region, operations_of
from kustos.authorizer.index import ALLOWS, DENY_SHIFT, EVERY_ALLOW, HOSTED, binding_mask

SITES_MAX: Final = 32
"""Patterns of one scope; larger groups form only regions: a sentence names fewer, and each one costs time."""

_WILDCARD_SITE: Final = Site(WILDCARD, is_literal=True)


@dataclass(frozen=True, slots=True)
class ChangedAcl:
    """An ACL that only one of the two sets has."""

    binding: AclBinding
    is_added: bool

    @property
    def allows(self) -> bool:
        """Whether it is an ALLOW."""
        return self.binding.entry.permission_type is AclPermissionType.ALLOW

    @property
    def direction(self) -> Direction:
        """The direction in which the ACL can change a decision, compared with the default."""
        return Direction.GAINED if self.is_added is self.allows else Direction.LOST


_Speaking = tuple[str, list["ChangedAcl"]]
"""A principal and its ACLs."""


class _Form(NamedTuple):
    """The common fields of the ACLs in one scope, apart from operations, principals and names."""

    is_added: bool
    allows: bool
    resource_type: ResourceType
    host: str


@dataclass(frozen=True, slots=True)
class ChangedScope:
    """The questions that a group of similar changed ACLs matches."""

    is_added: bool
    allows: bool
    resource_type: ResourceType
    host: str
    bits: int
    sites: tuple[Site, ...]
    principals: frozenset[str]
    acls: tuple[ChangedAcl, ...]

    @property
    def direction(self) -> Direction:
        """The direction in which the ACLs can change a decision."""
        return self.acls[0].direction

    @property
    def is_of_everyone(self) -> bool:
        """Whether the ACLs are for `User:*`."""
        return EVERY_PRINCIPAL in self.principals

    def region(self, super_users: frozenset[str]) -> Region:
        """Return the scope as a region; for everyone, only an added ALLOW includes super users."""
        who = PrincipalSet(tuple(sorted(self.principals)))
        if self.is_of_everyone:
            without = () if self.is_added and self.allows else tuple(sorted(super_users))
            who = PrincipalSet(without, is_everyone_but=True)
        names = WILDCARD_NAMES
        if self.resource_type is ResourceType.CLUSTER:
            names = NameSet((Site(CLUSTER_NAME, is_literal=True),))
        elif self.sites != (_WILDCARD_SITE,):
            zone = Zone.of(self.sites)
            prefixes = [Site(prefix, is_literal=False) for prefix in zone.prefixes]
            names = NameSet(tuple(sorted(prefixes + [Site(name, is_literal=True) for name in zone.literals])))
        return Region(who, hosts_of(self.host), operations_of(self.bits), self.resource_type, names)

    def meets(self, binding: AclBinding) -> bool:
        """Return whether an ACL matches any question in the scope."""
        entry = binding.entry
        return (
            binding.pattern.resource_type is self.resource_type
            and (
                self.is_of_everyone
                or entry.principal == EVERY_PRINCIPAL
                or entry.principal in self.principals
            )
            and bits_of(binding) & self.bits != 0
            and _hosts_meet(hosts_of(self.host), entry.host)
            and any(_sites_meet(site, site_of(binding.pattern), self.resource_type) for site in self.sites)
        )


def changed_acls(old: frozenset[AclBinding], new: frozenset[AclBinding]) -> Iterator[ChangedAcl]:
    """Yield the ACLs that only one set has, except ACLs that can match no client."""
    for is_added, bindings in ((True, new - old), (False, old - new)):
        for binding in bindings:
            site, resource_type = site_of(binding.pattern), binding.pattern.resource_type
            can_match = resource_type is not ResourceType.CLUSTER or _matches_cluster(site)
            if can_match and bits_of(binding) and not host_pattern(binding.entry.host).matches_nobody:
                yield ChangedAcl(binding, is_added)


def scopes_of(changed: Iterable[ChangedAcl], super_users: frozenset[str]) -> Iterator[ChangedScope]:
    """Yield the scopes of changed ACLs, without super users, since their rights do not change."""
    by_site: dict[tuple[_Form, str, Site], list[ChangedAcl]] = defaultdict(list)
    for acl in changed:
        pattern, entry = acl.binding.pattern, acl.binding.entry
        if entry.principal not in super_users:
            form = _Form(acl.is_added, acl.allows, pattern.resource_type, entry.host)
            by_site[form, entry.principal, site_of(pattern)].append(acl)
    by_bits: dict[tuple[_Form, str, int, bool], list[tuple[Site, list[ChangedAcl]]]] = defaultdict(list)
    for (form, principal, site), acls in by_site.items():
        bits = 0
        for acl in acls:
            bits |= bits_of(acl.binding)
        by_bits[form, principal, bits, site == _WILDCARD_SITE].append((site, acls))
    by_sites: dict[tuple[_Form, int, tuple[Site, ...]], list[tuple[str, list[ChangedAcl]]]] = defaultdict(
        list
    )
    for (form, principal, bits, _), found in by_bits.items():
        sites = tuple(sorted(site for site, _ in found))
        if len(sites) <= SITES_MAX:
            by_sites[form, bits, sites].append((principal, [acl for _, acls in found for acl in acls]))
    for (form, bits, sites), by_principal in by_sites.items():
        together = tuple([acl for _, acls in by_principal for acl in acls])
        yield ChangedScope(
            *form, bits, sites, frozenset(principal for principal, _ in by_principal), together
        )


def bits_of(binding: AclBinding) -> int:
    """Return the operations that an ACL matches, including operations implied by an ALLOW, as ALLOW bits."""
    mask = binding_mask(binding) & ~HOSTED
    return mask if mask <= EVERY_ALLOW else mask >> DENY_SHIFT


@lru_cache(maxsize=HOST_PATTERNS_MAX)
def hosts_of(host: str) -> HostSet:
    """Return the hosts that an entry's host matches."""
    return ANYWHERE if host == WILDCARD else HostSet(summed({host: 1}, lambda bits: bits))


def _hosts_meet(hosts: HostSet, host: str) -> bool:
    """Return whether an entry's host matches any of these hosts."""
    pattern, member = host_pattern(host), hosts.member
    if pattern.zoned is not None and host in hosts:
        return True
    for start, end in pattern.pieces:
        if member.on_line(start):
            return True
        after = bisect_right(member.steps, start, key=itemgetter(0))
        if after < len(member.steps) and member.steps[after][0] < end:
            return True  # adjacent steps differ, so the next step is in the set
    return any(value and _matches_zoned(pattern, text) for text, value in member.zoned)


def _are_hosts_within(hosts: HostSet, host: str) -> bool:
    """Return whether an entry's host matches all of these hosts."""
    pattern = host_pattern(host)
    return all(
        not value or any(first <= start and end <= last for first, last in pattern.pieces)
        for start, end, value in hosts.member.pieces()
    ) and all(not value or _matches_zoned(pattern, text) for text, value in hosts.member.zoned)


def _matches_zoned(pattern: HostPattern, text: str) -> bool:
    place = place_of(text)
    return pattern.zoned == text or (
        place is not None and any(start <= place.number < end for start, end in pattern.pieces)
    )


def _matches_cluster(site: Site) -> bool:
    return site == _WILDCARD_SITE or site.covers(CLUSTER_NAME)


def _sites_meet(site: Site, other: Site, resource_type: ResourceType) -> bool:
    if resource_type is ResourceType.CLUSTER:
        return _matches_cluster(site) and _matches_cluster(other)
    for one, another in ((site, other), (other, site)):
        if one == _WILDCARD_SITE:
            # LITERAL `*` matches itself and names that do not begin with it
            return another.name[:1] != WILDCARD or another.name == WILDCARD
        if not one.is_literal and another.name.startswith(one.name):
            return True
    return site == other


def _holds(site: Site, other: Site) -> bool:
    return site == other if site.is_literal else other.name.startswith(site.name)


class RegionIndex:
    """One region, prepared for comparison with many scopes and ACLs."""

    __slots__ = ("_lengths", "_literals", "_prefixes", "bits", "principals", "region")

    def __init__(self, region: Region) -> None:
        self.region = region
        self.bits = sum(ALLOWS[operation] for operation in region.operations)
        self.principals = frozenset(region.principals.names)
        turns = region.names.turns
        self._literals = frozenset(site.name for site in turns if site.is_literal)
        self._prefixes = frozenset(site.name for site in turns if not site.is_literal)
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def is_within(self, scope: ChangedScope) -> bool:
        """Return whether the whole region is in a scope."""
        region = self.region
        return (
            region.resource_type is scope.resource_type
            and not self.bits & ~scope.bits
            and (
                scope.is_of_everyone
                or (not region.principals.is_everyone_but and self.principals <= scope.principals)
            )
            and _are_hosts_within(region.hosts, scope.host)
            and self._are_names_within(scope.sites)
        )

    def _are_names_within(self, sites: tuple[Site, ...]) -> bool:
        turns = self.region.names.turns
        if self.region.resource_type is ResourceType.CLUSTER:
            return True
        if sites == (_WILDCARD_SITE,):
            starred = [site for site in turns if site.name[:1] == WILDCARD]
            is_in_at_star = (Site("", is_literal=False) in turns[:1]) is not (WILDCARD in self._prefixes)
            return not is_in_at_star and all(site.name == WILDCARD for site in starred)
        # a set has no names outside its turns
        return all(any(_holds(scoped, turn) for scoped in sites) for turn in turns)

    def meets(self, binding: AclBinding) -> bool:
        """Return whether an ACL matches any question in the region."""
        region, entry = self.region, binding.entry
        is_of_some = entry.principal == EVERY_PRINCIPAL or entry.principal in region.principals
        return (
            is_of_some
            and binding.pattern.resource_type is region.resource_type
            and bits_of(binding) & self.bits != 0
            and _hosts_meet(region.hosts, entry.host)
            and self._has_name_at(site_of(binding.pattern))
        )

    def _has_name_at(self, site: Site) -> bool:
        name, turns = site.name, self.region.names.turns
        if self.region.resource_type is ResourceType.CLUSTER:
            return _matches_cluster(site)
        if site == _WILDCARD_SITE:
            is_star_in = bool((self._depth(WILDCARD) + (WILDCARD in self._literals)) % 2)
            return "" in self._prefixes or is_star_in or any(turn.name[:1] != WILDCARD for turn in turns)
        if site.is_literal:
            return (self._depth(name) + (name in self._literals)) % 2 == 1
        if self._depth(name) % 2:
            return True
        # the enclosing place is not in the set, so look for a turn under the prefix
        after = bisect_left(turns, Site(name, is_literal=False)) + (name in self._prefixes)
        return after < len(turns) and turns[after].name.startswith(name)

    def _depth(self, name: str) -> int:
        """Return the number of flipping prefixes of a name."""
        return sum(name[:length] in self._prefixes for length in self._lengths if length <= len(name))
