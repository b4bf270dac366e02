"""One node, put together: the only place where the rooms meet."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, Protocol, Self

import structlog

from kustos.auth import MechanismFactory, SaslServerMachine, ScramDecoys
from kustos.authorizer import ACL_COUNT_UNKNOWN
from kustos.client import NodeAddress, connect
from kustos.client.connection import KafkaConnection
from kustos.gateway.acl_apis import AclApis
from kustos.gateway.addresses import BrokerPorts
from kustos.gateway.audit_entries import AuditEvents
from kustos.gateway.audit_log import AuditLog
from kustos.gateway.audit_sinks import open_audit_sinks
from kustos.gateway.client import ConnectionSettings
from kustos.gateway.cluster import UpstreamCluster
from kustos.gateway.listener import GatewayParts, ListenerPlan
from kustos.gateway.local import MetadataApis
from kustos.gateway.metrics import GatewayMetrics
from kustos.gateway.metrics_quorum import WatchedQuorum
from kustos.gateway.observer import GatewayObserver
from kustos.gateway.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.shared_apis import SharedApis
from kustos.gateway.snapshot_taker import SnapshotTaker
from kustos.gateway.token_sweeper import TokenSweeper
from kustos.gateway.writer import MetadataWriter
from kustos.metadata.format import read_decoy_secret
from kustos.metadata.image import MetadataImage
from kustos.metadata.store import MetadataStore
from kustos.protocol import ADMIN_TABLE, refusal_body
from kustos.protocol.api_versions import api_versions_response, offered_versions
from kustos.runtime import SystemClock, SystemEntropy
from kustos.server.admin import AdminSide
from kustos.server.authorization import StandardAuthorization, authorization_of
from kustos.server.authorizer_life import close, server_info, start
from kustos.server.listener_settings import ListenerSettings
from kustos.server.part import WHOLE, NodePart
from kustos.server.quorum_side import QuorumSide
from kustos.server.sasl import PLAIN, mechanism_factories
from kustos.server.settings import KustosSettings
from kustos.server.tokens import token_lookup
from kustos.server.warming import warm_codecs
from kustos.wire import response_codec
from kustos.wire.api_keys import ApiKey

LOG: Final = structlog.get_logger("kustos.server")


class Node:
    """A running node. Made inside the event loop by `open`; `start` serves, `stop` ends in good order."""

    def __init__(
        self,
        settings: KustosSettings,
        writer: MetadataWriter,
        audit: AuditLog,
        quorum: QuorumSide | None,
        part: NodePart = WHOLE,
    ) -> None:
        self.settings: Final = settings
        self.part: Final = part
        self.store: Final = writer.store
        self.audit: Final = audit
        self.metrics: Final = GatewayMetrics()
        self.writer: Final = writer
        self.quorum: Final = quorum
        rules = settings.token_rules
        self.token_sweeper: Final = TokenSweeper(self.writer, rules.expiry_check_interval_ms)
        self.snapshot_taker: Final = SnapshotTaker(self.writer)
        self.tokens: Final = token_lookup(rules.secret, self.image, SystemEntropy())
        self.authorization: Final = authorization_of(
            settings, self.store, self.writer, *(() if quorum is None else (quorum.mutator, quorum.gate))
        )
        self.purgatory: Final = DelayedFuturePurgatory(ALTER_ACLS, settings.connections_max_idle_ms)
        self.metrics.watch(
            acl_count=self.acl_count,
            metadata_offset=lambda: self.authorization.acl_offset,
            audit=audit,
        )
        self.metrics.watch_purgatory(self.purgatory)
        if isinstance(self.authorization, StandardAuthorization):
            self.metrics.watch_authorizer(self.acl_count, self.authorization.metrics)
        upstream = settings.upstream
        self.cluster: Final = UpstreamCluster(
            [(address.host, address.port) for address in upstream.bootstrap_servers], self._connect
        )
        acls = AclApis(self.authorization.authorizer, self.purgatory)
        self.local: Final = (
            MetadataApis(
                self.writer,
                SharedApis(lambda: self.writer.store.image, self.cluster, self.offered, acls),
            )
            if quorum is None
            else quorum.apis(self.cluster, self.offered, acls)
        )
        self.admin: Final = AdminSide(settings, self.writer, self.authorization, self.local)
        self.gateway: Final = part.make_gateway(
            [self._plan(listener) for listener in settings.listeners if part.serves(listener)],
            self._parts(),
            settings.upstream_metadata_max_age_ms / 1000,
        )
        self.http = (
            None
            if settings.http is None
            else part.make_http(settings.http, self.metrics, self.readiness, self.details)
        )
        if quorum is not None:
            self.metrics.registry.register(WatchedQuorum(quorum.figures))

    @classmethod
    async def open(
        cls, settings: KustosSettings, writer: MetadataWriter | None = None, part: NodePart = WHOLE
    ) -> Self:
        """Return a node with its metadata loaded and its audit sinks tried.

        `writer`: who has the metadata open already, if anybody. Raise `MetadataError` or `AuditSinkError`
        where one of them cannot be used.
        """
        warm_codecs()
        quorum = None if settings.quorum is None else QuorumSide.open(settings, settings.quorum)
        if writer is None:
            writer = MetadataWriter(embedded_store(settings)) if quorum is None else quorum.writer
        try:
            events = AuditEvents.of_node(settings.node_id, SystemEntropy())
            sinks = await open_audit_sinks(settings.audit, settings.upstream, events)
        except BaseException:
            await writer.close()
            raise
        audit = AuditLog(
            sinks,
            queue_max_events=settings.audit.queue_max_events,
            blocks_when_full=settings.audit.blocks_when_full,
        )
        try:
            return cls(settings, writer, audit, quorum, part)
        except BaseException:
            await writer.close()
            await audit.close()
            raise

    def image(self) -> MetadataImage:
        """Return the metadata by which logins are decided now."""
        return self.store.image if self.quorum is None else self.quorum.image()

    async def _connect(self, host: str, port: int) -> KafkaConnection:
        return await connect(NodeAddress(host, port), self.settings.upstream)

    def offered(self) -> dict[int, tuple[int, int]]:
        """Return the APIs and versions that clients may use now."""
        return offered_versions(self.cluster.versions)

    def _parts(self) -> GatewayParts:
        settings = self.settings
        return GatewayParts(
            cluster=self.cluster,
            local=self.local,
            observer=GatewayObserver(
                self.audit,
                self.metrics,
                lambda: self.authorization.acl_offset,
                # controllers do not say at which offset they wrote
                changes_own_log=self.quorum is None and isinstance(self.authorization, StandardAuthorization),
            ),
            metrics=self.metrics,
            decider=self.authorization.decider,
            asker=self.authorization.asker,
            offered=self.offered,
            max_connections=settings.max_connections,
            max_connections_per_ip=settings.max_connections_per_ip,
        )

    def acl_count(self) -> int:
        """Return how many ACLs are in force, -1 where nobody counts them."""
        authorizer = self.authorization.authorizer
        try:
            count = ACL_COUNT_UNKNOWN if authorizer is None else authorizer.acl_count
        except Exception as error:  # noqa: BLE001 - a custom authorizer must not keep the metrics from being read
            LOG.warning("the authorizer cannot count its ACLs", reason=f"{type(error).__name__}: {error}")
            return ACL_COUNT_UNKNOWN
        return count if type(count) is int else ACL_COUNT_UNKNOWN

    def _plan(self, listener: ListenerSettings) -> ListenerPlan:
        settings = self.settings
        sasl = listener.sasl
        connection = ConnectionSettings(
            sasl_server_max_receive_size=524_288 if sasl is None else sasl.server.max_receive_size,
            socket_request_max_bytes=settings.socket_request_max_bytes,
            connections_max_idle_ms=settings.connections_max_idle_ms,
            max_in_flight_requests=settings.max_in_flight_requests,
        )
        return ListenerPlan(
            name=listener.name,
            security_protocol=listener.security_protocol,
            bind_host=listener.bind.host,
            port=listener.bind.port,
            ports=BrokerPorts(
                listener.advertised.host,
                listener.broker_port_start,
                listener.advertised_broker_port_start,
                listener.broker_port_count,
            ),
            connection=connection,
            sasl_machine=self._sasl_machines(listener),
            admin=self.admin.parts if listener.is_controller else None,
        )

    def _sasl_machines(self, listener: ListenerSettings) -> Callable[[], SaslServerMachine | None]:
        sasl = listener.sasl
        if sasl is None:
            return lambda: None
        plain = sasl.jaas.get(PLAIN)
        factories: Mapping[str, MechanismFactory] = mechanism_factories(
            sasl.enabled_mechanisms,
            {} if plain is None else plain.options,
            self.image,
            ScramDecoys(read_decoy_secret(self.settings.metadata_directory)),
            SystemEntropy(),
            self.tokens,
        )
        clock = SystemClock()
        versions, refusal = self._api_versions_body, refusal_body
        if listener.is_controller:
            versions, refusal = self.admin.api_versions_body, partial(refusal_body, table=ADMIN_TABLE)
        return lambda: SaslServerMachine(sasl.server, factories, versions, clock, refusal)

    def _api_versions_body(self, version: int) -> bytes:
        message = api_versions_response(version, self.offered(), self.cluster.features)
        return response_codec(ApiKey.API_VERSIONS, version).encode(message)

    def readiness(self) -> dict[str, bool]:
        """Return what must hold for requests to be served, and whether it does."""
        return {
            "metadata": self.authorization.is_ready,
            "upstream": bool(self.cluster.brokers) and self.cluster.is_reachable,
            "listeners": self.gateway.is_open,
            "audit": self.audit.is_ready,
            **({} if self.quorum is None else self.quorum.readiness()),
        }

    def details(self) -> dict[str, object]:
        """Return what else an operator wants to know of the metadata; clients are served all the same.

        Where a write of the metadata failed, all decisions go on, and every change is refused.
        """
        if self.quorum is not None:
            return self.quorum.details()
        return {"metadata_takes_changes": self.store.takes_changes} if self.part.owns_metadata else {}

    async def start(self) -> None:
        """Serve, each listener as soon as the authorizer can decide for it.

        Raise `UpstreamUnavailableError`, `NoPortForBrokerError`, `AuthorizerError` or OSError if that cannot
        be.
        """
        for warning in self.settings.warnings:
            LOG.warning(warning)
        if self.http is not None:
            await self.http.start()
        authorizer = self.authorization.authorizer
        ready = None
        if authorizer is not None:
            ready = start(authorizer, server_info(self.settings, str(self.store.properties.cluster_id)))
        self.authorization.load()
        if self.quorum is None:
            self.admin.load()
            if self.part.owns_metadata:
                self.token_sweeper.start()
                self.snapshot_taker.start()
            await self.gateway.start(self.part.waits(ready))
        else:
            # settings, expiry of tokens and snapshots are the controllers' own business
            await self.gateway.start(self.quorum.start(ready, self._acl_offset))
        LOG.info(
            "kustos is up",
            node_id=self.settings.node_id,
            acls=self.acl_count(),
            offset=self.store.last_offset,
            listeners=[f"{each.name}://{each.bind}" for each in self.settings.listeners],
        )

    def _acl_offset(self) -> int | None:
        is_standard = isinstance(self.authorization, StandardAuthorization)
        return self.authorization.acl_offset if is_standard else None

    async def stop(self) -> None:
        """End the connections, then write down and close what is open, each whatever became of the others."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.writer.close)
            if self.authorization.authorizer is not None:
                stack.push_async_callback(close, self.authorization.authorizer)
            stack.push_async_callback(self.purgatory.close)
            stack.push_async_callback(self.token_sweeper.stop)
            stack.push_async_callback(self.snapshot_taker.stop)
            stack.push_async_callback(self.audit.close)
            if self.http is not None:
                stack.push_async_callback(self.http.stop)
            stack.push_async_callback(self.gateway.stop)


def embedded_store(settings: KustosSettings) -> MetadataStore:
    """Return the store of this node's own log, recovered and locked; raise `MetadataError` or OSError."""
    return MetadataStore.open(
        settings.metadata_directory,
        token_rules=settings.token_rules,
        policy=settings.log_policy,
        node_id=settings.node_id,
    )


async def run_until(
    settings: KustosSettings, stopped: asyncio.Event, prepare: Callable[[Node], object] | None = None
) -> None:
    """Run a node until the event is set, also while it starts; raise what keeps it from starting.

    `prepare` is given the node before it starts.
    """
    node = await Node.open(settings)
    if prepare is not None:
        prepare(node)
    await run_node(node, stopped)


class Runnable(Protocol):
    """A node, or a part of one."""

    async def start(self) -> None:
        """Serve."""

    async def stop(self) -> None:
        """End; also what has not started, or only in part."""


async def run_node(node: Runnable, stopped: asyncio.Event) -> None:
    """Run what is open until the event is set, also while it starts; raise what keeps it from starting."""
    try:
        starting, told = asyncio.ensure_future(node.start()), asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await told
        finally:
            for task in (starting, told):
                task.cancel()
            await asyncio.gather(starting, told, return_exceptions=True)
    finally:
        await node.stop()
