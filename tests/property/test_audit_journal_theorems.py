"""The next process finds every record that the former one kept but did not write, in order and complete."""

import mmap
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.gateway.audit.journal import HEAD_BYTES, AuditJournal, AuditJournalError, Ticket
from testkit.waiting import wait_until

SIZE_BYTES = 1024
STEPS = st.lists(
    st.one_of(st.binary(max_size=300), st.integers(1, 4), st.just("again")), min_size=1, max_size=60
)

OWNER = b"o" * 32


def journal_at(path: Path, size_bytes: int = SIZE_BYTES) -> AuditJournal:
    return AuditJournal.open(path, OWNER, size_bytes)


@given(steps=STEPS)
@settings(max_examples=300, deadline=None)
def test_what_is_not_done_is_left(steps: list[bytes | int | str]) -> None:
    """Records not marked done remain, however they are grouped and whenever the file is reopened."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "journal"
        journal = journal_at(path)
        kept: deque[tuple[bytes, Ticket | int]] = deque()
        for step in steps:
            if isinstance(step, bytes):
                try:
                    kept.append((step, journal.put(step, 1)))
                except AuditJournalError:
                    taken = sum(len(data) + 4 for data, _ in kept)
                    assert taken + 2 * len(step) + 8 + 4 > SIZE_BYTES - HEAD_BYTES, "there was room"
            elif isinstance(step, int):
                for _ in range(min(step, len(kept))):
                    _, at = kept.popleft()
                    if isinstance(at, Ticket):
                        journal.done(at)
                    else:
                        journal.free(at)
            else:
                journal.close()
                journal = journal_at(path)
                left = list(journal.left())
                assert [data for data, _ in left] == [data for data, _ in kept]
                kept = deque(left)
            assert 0 <= journal.used_bytes <= SIZE_BYTES - HEAD_BYTES
        journal.close()


@given(waiting=st.permutations(range(12)))
@settings(deadline=None)
def test_places_are_free_in_order_however_records_are_written(waiting: list[int]) -> None:
    with TemporaryDirectory() as directory:
        journal = journal_at(Path(directory) / "journal")
        tickets = [journal.put(b"%d" % number, 2) for number in range(12)]
        done = [0] * 12
        for number in [*waiting, *reversed(waiting)]:
            journal.done(tickets[number])
            done[number] += 1
            first = next((at for at, count in enumerate(done) if count < 2), 12)
            assert journal.used_bytes == sum(len(b"%d" % at) + 4 for at in range(first, 12))
        journal.close()


def test_two_processes_do_not_share_one(tmp_path: Path) -> None:
    journal = journal_at(tmp_path / "journal")
    with pytest.raises(AuditJournalError, match="is in use by another process"):
        journal_at(tmp_path / "journal")
    journal.close()
    journal_at(tmp_path / "journal").close()
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("at", [8, 16])
@pytest.mark.parametrize("position", [-1, 3, 2**40, HEAD_BYTES + 1])
def test_what_is_no_ring_is_refused(tmp_path: Path, at: int, position: int) -> None:
    journal = journal_at(tmp_path / "journal")
    journal.put(b"\xff" * 100, 1)
    journal.close()
    data = bytearray((tmp_path / "journal").read_bytes())
    data[at : at + 8] = position.to_bytes(8, "little", signed=True)
    (tmp_path / "journal").write_bytes(data)
    with pytest.raises(AuditJournalError, match=r"journal` is damaged, .* move it to another directory"):
        list(journal_at(tmp_path / "journal").left())
    assert (tmp_path / "journal").read_bytes() == data


def forked(work: Callable[[], object]) -> int:
    """Return a child that does this and ends, whatever it raises: it must not go on with pytest's tests."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return child


def test_a_killed_process_leaves_all_that_it_had_put(tmp_path: Path) -> None:
    """A killed process leaves every record that it reported on a pipe after putting it."""
    read, write = os.pipe()

    def put() -> None:
        journal = journal_at(tmp_path / "journal", 1 << 20)
        tickets: deque[Ticket] = deque()
        for number in range(1_000_000):
            tickets.append(journal.put(b"%d" % number, 1))
            os.write(write, number.to_bytes(4, "big"))
            if len(tickets) > 50:
                journal.done(tickets.popleft())

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
    journal = journal_at(tmp_path / "journal", 1 << 20)
    left = [int(data) for data, _ in journal.left()]
    journal.close()
    assert left == list(range(left[0], left[-1] + 1))
    assert left[0] <= last - 50 + 1
    assert left[-1] >= last


STOPS = 1_000
"""Those between which the process came to put or do a record."""


def test_a_process_stopped_at_any_instruction_leaves_a_journal(tmp_path: Path, seed: int) -> None:
    """Whichever instruction was a process's last, its journal holds what it had put and not done."""
    counts = memoryview(mmap.mmap(-1, 16)).cast("q")
    child = forked(lambda: put_and_do(journal_at(tmp_path / "journal"), Random(seed), counts))
    try:
        wait_until(lambda: counts[0] > 0, what="the child puts records")
        stopped_at: set[tuple[int, int]] = set()
        while len(stopped_at) < STOPS:
            os.kill(child, signal.SIGSTOP)
            _, status = os.waitpid(child, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            put, done = counts
            stopped_at.add((put, done))
            shutil.copy(tmp_path / "journal", tmp_path / "copy")
            os.kill(child, signal.SIGCONT)
            journal = journal_at(tmp_path / "copy")
            left = [int(data) for data, _ in journal.left()]
            journal.close()
            # one more may be put, and one less done, than the child had come to count
            assert left in [list(range(first, end)) for first in (done, done + 1) for end in (put, put + 1)]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def put_and_do(journal: AuditJournal, random: Random, counts: memoryview) -> None:
    """Put numbered records and do the oldest until the parent ends; count what was put and what is done."""
    tickets: deque[Ticket] = deque()
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(random.randint(1, 30)):
            tickets.append(journal.put(b"%d" % counts[0], 1))
            counts[0] += 1
        # 69 records of numbers below a thousand million have room
        for _ in range(min(random.choice((1, 10, 99)) if len(tickets) < 40 else 99, len(tickets))):
            journal.done(tickets.popleft())
            counts[1] += 1
