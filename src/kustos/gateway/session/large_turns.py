"""Schedules large requests in one queue for all connections of a process.

Theory of operation. One request with ten thousand names occupies the event loop for a tenth of a second, and
a client without any rights may send many of them, on many connections. The process therefore handles large
requests in turns: a handler yields during its work (`GiveWay`), and a rest several times as long follows a
long turn. Small requests are handled during the rest. A request that had its turn and yielded continues
first; otherwise, principals take turns, and so do the connections of one principal, in order of arrival; more
connections therefore do not shorten the wait. Unauthenticated clients take turns by network instead. A
request waits for its first turn before it is parsed, so reconnecting does not help. A request needs a new
turn after an answer of upstream or any other wait: many requests may have waited for the same result, and
would all continue first.

A small request may have a large answer, and its size is not known in advance. Rests follow its work as well.
The request waits among the large ones that have not begun: before its answer is parsed, unless no other
request waits, and whenever it has yielded. Many small requests therefore do not starve large ones.

A large Produce is mostly records, which cost nothing here: it waits only if its principal sent costly
requests recently.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final

from kustos.gateway.session.fair_queue import FairQueue
from kustos.wire import ApiKey

LARGE_FRAME_BYTES: Final = 2048
"""The size from which a request waits for a turn. A smaller one holds at most some 700 names, which take five
milliseconds; among everyday requests only those about a hundred partitions are larger."""

REQUESTS_PER_TURN: Final = 32
BYTES_PER_TURN: Final = 32 * 1024
"""The bytes of one connection that begin in one event loop iteration. One read may bring thousands of small
requests that are answered here, and the cost of a large request grows with its size."""

COSTLY_S: Final = 0.002
"""No rest follows shorter work. A hundred small requests take as long."""

REST_PER_WORK: Final = 3.0
"""The length of a rest, as a multiple of the preceding turn. Large requests get a quarter of the event loop,
and a small one is handled within one rest, even if its answer comes from upstream."""

REST_MAX_S: Final = 1.0
"""The longest rest: ten times the costliest request. A process that was suspended during a turn did not work
all that time."""

COSTLY_FOR_S: Final = 60.0
"""How long a principal's Produce waits for turns after a costly request."""

COSTLY_MAX: Final = 10_000
"""The maximum number of principals remembered as costly; beyond it the oldest entry is dropped."""

API_VERSIONS: Final = ApiKey.API_VERSIONS.to_bytes(2, "big")
PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")
"""The first two bytes of a request: its API key."""


class LargeTurns:
    """The queue. Only the event loop may call it.

    `now_s` is a clock that advances within one event loop iteration. `call_later` schedules a callback after
    a number of seconds, in another iteration.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.perf_counter,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._now_s: Final = now_s
        self._call_later: Final = call_later or on_the_loop
        self._waiting: Final[FairQueue[Hashable, QueuePlace]] = FairQueue()
        # an OrderedDict: finding the first key of a dict takes longer the more keys before it were removed
        self._costly: Final[OrderedDict[Hashable, float]] = OrderedDict()
        """The time until which an owner counts as costly."""
        self._amid: Final[OrderedDict[QueuePlace, Callable[[], object]]] = OrderedDict()
        """The places of requests that have begun and wait to continue. They precede others, so that few are
        open at once."""
        self._granted: QueuePlace | None = None
        self._rest_ends_s = 0.0
        self._is_armed = False

    def place(self, owner: Hashable) -> "QueuePlace":
        """Return the place of one connection; `owner` takes the turns.

        The owner is the principal of the client, or the network of an unauthenticated client, because all
        unauthenticated clients share one principal.
        """
        return QueuePlace(self, owner)

    def must_wait(self, owner: Hashable, frame: bytes) -> bool:
        """Return whether a request of at least `LARGE_FRAME_BYTES` waits for turns."""
        if frame[:2] != PRODUCE:
            return True
        return bool(self._costly) and self._now_s() < self._costly.get(owner, 0.0)

    def has_come(
        self, place: "QueuePlace", go_on: Callable[[], None], *, amid: bool, goes_first: bool = False
    ) -> bool:
        """Return whether it is this place's turn; if not, queue it and call `go_on` when it may be.

        `amid`: the request has begun; it always yields for one event loop iteration. `goes_first`: the
        request had a turn and has not waited for anything else since.
        """
        if place is self._granted:
            self._granted = None
            return True
        if not (amid or self._amid or self._waiting) and self._now_s() >= self._rest_ends_s:
            return True
        if goes_first:
            self._amid[place] = go_on
        else:
            self._waiting.add(place.owner, place, go_on)
        self._arm()
        return False

    def worked(self, owner: Hashable, took_s: float, *, is_large: bool = True) -> None:
        """Rest after `took_s` of work on a large request, or on a small one with a large answer.

        A place that waits already has a turn at the end of an earlier rest. Work without a turn, such as
        passing on the answer to a Fetch, does not delay that turn, because such work may arrive continuously.
        """
        if took_s < COSTLY_S:
            return
        now_s = self._now_s()
        if not (self._is_armed and (self._amid or self._waiting)):
            self._rest_ends_s = max(self._rest_ends_s, now_s + min(took_s * REST_PER_WORK, REST_MAX_S))
        if not is_large:
            # its Produce is not more likely to be costly
            return
        self._costly.pop(owner, None)
        self._costly[owner] = now_s + COSTLY_FOR_S
        if len(self._costly) > COSTLY_MAX:
            self._costly.popitem(last=False)

    def leave(self, place: "QueuePlace") -> None:
        """Remove a place that no longer waits."""
        self._amid.pop(place, None)
        self._waiting.remove(place.owner, place)

    def _arm(self) -> None:
        """Schedule the next turn, in another event loop iteration."""
        if not self._is_armed and (self._amid or self._waiting):
            self._is_armed = True
            self._call_later(max(0.0, self._rest_ends_s - self._now_s()), self._grant)

    def _grant(self) -> None:
        """Give the turn to the next place; a place that cannot use it now waits again, behind all others."""
        self._is_armed = False
        try:
            if self._now_s() >= self._rest_ends_s:
                self._grant_next()
        finally:
            self._granted = None
            self._arm()

    def _grant_next(self) -> None:
        if self._amid:
            self._granted, go_on = self._amid.popitem(last=False)
            go_on()
        elif (found := self._waiting.first) is not None:
            self._granted = found[1]
            self._waiting.take(*found)()


def on_the_loop(delay_s: float, callback: Callable[[], None]) -> object:
    """Schedule a callback after a number of seconds, in another iteration of the running event loop."""
    return asyncio.get_running_loop().call_later(delay_s, callback)


class QueuePlace:
    """One connection's place in the queue."""

    __slots__ = ("_turns", "owner")

    def __init__(self, turns: LargeTurns, owner: Hashable) -> None:
        self._turns: Final = turns
        self.owner: Final = owner

    def must_wait(self, frame: bytes) -> bool:
        """Return whether a request of at least `LARGE_FRAME_BYTES` waits for turns."""
        return self._turns.must_wait(self.owner, frame)

    def may_begin(self, go_on: Callable[[], None]) -> bool:
        """Return whether a large request may begin; if not, call `go_on` when it may."""
        return self._turns.has_come(self, go_on, amid=False)

    def may_go_on(self, go_on: Callable[[], None], *, goes_first: bool) -> bool:
        """Return whether a request that has begun may continue; if not, call `go_on` when it may.

        `goes_first`: it is large, had a turn, and has not waited for anything else since.
        """
        return self._turns.has_come(self, go_on, amid=True, goes_first=goes_first)

    def work(self, work: Callable[..., object], *arguments: Any, is_large: bool) -> None:
        """Work on a large request, or on one that may cost as much, and rest afterwards."""
        begun_s = time.perf_counter()
        work(*arguments)
        self.worked(time.perf_counter() - begun_s, is_large=is_large)

    def worked(self, took_s: float, *, is_large: bool = True) -> None:
        """Report how long the work on the request took."""
        self._turns.worked(self.owner, took_s, is_large=is_large)

    def leave(self) -> None:
        """Stop waiting."""
        self._turns.leave(self)
