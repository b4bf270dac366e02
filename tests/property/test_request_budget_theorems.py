"""Theorems about the budget for requests: all is given back, and nobody waits for ever."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.session.request_budget import (
    FINISH_S,
    FLOOR_BYTES,
    STRANGERS_PART,
    RequestBudget,
    RequestShare,
)

CONNECTIONS = 6
MAX_BYTES = 10 * FLOOR_BYTES
SIZES = st.integers(0, MAX_BYTES)
STEPS = st.lists(
    st.tuples(
        st.integers(0, CONNECTIONS - 1),
        st.sampled_from(["grow", "finish", "wait its turn", "end", "time"]),
        SIZES,
    ),
    max_size=60,
)


class World:
    """Connections of which the first two are strangers, on a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.budget = RequestBudget(MAX_BYTES, lambda: self.now_s, self.call_later)
        self.ended: set[int] = set()
        self.shares = [self.budget.share(lambda: None, self.ender(at)) for at in range(CONNECTIONS)]
        for share in self.shares[:2]:
            share.is_stranger = True

    def ender(self, at: int) -> Callable[[], None]:
        def end() -> None:
            self.ended.add(at)
            self.shares[at].hold(0)

        return end

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.timers.append((self.now_s + delay_s, callback))

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        due = [callback for at_s, callback in self.timers if at_s <= self.now_s]
        self.timers = [timer for timer in self.timers if timer[0] > self.now_s]
        for callback in due:
            callback()

    def do(self, at: int, step: str, size: int) -> None:
        share = self.shares[at]
        match step:
            case "grow" if not share.waits:
                if not share.hold(share.held_bytes + size, is_unfinished=True):
                    share.hold(0)
            case "finish":
                share.hold(0)
            case "wait its turn" if not share.waits:
                share.hold(share.held_bytes)
            case "end":
                share.hold(0)
            case "time":
                self.pass_time(size / MAX_BYTES * FINISH_S)

    def check(self) -> None:
        counted = [share.held_bytes if share.held_bytes > FLOOR_BYTES else 0 for share in self.shares]
        assert self.budget.used_bytes == sum(counted)
        assert self.budget.strangers_bytes == sum(counted[:2])
        assert self.budget.strangers_bytes <= MAX_BYTES // STRANGERS_PART
        assert self.budget.waiting == sum(share.waits for share in self.shares)
        assert not any(share.waits for share in self.shares[:2])
        assert all(share.held_bytes > FLOOR_BYTES for share in self.shares if share.waits)


@given(steps=STEPS)
def test_what_is_used_is_what_is_held_and_all_of_it_is_given_back(steps: list[tuple[int, str, int]]) -> None:
    world = World()
    for step in steps:
        world.do(*step)
        world.check()
    for share in world.shares:
        share.hold(0)
    assert (world.budget.used_bytes, world.budget.strangers_bytes, world.budget.waiting) == (0, 0, 0)


@given(steps=STEPS)
def test_some_frame_may_always_go_on_while_others_wait_and_each_has_its_turn(
    steps: list[tuple[int, str, int]],
) -> None:
    world = World()
    for step in steps:
        world.do(*step)
        waiting = [share for share in world.shares if share.waits]
        assert not waiting or world.budget._first is not None
        assert world.budget._first is None or not world.budget._first.waits
    waiting = [share for share in world.shares if share.waits]
    for _ in range(2 * CONNECTIONS):
        world.pass_time(FINISH_S)
    assert not any(share.waits for share in waiting), "who does not finish makes room"


@given(sizes=st.lists(SIZES, min_size=1, max_size=CONNECTIONS))
def test_nobody_waits_while_there_is_room(sizes: list[int]) -> None:
    budget = RequestBudget(sum(sizes), lambda: 0.0, lambda _delay, _callback: None)
    shares = [RequestShare(budget, lambda: None, lambda: None) for _ in sizes]
    for share, size in zip(shares, sizes, strict=True):
        assert share.hold(size, is_unfinished=True)
    assert budget.waiting == 0
