"""Theorems about the request budget: bytes are released, no frame waits forever, and owners take turns."""

from collections.abc import Callable
from functools import partial

from hypothesis import example, given
from hypothesis import strategies as st

from kustos.gateway.session.request_budget import (
    FINISH_S,
    FLOOR_BYTES,
    OWNERS_PART,
    PROGRESS_BYTES,
    PROGRESS_S,
    READ_BYTES,
    SCARCE_READ_BYTES,
    TURN_S,
    UNAUTHENTICATED_PART,
    RequestBudget,
    RequestShare,
)

CONNECTIONS = 8
UNAUTHENTICATED = 2
OWNERS = ("alice", "bob", "carol")
MAX_BYTES = 10 * FLOOR_BYTES
SIZES = st.integers(0, MAX_BYTES)
STEPS = st.lists(
    st.tuples(
        st.integers(0, CONNECTIONS - 1),
        st.sampled_from(["grow", "finish", "finish and begin", "wait its turn", "end", "time"]),
        SIZES,
    ),
    max_size=60,
)


BEHIND = [
    (3, "grow", MAX_BYTES),
    (2, "grow", MAX_BYTES),
    (6, "grow", MAX_BYTES),
    (4, "grow", 2 * FLOOR_BYTES),
    (2, "finish", 0),
]
"""One waits whose owner is beyond its part, then one whose owner is not; then there is a turn."""


class World:
    """Connections of three principals, behind unauthenticated ones, on a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.budget = RequestBudget(MAX_BYTES, lambda: self.now_s, self.call_later)
        self.ended: set[int] = set()
        self.parked: dict[int, int] = {}
        """Bytes of the requests that wait for us, by connection."""
        self.shares = [self.budget.share(self.server(at), self.ender(at)) for at in range(CONNECTIONS)]
        for at in range(UNAUTHENTICATED, CONNECTIONS):
            self.shares[at].belong_to(self.owner(at))

    def owner(self, at: int) -> str:
        return OWNERS[at % len(OWNERS)]

    def held(self, at: int) -> int:
        held_bytes = self.shares[at].held_bytes
        return held_bytes if held_bytes > FLOOR_BYTES else 0

    def of_owner(self, at: int) -> list[int]:
        return [each for each in range(UNAUTHENTICATED, CONNECTIONS) if self.owner(each) == self.owner(at)]

    def waiting(self) -> list[int]:
        return [at for at, share in enumerate(self.shares) if share.waits]

    def is_beyond(self, at: int) -> bool:
        """Whether the connection's owner holds more than its part on its other connections."""
        return sum(self.held(each) for each in self.of_owner(at) if each != at) > MAX_BYTES // OWNERS_PART

    def is_kept(self, at: int) -> bool:
        """Whether the connection's owner has more than its part in requests that wait for us."""
        return sum(self.parked.get(each, 0) for each in self.of_owner(at)) > MAX_BYTES // OWNERS_PART

    def server(self, at: int) -> Callable[[], None]:
        def go_on() -> None:
            if self.is_beyond(at):
                waiting = self.waiting()
                beyond = {self.owner(each) for each in waiting if self.is_beyond(each)}
                assert {self.owner(each) for each in waiting} <= beyond, "an owner over its share comes later"

        return go_on

    def ender(self, at: int) -> Callable[[], None]:
        def end() -> None:
            self.ended.add(at)
            self.hold(at, 0)

        return end

    def hold(self, at: int, size: int, *, is_unfinished: bool = False, has_finished: bool = False) -> None:
        self.parked[at] = 0 if is_unfinished or size <= FLOOR_BYTES else size
        if not self.shares[at].hold(size, is_unfinished=is_unfinished, has_finished=has_finished):
            self.shares[at].hold(0)

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
                self.hold(at, share.held_bytes + size, is_unfinished=True)
            case "finish and begin" if not share.waits:
                self.hold(at, size, is_unfinished=True, has_finished=True)
            case "wait its turn" if not share.waits:
                self.hold(at, share.held_bytes)
            case "finish" | "end":
                self.hold(at, 0)
            case "time":
                self.pass_time(size / MAX_BYTES * FINISH_S)

    def check(self) -> None:
        counted = [self.held(at) for at in range(CONNECTIONS)]
        assert self.budget.used_bytes == sum(counted)
        assert self.budget.unauthenticated_bytes == sum(counted[:UNAUTHENTICATED])
        for name, owner in self.budget._owners.items():
            mine = [at for at in range(UNAUTHENTICATED, CONNECTIONS) if self.owner(at) == name]
            assert owner.held_bytes == sum(counted[at] for at in mine)
            assert owner.parked_bytes == sum(self.parked.get(at, 0) for at in mine)
        assert self.budget.unauthenticated_bytes <= MAX_BYTES // UNAUTHENTICATED_PART
        assert self.budget.waiting == sum(share.waits for share in self.shares)
        assert not any(share.waits for share in self.shares[:UNAUTHENTICATED])
        assert self.budget.used_bytes > MAX_BYTES or not self.waiting()
        assert all(share.held_bytes > FLOOR_BYTES for share in self.shares if share.waits)


@given(steps=STEPS)
@example(steps=BEHIND)
def test_the_used_budget_equals_the_held_bytes_and_is_released(steps: list[tuple[int, str, int]]) -> None:
    world = World()
    for step in steps:
        world.do(*step)
        world.check()
    for share in world.shares:
        share.hold(0)
    assert (world.budget.used_bytes, world.budget.unauthenticated_bytes, world.budget.waiting) == (0, 0, 0)


@given(steps=STEPS)
def test_some_frame_always_progresses_and_each_has_its_turn(
    steps: list[tuple[int, str, int]],
) -> None:
    world = World()
    for step in steps:
        world.do(*step)
        first = world.budget.first
        assert first is not None or all(world.is_kept(at) for at in world.waiting())
        assert first is None or not first.waits
    for at in range(UNAUTHENTICATED, CONNECTIONS):
        if world.parked.get(at):
            world.hold(at, 0)
    waiting = [share for share in world.shares if share.waits]
    for _ in range(2 * CONNECTIONS):
        world.pass_time(FINISH_S)
    assert not any(share.waits for share in waiting), "an unfinished frame releases its space"


@given(steps=STEPS, others=st.integers(2, 20), size=st.sampled_from([FLOOR_BYTES + 1, MAX_BYTES]))
@example(steps=[], others=3, size=FLOOR_BYTES + 1)
def test_more_frames_of_one_owner_do_not_lengthen_the_wait_of_another(
    steps: list[tuple[int, str, int]], others: int, size: int
) -> None:
    world = World()
    for step in steps:
        world.do(*step)
    full = world.budget.share(lambda: None, lambda: None)
    full.belong_to("full")
    full.hold(MAX_BYTES)
    flood = [world.budget.share(lambda: None, lambda: None) for _ in range(others)]
    turns: list[int] = []
    for at, share in enumerate(flood):
        share.go_on = partial(turns.append, at)
        share.end = partial(share.hold, 0)
        share.belong_to("mallory")
        share.hold(size, is_unfinished=True)
    honest = world.budget.share(lambda: turns.append(-1), lambda: None)
    honest.belong_to("honest")
    honest.hold(2 * FLOOR_BYTES, is_unfinished=True)
    begun = len(turns)
    if honest.waits:
        for _ in range(2 * (len(OWNERS) + 2)):
            world.pass_time(FINISH_S)
        assert -1 in turns[begun : begun + 2], "one of the flood may be ahead"
    assert not honest.waits


STEP_S = PROGRESS_S / 5
PER_STEP = st.integers(0, 4 * PROGRESS_BYTES)


@given(
    rates=st.lists(st.lists(PER_STEP, min_size=1, max_size=3), min_size=1, max_size=6),
    own_steps=st.integers(1, 40),
)
@example(rates=[[0]] * 6, own_steps=1)
@example(rates=[[PROGRESS_BYTES]] * 6, own_steps=40)
def test_a_frame_waits_for_at_most_one_turn_of_each_other_owner(
    rates: list[list[int]], own_steps: int
) -> None:
    """Unfinished frames of owners grow by some bytes in each step; then one frame needs several steps."""
    world = World()
    flood: list[tuple[RequestShare, int]] = []
    for number, connections in enumerate(rates):
        for rate in connections:
            share = world.budget.share(lambda: None, lambda: None)
            share.end = partial(share.hold, 0)
            share.belong_to(f"mallory-{number}")
            share.hold(MAX_BYTES, is_unfinished=True)
            flood.append((share, rate))
    honest = world.budget.share(lambda: None, lambda: None)
    honest.belong_to("honest")
    honest.hold(MAX_BYTES // OWNERS_PART + 1, is_unfinished=True)
    waited_s, longest_s = 0.0, 0.0
    while own_steps:
        for share, rate in flood:
            if not share.waits and share.held_bytes:
                share.hold(share.held_bytes + rate, is_unfinished=True)
        if honest.waits:
            waited_s += STEP_S
            longest_s = max(longest_s, waited_s)
        else:
            waited_s, own_steps = 0.0, own_steps - 1
            honest.hold(honest.held_bytes + PROGRESS_BYTES, is_unfinished=True)
        world.pass_time(STEP_S)
    # and for a second one of the owner that was ahead, whose turn it was
    assert longest_s <= (len(rates) + 1) * (TURN_S + PROGRESS_S + STEP_S)


@given(owners=st.integers(1, 40), size=SIZES)
def test_an_owner_within_its_share_never_waits(owners: int, size: int) -> None:
    world = World()
    for number in range(owners):
        share = world.budget.share(lambda: None, lambda: None)
        share.belong_to(number)
        share.hold(MAX_BYTES, is_unfinished=True)
    honest = world.budget.share(lambda: None, lambda: None)
    honest.belong_to("honest")
    honest.hold(size, is_unfinished=True)
    part_bytes = MAX_BYTES // max(OWNERS_PART, owners + 1)
    assert not honest.waits or honest.counted_bytes > part_bytes
    assert world.budget.active_owners == owners + bool(honest.counted_bytes)


@given(steps=STEPS, held=SIZES, extra=st.integers(0, MAX_BYTES))
@example(steps=[(2, "grow", MAX_BYTES), (3, "grow", MAX_BYTES)], held=0, extra=MAX_BYTES)
def test_a_read_over_the_limit_is_small_unless_its_frame_has_the_turn(
    steps: list[tuple[int, str, int]], held: int, extra: int
) -> None:
    world = World()
    for step in steps:
        world.do(*step)
    budget = world.budget
    share = budget.share(lambda: None, lambda: None)
    share.belong_to("mallory")
    share.hold(held, is_unfinished=True)
    room_bytes, was_used_up = len(share.scarce_buffer()), budget.used_bytes > budget.max_bytes
    assert 0 < room_bytes <= READ_BYTES
    if share.waits or share is budget.first or not was_used_up:
        return
    share.hold(held + min(room_bytes, extra), is_unfinished=True)
    beyond_bytes = share.held_bytes - max(FLOOR_BYTES, budget.part_bytes)
    assert beyond_bytes <= SCARCE_READ_BYTES


@given(sizes=st.lists(SIZES, min_size=1, max_size=CONNECTIONS))
def test_no_frame_waits_while_there_is_space(sizes: list[int]) -> None:
    budget = RequestBudget(sum(sizes), lambda: 0.0, lambda _delay, _callback: None)
    shares = [RequestShare(budget, lambda: None, lambda: None) for _ in sizes]
    for share, size in zip(shares, sizes, strict=True):
        share.belong_to("alice")
        assert share.hold(size, is_unfinished=True)
    assert budget.waiting == 0
