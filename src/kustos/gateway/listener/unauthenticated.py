"""Limits the unauthenticated connections of one listener: chooses the one that ends for a new connection.

Theory of operation. An attacker may open connections and send nothing, to make the listener reject other
clients. New connections are therefore never rejected: the oldest connection of the network with most
connections ends instead. Honest clients log in within milliseconds and then no longer count; silent
connections grow old. An attacker with one network loses connections of that network. To end the connection of
an honest client, an attacker must open as many connections as the limit allows, from many networks, each with
as many connections as the client's network has, while the client logs in.
"""

from typing import Final, Generic, TypeVar

from kustos.gateway.upstream.addresses import network_of

Connection = TypeVar("Connection")


class UnauthenticatedConnections(Generic[Connection]):
    """At most `maximum` connections, `maximum_per_ip` per network; each change takes constant time."""

    def __init__(self, maximum: int, maximum_per_ip: int) -> None:
        self._maximum: Final = maximum
        self._maximum_per_ip: Final = maximum_per_ip
        self._network_of: Final[dict[Connection, str]] = {}
        self._by_network: Final[dict[str, dict[Connection, None]]] = {}
        """The connections of each network, oldest first."""
        self._by_count: Final[dict[int, dict[str, None]]] = {}
        """Count → the networks with this number of connections, in the order in which they reached it."""
        self._most = 0

    def __len__(self) -> int:
        return len(self._network_of)

    def __contains__(self, connection: object) -> bool:
        return connection in self._network_of

    def add(self, connection: Connection, host: str) -> Connection | None:
        """Count in a connection of this host; return the one that must end, None if below the limit."""
        network = network_of(host)
        own = self._by_network.setdefault(network, {})
        evicted: Connection | None = None
        if len(own) >= self._maximum_per_ip:
            evicted = next(iter(own))
        elif len(self._network_of) >= self._maximum:
            evicted = self.first_to_end()
        if evicted is not None:
            self.remove(evicted)
            own = self._by_network.setdefault(network, {})
        own[connection] = None
        self._network_of[connection] = network
        self._recount(network, len(own) - 1, len(own))
        return evicted

    def remove(self, connection: Connection) -> bool:
        """Count a connection out, because it has authenticated or ended; return whether it was counted in."""
        network = self._network_of.pop(connection, None)
        if network is None:
            return False
        own = self._by_network[network]
        del own[connection]
        self._recount(network, len(own) + 1, len(own))
        if not own:
            del self._by_network[network]
        return True

    def first_to_end(self) -> Connection | None:
        """Return the oldest connection of the network with most connections, None if there is none."""
        if not self._most:
            return None
        network = next(iter(self._by_count[self._most]))
        return next(iter(self._by_network[network]))

    def _recount(self, network: str, old: int, new: int) -> None:
        if old:
            peers = self._by_count[old]
            del peers[network]
            if not peers:
                del self._by_count[old]
        if new:
            self._by_count.setdefault(new, {})[network] = None
        # counts change by one, so the next lower count is the count of this network
        if new > self._most or (old == self._most and old not in self._by_count):
            self._most = new
