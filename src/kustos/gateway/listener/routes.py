"""Connects the clients of one port to its broker, or those of the bootstrap port to any broker."""

from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.client import CannotConnectError, ClientError, KafkaConnection
from kustos.gateway.listener.plans import ConnectLink
from kustos.gateway.upstream.cluster import Broker, UpstreamCluster
from kustos.gateway.upstream.tokens import IdentityError


class BrokerRoute:
    """The route from one port to the brokers, shared by the connections of the port. For one event loop.

    `node_id` is the broker of the port, None for the bootstrap port. `connect_as` connects as a client; None:
    every link logs in as the service principal.
    """

    def __init__(self, cluster: UpstreamCluster, node_id: int | None, connect_as: ConnectLink | None) -> None:
        self._cluster: Final = cluster
        self._node_id: Final = node_id
        self._connect_as: Final = connect_as
        self._turn = 0
        self.is_lost = False
        """Whether the last connection to a broker failed or broke."""

    def lose(self) -> None:
        """Note that a connection to a broker broke."""
        self.is_lost = True

    async def connect(self, principal: KafkaPrincipal) -> KafkaConnection:
        """Return a new connection for a client with this principal; the broker's versions are known then.

        Raise `ClientError`; `IdentityError` if brokers cannot see who the client is.
        """
        seen, failures = self._cluster.brokers, dict[Broker, ClientError]()
        connection = await self._connect_to_any(principal, failures)
        if connection is None and await self._cluster.relearn(seen):
            connection = await self._connect_to_any(principal, failures)
        self.is_lost = connection is None
        if connection is not None:
            return connection
        which = "no broker" if self._node_id is None else f"no broker `{self._node_id}`"
        raise next(iter(failures.values()), CannotConnectError(f"{which} is known upstream"))

    async def _connect_to_any(
        self, principal: KafkaPrincipal, failures: dict[Broker, ClientError]
    ) -> KafkaConnection | None:
        """Return a connection to the first candidate that answers, None if all of them have failed."""
        cluster = self._cluster
        for broker in self._candidates():
            if broker in failures:
                continue
            try:
                if self._connect_as is None:
                    connection = await cluster.connect(broker.host, broker.port)
                else:
                    connection = await self._connect_as(principal, broker.host, broker.port)
            except IdentityError:
                # every other broker would refuse it as well
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
        brokers = self._cluster.brokers
        if self._node_id is not None:
            return [brokers[self._node_id]] if self._node_id in brokers else []
        known = list(brokers.values())
        if known:
            # clients of the bootstrap port are spread over the brokers, and skip one that is down
            self._turn = (self._turn + 1) % len(known)
        return known[self._turn :] + known[: self._turn]
