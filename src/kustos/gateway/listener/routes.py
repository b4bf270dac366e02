"""Connects the clients of one port to its broker, or the clients of the bootstrap port to any broker.

The gateway connects to a broker at a client's first request other than ApiVersions, so a client that only
logs in costs the broker nothing. If the broker was lost recently, the gateway connects at once, and
ApiVersions waits for the connection as well: clients take that answer as a sign that the broker is up, and
would reconnect without a pause.
"""

from typing import Final

import structlog

from kustos.acl import KafkaPrincipal
from kustos.client import CannotConnectError, ClientError, KafkaConnection
from kustos.gateway.listener.plans import GatewayParts
from kustos.gateway.upstream.cluster import Broker, Versions, covers
from kustos.gateway.upstream.link import LinkOwner, UpstreamLink
from kustos.gateway.upstream.tokens import IdentityError

LOG: Final = structlog.get_logger("kustos.gateway")


class NoLinkError(Exception):
    """There is no connection to a broker; the text is the reason for the log."""


class BrokerRoute:
    """The route from one port to the brokers, shared by the connections of the port. For one event loop.

    `node_id` is the broker of the port, None for the bootstrap port.
    """

    def __init__(self, parts: GatewayParts, node_id: int | None, max_answer_bytes: int) -> None:
        self._parts: Final = parts
        self._cluster: Final = parts.cluster
        self._node_id: Final = node_id
        self._max_answer_bytes: Final = max_answer_bytes
        self._turn = 0
        self.is_lost = False
        """Whether the last connection to a broker failed or broke."""

    def lose(self) -> None:
        """Record that a connection to a broker broke."""
        self.is_lost = True
        self._parts.metrics.upstream_failed()

    async def link(self, owner: LinkOwner, principal: KafkaPrincipal, offered: Versions) -> UpstreamLink:
        """Return a new link to a broker, for a client that was offered these versions.

        Raise `NoLinkError`; the client is then disconnected.
        """
        try:
            connection = await self._connect(principal)
            transport = connection.release()
        except ClientError as error:
            self._parts.metrics.upstream_failed()
            is_unnamed = isinstance(error, IdentityError)
            raise NoLinkError(str(error) if is_unnamed else f"upstream is not reachable: {error}") from error
        except Exception as error:
            # a bug in kustos must end the client here rather than leave it waiting
            LOG.exception("a connection to upstream could not be made")
            raise NoLinkError("an internal error, see the log above") from error
        if not covers(self._parts.offered(), offered):
            # the broker would misread the client's requests, or close the connection without an answer
            transport.abort()
            raise NoLinkError("the broker speaks other versions than the client was offered")
        broker, in_flight = (connection.host, connection.port), self._parts.in_flight
        return UpstreamLink(transport, owner, self._max_answer_bytes, in_flight, broker, connection.session)

    async def _connect(self, principal: KafkaPrincipal) -> KafkaConnection:
        """Return a new connection for a client with this principal, after the broker's versions are known.

        Raise `ClientError`, or `IdentityError` if brokers cannot see the client's identity.
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
        cluster, connect_as = self._cluster, self._parts.connect_as
        for broker in self._candidates():
            if broker in failures:
                continue
            try:
                if connect_as is None:
                    connection = await cluster.connect(broker.host, broker.port)
                else:
                    connection = await connect_as(principal, broker.host, broker.port)
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
