"""Limits the bytes of requests that a process holds before it begins them.

Theory of operation. A frame that comes whole in one read costs nothing here. What is held of others is
counted, beyond a floor for each connection. Once the budget is used, a principal goes on as long as it holds
no more than its part, which is smaller the more principals hold anything: so nobody waits for others who hold
more. A frame beyond that waits: its socket is not read, so that its client waits (backpressure). Two frames
that wait for each other's bytes would wait for ever, so one at a time goes on nevertheless: it has the turn.

Principals take turns, and so do the frames of one principal, so that more connections do not shorten the
wait. A turn ends when the frame is whole, when it makes no progress, or after `TURN_S`: so a principal waits
for a second of each other one, however slowly these send. The frame goes on at its principal's next turn. A
principal whose whole requests that wait for answers take its part gets no turn until some have begun: nobody
ends these as slow.

A frame must finish soon while others wait; otherwise anybody could hold all of it with frames that never end:
after `FINISH_S` the connection ends. Strangers, who have not authenticated, do not wait. They share a part of
the whole, and one that needs more of it ends; so they hold up nobody who has.

Nobody knows what a read brings. So once the budget is used, reads are small, except those of a frame that
goes on. Beyond the limit there may be the floor and a small read of each connection, one large read, and for
each principal its part and one frame.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from kustos.gateway.session.fair_queue import FairQueue
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
"""The part of a principal is a fourth of the whole, or less where more than four hold anything: three must
use up theirs before anybody waits."""

TURN_S: Final = 1.0
"""How long a frame goes on beyond its principal's part before the next has its turn: a gigabit per second
brings 100 MiB in that time, the largest request (`socket.request.max.bytes`)."""

PROGRESS_S: Final = 0.25
"""How often it is checked who goes on and who must wait: longer than a round trip to another continent, so
that a client whose socket is read again has had the time to send."""

PROGRESS_BYTES: Final = 16 * 2**10
"""What must come in that time of the frame whose turn it is, or the turn ends: half a megabit per second. A
slower client does not finish a megabyte in `FINISH_S`."""

FINISH_S: Final = 10.0
"""How long a frame may be read while others wait until it is whole: time for 100 MiB at a tenth of a gigabit
per second. Time in which it waits itself does not count."""

READ_BYTES: Final = 256 * 2**10
"""What one read may bring, as with asyncio's own buffers."""

SCARCE_READ_BYTES: Final = 2**10
"""What a read may bring beyond the floor of a connection whose frame will have to wait: that it goes on there
is known once something came of it."""


class RequestOwner:
    """What one principal holds, on all its connections."""

    __slots__ = ("__weakref__", "held_bytes", "parked_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self.parked_bytes = 0
        """Those of `held_bytes` that wait for us, not for the client: nothing ends them as slow."""


@dataclass(slots=True)
class Turn:
    """The turn of a frame, and what came of it."""

    share: "RequestShare"
    owner: RequestOwner
    began_s: float
    checked_s: float
    checked_bytes: int

    def is_over(self, now_s: float) -> bool:
        """Whether the next has its turn, if another one waits."""
        if now_s - self.checked_s < PROGRESS_S:
            return False
        came_bytes = self.share.held_bytes - self.checked_bytes
        self.checked_s, self.checked_bytes = now_s, self.share.held_bytes
        return came_bytes < PROGRESS_BYTES or now_s - self.began_s >= TURN_S


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
        self.active_owners = 0
        """The owners that hold any of `used_bytes`."""
        self.ended = 0
        """Connections ended because their frame did not finish while others waited."""
        self.read_buffer: Final = memoryview(bytearray(READ_BYTES))
        """Where every read of every connection arrives; whoever reads copies from it at once."""
        self._now_s: Final = now_s
        self._call_later: Final = call_later
        self._growing: Final[dict[RequestShare, float]] = {}
        """The unfinished frames that may grow, and since when, by `_waited_s`."""
        self._owners: Final[WeakValueDictionary[Hashable, RequestOwner]] = WeakValueDictionary()
        """Those of sessions, so at most one for each connection."""
        self._waiting: Final[FairQueue[RequestOwner, RequestShare]] = FairQueue()
        self._waited_before_s = self._waiting_since_s = 0.0
        self._turn: Turn | None = None
        """That of the frame that goes on although all is used."""
        self._is_armed = False

    @property
    def waiting(self) -> int:
        """How many frames wait."""
        return len(self._waiting)

    def share(self, go_on: Callable[[], object], end: Callable[[], object]) -> "RequestShare":
        """Return the part of a new connection. `go_on`: it may read again, or must no longer, as its `waits`
        says; `end`: it must end.
        """
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

    @property
    def part_bytes(self) -> int:
        """How much an owner may hold, however much others do."""
        return self.max_bytes // max(self.active_owners, OWNERS_PART)

    @property
    def first(self) -> "RequestShare | None":
        """The frame whose turn it is."""
        return None if self._turn is None else self._turn.share

    def has_room(self, owner: RequestOwner) -> bool:
        """Whether an owner's frames may grow without a turn."""
        return self.used_bytes <= self.max_bytes or owner.held_bytes <= self.part_bytes

    def grow(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Let an unfinished frame grow, or wait."""
        if share is self.first or share.waits:
            return
        if self.has_room(owner):
            self._growing.setdefault(share, self._waited_s())
        else:
            self._wait(share, owner)
        self.serve()

    def leave(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Forget a frame that is finished, or gone; the next of its owner may have room now."""
        self._growing.pop(share, None)
        share.read_s = 0.0
        if share.waits:
            self._take(share, owner)
        if share is self.first:
            self._turn = None
        self.serve()
        if owner in self._waiting and self.has_room(owner):
            self._let_go_on(self._waiting.first_of(owner), owner)

    def unpark(self, owner: RequestOwner) -> None:
        """Let an owner have a turn again, as fewer of its requests wait for us."""
        self._waiting.release(owner)

    def serve(self) -> None:
        """Let those go on for whom there is room, and else one."""
        while self._waiting and (self.used_bytes <= self.max_bytes or self._turn is None):
            found = self._next()
            if found is None:
                return
            owner, share = found
            if self.used_bytes > self.max_bytes:
                now_s = self._now_s()
                self._turn = Turn(share, owner, now_s, now_s, share.held_bytes)
            self._let_go_on(share, owner)

    def _next(self) -> "tuple[RequestOwner, RequestShare] | None":
        """Return the frame whose turn it is; None if there is no room, and nobody may go beyond the limit.

        Owners that are passed over hold their parts. They are held back until they hold less (`unpark`), or
        until the next check, as their parts may have grown.
        """
        if self.used_bytes <= self.max_bytes:
            return self._waiting.first_of_all
        part_bytes = self.part_bytes
        while (found := self._waiting.first) is not None and found[0].parked_bytes > part_bytes:
            self._waiting.hold_back(found[0])
        return found

    def _waited_s(self) -> float:
        """Return for how many seconds so far anybody waited: what nobody waits for is not slow."""
        since_s = self._now_s() - self._waiting_since_s if self._waiting else 0.0
        return self._waited_before_s + since_s

    def _wait(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Let a frame wait behind the others of its owner."""
        since_s = self._growing.pop(share, None)
        if since_s is not None:
            share.read_s = self._waited_s() - since_s
        if not self._waiting:
            self._waiting_since_s = self._now_s()
        self._waiting.add(owner, share, share.go_on)
        share.waits = True
        self._arm()

    def _let_go_on(self, share: "RequestShare", owner: RequestOwner) -> None:
        self._take(share, owner)
        self._growing[share] = self._waited_s() - share.read_s
        share.go_on()

    def _take(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Take a frame from those that wait; the other frames of its owner come behind those of others."""
        waited_s = self._waited_s()
        self._waiting.take(owner, share)
        if not self._waiting:
            self._waited_before_s = waited_s
        share.waits = False

    def _arm(self) -> None:
        if not self._is_armed and self._waiting:
            self._is_armed = True
            self._call_later(PROGRESS_S, self._check)

    def _check(self) -> None:
        """See who has gone on for long enough, and who has room by now."""
        self._is_armed = False
        try:
            self._waiting.release_all()
            self._end_slow()
            self._pass_turn()
            self.serve()
            for owner in self._waiting.owners():
                if self.has_room(owner) and owner in self._waiting:
                    self._let_go_on(self._waiting.first_of(owner), owner)
        finally:
            self._arm()

    def _end_slow(self) -> None:
        """End those that have not finished in time, if others still wait, and not only for themselves."""
        if self._next() is not None:
            limit_s = self._waited_s() - FINISH_S
            for share in [share for share, since_s in self._growing.items() if since_s <= limit_s]:
                self.ended += 1
                share.end()

    def _pass_turn(self) -> None:
        """Let the frame whose turn it is wait again, if its turn is over and others wait."""
        turn = self._turn
        if turn is None or self.used_bytes <= self.max_bytes or not turn.is_over(self._now_s()):
            return
        if self._next() is None:
            return
        share, owner = turn.share, turn.owner
        self._turn = None
        self._wait(share, owner)
        # it goes on before its owner's others, whether or not it progresses: only one frame of an owner may
        # be held in part beyond the limit
        self._waiting.add_first(owner, share, share.go_on)
        self.serve()
        share.go_on()


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
        "read_s",
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
        self.read_s = 0.0
        """How long its unfinished frame was read before it waited, while others did."""
        self.waits = False
        """Whether the connection must not be read."""

    def scarce_buffer(self) -> memoryview:
        """Return the memory for the next read once the budget is used up.

        It is small, unless the frame of this connection may go on.
        """
        budget = self._budget
        buffer = budget.read_buffer
        if self is budget.first:
            return buffer
        owner = self._found_owner()
        if owner is None:
            # it may log in within this read
            return buffer[:FLOOR_BYTES]
        uncounted_bytes = self.held_bytes - self.counted_bytes
        part_bytes = budget.part_bytes - owner.held_bytes - uncounted_bytes
        return buffer[: max(part_bytes, FLOOR_BYTES - self.held_bytes, SCARCE_READ_BYTES)]

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
        owner = self._found_owner()
        change_bytes = counted_bytes - self.counted_bytes
        budget.count(change_bytes, is_stranger=owner is None)
        self.held_bytes, self.counted_bytes = size_bytes, counted_bytes
        if owner is None:
            if change_bytes < 0:
                budget.serve()
            return change_bytes <= 0 or budget.strangers_have_room
        parked_bytes = 0 if is_unfinished else counted_bytes
        held_before_bytes = owner.held_bytes
        owner.held_bytes += change_bytes
        if not held_before_bytes or not owner.held_bytes:
            budget.active_owners += bool(owner.held_bytes) - bool(held_before_bytes)
        owner.parked_bytes += parked_bytes - self._parked_bytes
        if parked_bytes < self._parked_bytes:
            budget.unpark(owner)
        self._parked_bytes = parked_bytes
        grows = counted_bytes > 0 and is_unfinished
        if has_finished or not grows:
            budget.leave(self, owner)
        if grows:
            budget.grow(self, owner)
        return True

    def _found_owner(self) -> RequestOwner | None:
        """Return whoever has the key, None for a stranger."""
        if self._owner is None and self._key is not None:
            self._owner = self._budget.owner(self._key)
        return self._owner

    def close(self) -> None:
        """Give everything back; nothing is held from now on."""
        self.hold(0)
        # they refer to the connection, which refers to this: free it now, not at a later garbage collection
        self.go_on = self.end = _do_nothing


def _do_nothing() -> None:
    """Stand for what a connection that has ended would do."""
