"""The address of a client, as Java would write it."""

import ipaddress
from typing import Any


def java_host_address(peer: Any) -> str:
    """Return the text that `InetAddress.getHostAddress()` gives for a socket's peer.

    IPv6 is written in full without leading zeros (`0:0:0:0:0:0:0:1`), a mapped IPv4 address as IPv4,
    a zone after `%`. Hosts of ACLs are compared with this text.
    """
    text = str(peer[0])
    address, _, zone = text.partition("%")
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return f"{groups}%{zone}" if zone else groups
