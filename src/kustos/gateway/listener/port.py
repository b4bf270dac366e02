"""A way in to the cluster: a bound port, or one of the host names that share a port."""

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.client import CannotConnectError, ClientError, KafkaConnection
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
    AdminParts,
    AuthorizationMode,
    GatewayParts,
    ListenerPlan,
)
from kustos.gateway.session.client_session import SessionServices
from kustos.gateway.session.logins import CERTIFICATE_LOGIN, certificate_login
from kustos.gateway.upstream.addresses import java_host_of
from kustos.gateway.upstream.cluster import Broker, Versions
from kustos.gateway.upstream.host_names import BrokerHosts, UnknownHostError
from kustos.gateway.upstream.tokens import IdentityError
from kustos.protocol import (
    TABLE,
    Addresses,
    ContextOf,
    Decider,
    Guard,
    OpenDecider,
    Opened,
    UndecidedDecider,
    Unwrap,
)
from kustos.runtime import naming_the_setting
from kustos.wire import RequestHeader

BACKLOG: Final = 512
"""Connections that may wait to be accepted; the kernel drops others, and clients retry."""


def listening_socket(
    host: str, port: int, *, backlog: int | None = None, reuse_port: bool = False
) -> socket.socket:
    """Return a bound socket that listens; `::` takes IPv4, too, as in Java. Raise OSError."""
    return socket.create_server(
        (host, port),
        family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        backlog=backlog,
        reuse_port=reuse_port,
        dualstack_ipv6=host == "::",
    )


class PortOwner(Protocol):
    """The gateway, as its ports see it."""

    shares_ports: bool
    """Whether the node's other processes listen on the same ports (SO_REUSEPORT)."""

    @property
    def parts(self) -> GatewayParts:
        """What all listeners share."""

    @property
    def admission(self) -> Admission:
        """The connections of this process."""

    @property
    def login_threads(self) -> LoginThreads:
        """The threads that verify logins."""

    def addresses_of(self, plan: ListenerPlan) -> Addresses:
        """Return the addresses that a listener advertises in answers."""

    def way_to(self, plan: ListenerPlan, node_id: int) -> "Port | HandshakeRefusal":
        """Return the port of a broker of a listener with host names, or why there is none."""

    def admit(self, port: "Port", connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return why it is turned away, None if it is not."""

    def dismiss(self, port: "Port", connection: AdmittedConnection) -> None:
        """Count a connection out."""

    def lost(self, connection: AdmittedConnection) -> None:
        """Note that the socket of a connection is gone."""

    def login_failed(self, host: str) -> None:
        """Count a failed login against the network of its client."""


class Port:
    """A bound port, or a host name that shares one: its broker, and what its connections share."""

    def __init__(self, gateway: PortOwner, plan: ListenerPlan, node_id: int | None) -> None:
        self._gateway: Final = gateway
        self.plan: Final = plan
        self.node_id: Final = node_id
        self.name: Final = plan.name
        self.security_protocol: Final = plan.security_protocol
        self.settings: Final = plan.connection
        self.ports: Final = gateway.addresses_of(plan)
        admin = plan.admin
        self.leads_upstream: Final = admin is None
        self.table: Final = TABLE if admin is None else admin.table
        self.services: Final = _services(gateway.parts, admin)
        self.observer: Final = gateway.parts.observer
        self.metrics: Final = gateway.parts.metrics
        self.figures: Final = gateway.parts.metrics.listener(plan.name)
        self.is_shadow: Final = plan.mode is AuthorizationMode.SHADOW
        self._decides: Final = plan.mode is not AuthorizationMode.OFF
        self.context_authorizer: Final = gateway.parts.context_authorizer if self._decides else None
        self.answers: Final = gateway.parts.answers
        self.requests: Final = gateway.parts.requests
        self.large_turns: Final = gateway.parts.large_turns
        self.offered: Final = gateway.parts.offered if admin is None else admin.offered
        self.sasl_machine: Final = plan.sasl_machine
        self.login_threads: Final = gateway.login_threads
        self.principal_without_login: Final = plan.principal_without_login
        self.tls: Final = plan.tls
        self.authenticates: Final = plan.tls is not None or plan.security_protocol.startswith("SASL")
        self.login_failed: Final = gateway.login_failed
        self.is_throttled: Final = gateway.admission.is_throttled
        self.handshake_turns: Final = gateway.admission.handshake_turns
        self.server: asyncio.Server | None = None
        self.lost_upstream = False
        """Whether the last connection to a broker behind this port failed, or broke."""
        self.headers_awaited = 0
        self._turn = 0

    @property
    def hosts(self) -> BrokerHosts | None:
        """The host names that choose among the listener's ways in, None where each has a port."""
        return self.plan.brokers if isinstance(self.plan.brokers, BrokerHosts) else None

    def way_to_host(self, hosts: BrokerHosts, server_name: str | None) -> "Port | HandshakeRefusal":
        """Return the way in that a client chose by the name of a host, or why it gets none."""
        try:
            node_id = hosts.broker_of(server_name)
        except UnknownHostError as error:
            return HandshakeRefusal(HandshakeFailure.UNKNOWN_HOST, str(error))
        if node_id is None:
            return self
        return self._gateway.way_to(self.plan, node_id)

    async def bind(self, port: int, accepted: Callable[[], asyncio.BaseProtocol]) -> None:
        """Listen; `accepted` makes the protocol of each socket. Raise OSError naming the setting."""
        loop, host, shares = asyncio.get_running_loop(), self.plan.bind_host, self._gateway.shares_ports
        key = "listeners" if self.node_id is None else "kustos.broker.port.start"
        with naming_the_setting(host, port, key):
            if ":" in host:
                # asyncio would bind `::` to IPv6 alone
                bound = listening_socket(host, port, backlog=BACKLOG, reuse_port=shares)
                self.server = await loop.create_server(accepted, sock=bound, backlog=BACKLOG)
                return
            self.server = await loop.create_server(accepted, host, port, backlog=BACKLOG, reuse_port=shares)

    def admit(self, connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return why it is turned away, None if it is not."""
        return self._gateway.admit(self, connection, host)

    def refuse(self, refusal: HandshakeRefusal, host: str) -> bool:
        """Count a connection that ended before anybody could log in; return whether its line is in the log.

        Where there may be many of them, on ports with TLS and by limits, the log reports some.
        """
        has_line = self.tls is not None or refusal.kind in BY_LIMITS
        handshakes = self._gateway.admission.failed_handshakes
        handshakes.count(refusal, self.name)
        if has_line:
            handshakes.log(refusal, self.name, host)
        is_of_certificate = refusal.kind in OF_CERTIFICATES
        is_of_login = self.security_protocol.startswith("SASL") and refusal.kind not in UNFINISHED
        if refusal.kind in REFUSED_CERTIFICATES:
            self.login_failed(host)
        if is_of_certificate or is_of_login:
            self.metrics.authenticated(CERTIFICATE_LOGIN if is_of_certificate else "", False)
            self.observer.login_ended(certificate_login(self.name, self.security_protocol, host, refusal))
        return has_line

    def refuse_header(self, refusal: HandshakeRefusal, host: str) -> None:
        """Count and report a balancer whose connection did not get as far as a client."""
        handshakes = self._gateway.admission.failed_handshakes
        handshakes.count(refusal, self.name)
        handshakes.log(refusal, self.name, host)

    def turn_away(self, reason: str, host: str) -> None:
        """Count a connection that is closed on arrival."""
        self._gateway.admission.note_refusal(reason, host)

    def certificate_login(self, host: str, principal: KafkaPrincipal) -> bool:
        """Record the login by a certificate; return whether it may take effect."""
        login = certificate_login(self.name, self.security_protocol, host, principal)
        is_recorded = self.observer.login_ended(login)
        self.metrics.authenticated(CERTIFICATE_LOGIN, is_recorded)
        return is_recorded

    def decider(self, principal: KafkaPrincipal, host: str) -> Decider:
        """Return the decider of one connection; raise `AuthorizerError` if it cannot be decided about."""
        if not self._decides:
            return OpenDecider()
        try:
            return self._gateway.parts.decider(principal, host)
        except AuthorizerError as error:
            if not self.is_shadow:
                raise
            return UndecidedDecider(error)

    def guard(self, decider: Decider, context_of: ContextOf, offered: Versions) -> Guard:
        """Return the guard of one connection, which was offered these versions."""
        return Guard(
            decider,
            context_of,
            self.ports,
            offered,
            self.services.cluster.auto_creates_topics,
            context_authorizer=self.context_authorizer,
            table=self.table,
            is_shadow=self.is_shadow,
            refusal=self.observer.refusal,
        )

    def open_forwarded(self, envelope: Unwrap, forwarded_by: KafkaPrincipal, offered: Versions) -> Opened:
        """Open the request of an Envelope, to be decided for its principal; raise `RefuseRequestError`."""
        host = java_host_of(envelope.address)
        try:
            decider: Decider = self.decider(envelope.principal, host)
        except AuthorizerError as error:
            # such as `User:*`: nobody can be it, so the answer refuses each of its items
            decider = UndecidedDecider(error)
        context_of = self.context_of(envelope.principal, host, forwarded_by)
        return self.guard(decider, context_of, offered).open_forwarded(envelope.frame)

    def authenticated(self, connection: AdmittedConnection) -> str | None:
        """Count a login; return why the connection must end nevertheless, None if it need not."""
        return self._gateway.admission.authenticated(self, connection)

    def excuse(self, connection: AdmittedConnection) -> None:
        """Take the deadline from a client that waits for its refusal."""
        self._gateway.admission.excuse(self, connection)

    def dismiss(self, connection: AdmittedConnection) -> None:
        """Count a connection out."""
        self._gateway.dismiss(self, connection)

    def lost(self, connection: AdmittedConnection) -> None:
        """Note that the socket of a connection is gone."""
        self._gateway.lost(connection)

    def context_of(
        self, principal: KafkaPrincipal, host: str, forwarded_by: KafkaPrincipal | None = None
    ) -> ContextOf:
        """Return what makes the contexts of a connection's requests for the authorizer."""

        def context_of(header: RequestHeader) -> AuthorizableRequestContext:
            return AuthorizableRequestContext(
                principal,
                host,
                self.name,
                self.security_protocol,
                None if header.client_id is None else header.client_id[:CLIENT_ID_MAX_CHARACTERS],
                header.api_key,
                header.api_version,
                header.correlation_id,
                forwarded_by,
            )

        return context_of

    async def connect_upstream(self, principal: KafkaPrincipal) -> KafkaConnection:
        """Return a new connection to the broker behind this port, or to any behind the bootstrap port.

        It is for a client with this principal. The broker's versions are known afterwards. Raise
        `ClientError`; `IdentityError` if brokers cannot see who the client is.
        """
        cluster = self.services.cluster
        seen, failures = cluster.brokers, dict[Broker, ClientError]()
        connection = await self._connect_to_any(principal, failures)
        if connection is None and await cluster.relearn(seen):
            connection = await self._connect_to_any(principal, failures)
        self.lost_upstream = connection is None
        if connection is not None:
            return connection
        which = "no broker" if self.node_id is None else f"no broker `{self.node_id}`"
        raise next(iter(failures.values()), CannotConnectError(f"{which} is known upstream"))

    async def _connect_to_any(
        self, principal: KafkaPrincipal, failures: dict[Broker, ClientError]
    ) -> KafkaConnection | None:
        """Return a connection to the first candidate that is reached, None if all of them have failed."""
        cluster, connect_as = self.services.cluster, self._gateway.parts.connect_as
        for broker in self._candidates():
            if broker in failures:
                continue
            try:
                if connect_as is None:
                    connection = await cluster.connect(broker.host, broker.port)
                else:
                    connection = await connect_as(principal, broker.host, broker.port)
            except IdentityError:
                # it is the same at every broker
                raise
            except ClientError as error:
                if isinstance(error, CannotConnectError):
                    cluster.note(broker, reached=False)
                failures[broker] = error
                continue
            cluster.note(broker, reached=True)
            cluster.learn_versions(broker.node_id, connection.versions)
            return connection
        return None

    def _candidates(self) -> list[Broker]:
        brokers = self.services.cluster.brokers
        if self.node_id is not None:
            return [brokers[self.node_id]] if self.node_id in brokers else []
        known = list(brokers.values())
        if known:
            # clients of the bootstrap port are spread over the brokers, and skip one that is down
            self._turn = (self._turn + 1) % len(known)
        return known[self._turn :] + known[: self._turn]


def _services(parts: GatewayParts, admin: AdminParts | None) -> SessionServices:
    services = SessionServices(
        cluster=parts.cluster,
        local=parts.local,
        observer=parts.observer,
        in_flight=parts.in_flight,
        answer_versions=parts.answer_versions,
    )
    return services if admin is None else replace(services, local=admin.local, answer_versions=lambda _: None)
