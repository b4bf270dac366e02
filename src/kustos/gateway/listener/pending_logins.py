"""The unauthenticated connections of one listener: counts them, limits their number, and ends late ones.

All of them have the same time to log in, so the oldest connection is the first one to be late: one timer for
the oldest is enough. A timer for each connection would add half to the cost of its admission.
"""

from collections.abc import Callable
from typing import Final, Generic

from kustos.gateway.listener.plans import ConnectionSettings, SocketFigures
from kustos.gateway.listener.unauthenticated import Connection, UnauthenticatedConnections
from kustos.gateway.session.large_turns import on_the_loop


class PendingLogins(Generic[Connection]):
    """The connections of a listener that have not authenticated. For one event loop.

    `late` is called with each connection that has not authenticated within `kustos.login.timeout.ms`.
    `call_later` schedules a callback after a number of seconds.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        figures: SocketFigures,
        late: Callable[[Connection], object],
        now_s: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], object] = on_the_loop,
    ) -> None:
        self._connections: Final[UnauthenticatedConnections[Connection]] = UnauthenticatedConnections(
            settings.max_unauthenticated_connections, settings.max_unauthenticated_connections_per_ip
        )
        self._figures: Final = figures
        self._late: Final = late
        self._timeout_s: Final = settings.login_timeout_ms / 1000
        self._now_s: Final = now_s
        self._call_later: Final = call_later
        self._since_s: Final[dict[Connection, float]] = {}
        """The time when each connection with a deadline was accepted, oldest first."""
        self._is_armed = False

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: Connection, host: str) -> Connection | None:
        """Count a connection in; return the one that must end for it, None if the limit is not reached."""
        evicted = self._connections.add(connection, host)
        self._since_s[connection] = self._now_s()
        if evicted is None:
            self._figures.unauthenticated += 1
        else:
            self._since_s.pop(evicted, None)
        if not self._is_armed:
            self._arm(self._timeout_s)
        return evicted

    def remove(self, connection: Connection) -> None:
        """Count a connection out, because it has authenticated or ended; ignore an unknown one."""
        if self._connections.remove(connection):
            self._figures.unauthenticated -= 1
            self._since_s.pop(connection, None)

    def excuse(self, connection: Connection) -> None:
        """Remove the deadline of a connection that waits for its refusal and ends soon."""
        self._since_s.pop(connection, None)

    def take_first(self) -> Connection | None:
        """Count out and return the next connection to end for a new one; None if there is none."""
        connection = self._connections.first_to_end()
        if connection is not None:
            # now, so that the next call finds another one
            self.remove(connection)
        return connection

    def _arm(self, delay_s: float) -> None:
        self._is_armed = True
        self._call_later(delay_s, self._end_late)

    def _end_late(self) -> None:
        """End the connections that are late, and wait for the next one."""
        self._is_armed = False
        now_s = self._now_s()
        try:
            while self._since_s:
                connection, since_s = next(iter(self._since_s.items()))
                if since_s + self._timeout_s > now_s:
                    break
                self.excuse(connection)
                self._late(connection)
        finally:
            if self._since_s and not self._is_armed:
                self._arm(max(0.0, next(iter(self._since_s.values())) + self._timeout_s - now_s))
