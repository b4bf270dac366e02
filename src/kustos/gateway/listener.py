"""Listeners: a bootstrap port and one port for each upstream broker, bound where the settings say."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from kustos.acl import KafkaPrincipal
from kustos.auth.sasl_server import SaslServerMachine
from kustos.client.connection import KafkaConnection
from kustos.client.errors import CannotConnectError, ClientError
from kustos.gateway.addresses import BrokerPorts, NoPortForBrokerError
from kustos.gateway.client import ClientConnection, ConnectionSettings
from kustos.gateway.cluster import Broker, UpstreamCluster, UpstreamUnavailableError
from kustos.gateway.session_parts import LocalApis, Observer
from kustos.protocol import TABLE, Asker, Decider
from kustos.protocol.steps import Row

LOG: Final = structlog.get_logger("kustos.gateway")

BACKLOG: Final = 512
"""Connections that may wait to be accepted; the kernel drops more, and clients try again."""

IDLE_CHECKS: Final = 4
"""How often within the idle time the connections are looked over."""


class ListenerMetrics(Protocol):
    """What a listener counts."""

    def authenticated(self, mechanism: str, succeeded: bool) -> None:
        """A login ended."""

    def connections_changed(self, listener: str, change: int) -> None:
        """A connection was opened (1) or closed (-1)."""

    def received(self, listener: str, size_bytes: int) -> None:
        """Bytes came from a client."""

    def sent(self, listener: str, size_bytes: int) -> None:
        """Bytes went to a client."""

    def upstream_failed(self) -> None:
        """A connection to upstream could not be made, or broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminParts:
    """What sets the admin listener apart: its own table, and answers from this node alone."""

    local: LocalApis
    table: Mapping[int, Row]
    offered: Callable[[], Mapping[int, tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerPlan:
    """One listener of the settings, and what its connections need."""

    name: str
    security_protocol: str
    bind_host: str
    port: int
    ports: BrokerPorts
    connection: ConnectionSettings
    sasl_machine: Callable[[], SaslServerMachine | None]
    """Makes the machine of a new connection; None where nobody need say who they are."""
    admin: AdminParts | None = None
    """None: the listener leads upstream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayParts:
    """What all listeners share."""

    cluster: UpstreamCluster
    local: LocalApis
    observer: Observer
    metrics: ListenerMetrics
    decider: Callable[[KafkaPrincipal, str], Decider]
    offered: Callable[[], Mapping[int, tuple[int, int]]]
    max_connections: int = 10_000
    max_connections_per_ip: int = 10_000
    asker: Asker | None = None
    """Who decides in place of the deciders, if anybody."""


class Port:
    """A bound port: where it leads, and what its connections share."""

    def __init__(self, gateway: "Gateway", plan: ListenerPlan, node_id: int | None) -> None:
        self._gateway: Final = gateway
        self.plan: Final = plan
        self.node_id: Final = node_id
        self.name: Final = plan.name
        self.security_protocol: Final = plan.security_protocol
        self.settings: Final = plan.connection
        self.ports: Final = gateway.addresses_of(plan)
        self.cluster: Final = gateway.parts.cluster
        admin = plan.admin
        self.leads_upstream: Final = admin is None
        self.table: Final = TABLE if admin is None else admin.table
        self.local: Final = gateway.parts.local if admin is None else admin.local
        self.observer: Final = gateway.parts.observer
        self.metrics: Final = gateway.parts.metrics
        self.decider: Final = gateway.parts.decider
        self.asker: Final = gateway.parts.asker
        self.offered: Final = gateway.parts.offered if admin is None else admin.offered
        self.sasl_machine: Final = plan.sasl_machine
        self.server: asyncio.Server | None = None
        self._turn = 0

    async def bind(self, port: int) -> None:
        """Listen; raise OSError where the port cannot be had."""
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            lambda: ClientConnection(self),
            self.plan.bind_host,
            port,
            backlog=BACKLOG,
            reuse_port=self._gateway.shares_ports,
        )

    def admit(self, connection: ClientConnection, host: str) -> str | None:
        """Count a new connection in; return why it is turned away, if it is."""
        return self._gateway.admit(self, connection, host)

    def dismiss(self, connection: ClientConnection, host: str) -> None:
        """Count a connection out."""
        self._gateway.dismiss(self, connection, host)

    async def connect_upstream(self) -> KafkaConnection:
        """Return a new connection to the broker behind this port, or to any behind the bootstrap port.

        What the broker speaks is known afterwards. Raise `ClientError`.
        """
        failure: ClientError | None = None
        for broker in self._candidates():
            try:
                connection = await self.cluster.connect(broker.host, broker.port)
            except ClientError as error:
                failure = failure or error
                continue
            self.cluster.learn_versions(broker.node_id, connection.versions)
            return connection
        which = "no broker" if self.node_id is None else f"no broker `{self.node_id}`"
        raise failure or CannotConnectError(f"{which} is known upstream")

    def _candidates(self) -> list[Broker]:
        brokers = self.cluster.brokers
        if self.node_id is not None:
            return [brokers[self.node_id]] if self.node_id in brokers else []
        known = list(brokers.values())
        if known:
            # the clients of the bootstrap port are spread over the brokers, and go on without one of them
            self._turn = (self._turn + 1) % len(known)
        return known[self._turn :] + known[: self._turn]


@dataclass(frozen=True, slots=True)
class _Addresses:
    """A listener's addresses; a broker that is new to us gets its port."""

    ports: BrokerPorts
    gateway: "Gateway"

    def advertised(self, node_id: int, host: str, port: int) -> tuple[str, int]:
        address = self.ports.advertised(node_id, host, port)
        self.gateway.saw_broker(Broker(node_id, host, port))
        return address


class Gateway:
    """All listeners of a node. `start` binds them, `stop` ends every connection."""

    shares_ports = False
    """Whether other processes of the node listen on the same ports (SO_REUSEPORT)."""

    def __init__(self, plans: list[ListenerPlan], parts: GatewayParts, refresh_s: float = 30.0) -> None:
        self.parts: Final = parts
        self._plans: Final = plans
        self._open_plans: Final[list[ListenerPlan]] = []
        self._refresh_s: Final = refresh_s
        self._ports: dict[tuple[str, int | None], Port] = {}
        self._connections: set[ClientConnection] = set()
        self._by_host: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_open = False
        self._stopped = False

    def addresses_of(self, plan: ListenerPlan) -> _Addresses:
        """Return what puts a listener's addresses into answers."""
        return _Addresses(plan.ports, self)

    async def start(self, ready: Mapping[str, Awaitable[None]] | None = None) -> None:
        """Learn the upstream cluster and bind each listener as soon as what is in `ready` for it ends.

        Raise `UpstreamUnavailableError`, `NoPortForBrokerError`, OSError, or what ends one of `ready`.
        """
        waits = ready or {}
        self._spawn(self._end_idle())
        opening = [self._opening(plan, waits) for plan in self._plans if plan.admin is not None]
        try:
            # who asks a node about itself need not wait for upstream
            await self.parts.cluster.refresh()
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
        """Bind the ports that are missing; try them all, then raise what went wrong first."""
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
        """Take note of a broker that an answer named."""
        brokers = self.parts.cluster.brokers
        if brokers.get(broker.node_id) != broker:
            self.parts.cluster.brokers = brokers | {broker.node_id: broker}
            self._spawn(self._bind_brokers())

    async def _keep_fresh(self) -> None:
        """Ask upstream again and again who is there; what cannot be asked or bound stays as it was."""
        while True:
            await asyncio.sleep(self._refresh_s)
            try:
                await self.parts.cluster.refresh()
                await self._bind_brokers()
            except UpstreamUnavailableError as error:
                LOG.warning("upstream does not answer", reason=str(error))
            except (OSError, NoPortForBrokerError) as error:
                LOG.error("a broker has no port here", reason=str(error))
            except Exception:
                # the boundary where a bug of ours must not end the asking: what is known would grow old
                LOG.exception("upstream could not be asked")

    async def _end_idle(self) -> None:
        """Close the connections that nothing came from for `connections.max.idle.ms`."""
        if not self._plans:
            return
        limit_s = min(plan.connection.connections_max_idle_ms for plan in self._plans) / 1000
        while True:
            await asyncio.sleep(limit_s / IDLE_CHECKS)
            now = asyncio.get_running_loop().time()
            for connection in list(self._connections):
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
        """Count a new connection in; return why it is turned away, if it is."""
        refusal = None
        if self._stopped:
            refusal = "the gateway stops"
        elif len(self._connections) >= self.parts.max_connections:
            refusal = "there are `max.connections` connections"
        elif self._by_host[host] >= self.parts.max_connections_per_ip:
            refusal = "there are `max.connections.per.ip` connections from this address"
        self._connections.add(connection)
        self._by_host[host] += 1
        self.parts.metrics.connections_changed(port.name, 1)
        return refusal

    def dismiss(self, port: Port, connection: ClientConnection, host: str) -> None:
        """Count a connection out."""
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
        self.parts.metrics.connections_changed(port.name, -1)

    async def stop(self) -> None:
        """Take no more connections and end those that there are."""
        self.close()

    def close(self) -> None:
        """Do so at once; twice is harmless."""
        self.is_open = False
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        for port in self._ports.values():
            if port.server is not None:
                port.server.close()
        for connection in list(self._connections):
            connection.close("the gateway stops")
        self.parts.cluster.close()
