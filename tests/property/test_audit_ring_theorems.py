"""The next process finds every record that the former one kept but did not write, in order and complete."""

import json
import mmap
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.gateway.audit.ring import HEAD_BYTES, AuditRing, AuditRingError, RingCursor
from testkit.waiting import wait_until

SIZE_BYTES = 1024
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.integers(0, 150), min_size=1, max_size=3)),
        st.tuples(st.just("hold"), st.integers(0, 100)),
        st.tuples(st.just("settle"), st.integers(0, 3), st.integers(0, 400)),
        st.tuples(st.just("write"), st.integers(0, 1), st.integers(1, 4)),
        st.tuples(st.just("again")),
    ),
    min_size=1,
    max_size=60,
)

OWNER = b"o" * 32


def ring_at(path: Path, size_bytes: int = SIZE_BYTES) -> AuditRing:
    return AuditRing.open(path, OWNER, size_bytes)


def line(number: int, padding: int = 0) -> bytes:
    return b'{"event_id":"%d","text":"%s"}\n' % (number, b"x" * padding)


def numbers_in(lines: bytes) -> list[int]:
    return [int(json.loads(each)["event_id"]) for each in lines.splitlines()]


def left_in(ring: AuditRing) -> list[int]:
    """Return the events that a new sink has to write."""
    return numbers_in(ring.read(RingCursor(ring.tail), 10**6).lines)


@dataclass
class Model:
    """The expected content of a ring: events in order, the sinks that wrote them, and held ones."""

    path: Path
    events: list[int] = field(default_factory=list)
    """Put, and not written by both sinks."""
    held: dict[int, int] = field(default_factory=dict)
    """Number -> the ring's name for a record that waits for its outcome."""
    number: int = 0

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.ring = ring_at(self.path)
        self.cursors = [self.ring.cursor(), self.ring.cursor()]
        self.written = [0, 0]

    def play(self, step: tuple[object, ...]) -> None:
        getattr(self, str(step[0]))(*step[1:])
        assert 0 <= self.ring.used_bytes < SIZE_BYTES - HEAD_BYTES
        for cursor, written in zip(self.cursors, self.written, strict=True):
            assert self.ring.events - cursor.events == len(self.events) - written

    def put(self, paddings: list[int]) -> None:
        numbers = range(self.number, self.number + len(paddings))
        data = b"".join(map(line, numbers, paddings))
        has_room = self.ring.has_room(len(data))
        try:
            self.ring.put(data, len(paddings))
        except AuditRingError:
            assert not has_room
            return
        self.number = numbers.stop
        self.events += numbers

    def hold(self, padding: int) -> None:
        try:
            self.held[self.number] = self.ring.hold(line(self.number, padding))
        except AuditRingError:
            return
        self.number += 1

    def settle(self, at: int, padding: int) -> None:
        """The outcome fits into any ring, or replaces the held record."""
        if at >= len(self.held):
            return
        number = list(self.held)[at]
        self.ring.settle(self.held.pop(number), line(number, padding), 1)
        self.events.append(number)

    def write(self, sink: int, count: int) -> None:
        cursor = self.cursors[sink]
        batch = self.ring.read(cursor, count)
        assert numbers_in(batch.lines) == self.events[self.written[sink] :][: batch.events]
        assert batch.events >= min(count, len(self.events) - self.written[sink])
        self.ring.advance(cursor, batch)
        self.written[sink] += batch.events
        gone = min(self.written)
        self.events = self.events[gone:]
        self.written = [each - gone for each in self.written]

    def again(self) -> None:
        """Simulate a kill; the next process finds events not written by both sinks, and held ones."""
        held = sorted(self.held)
        tail = self.ring.tail
        self.ring.close()
        self.open()
        found = left_in(self.ring)
        expected = set(self.events) | set(held)
        # records behind a held one are not freed, so they may be written once more
        assert expected <= set(found)
        assert len(found) == len(set(found))
        assert [each for each in found if each in set(self.events)] == self.events
        assert tail is not None
        self.events, self.held = found, {}


@given(steps=STEPS)
@settings(max_examples=300, deadline=None)
def test_unwritten_events_remain(steps: list[tuple[object, ...]]) -> None:
    """This holds for any writes of two sinks, any held events, and any kill."""
    with TemporaryDirectory() as directory:
        model = Model(Path(directory) / "ring")
        for step in steps:
            model.play(step)
        model.ring.close()


@pytest.mark.parametrize("path", [None, "ring"])
def test_space_is_released_after_the_slowest_sink(tmp_path: Path, path: str | None) -> None:
    ring = AuditRing(SIZE_BYTES) if path is None else ring_at(tmp_path / path)
    fast, slow = ring.cursor(), ring.cursor()
    for number in range(12):
        ring.put(line(number), 1)
    full = ring.used_bytes
    ring.advance(fast, ring.read(fast, 12))
    assert ring.used_bytes == full
    held = ring.hold(line(12))
    for _ in range(12):
        before = ring.used_bytes
        ring.advance(slow, ring.read(slow, 1))
        assert ring.used_bytes < before
    assert ring.used_bytes == len(line(12)) + 4
    ring.settle(held, line(12), 1)
    for cursor in (fast, slow):
        ring.advance(cursor, ring.read(cursor, 1))
    assert ring.is_empty
    assert ring.used_bytes == 0
    ring.close()


def test_an_outcome_fits_into_a_full_ring() -> None:
    """Otherwise the held record and all later ones would never be released."""
    ring = AuditRing(SIZE_BYTES)
    cursor = ring.cursor()
    held = ring.hold(line(0, 100))
    with suppress(AuditRingError):
        while True:
            ring.put(line(1), 1)
    ring.settle(held, line(0, 10**4), 1)
    batch = ring.read(cursor, 10**6)
    assert batch.lines.endswith(line(1) + line(0, 100)), "the outcome was too long"
    ring.advance(cursor, batch)
    assert ring.is_empty
    with pytest.raises(AuditRingError, match="no room"):
        ring.hold(line(2, SIZE_BYTES // 3))
    ring.put(line(2, SIZE_BYTES // 3), 1)


def test_two_processes_do_not_share_one(tmp_path: Path) -> None:
    journal = ring_at(tmp_path / "journal")
    with pytest.raises(AuditRingError, match="is in use by another process"):
        ring_at(tmp_path / "journal")
    journal.close()
    ring_at(tmp_path / "journal").close()
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("at", [8, 16])
@pytest.mark.parametrize("position", [-1, 3, 2**40, HEAD_BYTES + 1])
def test_an_invalid_ring_is_rejected(tmp_path: Path, at: int, position: int) -> None:
    ring = ring_at(tmp_path / "ring")
    ring.put(b"\xff" * 100, 1)
    ring.close()
    data = bytearray((tmp_path / "ring").read_bytes())
    data[at : at + 8] = position.to_bytes(8, "little", signed=True)
    (tmp_path / "ring").write_bytes(data)
    with pytest.raises(AuditRingError, match=r"ring` is damaged, .* move it to another directory"):
        ring_at(tmp_path / "ring")
    assert (tmp_path / "ring").read_bytes() == data


def test_a_rejected_ring_is_not_locked(tmp_path: Path) -> None:
    ring = ring_at(tmp_path / "ring")
    ring.put(b"no event\n", 1)
    ring.close()
    kept = []
    for _ in range(2):
        with pytest.raises(AuditRingError, match="is damaged") as refused:
            ring_at(tmp_path / "ring")
        kept.append(refused.value)


def forked(work: Callable[[], object]) -> int:
    """Return a child process that runs the function and exits even on an exception, before pytest's code."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return child


def test_a_killed_process_leaves_all_put_records(tmp_path: Path) -> None:
    """A killed process leaves every record that it reported on a pipe after putting it."""
    read, write = os.pipe()

    def put() -> None:
        ring = ring_at(tmp_path / "ring", 1 << 20)
        cursor = ring.cursor()
        for number in range(1_000_000):
            ring.put(line(number), 1)
            os.write(write, number.to_bytes(4, "big"))
            if number >= 50:
                ring.advance(cursor, ring.read(cursor, 1))

    child = forked(put)
    os.close(write)
    said = bytearray()

    def has_said_enough() -> bool:
        said.extend(os.read(read, 1 << 16))
        return len(said) > 40_000

    wait_until(has_said_enough, what="the child puts records")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while rest := os.read(read, 1 << 16):
        said.extend(rest)
    os.close(read)
    last = int.from_bytes(said[len(said) // 4 * 4 - 4 : len(said) // 4 * 4], "big")
    ring = ring_at(tmp_path / "ring", 1 << 20)
    left = left_in(ring)
    ring.close()
    assert left == list(range(left[0], left[-1] + 1))
    assert left[0] <= last - 50 + 1
    assert left[-1] >= last


STOPS = 1_000
"""Those between which the process came to put or write a record."""


def test_a_process_stopped_at_any_instruction_leaves_a_valid_ring(tmp_path: Path, seed: int) -> None:
    """The ring holds the put and unwritten records after any last instruction of its process."""
    counts = memoryview(mmap.mmap(-1, 16)).cast("q")
    child = forked(lambda: put_and_write(ring_at(tmp_path / "ring"), Random(seed), counts))
    try:
        wait_until(lambda: counts[0] > 0, what="the child puts records")
        stopped_at: set[tuple[int, int]] = set()
        while len(stopped_at) < STOPS:
            os.kill(child, signal.SIGSTOP)
            _, status = os.waitpid(child, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            put, done = counts
            stopped_at.add((put, done))
            shutil.copy(tmp_path / "ring", tmp_path / "copy")
            os.kill(child, signal.SIGCONT)
            ring = ring_at(tmp_path / "copy")
            left = left_in(ring)
            ring.close()
            # one more may be put, and one less written, than the child had come to count
            assert left in [list(range(first, end)) for first in (done, done + 1) for end in (put, put + 1)]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def put_and_write(ring: AuditRing, random: Random, counts: memoryview) -> None:
    """Put numbered records, some held first, and write the oldest until the parent ends; count both."""
    cursor, waiting = ring.cursor(), 0
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(random.randint(1, 10)):
            if not ring.has_room(100):
                break
            # a process that is killed behind this leaves the held record as the event
            held = ring.hold(line(counts[0])) if random.random() < 0.3 else None
            if held is None:
                ring.put(line(counts[0]), 1)
            else:
                ring.settle(held, line(counts[0]), 1)
            counts[0] += 1
            waiting += 1
        for _ in range(random.randint(1, waiting) if waiting else 0):
            ring.advance(cursor, ring.read(cursor, 1))
            counts[1] += 1
            waiting -= 1
