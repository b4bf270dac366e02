"""The ACLs of one principal on one resource type, planned from needs and denials by host."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv6Address
from typing import Final, NamedTuple

from kustos.acl import CLUSTER_NAME, WILDCARD, AclValueError, HostRange, ResourceType, host_matches
from kustos.authorizer.index import ALLOWS
from kustos.authorizer.spi import PROBED_NAME
from kustos.pipeline.privilege.ceiling import PrincipalCeiling
from kustos.pipeline.privilege.options import HostChoice, PrivilegeOptions
from kustos.pipeline.privilege.placements import HostedPlacement
from kustos.pipeline.privilege.terms import ByHost, Denied, cheapest_for_term
from kustos.pipeline.privilege.tree import nothing_beyond
from kustos.pipeline.privilege.values import (
    ALL_BIT,
    CLOSURES,
    Denial,
    KnownNames,
    Use,
    answering,
    bits_of,
    closure,
)

_BITS: Final = {4: 32, 6: 128}


class ImpliedDeny(NamedTuple):
    """A planned DENY: an operation that another one, needed by the same host on the same name, implies."""

    host: str
    name: str
    bit: int


@dataclass(slots=True)
class TypePlan:
    """The record of one type, and then the grants on it; nothing beyond the `ceiling`, if there is one.

    With a ceiling every use read must be within it.
    """

    resource_type: ResourceType
    options: PrivilegeOptions
    known: KnownNames
    ceiling: PrincipalCeiling | None = None
    needs: ByHost = field(default_factory=lambda: defaultdict(dict))
    denied: ByHost = field(default_factory=lambda: defaultdict(dict))
    probed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    closed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refusals: set[ImpliedDeny] = field(default_factory=set)
    overruled: list[tuple[str, int]] = field(default_factory=list)
    placements: list[HostedPlacement] = field(default_factory=list)
    terms: dict[str, str] = field(default_factory=dict)
    _denied_at: dict[str, Denied] = field(default_factory=dict)

    def read(self, uses: Iterable[Use], denials: Iterable[Denial]) -> None:
        """Add the record of the type; an ACL must be able to name each of the uses."""
        for use in uses:
            bit = ALLOWS[use.operation]
            if use.name is None:
                self.probed[use.host] |= bit
            else:
                names = self.needs[use.host]
                names[use.name] = names.get(use.name, 0) | bit
        for denial in denials:
            bit = ALLOWS[denial.operation]
            if denial.name is None:
                self.closed[denial.host] |= bit
            else:
                names = self.denied[denial.host]
                names[denial.name] = names.get(denial.name, 0) | bit

    def solve(self) -> None:
        """Find the placements."""
        self._deny_what_is_beyond()
        self._make_refusals()
        terms = self.terms = host_terms(sorted(self.needs.keys() | self.probed.keys()), self.options)
        clients: dict[str, list[str]] = defaultdict(list)
        for host in sorted(self.needs):
            clients[terms[host]].append(host)
        for term, hosts in clients.items():
            needs = {host: self.needs[host] for host in hosts}
            self.placements += cheapest_for_term(self, term, needs)

    def _deny_what_is_beyond(self) -> None:
        """Count as denied the operations that today's set denies though a needed operation implies them."""
        if self.ceiling is None:
            return
        for host, names in self.needs.items():
            denied = self.denied[host]
            for name, mask in names.items():
                beyond = closure(mask) & self.ceiling.beyond(self.resource_type, name, False, host)
                if beyond:
                    denied[name] = denied.get(name, 0) | beyond

    def _make_refusals(self) -> None:
        """Resolve the conflicts that ALLOWs alone cannot: a denied operation that a needed one implies."""
        for host, names in self.needs.items():
            denied = self.denied[host]
            # what must be allowed of the name that Kafka authorizes first answers by implied operations, too
            needed = closure(names.get(PROBED_NAME, 0)) & ~denied.get(PROBED_NAME, 0)
            for name in names.keys() & denied.keys():
                for bit in bits_of(closure(names[name]) & denied[name]):
                    self.refusals.add(ImpliedDeny(host, name, bit))
                    denied[name] &= ~bit
            for mask in names.values():
                needed |= mask
            for bit in bits_of(answering(needed) & self.closed.get(host, 0)):
                self.overruled.append((host, bit))
                self.closed[host] &= ~bit
        for host, mask in self.closed.items():
            denied = self.denied[host]
            denied[PROBED_NAME] = denied.get(PROBED_NAME, 0) | mask

    @property
    def names_no_host(self) -> bool:
        """Whether a planned ACL is for the host of recorded uses without one, the empty text."""
        hosts = [acl.host for acl in self.placements] + [refusal.host for refusal in self.refusals]
        return "" in hosts

    def answers(self, acl: HostedPlacement, host: str, bit: int) -> bool:
        """Return whether an ACL answers an allowed question for any resource, as Kafka looks for it.

        First it authorizes one name, with implied operations; then it looks for an ACL of the same operation.
        """
        placement = acl.placement
        if not host_matches(acl.host, host):
            return False
        by_name = placement.matches(PROBED_NAME) and CLOSURES[placement.bit] & bit
        if by_name and ImpliedDeny(host, PROBED_NAME, bit) not in self.refusals:
            return True
        # a literal ALLOW does not count beside a DENY of the same name
        is_left = placement.is_prefix or ImpliedDeny(host, placement.name, bit) not in self.refusals
        return bool(placement.bit & (bit | ALL_BIT)) and is_left

    def denied_at(self, term: str) -> Denied:
        """Return what a term must not be granted: a host of it is denied it, or the ceiling forbids it."""
        found = self._denied_at.get(term)
        if found is None:
            found = self._denied_at[term] = self._find_denied_at(term)
        return found

    def _find_denied_at(self, term: str) -> Denied:
        denied: dict[str, int] = {}
        for host, names in self.denied.items():
            if host_matches(term, host):
                for name, mask in names.items():
                    denied[name] = denied.get(name, 0) | mask
        closed = 0
        for host, mask in self.closed.items():
            if host_matches(term, host):
                closed |= mask
        if self.ceiling is None:
            return denied, closed, nothing_beyond
        beyond = partial(self.ceiling.beyond, self.resource_type, host=term)
        refused: dict[str, int] = defaultdict(int)
        for refusal in self.refusals:
            if refusal.host == term:
                refused[refusal.name] |= refusal.bit
        concerned = {name for needs in self.needs.values() for name in needs}
        if self.probed:
            concerned.add(probe_name(self.resource_type))
        for name in concerned:
            mask = beyond(name, False) & ~refused[name]
            if mask:
                denied[name] = denied.get(name, 0) | mask
        return denied, closed, beyond


def probe_name(resource_type: ResourceType) -> str:
    """Return the name that Kafka uses in a question for any resource of a type."""
    return CLUSTER_NAME if resource_type is ResourceType.CLUSTER else PROBED_NAME


def can_be_named(resource_type: ResourceType, name: str) -> bool:
    """Return whether a literal ACL can match exactly this name."""
    return name not in {"", WILDCARD} and (resource_type is not ResourceType.CLUSTER or name == CLUSTER_NAME)


def host_terms(hosts: Iterable[str], options: PrivilegeOptions) -> dict[str, str]:
    """Return for each address the host of the ACLs that serve it; `*` for all if there are too many terms."""
    everywhere = dict.fromkeys(hosts, WILDCARD)
    if options.hosts is HostChoice.ANY:
        return everywhere
    terms = {host: host or WILDCARD for host in everywhere}
    if options.hosts is HostChoice.RANGES:
        terms |= _ranges(everywhere, options)
    return terms if len(set(terms.values())) <= options.hosts_max else everywhere


def _ranges(hosts: Iterable[str], options: PrivilegeOptions) -> dict[str, str]:
    """Return the smallest range of each network that contains enough of the hosts."""
    least = {4: options.range_bits_min_ipv4, 6: options.range_bits_min_ipv6}
    neighbours: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for host in hosts:
        parsed = _number(host)
        if parsed is not None:
            version, number = parsed
            neighbours[version, number >> (_BITS[version] - least[version])].append((number, host))
    found: dict[str, str] = {}
    for (version, _), members in neighbours.items():
        if len(members) < options.range_hosts_min:
            continue
        numbers = [number for number, _ in members]
        differing = (min(numbers) ^ max(numbers)).bit_length()
        term = _range_text(version, min(numbers) >> differing << differing, _BITS[version] - differing)
        # an address that Kafka does not match with the range keeps its own term
        found |= {host: term for _, host in members if host_matches(term, host)}
    return found


def _number(host: str) -> tuple[int, int] | None:
    """Return the version and number of an address as Kafka parses it, None if it does not."""
    version = 6 if ":" in host else 4
    try:
        alone = HostRange.parse(f"{host}/{_BITS[version]}")
    except AclValueError:
        return None
    return version, alone.highest


def _range_text(version: int, number: int, prefix: int) -> str:
    if version == 6:
        return f"{IPv6Address(number)}/{prefix}"
    return f"{'.'.join(str(number >> shift & 255) for shift in (24, 16, 8, 0))}/{prefix}"
