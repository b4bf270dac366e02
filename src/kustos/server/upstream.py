"""A node's connections to brokers, as the service principal and as its clients."""

from collections.abc import Awaitable, Callable
from typing import Final

from kustos.client import Identity, KafkaConnection, NodeAddress, connect
from kustos.gateway.listener import ConnectLink
from kustos.gateway.metrics import GatewayMetrics
from kustos.gateway.upstream import ClientIdentities, InFlight, UpstreamCluster, UpstreamTokens
from kustos.runtime import SystemClock, SystemEntropy
from kustos.server.settings.node import KustosSettings


class UpstreamSide:
    """The upstream connections of a node. Created inside the event loop."""

    def __init__(self, settings: KustosSettings, metrics: GatewayMetrics) -> None:
        self._settings: Final = settings
        servers = settings.upstream.bootstrap_servers
        self.cluster: Final = UpstreamCluster([(each.host, each.port) for each in servers], self._connect)
        clock = SystemClock()
        self._tokens: Final = UpstreamTokens(
            self.cluster.query, clock, SystemEntropy(), metrics.token_requested
        )
        self.connect_as: ConnectLink | None = None
        """Connects to a broker as a client; None: links log in as the service principal."""
        if settings.upstream_token_mechanism is not None:
            identities = ClientIdentities(
                self._tokens, settings.upstream_token_mechanism, self._connect, clock
            )
            self.connect_as = identities.connect

    def in_flight(self, *, sees_all_changes: bool, others: Callable[[], Awaitable[None]] | None) -> InFlight:
        """Return the registry of requests in flight; `others` drains the node's other processes."""
        return InFlight(
            self._log_in,
            self._broker_addresses,
            self._settings.revocation,
            sees_all_changes=sees_all_changes,
            others=others,
        )

    async def _connect(self, host: str, port: int, identity: Identity | None = None) -> KafkaConnection:
        return await connect(NodeAddress(host, port), self._settings.upstream, identity)

    async def _log_in(self, host: str, port: int) -> None:
        (await self._connect(host, port)).close()

    def _broker_addresses(self) -> list[tuple[str, int]]:
        return [(broker.host, broker.port) for broker in self.cluster.brokers.values()]

    async def stop(self) -> None:
        """Request no more tokens."""
        self._tokens.close()
