"""The listeners of a node: each has a bootstrap port, and a port for each upstream broker."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import Final

import structlog

from kustos.client import one_shot, supervised
from kustos.gateway.listener.admission import Admission, AdmittedConnection
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.listener.drain import ConnectionDrain, end_each
from kustos.gateway.listener.handshakes import (
    HandshakeFailure,
    HandshakeRefusal,
)
from kustos.gateway.listener.login_threads import LoginThreads
from kustos.gateway.listener.plans import (
    GatewayParts,
    ListenerPlan,
)
from kustos.gateway.listener.port import Port
from kustos.gateway.listener.proxy_protocol import ProxyProtocol
from kustos.gateway.listener.tls import TlsTransport
from kustos.gateway.session.client_session import STOPS
from kustos.gateway.upstream.addresses import BrokerPorts, NoPortForBrokerError
from kustos.gateway.upstream.cluster import (
    RETRIES_PER_LINE,
    RETRY_S,
    Broker,
    UpstreamUnavailableError,
)
from kustos.gateway.upstream.host_names import BrokerHosts
from kustos.protocol import NamedBroker
from kustos.runtime import words_of
from kustos.tls import follow_files

LOG: Final = structlog.get_logger("kustos.gateway")

IDLE_CHECKS: Final = 4
"""The number of checks of the connections within the idle time."""


def protocol_of(port: Port) -> asyncio.BaseProtocol:
    """Return the protocol of an accepted socket."""
    if port.plan.proxies is None:
        return _client_at(port, None)
    return ProxyProtocol(port, port.plan.proxies, partial(_client_at, port))


def _client_at(port: Port, peer: tuple[str, int] | None) -> asyncio.BufferedProtocol:
    """Return the protocol of a client, behind TLS if its port has it; see `ClientConnection` for `peer`."""
    client = ClientConnection(port, peer)
    return client if port.tls is None else TlsTransport(client, port, port.tls)


@dataclass(frozen=True, slots=True)
class _Addresses:
    """A listener's addresses, and the brokers of all listeners."""

    brokers: BrokerPorts | BrokerHosts
    gateway: "Gateway"

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        return self.brokers.advertised(node_id, host, port)

    @property
    def known(self) -> object:
        return self.gateway.parts.cluster.brokers

    def learn(self, brokers: Iterable[NamedBroker]) -> None:
        self.gateway.learn_brokers(brokers)


class Gateway:
    """All listeners of a node. `start` binds them, `stop` ends every connection."""

    shares_ports = False
    """Whether the node's other processes listen on the same ports (SO_REUSEPORT)."""

    def __init__(
        self,
        plans: list[ListenerPlan],
        parts: GatewayParts,
        refresh_s: float = 30.0,
    ) -> None:
        self.parts: Final = parts
        self._plans: Final = plans
        self._open_plans: Final[list[ListenerPlan]] = []
        self._refresh_s: Final = refresh_s
        self._ports: dict[tuple[str, int | None], Port] = {}
        self._servers: Final[list[asyncio.Server]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission: Final = Admission(parts)
        self.login_threads: Final = LoginThreads()
        self.is_open = False
        self._stopped = False
        self._drain: Final = ConnectionDrain()

    def addresses_of(self, plan: ListenerPlan) -> _Addresses:
        """Return the addresses that a listener advertises in answers."""
        return _Addresses(plan.brokers, self)

    async def start(self, ready: Mapping[str, Awaitable[None]] | None = None) -> None:
        """Find the upstream cluster, and bind each listener as soon as its awaitable in `ready` is done.

        Raise `UpstreamUnavailableError`, `NoPortForBrokerError`, OSError, or the errors of an awaitable in
        `ready`.
        """
        waits = ready or {}
        contexts = {plan.name: plan.tls.contexts for plan in self._plans if plan.tls}
        self._supervise("idle-connections", self._end_idle)
        self._supervise("tls-files", partial(follow_files, contexts, LOG))
        opening = [self._opening(plan, waits) for plan in self._plans if plan.admin is not None]
        try:
            # requests about the node itself need not wait for upstream
            await self.parts.cluster.find()
            self.parts.cluster.watch(lambda _: self._spawn("broker-ports", self._bind_new_brokers()))
            self._supervise("broker-refresh", self._keep_fresh)
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
        port = Port.of(self, plan, None)
        self._servers.append(await port.bind(plan.port, partial(protocol_of, port)))
        self._ports[plan.name, None] = port
        LOG.info("listening", listener=plan.name, protocol=plan.security_protocol, port=plan.port)

    async def _bind_brokers(self) -> None:
        """Create the missing ports of brokers; try to bind all, then raise the first error."""
        failure: OSError | NoPortForBrokerError | None = None
        for plan in tuple(self._open_plans):
            for node_id in self.parts.cluster.brokers:
                if (plan.name, node_id) not in self._ports:
                    port = self._ports[plan.name, node_id] = Port.of(self, plan, node_id)
                    if isinstance(plan.brokers, BrokerHosts):
                        continue
                    try:
                        number = plan.brokers.port_of(node_id)
                        self._servers.append(await port.bind(number, partial(protocol_of, port)))
                    except (OSError, NoPortForBrokerError) as error:
                        del self._ports[plan.name, node_id]
                        failure = failure or error
        if failure is not None:
            raise failure

    async def _bind_new_brokers(self) -> None:
        """Create the missing ports of brokers; if one cannot be bound, the others still serve."""
        try:
            await self._bind_brokers()
        except (OSError, NoPortForBrokerError) as error:
            LOG.error("a broker has no port here", reason=words_of(error))

    def learn_brokers(self, named: Iterable[NamedBroker]) -> None:
        """Record brokers that an answer of upstream listed; a new one gets its port."""
        known = self.parts.cluster.brokers
        new = {each.node_id: each for each in starmap(Broker, named) if known.get(each.node_id) != each}
        if new:
            # do not change it in place: readers of `_Addresses.known` detect a change by its identity
            self.parts.cluster.brokers = known | new
            self._spawn("broker-ports", self._bind_new_brokers())

    def port_of_broker(self, plan: ListenerPlan, node_id: int) -> Port | HandshakeRefusal:
        """Return a broker's port on a listener with host names, or the refusal if there is no such broker.

        Another process of the node may know a new broker already, so this process queries upstream for it.
        """
        port = self._ports.get((plan.name, node_id))
        if port is not None:
            return port
        self.parts.cluster.begin_learning()
        reason = f"a client names the host of broker `{node_id}`, which upstream does not have"
        return HandshakeRefusal(HandshakeFailure.UNKNOWN_BROKER, reason)

    async def _keep_fresh(self) -> None:
        """Refresh the brokers periodically, and soon after the gateway's own connection to upstream was lost.

        After a failure everything stays unchanged, and the next attempt follows soon.
        """
        failures = 0
        while True:
            await asyncio.sleep(min(RETRY_S, self._refresh_s))
            if not failures:
                await self.parts.cluster.until_lost(self._refresh_s - RETRY_S)
            try:
                await self.parts.cluster.refresh()
                failures = 0
                await self._bind_new_brokers()
            except UpstreamUnavailableError as error:
                if failures % RETRIES_PER_LINE == 0:
                    LOG.warning("upstream does not answer", reason=str(error))
                failures += 1

    async def _end_idle(self) -> None:
        """Close the connections that were idle for `connections.max.idle.ms`."""
        if not self._plans:
            return
        limit_s = min(plan.connection.connections_max_idle_ms for plan in self._plans) / 1000
        while True:
            await asyncio.sleep(limit_s / IDLE_CHECKS)
            idle_since_s = asyncio.get_running_loop().time() - limit_s
            idle = [each for each in self.admission.connections if each.last_active_s < idle_since_s]
            end_each(idle, lambda each: each.close("idle for longer than `connections.max.idle.ms`"))

    def _supervise(self, name: str, body: Callable[[], Awaitable[None]]) -> None:
        if not self._stopped:
            self._keep(supervised(name, body))

    def _spawn(self, name: str, work: Coroutine[None, None, None]) -> None:
        if self._stopped:
            work.close()
        else:
            self._keep(one_shot(name, work))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def admit(self, port: Port, connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return the reason to reject it, None if it is admitted."""
        refusal = self.admission.admit(port, connection, host)
        return STOPS if self._stopped else refusal

    def dismiss(self, port: Port, connection: AdmittedConnection) -> None:
        """Count a connection out; one that was never counted in is ignored."""
        self.admission.dismiss(port, connection)

    def lost(self, connection: AdmittedConnection) -> None:
        """Record that the socket of a connection is closed."""
        self._drain.lost(connection)

    def login_failed(self, host: str) -> None:
        """Count a failed login against the network of its client."""
        self.admission.login_failed(host)

    async def stop(self) -> None:
        """Take no more connections, wait a limited time for answers on open ones, and end them."""
        await self.drain()
        self.close()

    async def drain(self) -> None:
        """Take no more connections or requests, and end each connection after its answers.

        Return after `drain_timeout_ms` at the latest, or when `close` is called; a second call returns at
        once.
        """
        if self._stopped:
            return
        self._end_intake()
        left = await self._drain.run(self.admission.connections, self.parts.limits.drain_timeout_ms)
        if left:
            LOG.warning("connections end without their answers", connections=left)

    def _end_intake(self) -> None:
        self.is_open = False
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        for server in self._servers:
            server.close()

    def close(self) -> None:
        """End everything immediately; a second call has no effect."""
        self._end_intake()
        self._drain.end()
        end_each(self.admission.connections, lambda each: each.close(STOPS))
        self.login_threads.close()
        self.parts.cluster.close()
