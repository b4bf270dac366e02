"""The settings of a gateway: its listeners, and the parts that they share."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final, Protocol

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import MAX_RECEIVE_SIZE, SaslServerMachine
from kustos.client import KafkaConnection
from kustos.gateway.listener.drain import DRAIN_TIMEOUT_MS
from kustos.gateway.listener.login_throttle import FailedLoginLimits
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.client_session import ConnectionObserver, LocalApis
from kustos.gateway.session.large_turns import LargeTurns
from kustos.gateway.session.request_budget import RequestBudget
from kustos.gateway.upstream.addresses import AddressRanges, BrokerPorts
from kustos.gateway.upstream.cluster import UpstreamCluster
from kustos.gateway.upstream.host_names import BrokerHosts
from kustos.gateway.upstream.in_flight import InFlight
from kustos.protocol import ContextAuthorizer, Decider, Row, Serves
from kustos.settings import INT32_MAX, INT64_MAX, Scope, Setting, TakesEffect, whole_number
from kustos.tls import TlsContexts

CLIENT_ID_MAX_CHARACTERS: Final = 255
"""The maximum number of characters of a client id kept with each decision: a client id has up to 32 KB, and
one request may need many decisions. Brokers get it unchanged."""

ConnectLink = Callable[[KafkaPrincipal, str, int], Awaitable[KafkaConnection]]
"""The client's principal, host and port → a connection to that broker. Raises `ClientError`."""


MAX_UNAUTHENTICATED_CONNECTIONS: Final = Setting(
    "kustos.max.unauthenticated.connections",
    whole_number(1, INT32_MAX),
    10_000,
    "Limits",
    "How many connections of all listeners together may wait for their authentication; each worker has an "
    "equal part. One more ends the oldest of the address that has most of them. A listener may have a lower "
    "limit of its own.",
    scope=Scope.LISTENER,
    since="0.2.0",
)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The limits of one connection. Sizes in bytes, times in milliseconds."""

    sasl_server_max_receive_size: int = MAX_RECEIVE_SIZE.field()
    socket_request_max_bytes: int = Setting(
        "socket.request.max.bytes",
        whole_number(1, INT32_MAX, "bytes"),
        104_857_600,
        "Limits",
        "The largest request.",
    ).field()
    connections_max_idle_ms: int = Setting(
        "connections.max.idle.ms",
        whole_number(1, INT64_MAX, "milliseconds"),
        600_000,
        "Limits",
        "How long a connection may send nothing before kustos closes it.",
    ).field()
    max_answer_bytes: int = 1_073_741_824
    login_timeout_ms: int = Setting(
        "kustos.login.timeout.ms",
        whole_number(100, INT32_MAX, "milliseconds"),
        30_000,
        "Limits",
        "How long a client may take from its connection until it has authenticated, the TLS handshake "
        "included. Must be above `connection.failed.authentication.delay.ms`.",
        scope=Scope.LISTENER,
        since="0.2.0",
    ).field()
    max_unauthenticated_connections: int = MAX_UNAUTHENTICATED_CONNECTIONS.field()
    """For all ports of the listener together; the limit of `GatewayLimits` applies as well."""
    max_unauthenticated_connections_per_ip: int = Setting(
        "kustos.max.unauthenticated.connections.per.ip",
        whole_number(1, INT32_MAX),
        2_000,
        "Limits",
        "How many of them may come from one address, or from one /64 of IPv6. One more ends its oldest. "
        "Where thousands of clients share an address and connect at once, allow as many.",
        scope=Scope.LISTENER,
        since="0.2.0",
    ).field()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLimits:
    """The limits of all listeners together."""

    max_connections: int = Setting(
        "max.connections",
        whole_number(1, INT32_MAX),
        INT32_MAX,
        "Limits",
        "The largest number of connections of the node.",
        takes_effect=TakesEffect.RELOAD,
    ).field()
    max_connections_per_ip: int = Setting(
        "max.connections.per.ip",
        whole_number(1, INT32_MAX),
        INT32_MAX,
        "Limits",
        "The largest number of connections from one address.",
        takes_effect=TakesEffect.RELOAD,
    ).field()
    max_unauthenticated_connections: int = MAX_UNAUTHENTICATED_CONNECTIONS.field()
    drain_timeout_ms: int = Setting(
        "kustos.shutdown.drain.timeout.ms",
        whole_number(0, 600_000, "milliseconds"),
        DRAIN_TIMEOUT_MS,
        "Limits",
        "How long a node that stops waits for the answers to requests that it has begun, and for clients to "
        "read them. It begins no others meanwhile. Fetches and joins of groups are not awaited; 0: nothing "
        "is.",
        since="0.2.0",
    ).field()
    failed_logins: FailedLoginLimits = FailedLoginLimits()


class SocketFigures(Protocol):
    """The metrics of one listener that every read and every connection changes."""

    created: int
    """Connections opened so far."""
    open: int
    """Connections that are open now."""
    unauthenticated: int
    """Open connections that have to authenticate, and have not done so."""
    incoming_bytes: int
    outgoing_bytes: int


class ListenerMetrics(Protocol):
    """The metrics of a listener."""

    def listener(self, name: str) -> SocketFigures:
        """Return the metrics of a listener, always the same object."""

    def authenticated(self, mechanism: str, succeeded: bool, is_reauthentication: bool = False) -> None:
        """Count a finished login, of a new connection or of a live session (KIP-368)."""

    def upstream_failed(self) -> None:
        """Count a connection to upstream that failed to open, or broke."""

    def rejected(self) -> None:
        """Count a connection that was closed when it was accepted, because there are too many."""

    def handshake_failed(self, listener: str, kind: str) -> None:
        """Count a connection that ended before its client could log in."""


@unique
class AuthorizationMode(Enum):
    """The effect of the authorizer's decisions on a listener (`kustos.authorization.mode`)."""

    ENFORCE = "enforce"
    SHADOW = "shadow"
    """No effect: every request passes, and denials are only recorded."""
    OFF = "off"
    """No authorizer decides."""


@dataclass(frozen=True, slots=True)
class ListenerTls:
    """TLS of a listener. `principal_of` takes a client's address, and its certificate (DER) if it has one.

    `principal_of` raises `TlsError` if there is no principal. None: logins name the client, certificates do
    not.
    """

    contexts: TlsContexts
    principal_of: Callable[[str, bytes | None], KafkaPrincipal] | None
    handshake_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminParts:
    """The parts of an admin listener: its table, and the APIs that this node answers itself."""

    local: LocalApis
    table: Mapping[int, Row]
    offered: Callable[[], Mapping[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerPlan:
    """One listener of the settings, and the parts that its connections need."""

    name: str
    security_protocol: str
    bind_host: str
    port: int
    brokers: BrokerPorts | BrokerHosts
    """How clients reach each broker: by a port, or by a host name at the same port."""
    connection: ConnectionSettings
    sasl_machine: Callable[[str], SaslServerMachine | None]
    """Creates the machine of a new connection for the client's address; None if the listener has no
    logins."""
    principal_without_login: Callable[[str], KafkaPrincipal] = lambda _: ANONYMOUS
    """Returns the principal of a client at an address without a login; raises `AuthError`."""
    admin: AdminParts | None = None
    """None: the listener forwards to brokers."""
    tls: ListenerTls | None = None
    """None: the listener has no TLS."""
    proxies: AddressRanges | None = None
    """The load balancers that send PROXY protocol headers. None: headers are refused from every peer."""
    mode: AuthorizationMode = AuthorizationMode.ENFORCE


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts:
    """The parts that all listeners share."""

    cluster: UpstreamCluster
    local: LocalApis
    observer: ConnectionObserver
    metrics: ListenerMetrics
    decider: Callable[[KafkaPrincipal, str], Decider]
    offered: Callable[[], Mapping[int, tuple[int, int]]]
    in_flight: InFlight
    answers: AnswerBudget = field(default_factory=AnswerBudget)
    requests: RequestBudget = field(default_factory=RequestBudget)
    limits: GatewayLimits = GatewayLimits()
    connect_as: ConnectLink | None = None
    """Connects to a broker as a client. None: all links log in as the service principal."""
    context_authorizer: ContextAuthorizer | None = None
    """Decides in place of the deciders, unless None."""
    large_turns: LargeTurns = field(default_factory=LargeTurns)
    answer_versions: Callable[[bytes, Serves], bytes | None] = lambda _frame, _serves: None
    """Returns the answer to an ApiVersions request if it is known, on listeners that forward to brokers."""
