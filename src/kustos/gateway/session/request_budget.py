"""Limits the bytes of requests that a process holds before it begins them.

Theory of operation. A frame that arrives in one read costs nothing here. The bytes of other frames count,
beyond a floor per connection. Once the budget is used up, the frames of a principal may grow while the
principal holds no more than its part; the part is smaller the more principals hold bytes. A principal
therefore never waits for another one that holds more. Any other frame waits: the gateway does not read its
socket, so its client waits (backpressure). Two frames that wait for each other's memory would wait forever,
so one frame at a time may grow beyond the limit: the frame with the turn.

Principals take turns, and so do the frames of one principal, so more connections do not shorten the wait. A
turn ends when the frame is whole, when it makes no progress, or after `TURN_S`: a principal waits one second
for each other one, however slowly they send. The frame continues at its principal's next turn. A principal
may hold its whole part in complete requests that wait for answers. It gets no turn until some of them have
begun, because no time limit ends such requests.

A frame must become whole soon while others wait; otherwise a client could hold the whole budget with frames
that never end. The gateway closes its connection after `FINISH_S`. The frames of unauthenticated clients do
not wait. These clients share a part of the budget. The gateway closes the connection of one that needs more
than is left of it, so they never delay authenticated clients.

The size of a read is not known in advance. Once the budget is used up, reads are therefore small, except for
a frame that may grow. The process may exceed the limit by the floor and a small read per connection, by one
large read, and by one part and one frame per principal.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from kustos.gateway.session.fair_queue import FairQueue
from kustos.gateway.session.large_turns import on_the_loop

REQUESTS_MAX_BYTES: Final = 256 * 2**20
"""The default limit: enough for two of the largest requests (`socket.request.max.bytes`) and for many usual
ones, which have at most a megabyte (a producer's `max.request.size`)."""

FLOOR_BYTES: Final = 16 * 2**10
"""The bytes of a connection that do not count, so that no login and no usual request ever waits or ends here.
OAUTHBEARER tokens and most Kerberos tokens are smaller."""

UNAUTHENTICATED_PART: Final = 4
"""Unauthenticated clients share a fourth of the budget: a login takes less than 64 KiB, the largest Kerberos
token."""

OWNERS_PART: Final = 4
"""The part of a principal is a fourth of the budget, or less if more than four principals hold bytes: three
must use up their parts before any frame waits."""

TURN_S: Final = 1.0
"""How long a frame may grow beyond its principal's part before the next turn. In this time, 100 MiB arrive at
a gigabit per second, the size of the largest request (`socket.request.max.bytes`)."""

PROGRESS_S: Final = 0.25
"""How often turns are checked. The interval is longer than a round trip to another continent, so a client
whose socket is read again has had the time to send."""

PROGRESS_BYTES: Final = 16 * 2**10
"""How much of the frame with the turn must arrive in that time; otherwise the turn ends: half a megabit per
second. A slower client does not finish a megabyte in `FINISH_S`."""

FINISH_S: Final = 10.0
"""How long the gateway reads a frame until it is whole while others wait: time for 100 MiB at a tenth of a
gigabit per second. Time during which the frame itself waits does not count."""

READ_BYTES: Final = 256 * 2**10
"""The maximum size of a read, as in asyncio's own buffers."""

SCARCE_READ_BYTES: Final = 2**10
"""The size of a read beyond the floor, for a connection whose frame has to wait: only a read shows that the
client sends more."""


class RequestOwner:
    """The bytes that one principal holds on all its connections."""

    __slots__ = ("__weakref__", "held_bytes", "parked_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self.parked_bytes = 0
        """The part of `held_bytes` in whole requests. They wait for kustos, so no time limit ends them."""


@dataclass(slots=True)
class Turn:
    """The turn of a frame and its progress."""

    share: "RequestShare"
    owner: RequestOwner
    began_s: float
    checked_s: float
    checked_bytes: int

    def is_over(self, now_s: float) -> bool:
        """Whether the turn ends if another frame waits."""
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
        self.unauthenticated_bytes = 0
        """The part of `used_bytes` that unauthenticated clients hold."""
        self.active_owners = 0
        """The number of owners that hold any of `used_bytes`."""
        self.ended = 0
        """The number of connections closed because their frame did not finish while others waited."""
        self.read_buffer: Final = memoryview(bytearray(READ_BYTES))
        """The memory for every read of every connection; the reader copies from it at once."""
        self._now_s: Final = now_s
        self._call_later: Final = call_later
        self._growing: Final[dict[RequestShare, float]] = {}
        """The unfinished frames that may grow, and the `_waited_s` at which each began."""
        self._owners: Final[WeakValueDictionary[Hashable, RequestOwner]] = WeakValueDictionary()
        """At most one for each session."""
        self._waiting: Final[FairQueue[RequestOwner, RequestShare]] = FairQueue()
        self._waited_before_s = self._waiting_since_s = 0.0
        self._turn: Turn | None = None
        """The turn of the frame that may grow although the budget is used up."""
        self._is_armed = False

    @property
    def waiting(self) -> int:
        """The number of frames that wait."""
        return len(self._waiting)

    def share(self, go_on: Callable[[], object], end: Callable[[], object]) -> "RequestShare":
        """Return the share of a new connection.

        The share calls `go_on` when its `waits` changes, so that the connection starts or stops reading. It
        calls `end` when the connection must end.
        """
        return RequestShare(self, go_on, end)

    def owner(self, key: Hashable) -> RequestOwner:
        """Return the owner with this key; it stays the same while any of its connections is open."""
        return self._owners.setdefault(key, RequestOwner())

    def count(self, change_bytes: int, *, is_unauthenticated: bool) -> None:
        """Count bytes that are held from now on; a negative number releases bytes."""
        self.used_bytes += change_bytes
        if is_unauthenticated:
            self.unauthenticated_bytes += change_bytes

    @property
    def unauthenticated_have_room(self) -> bool:
        """Whether unauthenticated clients hold no more than their part."""
        return self.unauthenticated_bytes <= self.max_bytes // UNAUTHENTICATED_PART

    @property
    def part_bytes(self) -> int:
        """The bytes that an owner may hold, however much others hold."""
        return self.max_bytes // max(self.active_owners, OWNERS_PART)

    @property
    def first(self) -> "RequestShare | None":
        """The share of the frame that has the turn."""
        return None if self._turn is None else self._turn.share

    def has_room(self, owner: RequestOwner) -> bool:
        """Whether an owner's frames may grow without a turn."""
        return self.used_bytes <= self.max_bytes or owner.held_bytes <= self.part_bytes

    def grow(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Let an unfinished frame grow, or make it wait."""
        if share is self.first or share.waits:
            return
        if self.has_room(owner):
            self._growing.setdefault(share, self._waited_s())
        else:
            self._wait(share, owner)
        self.serve()

    def leave(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Forget a frame that is whole or gone; the next frame of its owner may fit now."""
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
        """Let an owner have turns again, because fewer of its whole requests wait."""
        self._waiting.release(owner)

    def serve(self) -> None:
        """Resume the frames that fit; if none fits, resume one frame."""
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
        """Return the next frame that may continue; None if none fits and no owner may exceed the limit.

        Owners that hold their whole parts are skipped. The queue holds them back until they hold less
        (`unpark`), or until the next check, because their parts may have grown.
        """
        if self.used_bytes <= self.max_bytes:
            return self._waiting.first_of_all
        part_bytes = self.part_bytes
        while (found := self._waiting.first) is not None and found[0].parked_bytes > part_bytes:
            self._waiting.hold_back(found[0])
        return found

    def _waited_s(self) -> float:
        """Return for how many seconds any frame has waited: a frame is slow only while others wait."""
        since_s = self._now_s() - self._waiting_since_s if self._waiting else 0.0
        return self._waited_before_s + since_s

    def _wait(self, share: "RequestShare", owner: RequestOwner) -> None:
        """Make a frame wait behind the others of its owner."""
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
        """Remove a frame from the queue; the other frames of its owner move behind those of other owners."""
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
        """End slow frames and turns that are over, and resume frames that fit by now."""
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
        """Close the connections whose frames are late, if a frame waits that could continue."""
        if self._next() is not None:
            limit_s = self._waited_s() - FINISH_S
            for share in [share for share, since_s in self._growing.items() if since_s <= limit_s]:
                self.ended += 1
                share.end()

    def _pass_turn(self) -> None:
        """End the turn if it is over and others wait; its frame waits again."""
        turn = self._turn
        if turn is None or self.used_bytes <= self.max_bytes or not turn.is_over(self._now_s()):
            return
        if self._next() is None:
            return
        share, owner = turn.share, turn.owner
        self._turn = None
        self._wait(share, owner)
        # the frame stays before the other frames of its owner, even without progress: only one frame of an
        # owner may be partly held beyond the limit
        self._waiting.add_first(owner, share, share.go_on)
        self.serve()
        share.go_on()


class RequestShare:
    """The bytes held for the requests of one connection."""

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
        """The owner with the key, looked up at the first byte that counts: few connections hold that much."""
        self._parked_bytes = 0
        self.go_on = go_on
        self.end = end
        self.held_bytes = 0
        self.counted_bytes = 0
        """The part of `held_bytes` that counts against the limits: nothing up to the floor."""
        self.read_s = 0.0
        """How long the unfinished frame was read before it waited, while others waited."""
        self.waits = False
        """Whether the connection must not be read."""

    def scarce_buffer(self) -> memoryview:
        """Return the memory for the next read once the budget is used up.

        It is small, unless the frame of this connection may continue.
        """
        budget = self._budget
        buffer = budget.read_buffer
        if self is budget.first:
            return buffer
        owner = self._found_owner()
        if owner is None:
            # the client may log in within this read
            return buffer[:FLOOR_BYTES]
        uncounted_bytes = self.held_bytes - self.counted_bytes
        part_bytes = budget.part_bytes - owner.held_bytes - uncounted_bytes
        return buffer[: max(part_bytes, FLOOR_BYTES - self.held_bytes, SCARCE_READ_BYTES)]

    def belong_to(self, key: Hashable | None) -> None:
        """Hold nothing, and belong to the owner with this key; None: an unauthenticated client."""
        self.hold(0)
        self._key, self._owner = key, None

    def hold(self, size_bytes: int, *, is_unfinished: bool = False, has_finished: bool = False) -> bool:
        """Replace the number of bytes held.

        Return False if the client is unauthenticated and the unauthenticated part is used up.
        `is_unfinished`: the client has to send more before bytes can be released. `has_finished`: a frame
        became whole since the last call, so an unfinished one has just begun.
        """
        counted_bytes = size_bytes if size_bytes > FLOOR_BYTES else 0
        if not (counted_bytes or self.counted_bytes):
            # bytes that do not count change nothing
            self.held_bytes = size_bytes
            return True
        budget = self._budget
        owner = self._found_owner()
        change_bytes = counted_bytes - self.counted_bytes
        budget.count(change_bytes, is_unauthenticated=owner is None)
        self.held_bytes, self.counted_bytes = size_bytes, counted_bytes
        if owner is None:
            if change_bytes < 0:
                budget.serve()
            return change_bytes <= 0 or budget.unauthenticated_have_room
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
        """Return the owner with the key, None for an unauthenticated client."""
        if self._owner is None and self._key is not None:
            self._owner = self._budget.owner(self._key)
        return self._owner

    def close(self) -> None:
        """Release everything; nothing is held from now on."""
        self.hold(0)
        # the callbacks refer to the connection, which refers to this share: free both now, without garbage
        # collection
        self.go_on = self.end = _do_nothing


def _do_nothing() -> None:
    """Replace the callbacks of a connection that has ended."""
