"""Findings about the host of one ACL."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from kustos.acl import WILDCARD, AclBinding, HostRange
from kustos.analysis.by_host import host_pattern, ipv4_text, ipv6_text
from kustos.analysis.lint.findings import Finding

_LEADING_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[0-9])")
_GLOB_OR_SPAN: Final = re.compile(r"[0-9.]+(\*|-[0-9.]+)[0-9.*]*")


def host_findings(number: int, binding: AclBinding) -> Iterator[Finding]:
    """Yield the findings about the host."""
    host = binding.entry.host
    if host == WILDCARD:
        return
    if host_pattern(host).matches_nobody:
        reason, fix = _why_nobody(host)
        yield Finding("KUS301", number, f"no client has the host `{host}`: {reason}", fix)
    elif "/" in host:
        yield from _range_findings(number, host)


def _range_findings(number: int, host: str) -> Iterator[Finding]:
    address, _, prefix = host.partition("/")
    bits = HostRange.parse(host).bits
    network = ip_network((address.partition("%")[0].strip("[]"), int(prefix)), strict=False)
    first = network.network_address
    if ip_address(address.partition("%")[0].strip("[]")) != first:
        text = f"{first}/{network.prefixlen}"
        yield Finding("KUS302", number, f"range `{host}` is `{text}`", f"write `{text}`, or a longer prefix")
    if network.prefixlen == 0:
        family, other = ("IPv4", "IPv6") if bits == 32 else ("IPv6", "IPv4")
        yield Finding(
            "KUS303",
            number,
            f"`{host}` is every {family} address and no {other} one",
            f"write `*` if {other} clients are meant too",
        )


def _why_nobody(host: str) -> tuple[str, str]:
    stripped = host.strip()
    if not stripped:
        return "it is empty", "write `*`, an address or a range"
    if stripped != host and not host_pattern(stripped).matches_nobody:
        return "it has blanks at its ends", f"write `{stripped}`"
    if "/" in stripped:
        return _why_no_range(stripped)
    if (meant := _meant_address(stripped)) is not None:
        return "Java prints that address in another form", f"write `{meant}`"
    if _GLOB_OR_SPAN.fullmatch(stripped):
        return "hosts have no patterns but address ranges", "write a range such as `10.0.0.0/8`"
    return "host names are never resolved", "write the address, or a range of addresses"


def _why_no_range(host: str) -> tuple[str, str]:
    address, _, prefix = host.partition("/")
    if host_pattern(host).matches_nobody and (meant := _meant_address(address)) and prefix.isdigit():
        if ":" in address and ":" not in meant:
            width = int(prefix) - 96
            fix = f"write `{meant}/{width}`" if 0 <= width <= 32 else "write an IPv4 range"
            return "Kafka reads no range of IPv4 addresses in IPv6 notation", fix
        if ":" not in address and 0 <= int(prefix) <= 32:
            return "0.0.0.0 is in no range", "write `0.0.0.0`"
    return "it is not an address range that Kafka can read", "write it as `10.0.0.0/8` or `2001:db8::/32`"


def _meant_address(text: str) -> str | None:
    """Return Java's form of an address in another form, None if the text is not an address."""
    try:
        address = ip_address(_LEADING_ZEROS.sub("", text) if ":" not in text else text.strip("[]"))
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return ipv4_text(int(address))
    if address.ipv4_mapped is not None:
        return ipv4_text(int(address.ipv4_mapped))
    zone = f"%{address.scope_id}" if address.scope_id else ""
    return ipv6_text(int(IPv6Address(int(address)))) + zone
