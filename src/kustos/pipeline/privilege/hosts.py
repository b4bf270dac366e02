"""The host terms of ACLs that together match the recorded addresses."""

from collections import defaultdict
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Final

from kustos.acl import WILDCARD, AclValueError, HostRange, host_matches
from kustos.pipeline.privilege.options import HostChoice, PrivilegeOptions

_BITS: Final = {4: 32, 6: 128}


def host_terms(hosts: Iterable[str], options: PrivilegeOptions) -> dict[str, str]:
    """Return for each address the host of the ACLs that serve it; `*` for all if there are too many terms."""
    everywhere = dict.fromkeys(hosts, WILDCARD)
    if options.hosts is HostChoice.ANY:
        return everywhere
    terms = {host: host for host in everywhere}
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
