"""Listeners as the settings say: where they are bound, what clients are told, which ports brokers get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.auth.jaas import JaasEntry
from kustos.auth.settings import SaslServerSettings
from kustos.client.addresses import NodeAddress, parse_address
from kustos.client.errors import SettingsError

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
SERVED_PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT")
WILDCARD_HOSTS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (recognised, never chosen)
MAX_LISTENERS: Final = 32
"""More than anybody needs; each has its own range of ports."""


@dataclass(frozen=True, slots=True)
class SaslListenerSettings:
    """SASL on one listener. `jaas` is by mechanism and never shown: for PLAIN it holds the passwords."""

    enabled_mechanisms: tuple[str, ...]
    server: SaslServerSettings
    jaas: Mapping[str, JaasEntry] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """One listener; `sasl` is None where nobody is asked who they are.

    The upstream broker N is bound at `broker_port_start` + N and advertised at
    `advertised_broker_port_start` + N, for N below `broker_port_count`.
    """

    name: str
    security_protocol: str
    bind: NodeAddress
    advertised: NodeAddress
    broker_port_start: int
    advertised_broker_port_start: int
    broker_port_count: int
    is_controller: bool = False
    """Whether it answers about this node itself; it has no ports of brokers."""
    sasl: SaslListenerSettings | None = None

    @property
    def ports(self) -> tuple[range, range]:
        """The bound ports: its own, and those of the brokers."""
        start = self.broker_port_start
        return range(self.bind.port, self.bind.port + 1), range(start, start + self.broker_port_count)


def parse_listeners(text: str, key: str) -> dict[str, NodeAddress]:
    """Return the addresses by listener name; raise `SettingsError` that names the key.

    A host must be written, and a name may occur only once. Names are in capitals, as Kafka makes them.
    """
    found: dict[str, NodeAddress] = {}
    for item in (part.strip() for part in text.split(",")):
        name, separator, address = item.partition("://")
        if not separator or not name:
            raise SettingsError(f"`{key}` has `{item}`, write a listener as `NAME://host:port`")
        if address.startswith(":"):
            raise SettingsError(
                f"`{key}` has `{item}` without a host, write `{name}://127.0.0.1{address}` for this machine "
                f"only, or `{name}://0.0.0.0{address}` to be reached from everywhere"
            )
        if name.upper() in found:
            raise SettingsError(f"`{key}` has two listeners named `{name}`, give each its own name")
        try:
            found[name.upper()] = parse_address(address)
        except SettingsError as error:
            raise SettingsError(f"`{key}`: {error}") from None
        except ValueError:
            raise SettingsError(f"`{key}` has a port that is no port, use one from 1 to 65535") from None
    if len(found) > MAX_LISTENERS:
        raise SettingsError(f"`{key}` has {len(found)} listeners, at most {MAX_LISTENERS} are served")
    return found


def parse_protocol_map(text: str, key: str) -> dict[str, str]:
    """Return the security protocol of each listener name; raise `SettingsError` that names the key."""
    found: dict[str, str] = {}
    for item in (part.strip() for part in text.split(",") if part.strip()):
        name, colon, protocol = item.partition(":")
        if not colon or not name or protocol.upper() not in SECURITY_PROTOCOLS:
            raise SettingsError(
                f"`{key}` has `{item}`, write `NAME:PROTOCOL` with one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        if found.setdefault(name.upper(), protocol.upper()) != protocol.upper():
            raise SettingsError(f"`{key}` gives `{name}` two protocols, keep one")
    return found


def protocol_of(name: str, protocols: Mapping[str, str]) -> str:
    """Return the security protocol of a listener; raise `SettingsError` if none is served."""
    protocol = protocols.get(name, name if name in SECURITY_PROTOCOLS else None)
    if protocol is None:
        raise SettingsError(
            f"`listeners` has `{name}`, whose security protocol is unknown; add `{name}:SASL_PLAINTEXT` "
            "(or another protocol) to `listener.security.protocol.map`"
        )
    if protocol not in SERVED_PROTOCOLS:
        raise SettingsError(
            f"`listeners` has `{name}` with the security protocol `{protocol}`, which is not served yet; "
            f"use one of {', '.join(SERVED_PROTOCOLS)}"
        )
    return protocol


def check_ports(listeners: tuple[ListenerSettings, ...], http: NodeAddress | None) -> None:
    """Raise `SettingsError` where two things would be bound to the same port of the same host."""
    taken: list[tuple[str, range, str, str]] = []
    for listener in listeners:
        own, brokers = listener.ports
        # the listener's host has its name once, its ports two meanings
        start_key = f"listener.name.{listener.name.lower()}.kustos.broker.port.start"
        what = f"the port of listener `{listener.name}`"
        taken.append((listener.bind.host, own, what, "listeners"))
        if listener.is_controller:
            continue
        what = f"the broker ports {brokers.start}..{brokers.stop - 1} of listener `{listener.name}`"
        taken.append((listener.bind.host, brokers, what, start_key))
        advertised_end = listener.advertised_broker_port_start + listener.broker_port_count
        if max(brokers.stop, advertised_end) > 65536 or listener.advertised_broker_port_start < 1:
            raise SettingsError(
                f"{what} do not all exist, set `{start_key}` or lower `kustos.gateway.broker.port.count`"
            )
    if http is not None:
        place = range(http.port, http.port + 1)
        taken.append((http.host, place, f"the HTTP port {http.port}", "kustos.http.listener"))
    for number, (host, ports, what, _) in enumerate(taken):
        for other_host, other_ports, other, key in taken[number + 1 :]:
            same_host = host == other_host or WILDCARD_HOSTS & {host, other_host}
            if same_host and ports.start < other_ports.stop and other_ports.start < ports.stop:
                raise SettingsError(f"{what} and {other} overlap, change `{key}`")
