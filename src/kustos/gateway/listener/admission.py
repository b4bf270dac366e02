"""Admits connections: counts the connections of a process and of a node, and reserves capacity for logins.

A new connection is rejected if too many logins from its address failed, by `max.connections` and
`max.connections.per.ip` as in Kafka, or if too few file descriptors are left. If there is an unauthenticated
connection, the gateway closes that one instead: silent clients must not lock others out.
"""

import asyncio
import math
from collections import Counter
from typing import Final, NamedTuple, Protocol

import structlog

from kustos.gateway.listener.drain import DrainingConnection
from kustos.gateway.listener.handshake_turns import HandshakeTurns
from kustos.gateway.listener.handshakes import (
    CROWDED_OUT,
    LOGIN_TIMED_OUT,
    THROTTLED,
    FailedHandshakes,
    HandshakeRefusal,
)
from kustos.gateway.listener.login_throttle import LoginThrottle
from kustos.gateway.listener.pending_logins import PendingLogins
from kustos.gateway.listener.plans import ConnectionSettings, GatewayLimits, GatewayParts, SocketFigures
from kustos.runtime import PacedCounts, descriptor_limit, release_freed_memory

LOG: Final = structlog.get_logger("kustos.gateway")

DESCRIPTORS_RESERVED: Final = 160
"""File descriptors that client connections must leave free: for 64 HTTP connections, the metadata log, audit,
logs, workers, and the node's own connections to upstream, with a margin."""

DESCRIPTORS_PER_CONNECTION: Final = 2
"""One for the client, and one for the link to its broker after the login."""

REFUSALS_LOGGED_EVERY_S: Final = 10.0
"""How often the log reports rejected connections: unauthenticated clients can open any number of them."""

CROWD: Final = 1_000
"""The number of concurrent unauthenticated connections from which returning their memory is worthwhile: they
take some 20 MB."""

RELEASE_DELAY_S: Final = 1.0
"""The delay after most of a crowd has left until its memory is returned: connections are freed as they
close."""

RELEASED_EVERY_S: Final = 60.0
"""The shortest time between two returns: all clients wait for about a third of a millisecond per MB."""

NODE_IS_FULL: Final = "there are `max.connections` connections"
ADDRESS_IS_FULL: Final = "there are `max.connections.per.ip` connections from this address"
NO_DESCRIPTORS: Final = "there are no file descriptors for more connections (RLIMIT_NOFILE)"


def connections_within(descriptors: int) -> int:
    """Return how many authenticated connections a process with this many file descriptors can serve."""
    return max(1, (descriptors - DESCRIPTORS_RESERVED) // DESCRIPTORS_PER_CONNECTION)


class AdmittedConnection(DrainingConnection, Protocol):
    """A client connection that is counted."""

    host: str
    last_active_s: float

    def refuse(self, refusal: HandshakeRefusal) -> None:
        """End a connection that has not authenticated."""

    def close(self, reason: str, *, logged: bool = True) -> None:
        """End the connection."""


class AdmittingPort(Protocol):
    """The port of a connection."""

    @property
    def name(self) -> str:
        """The name of its listener."""

    @property
    def settings(self) -> ConnectionSettings:
        """The limits of its connections."""

    @property
    def figures(self) -> SocketFigures:
        """The metrics of its listener."""

    @property
    def authenticates(self) -> bool:
        """Whether its clients have to authenticate."""

    def refuse(self, refusal: HandshakeRefusal, host: str) -> bool:
        """Count a connection that ended before its client could log in; return whether the log reports it."""


class _Admitted(NamedTuple):
    host: str
    is_open: bool
    """Whether the listener requires no authentication, so that a link follows at once."""


class Admission:
    """The connections of one process; `parts` contains the limits."""

    def __init__(self, parts: GatewayParts) -> None:
        self._parts: Final = parts
        self._limits = parts.limits
        self._clock: Final = asyncio.get_running_loop().time
        self._places: Final[dict[AdmittedConnection, _Admitted]] = {}
        self._by_host: Final[Counter[str]] = Counter()
        self._pending_logins: Final[dict[str, PendingLogins[AdmittedConnection]]] = {}
        """The connections that have to authenticate, by listener."""
        self._descriptors_max: Final = DESCRIPTORS_PER_CONNECTION * connections_within(descriptor_limit())
        self._crowd = 0
        """The highest number of concurrent unauthenticated connections since memory was last returned."""
        self._releases_from_s = -math.inf
        self._refusals: Final = PacedCounts(REFUSALS_LOGGED_EVERY_S)
        self._throttle: Final = LoginThrottle(parts.limits.failed_logins)
        self.handshake_turns: Final = HandshakeTurns(self._clock)
        self.failed_handshakes: Final = FailedHandshakes(parts.metrics.handshake_failed)

    def change_limits(self, limits: GatewayLimits) -> None:
        """Apply new limits on connections and failed logins; open connections stay."""
        self._limits = limits
        self._throttle.change(limits.failed_logins, self._clock())

    @property
    def connections(self) -> tuple[AdmittedConnection, ...]:
        """All connections."""
        return tuple(self._places)

    @property
    def unauthenticated_count(self) -> int:
        """The number of connections that have not authenticated."""
        return sum(map(len, self._pending_logins.values()))

    @property
    def _descriptors(self) -> int:
        """The number of file descriptors that the connections have, or will have."""
        return DESCRIPTORS_PER_CONNECTION * len(self._places) - self.unauthenticated_count

    def admit(self, port: AdmittingPort, connection: AdmittedConnection, host: str) -> str | None:
        """Count a new connection in; return the reason to reject it, None if it is admitted."""
        refusal = self._refusal(port, host)
        self._places[connection] = _Admitted(host, not port.authenticates)
        self._by_host[host] += 1
        port.figures.created += 1
        port.figures.open += 1
        if refusal is None and port.authenticates:
            self._await_login(port, connection, host)
        return refusal

    def _refusal(self, port: AdmittingPort, host: str) -> str | None:
        if port.authenticates and self.is_throttled(host):
            port.refuse(THROTTLED, host)
            return THROTTLED.reason
        refusal = None
        if self._by_host[host] >= self._limits.max_connections_per_ip:
            refusal = ADDRESS_IS_FULL
        elif len(self._places) >= self._limits.max_connections and not self.evict_unauthenticated():
            refusal = NODE_IS_FULL
        elif self._lacks_descriptors(1 if port.authenticates else DESCRIPTORS_PER_CONNECTION):
            refusal = NO_DESCRIPTORS
        if refusal is not None:
            self.note_refusal(refusal, host)
        return refusal

    def _lacks_descriptors(self, wanted: int) -> bool:
        """Return whether `wanted` more descriptors are unavailable, even after connections were closed."""
        if DESCRIPTORS_PER_CONNECTION * len(self._places) + wanted <= self._descriptors_max:
            # there would be enough if every connection had a link
            return False
        while self._descriptors + wanted > self._descriptors_max:
            if not self.evict_unauthenticated():
                return True
        return False

    def evict_unauthenticated(self) -> bool:
        """Close a connection that has not authenticated; return False if there is none."""
        largest = max(self._pending_logins.values(), key=len, default=None)
        connection = None if largest is None else largest.take_first()
        if connection is None:
            return False
        connection.refuse(CROWDED_OUT)
        return True

    def _await_login(self, port: AdmittingPort, connection: AdmittedConnection, host: str) -> None:
        if self.unauthenticated_count >= self._parts.limits.max_unauthenticated_connections:
            self.evict_unauthenticated()
        pending = self._pending_logins.get(port.name)
        if pending is None:
            pending = self._pending_logins[port.name] = PendingLogins(
                port.settings, port.figures, _end_late, self._clock
            )
        evicted = pending.add(connection, host)
        self._crowd = max(self._crowd, self.unauthenticated_count)
        if evicted is not None:
            evicted.refuse(CROWDED_OUT)

    def excuse(self, port: AdmittingPort, connection: AdmittedConnection) -> None:
        """Remove the deadline of a client that waits for its refusal."""
        pending = self._pending_logins.get(port.name)
        if pending is not None:
            pending.excuse(connection)

    def authenticated(self, port: AdmittingPort, connection: AdmittedConnection) -> str | None:
        """Count a login; return the reason to close the connection although it succeeded, or None."""
        self._end_pending_login(port, connection)
        place = self._places.get(connection)
        # its link needs another descriptor, and is counted from now on
        if place is not None and (place.is_open or not self._lacks_descriptors(0)):
            return None
        self.note_refusal(NO_DESCRIPTORS, connection.host)
        return NO_DESCRIPTORS

    def _end_pending_login(self, port: AdmittingPort, connection: AdmittedConnection) -> None:
        pending = self._pending_logins.get(port.name)
        if pending is not None:
            pending.remove(connection)
        if self._crowd >= CROWD and self.unauthenticated_count <= self._crowd // 4:
            self._release_memory()

    def _release_memory(self) -> None:
        now_s = self._clock()
        if now_s >= self._releases_from_s:
            self._crowd = 0
            self._releases_from_s = now_s + RELEASED_EVERY_S
            asyncio.get_running_loop().call_later(RELEASE_DELAY_S, release_freed_memory)

    def dismiss(self, port: AdmittingPort, connection: AdmittedConnection) -> bool:
        """Count a connection out; return whether it was counted in."""
        place = self._places.pop(connection, None)
        if place is None:
            return False
        self._end_pending_login(port, connection)
        self._by_host[place.host] -= 1
        if not self._by_host[place.host]:
            del self._by_host[place.host]
        port.figures.open -= 1
        return True

    def note_refusal(self, reason: str, host: str) -> None:
        """Count a rejected connection; the log reports some of them."""
        self._parts.metrics.rejected()
        if connections := self._refusals.due("rejected", self._clock()):
            LOG.warning("connections are rejected", reason=reason, host=host, connections=connections)

    def login_failed(self, host: str) -> None:
        """Count a failed login against the network of its client."""
        self._throttle.failed(host, self._clock())

    def is_throttled(self, host: str) -> bool:
        """Return whether clients of this address may not log in now."""
        # called for every frame of a login; usually no login has failed recently
        return len(self._throttle) > 0 and self._throttle.is_throttled(host, self._clock())


def _end_late(connection: AdmittedConnection) -> None:
    connection.refuse(LOGIN_TIMED_OUT)


class ConnectionCount:
    """The connections of all workers of a node, so that its limits hold for any distribution.

    A worker and a number in that worker identify a connection.
    """

    def __init__(self, maximum: int, maximum_per_ip: int) -> None:
        self._maximum = maximum
        self._maximum_per_ip = maximum_per_ip
        self._hosts: Final[dict[object, dict[int, str]]] = {}
        self._by_host: Final[Counter[str]] = Counter()
        self.total = 0

    def change_limits(self, maximum: int, maximum_per_ip: int) -> None:
        """Apply new limits to new connections; open connections stay."""
        self._maximum, self._maximum_per_ip = maximum, maximum_per_ip

    def arrived(self, worker: object, number: int, host: str) -> str | None:
        """Count a connection in until it has left; return the reason to reject it, None if it is admitted."""
        refusal = None
        if self.total >= self._maximum:
            refusal = NODE_IS_FULL
        elif self._by_host[host] >= self._maximum_per_ip:
            refusal = ADDRESS_IS_FULL
        self._hosts.setdefault(worker, {})[number] = host
        self._by_host[host] += 1
        self.total += 1
        return refusal

    def left(self, worker: object, number: int) -> None:
        """Count a connection out; an unknown one is ignored."""
        host = self._hosts.get(worker, {}).pop(number, None)
        if host is not None:
            self._uncount(host)

    def gone(self, worker: object) -> None:
        """Count out all connections of a worker."""
        for host in self._hosts.pop(worker, {}).values():
            self._uncount(host)

    def _uncount(self, host: str) -> None:
        self.total -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
