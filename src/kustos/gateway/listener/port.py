"""A port of a listener: the bootstrap port, the port of a broker, or a host name on a shared port."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.gateway.listener.admission import Admission, AdmittedConnection
from kustos.gateway.listener.handshakes import (
    BY_LIMITS,
    OF_CERTIFICATES,
    REFUSED_CERTIFICATES,
    UNFINISHED,
    HandshakeFailure,
    HandshakeRefusal,
)
from kustos.gateway.listener.login_threads import LoginThreads
from kustos.gateway.listener.plans import (
    CLIENT_ID_MAX_CHARACTERS,
    AuthorizationMode,
    ConnectionSettings,
    GatewayParts,
    ListenerPlan,
    ListenerTls,
    SocketFigures,
)
from kustos.gateway.listener.routes import BrokerRoute
from kustos.gateway.session.client_session import SessionServices
from kustos.gateway.session.logins import CERTIFICATE_LOGIN, certificate_login
from kustos.gateway.upstream.addresses import java_host_of
from kustos.gateway.upstream.cluster import UpstreamCluster, Versions
from kustos.gateway.upstream.host_names import BrokerHosts, UnknownHostError
from kustos.protocol import (
    TABLE,
    Addresses,
    ContextOf,
    Decider,
    Guard,
    OpenDecider,
    Opened,
    Serves,
    UndecidedDecider,
    Unwrap,
    serves_any,
)
from kustos.runtime import naming_the_setting
from kustos.wire import RequestHeader

BACKLOG: Final = 512
"""Connections that may wait to be accepted; the kernel drops others, and clients retry."""


def listening_socket(
    host: str, port: int, *, backlog: int | None = None, reuse_port: bool = False
) -> socket.socket:
    """Return a bound socket that listens; `::` accepts IPv4, too, as in Java. Raise OSError."""
    return socket.create_server(
        (host, port),
        family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        backlog=backlog,
        reuse_port=reuse_port,
        dualstack_ipv6=host == "::",
    )


def _serves(cluster: UpstreamCluster, node_id: int | None, their_cluster: str, their_node: int) -> bool:
    """Return whether the port of this broker is right for a client that means that node of that cluster."""
    return their_cluster == cluster.cluster_id and their_node == node_id


class PortOwner(Protocol):
    """The gateway, as its ports and connections see it."""

    shares_ports: bool
    """Whether the node's other processes listen on the same ports (SO_REUSEPORT)."""

    @property
    def parts(self) -> GatewayParts:
        """The parts that all listeners share."""

    @property
    def admission(self) -> Admission:
        """The connections of this process."""

    @property
    def login_threads(self) -> LoginThreads:
        """The threads that verify logins."""

    def addresses_of(self, plan: ListenerPlan) -> Addresses:
        """Return the addresses that a listener advertises in answers."""

    def port_of_broker(self, plan: ListenerPlan, node_id: int) -> "Port | HandshakeRefusal":
        """Return a broker's port on a listener with host names, or the refusal if there is no such broker."""

    def admit(self, port: "Port", connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return the reason to reject it, None if it is admitted."""

    def dismiss(self, port: "Port", connection: AdmittedConnection) -> None:
        """Count a connection out."""

    def lost(self, connection: AdmittedConnection) -> None:
        """Record that the socket of a connection is closed."""

    def login_failed(self, host: str) -> None:
        """Count a failed login against the network of its client."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Port:
    """One port of a listener, and the values that its connections share; created by `of`.

    `node_id` is the broker of the port, None for the bootstrap port. `route` and `headers_awaited` are the
    only state: they change as connections open and close.
    """

    gateway: PortOwner
    plan: ListenerPlan
    node_id: int | None
    addresses: Addresses
    services: SessionServices
    serves: Serves
    figures: SocketFigures
    route: BrokerRoute
    headers_awaited: set[asyncio.BaseProtocol] = field(default_factory=set)
    """The connections that wait for their PROXY protocol header."""

    @classmethod
    def of(cls, gateway: PortOwner, plan: ListenerPlan, node_id: int | None) -> "Port":
        """Return the port of a listener for this broker."""
        parts, admin = gateway.parts, plan.admin
        serves: Serves = partial(_serves, parts.cluster, node_id)
        services = SessionServices(
            cluster=parts.cluster,
            local=parts.local,
            observer=parts.observer,
            in_flight=parts.in_flight,
            answer_versions=lambda frame: parts.answer_versions(frame, serves),
        )
        if admin is not None:
            services = replace(services, local=admin.local, answer_versions=lambda _: None)
            serves = serves_any
        return cls(
            gateway=gateway,
            plan=plan,
            node_id=node_id,
            addresses=gateway.addresses_of(plan),
            services=services,
            serves=serves,
            figures=parts.metrics.listener(plan.name),
            route=BrokerRoute(parts, node_id, plan.connection.max_answer_bytes),
        )

    @property
    def name(self) -> str:
        """The name of the listener."""
        return self.plan.name

    @property
    def security_protocol(self) -> str:
        """The security protocol of the listener, as in Kafka's settings."""
        return self.plan.security_protocol

    @property
    def settings(self) -> ConnectionSettings:
        """The limits of a connection."""
        return self.plan.connection

    @property
    def tls(self) -> ListenerTls | None:
        """The TLS of the listener, None if it has none."""
        return self.plan.tls

    @property
    def parts(self) -> GatewayParts:
        """The parts that all listeners share."""
        return self.gateway.parts

    @property
    def authenticates(self) -> bool:
        """Whether clients have to authenticate."""
        return self.plan.tls is not None or self.plan.security_protocol.startswith("SASL")

    @property
    def hosts(self) -> BrokerHosts | None:
        """The host names by which clients choose a broker, None if each broker has a port."""
        return self.plan.brokers if isinstance(self.plan.brokers, BrokerHosts) else None

    def port_of_host(self, hosts: BrokerHosts, server_name: str | None) -> "Port | HandshakeRefusal":
        """Return the port that a client chose by the name of a host, or the refusal of the name."""
        try:
            node_id = hosts.broker_of(server_name)
        except UnknownHostError as error:
            return HandshakeRefusal(HandshakeFailure.UNKNOWN_HOST, str(error))
        if node_id is None:
            return self
        return self.gateway.port_of_broker(self.plan, node_id)

    async def bind(self, number: int, accepted: Callable[[], asyncio.BaseProtocol]) -> asyncio.Server:
        """Listen on a port number; `accepted` creates the protocol of each socket.

        Raise OSError with the name of the setting.
        """
        loop, host, shares = asyncio.get_running_loop(), self.plan.bind_host, self.gateway.shares_ports
        key = "listeners" if self.node_id is None else "kustos.broker.port.start"
        with naming_the_setting(host, number, key):
            if ":" in host:
                # asyncio would bind `::` to IPv6 alone
                bound = listening_socket(host, number, backlog=BACKLOG, reuse_port=shares)
                return await loop.create_server(accepted, sock=bound, backlog=BACKLOG)
            return await loop.create_server(accepted, host, number, backlog=BACKLOG, reuse_port=shares)

    def refuse(self, refusal: HandshakeRefusal, host: str) -> bool:
        """Count a connection that ended before its client could log in; return whether the log reports it.

        The log reports only some refusals on ports with TLS and by limits, because there may be many of them.
        """
        has_line = self.tls is not None or refusal.kind in BY_LIMITS
        handshakes = self.gateway.admission.failed_handshakes
        handshakes.count(refusal, self.name)
        if has_line:
            handshakes.log(refusal, self.name, host)
        is_of_certificate = refusal.kind in OF_CERTIFICATES
        is_of_login = self.security_protocol.startswith("SASL") and refusal.kind not in UNFINISHED
        if refusal.kind in REFUSED_CERTIFICATES:
            self.gateway.login_failed(host)
        if is_of_certificate or is_of_login:
            login = certificate_login(self.name, self.security_protocol, host, refusal)
            self.parts.metrics.authenticated(CERTIFICATE_LOGIN if is_of_certificate else "", False)
            self.parts.observer.login_ended(login)
        return has_line

    def refuse_header(self, refusal: HandshakeRefusal, host: str) -> None:
        """Count and report a connection of a load balancer without a valid PROXY protocol header."""
        handshakes = self.gateway.admission.failed_handshakes
        handshakes.count(refusal, self.name)
        handshakes.log(refusal, self.name, host)

    def certificate_login(self, host: str, principal: KafkaPrincipal) -> bool:
        """Record the login by a certificate; return whether it may take effect."""
        login = certificate_login(self.name, self.security_protocol, host, principal)
        is_recorded = self.parts.observer.login_ended(login)
        self.parts.metrics.authenticated(CERTIFICATE_LOGIN, is_recorded)
        return is_recorded

    def offered(self) -> Versions:
        """Return the versions of each API that clients are offered now."""
        admin = self.plan.admin
        return self.parts.offered() if admin is None else admin.offered()

    def decider(self, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection; raise `AuthorizerError` if it cannot be created."""
        if self.plan.mode is AuthorizationMode.OFF:
            return OpenDecider()
        try:
            return self.parts.decider(principal, host)
        except AuthorizerError as error:
            if self.plan.mode is not AuthorizationMode.SHADOW:
                raise
            return UndecidedDecider(error)

    def guard(self, decider: Decider, context_of: ContextOf, offered: Versions) -> Guard:
        """Return the guard of one connection, which was offered these versions."""
        admin, mode = self.plan.admin, self.plan.mode
        return Guard(
            decider,
            context_of,
            self.addresses,
            offered,
            self.parts.cluster.auto_creates_topics,
            context_authorizer=None if mode is AuthorizationMode.OFF else self.parts.context_authorizer,
            table=TABLE if admin is None else admin.table,
            is_shadow=mode is AuthorizationMode.SHADOW,
            serves=self.serves,
            refusal=self.parts.observer.refusal,
        )

    def open_forwarded(self, envelope: Unwrap, forwarded_by: KafkaPrincipal, offered: Versions) -> Opened:
        """Open the request of an Envelope, to be authorized for its principal; raise `RefuseRequestError`."""
        host = java_host_of(envelope.address)
        try:
            decider: Decider = self.decider(envelope.principal, host)
        except AuthorizerError as error:
            # for example `User:*`: no client can have this principal, so the answer refuses each of its items
            decider = UndecidedDecider(error)
        context_of = self.context_of(envelope.principal, host, forwarded_by)
        return self.guard(decider, context_of, offered).open_forwarded(envelope.frame)

    def context_of(
        self, principal: KafkaPrincipal, host: str, forwarded_by: KafkaPrincipal | None = None
    ) -> ContextOf:
        """Return the factory of the contexts of a connection's requests for the authorizer."""
        name, security_protocol = self.name, self.security_protocol

        def context_of(header: RequestHeader) -> AuthorizableRequestContext:
            return AuthorizableRequestContext(
                principal,
                host,
                name,
                security_protocol,
                None if header.client_id is None else header.client_id[:CLIENT_ID_MAX_CHARACTERS],
                header.api_key,
                header.api_version,
                header.correlation_id,
                forwarded_by,
            )

        return context_of
