"""Limits the bytes of requests that a process holds before it begins them.

Theory of operation. A frame that comes whole in one read costs nothing here. What is held of others is
counted, beyond a floor for each connection. Once all is used, a frame that needs more waits: its socket is
not read, so that its client waits (backpressure). Two frames that wait for each other's bytes would wait for
ever, so the one that waits longest goes on nevertheless. It goes beyond the limit by one frame at most; then
the next has its turn.

Whoever goes on must finish soon while others wait, else anybody could hold all of it with frames that never
end: after `FINISH_S` the connection ends. Strangers, who have not authenticated, do not wait. They share a
part of the whole, and one that needs more of it ends; so they hold up nobody who has.
"""

import time
from collections.abc import Callable
from typing import Final

from kustos.gateway.session.large_turns import on_the_loop

REQUESTS_MAX_BYTES: Final = 256 * 2**20
"""The default limit: room for two of the largest requests (`socket.request.max.bytes`) and for many usual
ones, which have a megabyte at most (a producer's `max.request.size`)."""

FLOOR_BYTES: Final = 16 * 2**10
"""What a connection may hold uncounted, so that no login and no everyday request ever waits or ends here:
tokens of OAUTHBEARER and most of Kerberos are smaller."""

STRANGERS_PART: Final = 4
"""Strangers get a fourth of the whole: a login takes less than 64 KiB, the largest Kerberos token."""

FINISH_S: Final = 10.0
"""How long a frame may take to finish while others wait: time for 100 MiB at a gigabit per second."""


class RequestBudget:
    """The bytes held by a process. Only the event loop may call it.

    `call_later` schedules a callback after a number of seconds.
    """

    def __init__(
        self,
        max_bytes: int = REQUESTS_MAX_BYTES,
        now_s: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], object] = on_the_loop,
    ) -> None:
        self.max_bytes: Final = max_bytes
        self.used_bytes = 0
        self.strangers_bytes = 0
        """Those of `used_bytes` that strangers hold."""
        self.ended = 0
        """Connections ended because their frame did not finish while others waited."""
        self._now_s: Final = now_s
        self._call_later: Final = call_later
        self._growing: Final[dict[RequestShare, float]] = {}
        """The unfinished frames that may grow, and since when."""
        self._waiting: Final[dict[RequestShare, None]] = {}
        self._first: RequestShare | None = None
        """The one that goes on although all is used."""
        self._is_armed = False

    @property
    def waiting(self) -> int:
        """How many frames wait."""
        return len(self._waiting)

    def share(self, go_on: Callable[[], object], end: Callable[[], object]) -> "RequestShare":
        """Return the part of a new connection. `go_on`: it may read again; `end`: it must end."""
        return RequestShare(self, go_on, end)

    def count(self, change_bytes: int, *, is_stranger: bool) -> None:
        """Count bytes that are held from now on, or no longer."""
        self.used_bytes += change_bytes
        if is_stranger:
            self.strangers_bytes += change_bytes

    @property
    def strangers_have_room(self) -> bool:
        """Whether strangers hold no more than their part."""
        return self.strangers_bytes <= self.max_bytes // STRANGERS_PART

    def grow(self, share: "RequestShare") -> None:
        """Let an unfinished frame grow, or wait."""
        if share is self._first or share in self._waiting:
            return
        if self.used_bytes > self.max_bytes:
            self._growing.pop(share, None)
            self._waiting[share] = None
            share.waits = True
            self._arm()
        else:
            self._growing.setdefault(share, self._now_s())
        self._serve()

    def leave(self, share: "RequestShare") -> None:
        """Forget a frame that is finished, or gone."""
        self._growing.pop(share, None)
        self._waiting.pop(share, None)
        share.waits = False
        if share is self._first:
            self._first = None
        self._serve()

    def _serve(self) -> None:
        """Let those go on for whom there is room, and one in any case."""
        while self._waiting and (self.used_bytes <= self.max_bytes or self._first is None):
            share = next(iter(self._waiting))
            del self._waiting[share]
            if self.used_bytes > self.max_bytes:
                self._first = share
            self._growing[share] = self._now_s()
            share.waits = False
            share.go_on()

    def _arm(self) -> None:
        if not self._is_armed and self._waiting:
            self._is_armed = True
            self._call_later(FINISH_S, self._end_slow)

    def _end_slow(self) -> None:
        """End those that have not finished in time, if others still wait."""
        self._is_armed = False
        if self._waiting:
            limit_s = self._now_s() - FINISH_S
            for share in [share for share, since_s in self._growing.items() if since_s <= limit_s]:
                self.ended += 1
                share.end()
        self._arm()


class RequestShare:
    """The bytes held of one connection's requests."""

    __slots__ = ("_budget", "_counted_bytes", "end", "go_on", "held_bytes", "is_stranger", "waits")

    def __init__(self, budget: RequestBudget, go_on: Callable[[], object], end: Callable[[], object]) -> None:
        self._budget: Final = budget
        self._counted_bytes = 0
        self.go_on = go_on
        self.end = end
        self.held_bytes = 0
        self.is_stranger = False
        """Whether the client has not authenticated; set it while nothing is held."""
        self.waits = False
        """Whether the connection must not be read."""

    def hold(self, size_bytes: int, *, is_unfinished: bool = False) -> bool:
        """Hold bytes in place of those before; return False for a stranger that gets no more.

        `is_unfinished`: the client has to send more before anything can be given back.
        """
        budget = self._budget
        counted_bytes = size_bytes if size_bytes > FLOOR_BYTES else 0
        grows = counted_bytes > self._counted_bytes
        budget.count(counted_bytes - self._counted_bytes, is_stranger=self.is_stranger)
        self.held_bytes, self._counted_bytes = size_bytes, counted_bytes
        if self.is_stranger:
            return not grows or budget.strangers_have_room
        if counted_bytes and is_unfinished:
            budget.grow(self)
        else:
            budget.leave(self)
        return True

    def close(self) -> None:
        """Give everything back; nothing is held from now on."""
        self.hold(0)
        # they refer to the connection, which refers to this: free it now, not at a later garbage collection
        self.go_on = self.end = _do_nothing


def _do_nothing() -> None:
    """Stand for what a connection that has ended would do."""
