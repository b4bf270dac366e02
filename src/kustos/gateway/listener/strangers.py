"""The clients of one listener on their way to a login: counted, limited in number, and ended in time.

All of them have the same time, so whoever came first is the first to be late: one timer is enough, which is
set for the oldest. A timer of each connection would cost as much as half of what admits it.
"""

from collections.abc import Callable
from typing import Final, Generic

from kustos.gateway.listener.plans import ConnectionSettings, SocketFigures
from kustos.gateway.listener.unauthenticated import Connection, UnauthenticatedConnections
from kustos.gateway.session.large_turns import on_the_loop


class Strangers(Generic[Connection]):
    """The connections of a listener that have not authenticated. For one event loop.

    `late` is called with each that has not within `kustos.login.timeout.ms`. `call_later` schedules a
    callback after a number of seconds.
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
        """Since when, oldest first; of those that have a deadline."""
        self._is_armed = False

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: Connection, host: str) -> Connection | None:
        """Count a connection in; return the one that must end for it, None if there is room."""
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
        """Count a connection out, as it has authenticated or ended; an unknown one is ignored."""
        if self._connections.remove(connection):
            self._figures.unauthenticated -= 1
            self._since_s.pop(connection, None)

    def excuse(self, connection: Connection) -> None:
        """Let a connection stay that ends soon without a deadline: it waits for its refusal."""
        self._since_s.pop(connection, None)

    def take_first(self) -> Connection | None:
        """Count out the connection that makes room for another, and return it; None if there is none."""
        connection = self._connections.first_to_end()
        if connection is not None:
            # here and now, so that whoever makes room again finds another one
            self.remove(connection)
        return connection

    def _arm(self, delay_s: float) -> None:
        self._is_armed = True
        self._call_later(delay_s, self._end_late)

    def _end_late(self) -> None:
        """End those whose time is over, and wait for that of the next."""
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
