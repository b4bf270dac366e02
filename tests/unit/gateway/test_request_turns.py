"""The turns of large requests, on a clock of their own: their order, their end, and the time that counts."""

from collections.abc import Callable

from kustos.gateway.session.request_budget import (
    FINISH_S,
    FLOOR_BYTES,
    PROGRESS_BYTES,
    PROGRESS_S,
    TURN_S,
    RequestBudget,
    RequestShare,
)

ROOM_BYTES = 40 * FLOOR_BYTES
LARGE_BYTES = 30 * FLOOR_BYTES


class Turns:
    """A budget whose clock is advanced by the test."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.timers: list[Callable[[], None]] = []
        self.ended: list[str] = []
        self.budget = RequestBudget(
            ROOM_BYTES, lambda: self.now_s, lambda _delay, callback: self.timers.append(callback)
        )

    def frame(self, name: str, owner: str, size_bytes: int = LARGE_BYTES) -> RequestShare:
        """Begin an unfinished frame."""
        share = self.budget.share(lambda: None, lambda: None)

        def end() -> None:
            self.ended.append(name)
            share.hold(0)

        share.end = end
        share.belong_to(owner)
        share.hold(size_bytes, is_unfinished=True)
        return share

    def pass_time(self, seconds: float, *sending: RequestShare) -> None:
        """Let time pass until the next check; some frames get enough bytes meanwhile."""
        self.now_s += seconds
        for share in sending:
            if not share.waits and share.held_bytes:
                share.hold(share.held_bytes + PROGRESS_BYTES, is_unfinished=True)
        timers, self.timers = self.timers, []
        for callback in timers:
            callback()

    def first(self, **names: RequestShare) -> str | None:
        """Return the name of the frame whose turn it is."""
        return next((name for name, share in names.items() if share is self.budget.first), None)


def used_up() -> Turns:
    """Return a budget that is used up by a request that waits for an answer."""
    turns = Turns()
    turns.frame("hoarder", "hoarder", FLOOR_BYTES).hold(ROOM_BYTES + 1)
    return turns


def test_a_progressing_frame_keeps_its_turn_and_precedes_other_frames_of_its_owner() -> None:
    turns = used_up()
    a, a2 = turns.frame("a", "alice"), turns.frame("a2", "alice")
    b = turns.frame("b", "bob")
    assert turns.first(a=a, a2=a2, b=b) == "a"
    checks = int(TURN_S / PROGRESS_S)
    seen = []
    for _ in range(3 * checks):
        turns.pass_time(PROGRESS_S, a, a2, b)
        seen.append(turns.first(a=a, a2=a2, b=b))
    assert seen == ["a"] * (checks - 1) + ["b"] * checks + ["a"] * checks + ["b"]
    assert (a.waits, a2.waits, b.waits) == (True, True, False)


def test_a_stalled_frame_loses_its_turn_and_its_owner_starts_no_other() -> None:
    """Otherwise an owner with many connections would have many incomplete frames."""
    turns = used_up()
    a, a2 = turns.frame("a", "alice"), turns.frame("a2", "alice")
    b = turns.frame("b", "bob")
    seen = []
    for _ in range(4):
        turns.pass_time(PROGRESS_S, b)
        seen.append(turns.first(a=a, a2=a2, b=b))
    assert seen == ["b"] * 4
    turns.pass_time(PROGRESS_S, b)
    assert turns.first(a=a, a2=a2, b=b) == "a"


def test_a_turn_does_not_pass_between_the_frames_of_one_owner() -> None:
    """Otherwise each frame would be held in part, and none would be complete."""
    turns = used_up()
    a, a2 = turns.frame("a", "alice"), turns.frame("a2", "alice")
    for sending in ([a, a2], []):
        for _ in range(int(2 * TURN_S / PROGRESS_S)):
            turns.pass_time(PROGRESS_S, *sending)
            assert (turns.first(a=a, a2=a2), a2.waits) == ("a", True)


def test_only_the_turns_of_a_frame_count_toward_its_time() -> None:
    turns = used_up()
    a, b = turns.frame("a", "alice"), turns.frame("b", "bob")
    read_s = 0.0
    while "a" not in turns.ended:
        read_s += 0.0 if a.waits else PROGRESS_S
        turns.pass_time(PROGRESS_S, a, b)
        assert turns.now_s < 3 * FINISH_S
    assert read_s == FINISH_S
    assert turns.now_s > 1.5 * FINISH_S, "it waited for nearly as long"


def test_the_next_frame_of_an_owner_continues_once_its_share_has_space() -> None:
    turns = used_up()
    turns.frame("first", "carol")
    part_bytes = turns.budget.part_bytes
    a, a2 = turns.frame("a", "alice", part_bytes), turns.frame("a2", "alice", FLOOR_BYTES + 1)
    assert (a.waits, a2.waits) == (False, True)
    a.hold(0)
    assert not a2.waits
    a3 = turns.frame("a3", "alice", 2 * part_bytes)
    assert a3.waits
    a3.close()
    assert turns.budget.waiting == 0


def test_a_growing_share_resumes_waiting_frames() -> None:
    turns = used_up()
    others = [turns.frame("other", f"other-{number}", FLOOR_BYTES + 1) for number in range(8)]
    part_bytes = turns.budget.part_bytes
    waiting = [turns.frame(name, name, part_bytes + FLOOR_BYTES) for name in ("alice", "bob", "carol")]
    assert [share.waits for share in waiting] == [False, True, True]
    for each in others:
        each.close()
    turns.pass_time(PROGRESS_S)
    assert not any(share.waits for share in waiting)


def test_an_owner_whose_share_grows_has_a_turn_at_the_next_check() -> None:
    """This needs no other event: its own requests may wait for their answers for a long time."""
    turns = Turns()
    for name in ("bob", "carol", "dave"):
        turns.frame(name, name, 2 * FLOOR_BYTES).hold(12 * FLOOR_BYTES)
    turns.frame("parked", "alice", 2 * FLOOR_BYTES).hold(9 * FLOOR_BYTES)
    last = turns.frame("last", "eve", 2 * FLOOR_BYTES)
    last.hold(2 * FLOOR_BYTES)
    a = turns.frame("a", "alice", 3 * FLOOR_BYTES)
    assert a.waits
    last.hold(0)
    assert turns.budget.used_bytes > ROOM_BYTES
    turns.pass_time(PROGRESS_S)
    assert turns.first(a=a) == "a"
    assert not a.waits


def test_an_owner_that_finishes_frames_is_not_slow() -> None:
    turns = used_up()
    a, b = turns.frame("a", "alice"), turns.frame("b", "bob")
    while turns.now_s < 3 * FINISH_S:
        if not a.waits:
            a.hold(LARGE_BYTES, is_unfinished=True, has_finished=True)
        turns.pass_time(PROGRESS_S, b)
    assert turns.ended == ["b"]
