"""Addresses of Kafka nodes as people write them: `host:port`, `[::1]:9092`, several with commas."""

from dataclasses import dataclass
from typing import Final

from kustos.client.errors import SettingsError

MAX_BOOTSTRAP_ADDRESSES: Final = 100
"""Each is tried in turn, so the limit bounds the time spent on an unreachable cluster."""


@dataclass(frozen=True, slots=True, order=True)
class NodeAddress:
    """Where a node listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> NodeAddress:
    """Return the address written as `host:port`; raise `SettingsError` for anything else."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise SettingsError(f"write the IPv6 address `{text}` in brackets, as `[::1]:9092`")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= 65535:
        raise SettingsError(f"`{text}` is not an address of a node, write it as `host:port`")
    return NodeAddress(host, int(port))


def parse_bootstrap_servers(text: str) -> tuple[NodeAddress, ...]:
    """Return the addresses of a comma-separated list in order, without duplicates."""
    addresses = tuple(dict.fromkeys(parse_address(item) for item in text.split(",") if item.strip()))
    if not addresses:
        raise SettingsError("no bootstrap server is given, write one as `host:port`")
    if len(addresses) > MAX_BOOTSTRAP_ADDRESSES:
        raise SettingsError(f"{len(addresses)} bootstrap servers are more than {MAX_BOOTSTRAP_ADDRESSES}")
    return addresses
