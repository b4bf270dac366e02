"""The address of a client, as Java would write it."""

import ipaddress
from typing import Any


def java_host_address(peer: Any) -> str:
    """Return the text that `InetAddress.getHostAddress()` gives for a socket's peer.

    IPv6 is written in full without leading zeros (`0:0:0:0:0:0:0:1`), a mapped IPv4 address as IPv4,
    the zone of a link-local one as its number after `%`. Hosts of ACLs are compared with this text.
    """
    parsed = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    scope_id = peer[3] if len(peer) > 3 else 0
    return f"{groups}%{scope_id}" if scope_id else groups


def java_host_of(address: bytes) -> str:
    """Return the same text for a raw address of 4 or 16 bytes; raise ValueError for any other."""
    return java_host_address((str(ipaddress.ip_address(address)),))
