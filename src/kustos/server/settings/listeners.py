"""The listeners in the settings: bound addresses, advertised addresses, and the brokers' ports."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kustos.auth import GSSAPI, MAX_REAUTH_MS, OAUTHBEARER, JaasEntry, SaslServerSettings
from kustos.client import NodeAddress, SettingsError, parse_address
from kustos.gateway.listener import AuthorizationMode, ConnectionSettings
from kustos.gateway.upstream import BrokerHostPattern, is_address, is_host_name
from kustos.server.settings.jaas import JAAS_CONFIG, jaas_entries
from kustos.server.settings.oauth import OAuthListenerSettings, oauth_settings
from kustos.server.settings.plugins import CallbackSettings, callback_settings
from kustos.server.settings.principals import (
    KerberosSettings,
    PrincipalSettings,
    kerberos_settings,
    principal_settings,
)
from kustos.server.settings.properties import (
    ENABLED_MECHANISMS_CONFIG,
    LISTENER_PREFIX,
    GivenSettings,
    listener_key,
)
from kustos.server.settings.tls import ListenerTlsSettings, listener_tls_settings
from kustos.settings import (
    BOOLEAN,
    NETWORKS,
    TEXT,
    Kind,
    Network,
    Scope,
    Setting,
    list_of,
    member_of,
    whole_number,
)

LISTENERS: Final = Setting(
    "listeners",
    TEXT,
    None,
    "Listeners",
    "The addresses to listen on: `NAME://host:port`, separated by commas. The host is mandatory: "
    "`127.0.0.1` for this machine only, `0.0.0.0` for all interfaces, `[::]` for all with IPv6 as well (in "
    "Kafka an empty host means all interfaces; kustos refuses it).",
    required=True,
)
ADVERTISED_LISTENERS: Final = Setting(
    "advertised.listeners",
    TEXT,
    None,
    "Listeners",
    "The addresses that clients connect to, by the names of `listeners`. A listener without an entry here "
    "advertises its own address, which must not be `0.0.0.0`.",
)
SECURITY_PROTOCOL_MAP: Final = Setting(
    "listener.security.protocol.map",
    TEXT,
    None,
    "Listeners",
    "The security protocol of each listener name: `NAME:PROTOCOL`, with commas between them. A listener "
    "that bears the name of a protocol needs no entry.",
)
CONTROLLER_LISTENER_NAMES: Final[Setting[tuple[str, ...]]] = Setting(
    "controller.listener.names",
    list_of(),
    (),
    "Listeners",
    "The admin listeners: listeners that answer requests about this node itself, as Kafka's controllers do "
    "(features, quorum, its own settings, and requests in an Envelope), and forward nothing upstream.",
)
_PORT: Final = whole_number(1, 65535)
BROKER_PORT_START: Final = Setting(
    "kustos.broker.port.start",
    _PORT,
    None,
    "Listeners",
    "Only with the prefix `listener.name.<listener>.`: clients reach the upstream broker with node id N at "
    "this port plus N, on the host of the listener. The default is `kustos.gateway.broker.port.start`.",
    scope=Scope.ONLY_LISTENER,
)
BROKER_HOST_PATTERN: Final = Setting(
    "kustos.broker.host.pattern",
    Kind(
        "string",
        "a host name with `$(nodeId)` in it, such as `broker-$(nodeId).example.com`",
        BrokerHostPattern.parse,
    ),
    None,
    "Listeners",
    "Only with the prefix `listener.name.<listener>.`, and for TLS: clients reach the upstream broker with "
    "node id N by this name with N in place of `$(nodeId)`, at the port of the listener, which then has no "
    "broker ports. The host and port of `advertised.listeners` are the bootstrap address.",
    scope=Scope.ONLY_LISTENER,
    since="0.2.0",
)
GATEWAY_BROKER_PORT_START: Final = Setting(
    "kustos.gateway.broker.port.start",
    _PORT,
    None,
    "Listeners",
    "The first broker port of a listener without `kustos.broker.port.start`. The default is the port after "
    "the listener's own.",
)
BROKER_PORT_COUNT: Final = Setting(
    "kustos.gateway.broker.port.count",
    whole_number(1, 10_000),
    100,
    "Listeners",
    "How many broker ports each listener has: the highest node id upstream, plus one. The ports of "
    "listeners must not overlap.",
)
PROXY_PROTOCOL: Final = Setting(
    "kustos.proxy.protocol",
    BOOLEAN,
    False,
    "Listeners",
    "Whether load balancers before the listener send the PROXY protocol (version 1 or 2), so that hosts in "
    "ACLs and audit events are the hosts of clients.",
    scope=Scope.LISTENER,
    since="0.2.0",
)
PROXY_ADDRESSES: Final = Setting(
    "kustos.proxy.protocol.addresses",
    NETWORKS,
    (),
    "Listeners",
    "The addresses or networks of these balancers. A header is required from them and refused from others.",
    scope=Scope.LISTENER,
    since="0.2.0",
)
ENABLED_MECHANISMS: Final = Setting(
    ENABLED_MECHANISMS_CONFIG,
    list_of(),
    ("GSSAPI",),
    "SASL",
    "The SASL mechanisms that a listener offers: `GSSAPI` (Kafka's default; it needs `kustos[gssapi]` and a "
    "keytab), `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER` (it needs `kustos[oauth]`), and those "
    "of installed packages.",
    scope=Scope.LISTENER,
)
AUTHORIZATION_MODE: Final = Setting(
    "kustos.authorization.mode",
    member_of(AuthorizationMode),
    AuthorizationMode.ENFORCE,
    "Authorization",
    "What the authorizer's decisions do. `enforce`: they are in force. `shadow`: everything passes that goes "
    "upstream, and what would have been denied is audited and counted; ACLs, users and tokens stay guarded, "
    "and so do admin listeners. `off`: no authorizer decides, every client may do everything. Only a "
    "listener with `enforce` is a guard.",
    scope=Scope.LISTENER,
)

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
WILDCARD_HOSTS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (recognised, never chosen)
MAX_LISTENERS: Final = 32
"""The maximum number of listeners, more than needed; each has its own range of ports."""


@dataclass(frozen=True, slots=True)
class SaslListenerSettings:
    """SASL on one listener. `jaas` is by mechanism and never shown: for PLAIN it contains the passwords.

    `oauth` is None if it has no OAUTHBEARER.
    """

    enabled_mechanisms: tuple[str, ...]
    server: SaslServerSettings
    jaas: Mapping[str, JaasEntry] = field(repr=False)
    oauth: OAuthListenerSettings | None = None
    kerberos: KerberosSettings | None = None
    """The node's Kerberos identity; None unless GSSAPI is offered."""
    callbacks: Mapping[str, CallbackSettings] = field(default_factory=dict)
    """Mechanism -> its custom class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSettings:
    """One listener; `sasl` is None if it has no authentication.

    The upstream broker N is bound at `broker_port_start` + N and advertised at
    `advertised_broker_port_start` + N, for N below `broker_port_count`, unless there are `broker_hosts`.
    """

    name: str
    security_protocol: str
    bind: NodeAddress
    advertised: NodeAddress
    broker_port_start: int
    advertised_broker_port_start: int
    broker_port_count: int
    broker_hosts: BrokerHostPattern | None = None
    """The host names of the brokers, all on the listener's own port; then it has no broker ports."""
    is_controller: bool = False
    """Whether it is an admin listener; then it has no broker ports."""
    sasl: SaslListenerSettings | None = None
    principals: PrincipalSettings = field(default_factory=PrincipalSettings)
    tls: ListenerTlsSettings | None = None
    """None: it has no TLS."""
    connection: ConnectionSettings = ConnectionSettings()
    """The limits of its connections, for all processes of the node together."""
    proxies: tuple[Network, ...] | None = None
    """The load balancers that send the PROXY protocol; None if the listener does not support it."""
    mode: AuthorizationMode = AuthorizationMode.ENFORCE

    @property
    def ports(self) -> tuple[range, range]:
        """The bound ports: its own port and the broker ports."""
        start = self.broker_port_start
        return range(self.bind.port, self.bind.port + 1), range(start, start + self.broker_port_count)


def parse_listeners(text: str, key: str) -> dict[str, NodeAddress]:
    """Return the addresses by listener name; raise `SettingsError` that names the key.

    The host is mandatory, and a name may occur only once. Names are in upper case, as in Kafka.
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
            raise SettingsError(f"`{key}` has an invalid port, use one from 1 to 65535") from None
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
    return protocol


def check_ports(listeners: tuple[ListenerSettings, ...], http: NodeAddress | None) -> None:
    """Raise `SettingsError` if a port of a host would be bound twice."""
    taken: list[tuple[str, range, str, str]] = []
    for listener in listeners:
        own, brokers = listener.ports
        # bound and advertised ports share the listener's host
        start_key = f"listener.name.{listener.name.lower()}.kustos.broker.port.start"
        what = f"the port of listener `{listener.name}`"
        taken.append((listener.bind.host, own, what, "listeners"))
        if not listener.broker_port_count:
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


def check_delay(
    given: GivenSettings, connections: ConnectionSettings, listeners: tuple[ListenerSettings, ...]
) -> None:
    """Raise `SettingsError` if a connection could end before kustos answers its failed login.

    `connections`: the settings for the whole node.
    """
    delay_ms = SaslServerSettings(**given.fields(SaslServerSettings)).failed_authentication_delay_ms
    limits = {"connections.max.idle.ms": connections.connections_max_idle_ms}
    for listener in listeners:
        key = listener_key("kustos.login.timeout.ms", listener.name)
        limits[key] = listener.connection.login_timeout_ms
    for key, limit_ms in limits.items():
        if delay_ms >= limit_ms:
            raise SettingsError(
                f"`connection.failed.authentication.delay.ms` is `{delay_ms}`, it must be below `{key}` "
                f"(`{limit_ms}`)"
            )


def listener_settings(given: GivenSettings) -> tuple[ListenerSettings, ...]:
    """Return the listeners, in the order of the file; raise `SettingsError`, warn of useless settings."""
    bound = parse_listeners(given.require(LISTENERS), "listeners")
    advertised_text = given.get(ADVERTISED_LISTENERS)
    advertised = parse_listeners(advertised_text, "advertised.listeners") if advertised_text else {}
    for name in advertised.keys() - bound.keys():
        raise SettingsError(
            f"`advertised.listeners` has `{name}`, which is not among `listeners`; name one of "
            f"{', '.join(bound)}"
        )
    protocols = parse_protocol_map(given.get(SECURITY_PROTOCOL_MAP) or "", "listener.security.protocol.map")
    _warn(given, bound)
    controllers = {name.upper() for name in given.require(CONTROLLER_LISTENER_NAMES)}
    if controllers >= bound.keys():
        raise SettingsError(
            "`controller.listener.names` names every listener of `listeners`, add one for clients"
        )
    return tuple(
        _listener(
            given,
            name,
            address,
            advertised.get(name),
            protocol_of(name, protocols),
            is_controller=name in controllers,
        )
        for name, address in bound.items()
    )


def _listener(
    given: GivenSettings,
    name: str,
    bind: NodeAddress,
    advertised: NodeAddress | None,
    protocol: str,
    *,
    is_controller: bool,
) -> ListenerSettings:
    advertised = advertised or bind
    if advertised.host in WILDCARD_HOSTS:
        raise SettingsError(
            f"clients of listener `{name}` cannot connect to `{advertised.host}`, set "
            f"`advertised.listeners={name}://<host>:{advertised.port}`"
        )
    start = given.get(BROKER_PORT_START, name) or given.get(GATEWAY_BROKER_PORT_START) or bind.port + 1
    hosts = given.get(BROKER_HOST_PATTERN, name)
    if hosts is not None:
        _check_hosts(given, name, protocol, is_controller=is_controller)
        advertised = _bootstrap(name, advertised, hosts)
    return ListenerSettings(
        name=name,
        security_protocol=protocol,
        bind=bind,
        advertised=advertised,
        broker_hosts=hosts,
        broker_port_start=start,
        # a forwarder that shifts the listener's port also shifts the brokers' ports
        advertised_broker_port_start=start + advertised.port - bind.port,
        broker_port_count=0 if is_controller or hosts else given.require(BROKER_PORT_COUNT),
        is_controller=is_controller,
        sasl=_sasl(given, name) if protocol.startswith("SASL") else None,
        principals=principal_settings(given, name),
        tls=listener_tls_settings(given, name, protocol),
        connection=ConnectionSettings(**given.fields(ConnectionSettings, name)),
        proxies=_proxies(given, name),
        mode=_mode(given, name, is_controller=is_controller),
    )


def _check_hosts(given: GivenSettings, listener: str, protocol: str, *, is_controller: bool) -> None:
    key = listener_key("kustos.broker.host.pattern", listener)
    if is_controller or not protocol.endswith("SSL"):
        raise SettingsError(
            f"`{key}` has no use: only clients with TLS name the host that they ask for, and an admin "
            "listener has no brokers; leave it out"
        )
    start_key = listener_key("kustos.broker.port.start", listener)
    if start_key in given.values:
        raise SettingsError(f"`{key}` and `{start_key}` contradict each other, leave one of them out")


def _bootstrap(listener: str, advertised: NodeAddress, hosts: BrokerHostPattern) -> NodeAddress:
    """Return the bootstrap address of a listener whose brokers have names; raise `SettingsError`."""
    host, key = advertised.host.lower().removesuffix("."), listener_key(BROKER_HOST_PATTERN.name, listener)
    if hosts.node_of(host) is not None or not (is_address(host) or is_host_name(host)):
        raise SettingsError(
            f"`advertised.listeners` has `{advertised.host}` for listener `{listener}`, but "
            f"`{key}` needs an address there, or a name of two labels or more that is not a broker's"
        )
    return NodeAddress(host, advertised.port)


_NO_GUARD: Final = {
    AuthorizationMode.SHADOW: "what the ACLs would deny is only recorded",
    AuthorizationMode.OFF: "ACLs decide nothing",
}


def _mode(given: GivenSettings, name: str, *, is_controller: bool) -> AuthorizationMode:
    """Return the mode of a listener, with a warning unless it enforces ACLs."""
    mode = given.require(AUTHORIZATION_MODE, name)
    if is_controller and mode is AuthorizationMode.SHADOW:
        key = listener_key("kustos.authorization.mode", name)
        if key in given.values:
            raise SettingsError(
                f"`{key}` is `shadow`, but `{name}` is an admin listener, which leads nowhere upstream; use "
                "`enforce` or `off`"
            )
        return AuthorizationMode.ENFORCE
    if mode in _NO_GUARD:
        given.warnings.append(
            f"listener `{name}` is not a guard: by `kustos.authorization.mode={mode.value}` every "
            f"client may do everything there, {_NO_GUARD[mode]}"
        )
    return mode


def _proxies(given: GivenSettings, listener: str) -> tuple[Network, ...] | None:
    if not given.require(PROXY_PROTOCOL, listener):
        return None
    proxies = given.require(PROXY_ADDRESSES, listener)
    if not proxies:
        raise SettingsError(
            f"listener `{listener}` accepts the PROXY protocol from no address, list the addresses "
            f"of its balancers in `{listener_key('kustos.proxy.protocol.addresses', listener)}`"
        )
    for network in proxies:
        if not network.prefixlen:
            given.warnings.append(
                f"listener `{listener}` takes the PROXY protocol from every address (`{network}` in "
                f"`kustos.proxy.protocol.addresses`): each client may say which address it has, list the "
                "addresses of its balancers"
            )
    return proxies


def _sasl(given: GivenSettings, listener: str) -> SaslListenerSettings:
    mechanisms = given.require(ENABLED_MECHANISMS, listener)
    if not mechanisms:
        key = listener_key("sasl.enabled.mechanisms", listener)
        raise SettingsError(f"listener `{listener}` has no SASL mechanism, set `{key}`")
    server = SaslServerSettings(
        {mechanism: given.require(MAX_REAUTH_MS, listener, mechanism) for mechanism in mechanisms},
        **given.fields(SaslServerSettings, listener),
    )
    callbacks = callback_settings(given, listener, mechanisms)
    jaas = jaas_entries(given, listener, mechanisms, frozenset(callbacks))
    oauth, own = None, OAUTHBEARER in callbacks
    if OAUTHBEARER in mechanisms:
        oauth = oauth_settings(given, listener, jaas.get(OAUTHBEARER), has_own_handler=own)
    kerberos = kerberos_settings(given, listener, jaas.get(GSSAPI)) if GSSAPI in mechanisms else None
    return SaslListenerSettings(mechanisms, server, jaas, oauth, kerberos, callbacks)


def _warn(given: GivenSettings, bound: Mapping[str, NodeAddress]) -> None:
    names = {name.lower() for name in bound}
    for key in given.values:
        known = given.known_key(key)
        if known is None:
            continue
        if known.listener is not None and known.listener not in names:
            given.warnings.append(
                f"`{key}` has no effect: `listeners` has no `{known.listener}` "
                f"(after `{LISTENER_PREFIX}` the name stands in small letters)"
            )
        if known.setting is JAAS_CONFIG and known.mechanism is None:
            given.warnings.append(
                f"`{key}` has no effect, as in Kafka: put the mechanism in small letters before "
                "`sasl.jaas.config`"
            )
