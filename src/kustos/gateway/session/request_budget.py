"""Limits the bytes of requests that a process holds before it begins them.

Theory of operation. A frame that comes whole in one read costs nothing here. What is held of others is
counted, beyond a floor for each connection. Once the budget is used, a frame that needs more waits: its
socket is not read, so that its client waits (backpressure). Two frames that wait for each other's bytes would
wait for ever, so one at a time goes on nevertheless.

Principals take turns, and so do the frames of one principal, so that more connections do not shorten the
wait. Whoever holds more than a part of the whole, beside the frame that waits, comes behind those who do not.
If whole requests that wait for answers take that part already, it gets no turn until some have begun: nobody
ends these as slow.

Whoever goes on must finish soon while others wait; otherwise anybody could hold all of it with frames that
never end: after `FINISH_S` the connection ends. Strangers, who have not authenticated, do not wait. They
share a part of the whole, and one that needs more of it ends; so they hold up nobody who has.

Beyond the limit there may be one read of each connection, as nobody knows what a read brings, and the frames
that went on: at most an owner's part and one frame for each principal.
"""

import time
from collections.abc import Callable, Hashable
from typing import Final
from weakref import WeakValueDictionary

from kustos.gateway.session.large_turns import on_the_loop

REQUESTS_MAX_BYTES: Final = 256 * 2**20
"""The default limit: room for two of the largest requests (`socket.request.max.bytes`) and for many usual
ones, which have a megabyte at most (a producer's `max.request.size`)."""

FLOOR_BYTES: Final = 16 * 2**10
"""What a connection may hold uncounted, so that no login and no everyday request ever waits or ends here:
tokens of OAUTHBEARER and most of Kerberos are smaller."""

STRANGERS_PART: Final = 4
"""Strangers get a fourth of the whole: a login takes less than 64 KiB, the largest Kerberos token."""

OWNERS_PART: Final = 4
"""A principal comes behind others when it holds more than a fourth of the whole, beside the frame that waits:
three must do so to use all of it, and a frame of any size that is its principal's only one never does."""

FINISH_S: Final = 10.0
"""How long a frame may take to finish while others wait: time for 100 MiB at a gigabit per second."""


class RequestOwner:
    """What one principal holds, on all its connections."""

    __slots__ = ("__weakref__", "held_bytes", "parked_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self.parked_bytes = 0
        """Those of `held_bytes` that wait for us, not for the client: nothing ends them as slow."""


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
        self._owners: Final[WeakValueDictionary[Hashable, RequestOwner]] = WeakValueDictionary()
        """Those of sessions, so at most one for each connection."""
        self._waiting: Final[dict[RequestOwner, dict[RequestShare, None]]] = {}
        """The frames that wait, by owner; both in the order of their turns."""
        self._first: RequestShare | None = None
        """The one that goes on although all is used."""
        self._is_armed = False

    @property
    def waiting(self) -> int:
        """How many frames wait."""
        return sum(map(len, self._waiting.values()))

    def share(self, go_on: Callable[[], object], end: Callable[[], object]) -> "RequestShare":
        """Return the part of a new connection. `go_on`: it may read again; `end`: it must end."""
        return RequestShare(self, go_on, end)

    def owner(self, key: Hashable) -> RequestOwner:
        """Return the owner with this key, the same one while any of its connections lasts."""
        return self._owners.setdefault(key, RequestOwner())

    def count(self, change_bytes: int, *, is_stranger: bool) -> None:
        """Count bytes that are held from now on, or no longer."""
        self.used_bytes += change_bytes
        if is_stranger:
            self.strangers_bytes += change_bytes

    @property
    def strangers_have_room(self) -> bool:
        """Whether strangers hold no more than their part."""
        return self.strangers_bytes <= self.max_bytes // STRANGERS_PART

    def grow(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Let an unfinished frame grow, or wait."""
        if share is self._first or share.waits:
            return
        if self.used_bytes > self.max_bytes:
            self._growing.pop(share, None)
            self._waiting.setdefault(owner, {})[share] = None
            share.waits = True
            self._arm()
        else:
            self._growing.setdefault(share, self._now_s())
        self.serve()

    def leave(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Forget a frame that is finished, or gone."""
        self._growing.pop(share, None)
        if share.waits:
            self._take(share, owner)
        if share is self._first:
            self._first = None
        self.serve()

    def serve(self) -> None:
        """Let those go on for whom there is room, and else one."""
        while self._waiting and (self.used_bytes <= self.max_bytes or self._first is None):
            found = self._next()
            if found is None:
                return
            share, owner = found
            self._take(share, owner)
            if self.used_bytes > self.max_bytes:
                self._first = share
            self._growing[share] = self._now_s()
            share.go_on()

    def _next(self) -> "tuple[RequestShare, RequestOwner] | None":
        """Return the frame whose turn it is; None if there is no room, and nobody may go beyond the limit.

        Few are passed over: each of their owners holds a part of the whole.
        """
        part_bytes = self.max_bytes // OWNERS_PART
        behind = None
        for owner, shares in self._waiting.items():
            share = next(iter(shares))
            if owner.held_bytes - share.counted_bytes <= part_bytes:
                return share, owner
            may_go_on = self.used_bytes <= self.max_bytes or owner.parked_bytes <= part_bytes
            if behind is None and may_go_on:
                behind = share, owner
        return behind

    def _take(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Take a frame from those that wait; the other frames of its owner come behind those of others."""
        shares = self._waiting.pop(owner)
        del shares[share]
        if shares:
            self._waiting[owner] = shares
        share.waits = False

    def _arm(self) -> None:
        if not self._is_armed and self._waiting:
            self._is_armed = True
            self._call_later(FINISH_S, self._end_slow)

    def _end_slow(self) -> None:
        """End those that have not finished in time, if others still wait, and not only for themselves."""
        self._is_armed = False
        if self._next() is not None:
            limit_s = self._now_s() - FINISH_S
            for share in [share for share, since_s in self._growing.items() if since_s <= limit_s]:
                self.ended += 1
                share.end()
        self._arm()


class RequestShare:
    """The bytes held of one connection's requests."""

    __slots__ = (
        "_budget",
        "_key",
        "_owner",
        "_parked_bytes",
        "counted_bytes",
        "end",
        "go_on",
        "held_bytes",
        "waits",
    )

    def __init__(self, budget: RequestBudget, go_on: Callable[[], object], end: Callable[[], object]) -> None:
        self._budget: Final = budget
        self._key: Hashable | None = None
        self._owner: RequestOwner | None = None
        """Whoever has the key, from the first byte that counts: few connections ever hold so much."""
        self._parked_bytes = 0
        self.go_on = go_on
        self.end = end
        self.held_bytes = 0
        self.counted_bytes = 0
        """Those of `held_bytes` that count against the limits: none up to the floor."""
        self.waits = False
        """Whether the connection must not be read."""

    def belong_to(self, key: Hashable | None) -> None:
        """Hold nothing, and from now on for the owner with this key; None: for a stranger."""
        self.hold(0)
        self._key, self._owner = key, None

    def hold(self, size_bytes: int, *, is_unfinished: bool = False, has_finished: bool = False) -> bool:
        """Hold bytes in place of those before; return False for a stranger that gets no more.

        `is_unfinished`: the client has to send more before anything can be given back. `has_finished`: a
        frame became whole since the last call, so that an unfinished one has just begun.
        """
        counted_bytes = size_bytes if size_bytes > FLOOR_BYTES else 0
        if not (counted_bytes or self.counted_bytes):
            # what does not count changes nothing for anybody
            self.held_bytes = size_bytes
            return True
        budget = self._budget
        if self._owner is None and self._key is not None:
            self._owner = budget.owner(self._key)
        owner = self._owner
        change_bytes = counted_bytes - self.counted_bytes
        budget.count(change_bytes, is_stranger=owner is None)
        self.held_bytes, self.counted_bytes = size_bytes, counted_bytes
        if owner is None:
            if change_bytes < 0:
                budget.serve()
            return change_bytes <= 0 or budget.strangers_have_room
        parked_bytes = 0 if is_unfinished else counted_bytes
        owner.held_bytes += change_bytes
        owner.parked_bytes += parked_bytes - self._parked_bytes
        self._parked_bytes = parked_bytes
        grows = counted_bytes > 0 and is_unfinished
        if has_finished or not grows:
            budget.leave(self, owner)
        if grows:
            budget.grow(self, owner)
        return True

    def close(self) -> None:
        """Give everything back; nothing is held from now on."""
        self.hold(0)
        # they refer to the connection, which refers to this: free it now, not at a later garbage collection
        self.go_on = self.end = _do_nothing


def _do_nothing() -> None:
    """Stand for what a connection that has ended would do."""
