"""The writer's view of one worker, without a process: waits for the worker, and their limits."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from kustos.gateway.workers import handle as lateness
from kustos.gateway.workers import handle as member
from kustos.gateway.workers import listener as doorstep
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.errors import WorkerStartError
from kustos.gateway.workers.handle import WorkerHandle, WorkerPhase, WorkerProcess, late_of
from kustos.gateway.workers.listener import WorkerListener, await_earlier_workers, hold_lock
from kustos.gateway.workers.messages import (
    FROM_WORKER,
    Applied,
    Fence,
    Look,
    WorkerStatus,
    encode,
)
from kustos.metadata.image import MetadataImage


class Process:
    """A process that exits when it is killed, unless it has to wait."""

    pid = 4711

    def __init__(self) -> None:
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1
        if not self.exited.done():
            self.exited.set_result(-9)


class Wire:
    """Keeps the sent messages."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.frames: list[bytes] = []
        self.closed = ""

    def send(self, message: object) -> None:
        self.said.append(message)

    def send_frame(self, frame: bytes) -> None:
        self.frames.append(frame)

    def close(self, reason: str) -> None:
        self.closed = reason


def image_at(offset: int) -> MetadataImage:
    return MetadataImage(offset=offset)


def made() -> tuple[WorkerHandle, Process, Wire]:
    process, wire = Process(), Wire()
    return WorkerHandle(1, cast("Any", process)), process, wire


def live(offset: int = 10) -> tuple[WorkerHandle, Process, Wire]:
    one, process, wire = made()
    one.joined(cast("Channel", wire))
    assert one.begin_image(image_at(offset))
    one.image_sent()
    one.reached(offset)
    return one, process, wire


async def test_a_worker_that_does_not_serve_yet_is_not_awaited() -> None:
    one, _, wire = made()
    assert one.in_force(5) is None
    one.joined(cast("Channel", wire))
    assert one.begin_image(image_at(10))
    assert one.in_force(11) is None
    one.image_sent()
    one.reached(10)
    assert one.phase is WorkerPhase.LIVE
    assert one.in_force(10) is None
    assert one.in_force(11) is not None


async def test_a_wait_for_an_offset_ends_when_it_or_a_later_one_is_reached() -> None:
    one, _, _ = live()
    first, second = one.in_force(11), one.in_force(13)
    assert first is not None
    assert second is not None
    assert one.in_force(12) is second
    one.reached(12)
    assert first.done()
    assert not second.done()
    one.reached(11)
    one.reached(14)
    assert second.done()


async def test_batches_newer_than_the_image_follow_it_and_older_ones_are_skipped() -> None:
    one, _, wire = made()
    one.take_batches(9, [b"before"])
    one.joined(cast("Channel", wire))
    assert one.begin_image(image_at(10))
    one.take_batches(10, [b"in the image"])
    one.take_batches(11, [b"after"])
    assert wire.frames == []
    one.image_sent()
    one.take_batches(12, [b"later"])
    assert wire.frames == [b"after", b"later"]


async def test_a_worker_that_does_not_read_its_image_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "PENDING_MAX_BYTES", 20)
    monkeypatch.setattr(member, "FENCE_GRACE_S", 0)
    monkeypatch.setattr(member, "EXIT_GRACE_S", 0)
    one, process, wire = made()
    one.joined(cast("Channel", wire))
    assert one.begin_image(image_at(10))
    for offset in range(11, 15):
        one.take_batches(offset, [bytes(6)])
    assert await process.exited == -9


async def test_a_newer_image_follows_the_one_that_is_being_sent() -> None:
    one, _, wire = made()
    one.joined(cast("Channel", wire))
    assert one.begin_image(image_at(10))
    one.take_batches(11, [b"between"])
    newer = image_at(20)
    assert not one.begin_image(newer)
    one.take_batches(15, [b"in the newer image"])
    one.take_batches(21, [b"after"])
    assert wire.frames == []
    assert one.image_sent() is newer
    assert wire.frames == [b"between"]
    assert one.image_sent() is None
    one.take_batches(22, [b"later"])
    assert wire.frames == [b"between", b"after", b"later"]


async def test_a_worker_that_confirms_its_fence_is_not_awaited() -> None:
    one, process, wire = live()
    waiting = one.in_force(11)
    assert waiting is not None
    one.fence("late")
    one.fence("twice is once")
    await asyncio.sleep(0)
    assert wire.said == [Fence("late")]
    assert not waiting.done()
    one.became_harmless()
    await waiting
    assert not process.exited.done()
    assert one.in_force(12) is None
    process.exited.set_result(1)
    one.gone()
    assert (one.phase, wire.closed) == (WorkerPhase.GONE, "its process has ended")


async def test_a_worker_that_does_not_confirm_its_fence_is_killed_and_awaited() -> None:
    one, process, _ = live()
    waiting = one.in_force(11)
    assert waiting is not None
    process.exited.add_done_callback(lambda _: one.gone())
    one.fence("late")
    await waiting
    assert process.kills == 1
    assert one.phase is WorkerPhase.GONE


async def test_a_starting_worker_may_report_why_it_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "FENCE_GRACE_S", 0)
    one, process, wire = made()
    one.joined(cast("Channel", wire))
    assert one.begin_image(image_at(10))
    one.fence("its channel ended")
    await asyncio.wait((process.exited,), timeout=0.05)
    assert process.kills == 0
    process.exited.set_result(1)
    assert one._fencing is not None
    await one._fencing
    assert process.exited.result() == 1


async def test_a_status_request_is_answered_late_or_ends_with_the_worker() -> None:
    one, process, wire = live()
    looking = asyncio.ensure_future(one.look(wants_metrics=True, timeout_s=30))
    await asyncio.sleep(0)
    look = wire.said[-1]
    assert isinstance(look, Look)
    assert look.wants_metrics
    seen = WorkerStatus(look.id, {"audit": True}, b"page")
    one.seen(WorkerStatus(look.id + 1, {}, b""))
    one.seen(seen)
    assert await looking == seen
    one.seen(seen)
    assert await one.look(wants_metrics=False, timeout_s=0) is None
    looking = asyncio.ensure_future(one.look(wants_metrics=False, timeout_s=30))
    await asyncio.sleep(0)
    process.exited.set_result(0)
    one.gone()
    assert await looking is None
    assert await one.look(wants_metrics=False, timeout_s=30) is None


class Looks:
    """Replaces time: what happens at each check for late workers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *happens: Callable[[], object]) -> None:
        self.happens = list(happens)
        monkeypatch.setattr(lateness, "late_of", self.late_of)

    async def late_of(self, futures: Iterable[asyncio.Future[None]], _wait_s: float) -> Any:
        if self.happens:
            self.happens.pop(0)()
        await asyncio.sleep(0)
        return {future for future in futures if not future.done()}


def serving() -> tuple[WorkerHandle, Process, Wire]:
    one, process, wire = live()
    one.serves()
    process.exited.add_done_callback(lambda _: one.gone())
    return one, process, wire


async def everywhere(offset: int, *members: WorkerHandle, timeout_s: float) -> None:
    owed = {future: each for each in members if (future := each.in_force(offset)) is not None}
    await lateness.all_in_force(owed, lambda: members, timeout_s, "it is late")


async def test_a_worker_that_makes_progress_is_awaited_without_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (slow, _, wire), (other, _, _) = serving(), serving()
    other.reached(20)
    begun_s = slow.progressed_s = slow.progressed_s - 1000

    def step(number: int) -> Callable[[], object]:
        return lambda: slow.stepped(number)

    looks = Looks(monkeypatch, *map(step, range(1, 50)), lambda: slow.reached(20))
    await everywhere(20, slow, other, timeout_s=30)
    assert looks.happens == []
    assert wire.said == []
    assert slow.progressed_s > begun_s


async def test_a_stalled_worker_is_fenced_while_another_one_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (stuck, process, wire), (other, _, _) = serving(), serving()
    other.reached(20)
    stuck.stepped(7)
    # to say the same again is no progress
    Looks(monkeypatch, lambda: stuck.stepped(7), lambda: stuck.stepped(6))
    await everywhere(20, stuck, other, timeout_s=0)
    assert wire.said == [Fence("it is late")]
    assert (process.kills, stuck.phase) == (1, WorkerPhase.GONE)


async def test_one_stalled_worker_is_kept_until_another_one_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (first, _, _), (last, process, wire), (fresh, _, _) = serving(), serving(), live(20)
    members = [first, last, fresh]
    owed = {future: each for each in members if (future := each.in_force(20)) is not None}
    assert set(owed.values()) == {first, last}
    seen: list[tuple[bool, bool]] = []

    def note() -> None:
        seen.append((first.was_fenced, last.was_fenced))

    Looks(monkeypatch, note, note, note, note, fresh.serves)
    await lateness.all_in_force(owed, lambda: members, 0, "it is late")
    # one after the other, and the second only when the new one serves
    assert seen == [(False, False), (True, False), (True, False), (True, False)]
    assert wire.said == [Fence("it is late")]
    assert (process.kills, first.phase, last.phase) == (1, WorkerPhase.GONE, WorkerPhase.GONE)


async def test_messages_that_arrive_while_the_writer_is_blocked_are_not_late() -> None:
    loop = asyncio.get_running_loop()
    there: asyncio.Future[None] = loop.create_future()
    missing: asyncio.Future[None] = loop.create_future()
    loop.call_later(member.READ_UP_S / 4, there.set_result, None)
    assert await late_of((there, missing), 0) == {missing}


async def test_a_node_does_not_start_while_an_old_worker_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await await_earlier_workers(tmp_path / "none")
    monkeypatch.setattr(doorstep, "EARLIER_WORKERS_S", 0.0)
    monkeypatch.setattr(doorstep, "LOOK_AGAIN_S", 0.001)
    earlier = hold_lock(tmp_path)
    another = hold_lock(tmp_path)
    with pytest.raises(WorkerStartError, match="earlier run"):
        await await_earlier_workers(tmp_path)
    os.close(earlier)
    with pytest.raises(WorkerStartError, match="earlier run"):
        await await_earlier_workers(tmp_path)
    monkeypatch.setattr(doorstep, "EARLIER_WORKERS_S", 30.0)
    asyncio.get_running_loop().call_later(0.005, os.close, another)
    await await_earlier_workers(tmp_path)


class Connected(asyncio.Transport):
    """A transport of a Unix socket whose peer is this process."""

    def __init__(self) -> None:
        self.ours, self.peers = socket.socketpair()
        super().__init__({"socket": self.ours})
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True
        self.ours.close()
        self.peers.close()

    def get_write_buffer_size(self) -> int:
        return 0


def broken(*_: object) -> Any:
    raise LookupError("a bug")


async def test_a_channel_is_closed_if_handling_a_message_fails() -> None:
    lost: list[str] = []
    channel, transport = Channel(FROM_WORKER, broken, lost.append), Connected()
    channel.connection_made(transport)
    channel.data_received(encode(Applied(7)))
    assert lost == ["a message could not be carried out (LookupError)"]
    assert transport.is_aborted


async def test_the_channel_of_a_worker_that_cannot_be_registered_is_closed(tmp_path: Path) -> None:
    listening = WorkerListener(tmp_path, broken, broken, broken)
    channel, transport = listening._incoming(), Connected()
    with pytest.raises(LookupError):
        channel.connection_made(transport)
    assert transport.is_aborted


async def test_a_worker_that_cannot_be_watched_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []

    def refuse(pid: int) -> int:
        pids.append(pid)
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr("os.pidfd_open", refuse)
    with pytest.raises(OSError, match="too many"):
        WorkerProcess(["sleep", "1000"])
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
