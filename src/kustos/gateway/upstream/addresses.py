"""Addresses: of brokers, as advertised to clients, and of clients, in Java's notation."""

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

HOSTS_KNOWN_MAX: Final = 4_096
"""The maximum number of addresses whose text is cached, some 200 bytes each: clients reconnect."""


class NoPortForBrokerError(Exception):
    """A broker's node id is outside the range of ports; its address must not reach a client."""


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """The ports of one gateway listener.

    Broker N is bound at `first_port` + N; clients see `advertised_host` and `advertised_first_port` + N.
    """

    advertised_host: str
    first_port: int
    advertised_first_port: int
    port_count: int

    def port_of(self, node_id: int) -> int:
        """Return the port to bind for a broker; raise `NoPortForBrokerError`."""
        return self.first_port + self._checked(node_id)

    def _checked(self, node_id: int) -> int:
        if not 0 <= node_id < self.port_count:
            raise NoPortForBrokerError(
                f"broker `{node_id}` has no port in the range of {self.port_count} from "
                f"{self.first_port}, raise `kustos.gateway.broker.port.count`"
            )
        return node_id

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        """Return the address to give to clients in place of an upstream broker's own.

        Raise `NoPortForBrokerError` rather than let upstream's `host` and `port` through.
        """
        del host, port  # clients must not learn upstream's own address
        return self.advertised_host, self.advertised_first_port + self._checked(node_id)


def java_host_address(peer: Any) -> str:
    """Return the text that `InetAddress.getHostAddress()` gives for a socket's peer.

    An IPv6 address has no leading zeros and no abbreviation (`0:0:0:0:0:0:0:1`). A mapped IPv4 address is
    written as IPv4. The zone of a link-local address is its number after `%`. Hosts of ACLs are compared with
    this text.
    """
    return _java_text(str(peer[0]), peer[3] if len(peer) > 3 else 0)


@lru_cache(maxsize=HOSTS_KNOWN_MAX)
def _java_text(host: str, scope_id: int) -> str:
    parsed = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))
    return f"{groups}%{scope_id}" if scope_id else groups


def java_host_of(address: bytes) -> str:
    """Return the same text for a raw address of 4 or 16 bytes; raise ValueError for any other."""
    return java_host_address((str(ipaddress.ip_address(address)),))


NETWORK_GROUPS: Final = 4
"""The number of groups of an IPv6 address that identify its network; a host chooses the others itself (RFC
8981)."""


def network_of(host: str) -> str:
    """Return the network of a host for limits that count addresses; `host` as `java_host_address` writes it.

    The network is an IPv4 address itself, or the /64 of an IPv6 address, because a host with one address of a
    /64 can use all of them.
    """
    return ":".join(host.split(":")[:NETWORK_GROUPS]) if ":" in host else host


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class AddressRanges:
    """Addresses and networks from the settings."""

    networks: tuple[Network, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.networks))

    def holds(self, host: str) -> bool:
        """Return whether the ranges contain a host, in the notation of `java_host_address`."""
        if not self.networks:
            return False
        address = ipaddress.ip_address(host.partition("%")[0])
        return any(address.version == each.version and address in each for each in self.networks)
