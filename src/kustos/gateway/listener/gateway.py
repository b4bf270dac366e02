"""Listeners: a bootstrap port and one port for each upstream broker, bound where the settings say."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, AuthorizerError
from kustos.client import CannotConnectError, ClientError, KafkaConnection
from kustos.gateway.listener.admission import Admission
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.listener.handshakes import BY_LIMITS, OF_CERTIFICATES, UNFINISHED, HandshakeRefusal
from kustos.gateway.listener.login_threads import LoginThreads
from kustos.gateway.listener.plans import (
    CLIENT_ID_MAX_CHARACTERS,
    AuthorizationMode,
    GatewayParts,
    ListenerPlan,
)
from kustos.gateway.listener.proxy_protocol import ProxyProtocol
from kustos.gateway.listener.tls import TlsTransport
from kustos.gateway.session.logins import CERTIFICATE_LOGIN, certificate_login
from kustos.gateway.session.parts import SessionServices
from kustos.gateway.upstream.addresses import BrokerPorts, NoPortForBrokerError
from kustos.gateway.upstream.cluster import Broker, UpstreamUnavailableError
from kustos.gateway.upstream.tokens import IdentityError
from kustos.protocol import TABLE, ContextOf, Decider, OpenDecider, UndecidedDecider
from kustos.runtime import words_of
from kustos.tls import follow_files
from kustos.wire import RequestHeader

LOG: Final = structlog.get_logger("kustos.gateway")

BACKLOG: Final = 512
"""Connections that may wait to be accepted; the kernel drops others, and clients retry."""

IDLE_CHECKS: Final = 4
"""How often within the idle time the connections are checked."""


class Port:
    """A bound port: its broker, and what its connections share."""

    def __init__(self, gateway: "Gateway", plan: ListenerPlan, node_id: int | None) -> None:
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
        self.services: Final = SessionServices(
            cluster=gateway.parts.cluster,
            local=gateway.parts.local if admin is None else admin.local,
            observer=gateway.parts.observer,
            in_flight=gateway.parts.in_flight,
        )
        self.observer: Final = gateway.parts.observer
        self.metrics: Final = gateway.parts.metrics
        self.is_shadow: Final = plan.mode is AuthorizationMode.SHADOW
        self.context_authorizer: Final = (
            None if plan.mode is AuthorizationMode.OFF else gateway.parts.context_authorizer
        )
        self.answers: Final = gateway.parts.answers
        self.large_turns: Final = gateway.parts.large_turns
        self.offered: Final = gateway.parts.offered if admin is None else admin.offered
        self.sasl_machine: Final = plan.sasl_machine
        self.login_threads: Final = gateway.login_threads
        self.principal_without_login: Final = plan.principal_without_login
        self.tls: Final = plan.tls
        self.authenticates: Final = plan.tls is not None or plan.security_protocol.startswith("SASL")
        self.login_failed: Final = gateway.login_failed
        self.is_throttled: Final = gateway.admission.is_throttled
        self.server: asyncio.Server | None = None
        self.lost_upstream = False
        """Whether the last connection to a broker behind this port failed, or broke."""
        self.headers_awaited = 0
        self._turn = 0

    async def bind(self, port: int) -> None:
        """Listen; raise OSError if the port cannot be bound."""
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            self._accepted,
            self.plan.bind_host,
            port,
            backlog=BACKLOG,
            reuse_port=self._gateway.shares_ports,
        )

    def _accepted(self) -> asyncio.Protocol:
        client = ClientConnection(self)
        inner = client if self.tls is None else TlsTransport(client, self, self.tls)
        listed = self.plan.proxies
        return inner if listed is None else ProxyProtocol(self, listed, client, inner)

    def admit(self, connection: ClientConnection, host: str) -> str | None:
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
        if is_of_certificate:
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
        if self.plan.mode is AuthorizationMode.OFF:
            return OpenDecider()
        try:
            return self._gateway.parts.decider(principal, host)
        except AuthorizerError as error:
            if not self.is_shadow:
                raise
            return UndecidedDecider(error)

    def authenticated(self, connection: ClientConnection) -> str | None:
        """Count a login; return why the connection must end nevertheless, None if it need not."""
        return self._gateway.admission.authenticated(self, connection)

    def dismiss(self, connection: ClientConnection) -> None:
        """Count a connection out."""
        self._gateway.dismiss(self, connection)

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
        `ClientError`; `IdentityError` if brokers cannot be told who the client is.
        """
        connect_as = self._gateway.parts.connect_as
        failure: ClientError | None = None
        for broker in self._candidates():
            try:
                if connect_as is None:
                    connection = await self.services.cluster.connect(broker.host, broker.port)
                else:
                    connection = await connect_as(principal, broker.host, broker.port)
            except IdentityError:
                # it is the same at every broker
                raise
            except ClientError as error:
                failure = failure or error
                continue
            self.services.cluster.learn_versions(broker.node_id, connection.versions)
            self.lost_upstream = False
            return connection
        self.lost_upstream = True
        which = "no broker" if self.node_id is None else f"no broker `{self.node_id}`"
        raise failure or CannotConnectError(f"{which} is known upstream")

    def _candidates(self) -> list[Broker]:
        brokers = self.services.cluster.brokers
        if self.node_id is not None:
            return [brokers[self.node_id]] if self.node_id in brokers else []
        known = list(brokers.values())
        if known:
            # clients of the bootstrap port are spread over the brokers, and skip one that is down
            self._turn = (self._turn + 1) % len(known)
        return known[self._turn :] + known[: self._turn]


@dataclass(frozen=True, slots=True)
class _Addresses:
    """A listener's addresses; a new broker gets its port."""

    ports: BrokerPorts
    gateway: "Gateway"

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        address = self.ports.advertised(node_id, host, port)
        self.gateway.saw_broker(Broker(node_id, host, port))
        return address


class Gateway:
    """All listeners of a node. `start` binds them, `stop` ends every connection."""

    shares_ports = False
    """Whether the node's other processes listen on the same ports (SO_REUSEPORT)."""

    def __init__(self, plans: list[ListenerPlan], parts: GatewayParts, refresh_s: float = 30.0) -> None:
        self.parts: Final = parts
        self._plans: Final = plans
        self._open_plans: Final[list[ListenerPlan]] = []
        self._refresh_s: Final = refresh_s
        self._ports: dict[tuple[str, int | None], Port] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission: Final = Admission(parts)
        self.on_failed_login: Callable[[str], object] = lambda _: None
        """Called with the client's address, for the node's other processes."""
        self.login_threads: Final = LoginThreads()
        self.is_open = False
        self._stopped = False

    def addresses_of(self, plan: ListenerPlan) -> _Addresses:
        """Return the addresses that a listener advertises in answers."""
        return _Addresses(plan.ports, self)

    async def start(self, ready: Mapping[str, Awaitable[None]] | None = None) -> None:
        """Find the upstream cluster, and bind each listener as soon as its awaitable in `ready` is done.

        Raise `UpstreamUnavailableError`, `NoPortForBrokerError`, OSError, or what an awaitable in `ready`
        raises.
        """
        waits = ready or {}
        self._spawn(self._end_idle())
        self._spawn(follow_files({plan.name: plan.tls.contexts for plan in self._plans if plan.tls}, LOG))
        opening = [self._opening(plan, waits) for plan in self._plans if plan.admin is not None]
        try:
            # requests about the node itself need not wait for upstream
            await self.parts.cluster.find()
            self.parts.cluster.on_brokers = lambda _: self._spawn(self._bind_brokers())
            self._spawn(self._keep_fresh())
            opening += [self._opening(plan, waits) for plan in self._plans if plan.admin is None]
            await asyncio.gather(*opening)
        finally:
            for each in opening:
                each.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
        self.is_open = True

    def _opening(self, plan: ListenerPlan, ready: Mapping[str, Awaitable[None]]) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._open(plan, ready.get(plan.name)))

    async def _open(self, plan: ListenerPlan, ready: Awaitable[None] | None) -> None:
        if ready is not None:
            await ready
        if plan.admin is None:
            self._open_plans.append(plan)
            await self._bind_brokers()
        port = Port(self, plan, None)
        await port.bind(plan.port)
        self._ports[plan.name, None] = port
        LOG.info("listening", listener=plan.name, protocol=plan.security_protocol, port=plan.port)

    async def _bind_brokers(self) -> None:
        """Bind the missing ports; try all of them, then raise the first error."""
        failure: OSError | NoPortForBrokerError | None = None
        for plan in tuple(self._open_plans):
            for node_id in self.parts.cluster.brokers:
                if (plan.name, node_id) not in self._ports:
                    port = self._ports[plan.name, node_id] = Port(self, plan, node_id)
                    try:
                        await port.bind(plan.ports.port_of(node_id))
                    except (OSError, NoPortForBrokerError) as error:
                        del self._ports[plan.name, node_id]
                        failure = failure or error
        if failure is not None:
            raise failure

    def saw_broker(self, broker: Broker) -> None:
        """Record a broker that an answer named."""
        brokers = self.parts.cluster.brokers
        if brokers.get(broker.node_id) != broker:
            self.parts.cluster.brokers = brokers | {broker.node_id: broker}
            self._spawn(self._bind_brokers())

    async def _keep_fresh(self) -> None:
        """Refresh the brokers again and again; after a failure everything stays as it was."""
        while True:
            await asyncio.sleep(self._refresh_s)
            try:
                await self.parts.cluster.refresh()
                await self._bind_brokers()
            except UpstreamUnavailableError as error:
                LOG.warning("upstream does not answer", reason=str(error))
            except (OSError, NoPortForBrokerError) as error:
                LOG.error("a broker has no port here", reason=words_of(error))
            except Exception:
                # the boundary where a bug of ours must not end the refreshing
                LOG.exception("upstream could not be queried")

    async def _end_idle(self) -> None:
        """Close the connections that were idle for `connections.max.idle.ms`."""
        if not self._plans:
            return
        limit_s = min(plan.connection.connections_max_idle_ms for plan in self._plans) / 1000
        while True:
            await asyncio.sleep(limit_s / IDLE_CHECKS)
            now = asyncio.get_running_loop().time()
            for connection in self.admission.connections:
                if now - connection.last_active_s > limit_s:
                    connection.close("idle for longer than `connections.max.idle.ms`")

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            LOG.error("a background task of the gateway failed", reason=str(task.exception()))

    def admit(self, port: Port, connection: ClientConnection, host: str) -> str | None:
        """Count a new connection in; return why it is turned away, None if it is not."""
        refusal = self.admission.admit(port, connection, host)
        return "the gateway stops" if self._stopped else refusal

    def dismiss(self, port: Port, connection: ClientConnection) -> None:
        """Count a connection out; one that was never counted in is ignored."""
        self.admission.dismiss(port, connection)

    def login_failed(self, host: str) -> None:
        """Count a failed login against the network of its client, in all processes of the node."""
        self.admission.login_failed(host)
        self.on_failed_login(host)

    async def stop(self) -> None:
        """Take no more connections and end the open ones."""
        self.close()

    def close(self) -> None:
        """End everything at once; twice is harmless."""
        self.is_open = False
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        for port in self._ports.values():
            if port.server is not None:
                port.server.close()
        for connection in self.admission.connections:
            connection.close("the gateway stops")
        self.login_threads.close()
        self.parts.cluster.close()
