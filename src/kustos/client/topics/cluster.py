"""The leaders of a topic's partitions according to the metadata, and one connection to each."""

import asyncio
from collections import defaultdict
from typing import Final

from kustos.client.connection import KafkaConnection
from kustos.client.errors import (
    CannotConnectError,
    ClientError,
    ConnectionClosedError,
    KafkaError,
    ProtocolViolationError,
    UnreachableError,
)
from kustos.client.sasl import connect
from kustos.client.settings import ClientSettings, NodeAddress
from kustos.client.topics.messages import (
    METADATA_VERSIONS,
    UNKNOWN_TOPIC_ID,
    StaleError,
    TopicLayout,
    metadata_request,
    read_layout,
)
from kustos.wire import ApiKey


class TopicCluster:
    """The current layout of a topic, and connections to its brokers.

    Many tasks of one event loop can share it. `topic_id` is the id that the topic must have, if it is known.
    """

    def __init__(
        self, settings: ClientSettings, topic: str, topic_id: str | None, request_timeout_ms: int
    ) -> None:
        self._settings: Final = settings
        self._request_timeout_ms: Final = request_timeout_ms
        self._topic: Final = topic
        self.topic_id = topic_id
        self._layout: TopicLayout | None = None
        self._nodes: tuple[NodeAddress, ...] = ()
        self._connections: dict[NodeAddress, KafkaConnection] = {}
        self._opening: Final[defaultdict[NodeAddress, asyncio.Lock]] = defaultdict(asyncio.Lock)
        self._looking: Final = asyncio.Lock()
        self._setbacks = 0
        self.is_closed = False

    async def layout(self) -> TopicLayout:
        """Return the layout, after a look-up if necessary; raises as `look` does."""
        async with self._looking:
            if self._layout is None:
                self._layout = await self._look()
            return self._layout

    async def look(self) -> TopicLayout:
        """Look up the layout and return it.

        Raise the topic's `KafkaError`, `AuthenticationFailedError`, `CannotConnectError` if no broker has
        ever answered with this security protocol, and `StaleError` for temporary failures.
        """
        async with self._looking:
            self._layout = await self._look()
            return self._layout

    def forget(self, layout: TopicLayout) -> None:
        """Make the next attempt look up the layout, unless another task already did."""
        if self._layout is layout:
            self._layout = None
            self._setbacks += 1

    async def connection(self, address: NodeAddress) -> KafkaConnection:
        """Return an open connection to a broker; raises as `connect` does, and after `close`."""
        async with self._opening[address]:
            self._require_open()
            found = self._connections.get(address)
            if found is None or not found.is_open:
                found = await connect(address, self._settings)
                try:
                    self._require_open()
                except ConnectionClosedError:
                    found.close()
                    raise
                self._connections[address] = found
            return found

    def _require_open(self) -> None:
        if self.is_closed:
            raise ConnectionClosedError(f"the reader of topic `{self._topic}` was closed by this client")

    async def close(self) -> None:
        """Close all connections, for good."""
        self.is_closed = True
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            connection.close()
            await connection.wait_closed()

    async def _look(self) -> TopicLayout:
        failures: list[ClientError] = []
        for address in self._addresses():
            # advance first: if a cancelled caller ends here, the next call starts with another address
            self._setbacks += 1
            try:
                layout = await self._ask(address)
            except (ProtocolViolationError, CannotConnectError, ConnectionClosedError) as failure:
                failures.append(failure)
                continue
            self._setbacks -= 1
            self._judge(layout)
            self._nodes = layout.nodes
            return layout
        last = failures[-1]
        if not self._nodes and not any(_may_pass(failure) for failure in failures):
            raise CannotConnectError("; ".join(map(str, failures))) from last
        raise StaleError(last) from last

    async def _ask(self, address: NodeAddress) -> TopicLayout:
        connection = await self.connection(address)
        floor, cap = METADATA_VERSIONS
        answer = await connection.request(
            ApiKey.METADATA,
            lambda codec: metadata_request(codec, self._topic),
            floor=floor,
            cap=cap,
            timeout_ms=self._request_timeout_ms,
        )
        return read_layout(answer, self._topic)

    def _judge(self, layout: TopicLayout) -> None:
        """Keep the topic's id; raise UNKNOWN_TOPIC_ID if the name means another topic by now."""
        found = layout.description.topic_id
        if self.topic_id is None:
            self.topic_id = found
        elif found is not None and found != self.topic_id:
            raise KafkaError(
                UNKNOWN_TOPIC_ID,
                f"topic `{self._topic}` was deleted and recreated: its id was `{self.topic_id}` and "
                f"is `{found}`",
            )

    def _addresses(self) -> list[NodeAddress]:
        """Return the brokers to ask, in order: open connections first, but after a failure another one than
        before."""
        is_open = [address for address, each in self._connections.items() if each.is_open]
        found = list(dict.fromkeys((*is_open, *self._nodes, *self._settings.bootstrap_servers)))
        first = self._setbacks % len(found)
        return found[first:] + found[:first]


def _may_pass(failure: ClientError) -> bool:
    """Return whether a broker that has never answered may still do so."""
    return isinstance(failure, UnreachableError) or (
        isinstance(failure, ConnectionClosedError) and not isinstance(failure, ProtocolViolationError)
    )
