"""Theorems about the queue of large requests, on a clock that only work and timers advance."""

import heapq
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count, pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from kustos.acl import KafkaPrincipal
from kustos.gateway.session.large_turns import COSTLY_S, REST_MAX_S, REST_PER_WORK, LargeTurns, QueuePlace

PRINCIPALS = [KafkaPrincipal("User", name) for name in "abc"]
PARTS = st.lists(st.floats(0.0001, 0.5), min_size=1, max_size=4)
"""The duration of each part of a request, in seconds."""

CONNECTIONS = st.lists(
    st.tuples(st.sampled_from(PRINCIPALS), st.lists(PARTS, min_size=1, max_size=3), st.booleans()),
    min_size=1,
    max_size=6,
)
"""A connection's principal, its requests, and whether it closes while it waits for the second."""

ROUNDING_S = 1e-9


@dataclass
class Worked:
    """A turn that a connection took."""

    owner: Hashable
    begun_s: float
    ended_s: float
    is_first: bool
    waited: frozenset[Hashable]
    """The owners waiting to begin when it began."""


@dataclass
class Loop:
    """A stand-in for the event loop."""

    now_s: float = 0.0
    timers: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    worked: list[Worked] = field(default_factory=list)
    numbers: "count[int]" = field(default_factory=count)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self.timers, (self.now_s + delay_s, next(self.numbers), callback))

    def run(self) -> None:
        while self.timers:
            at_s, _, callback = heapq.heappop(self.timers)
            self.now_s = max(self.now_s, at_s)
            callback()


@dataclass
class Connection:
    """A connection that works through its requests, one part per turn."""

    loop: Loop
    place: QueuePlace
    requests: list[list[float]]
    everybody: list["Connection"]
    part: int = 0
    is_waiting: bool = False
    """Whether it asked for a turn and got none: between its requests a connection does not wait."""

    def may_work(self) -> bool:
        is_begun = self.part > 0
        return (
            self.place.may_go_on(self.go_on, goes_first=True)
            if is_begun
            else self.place.may_begin(self.go_on)
        )

    def go_on(self) -> None:
        if not self.requests:
            return
        self.is_waiting = not self.may_work()
        if self.is_waiting:
            return
        begun_s, owner = self.loop.now_s, self.place.owner
        waited = {
            each.place.owner
            for each in self.everybody
            if each is not self and each.is_waiting and each.requests and not each.part
        }
        self.loop.now_s += self.requests[0][self.part]
        is_first = self.part == 0
        self.loop.worked.append(Worked(owner, begun_s, self.loop.now_s, is_first, frozenset(waited)))
        self.place.worked(self.loop.now_s - begun_s)
        self.part += 1
        if self.part < len(self.requests[0]):
            self.go_on()
            return
        self.part = 0
        del self.requests[0]
        self.loop.call_later(0, self.go_on)

    def end(self) -> None:
        if len(self.requests) == 1 and not self.part:
            self.place.leave()
            self.requests.clear()


def worked_through(connections: list[tuple[KafkaPrincipal, list[list[float]], bool]]) -> Loop:
    """Return the loop after all requests are done; none may be left."""
    loop = Loop()
    turns = LargeTurns(lambda: loop.now_s, loop.call_later)
    everybody: list[Connection] = []
    for principal, requests, _ in connections:
        copied = [list(parts) for parts in requests]
        everybody.append(Connection(loop, turns.place(principal), copied, everybody))
    for connection, (_, _, ends) in zip(everybody, connections, strict=True):
        loop.call_later(0, connection.go_on)
        if ends:
            loop.call_later(0.3, connection.end)
    loop.run()
    assert not any(each.requests for each in everybody), "no request waits forever"
    return loop


@given(CONNECTIONS)
def test_a_costly_turn_is_followed_by_a_proportional_pause(
    connections: list[tuple[KafkaPrincipal, list[list[float]], bool]],
) -> None:
    worked = worked_through(connections).worked
    for one, next_one in pairwise(worked):
        took_s = one.ended_s - one.begun_s
        if took_s >= COSTLY_S:
            rest_s = min(took_s * REST_PER_WORK, REST_MAX_S)
            assert next_one.begun_s - one.ended_s >= rest_s - ROUNDING_S


@given(CONNECTIONS)
@example(
    [
        (PRINCIPALS[0], [[COSTLY_S * 0.9]], False),
        *([(PRINCIPALS[0], [[0.5]], False)] * 2),
        (PRINCIPALS[1], [[0.5]], False),
    ]
)
def test_no_principal_starts_repeatedly_while_another_waits_to_start(
    connections: list[tuple[KafkaPrincipal, list[list[float]], bool]],
) -> None:
    begun = [each for each in worked_through(connections).worked if each.is_first]
    for waiting in PRINCIPALS:
        since: Counter[Hashable] = Counter()
        for each in begun:
            if each.owner == waiting or waiting not in each.waited:
                since.clear()
            else:
                since[each.owner] += 1
                # it may have been ahead of the other one in the queue once
                assert since[each.owner] <= 2


@given(CONNECTIONS)
def test_a_started_request_finishes_before_the_next_starts(
    connections: list[tuple[KafkaPrincipal, list[list[float]], bool]],
) -> None:
    parts = sorted(len(parts) for _, requests, ends in connections for parts in requests if not ends)
    lengths: list[int] = []
    for each in worked_through(connections).worked:
        if each.is_first:
            lengths.append(0)
        lengths[-1] += 1
    for length in parts:
        assert length in lengths
        lengths.remove(length)
