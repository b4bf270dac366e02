"""The upstream link: answers reach their requests, and the end is reported once."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from kustos.gateway.upstream import link as link_module
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.link import Awaited, UpstreamLink
from kustos.wire import MalformedMessageError
from testkit.gateway.sessions import Pipe
from testkit.waiting import wait_until

GOOD = b"\0\0\0\6\0\0\0\7ok"


@dataclass
class Owner:
    """Keeps the callbacks of a link."""

    lost: list[str] = field(default_factory=list)
    writable: int = 0
    ended: int = 0
    links: set[UpstreamLink] = field(default_factory=set)
    sees_all_changes: bool = True
    taken: list[bytes] = field(default_factory=list)
    outgoing: Burst = field(default_factory=lambda: Burst(lambda _frames: None))

    def upstream_writable(self) -> None:
        self.writable += 1

    def upstream_lost(self, reason: str) -> None:
        self.lost.append(reason)

    def has_expired(self, in_ms: int = 0) -> bool:
        return False

    def upstream_ended(self) -> None:
        self.ended += 1


class Recorded(Pipe):
    """Keeps all that was written."""

    written = b""

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        data = b"".join(list_of_data)
        super().writelines([data])
        self.written += data


def awaited(take: Callable[[bytes], None], allowed: bool = True) -> Awaited:
    return Awaited(7, take, lambda: allowed)


def linked(limit: int = 100) -> tuple[UpstreamLink, Owner, Recorded]:
    owner, pipe = Owner(), Recorded(lambda _: None)
    link = UpstreamLink(pipe, owner, limit, owner, ("broker", 9092))
    assert pipe.protocol is link
    return link, owner, pipe


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD + GOOD + GOOD, "no request awaits"),
        (GOOD + b"\0\0\0\4\0\0\0\x09" + GOOD, "out of order"),
        (GOOD + b"\0\0\0\3\0\0\7" + GOOD, "out of order"),
        (GOOD + b"\0\0\0\0" + GOOD, "out of order"),
        (b"\0\0\0\x65", "outside 0..100"),
        (b"\xff\xff\xff\xff", "outside 0..100"),
    ],
)
@pytest.mark.parametrize("piece", [1, 1000])
async def test_a_broken_answer_is_reported_once_and_later_bytes_are_ignored(
    data: bytes, said: str, piece: int
) -> None:
    link, owner, pipe = linked()

    def take(frame: bytes) -> None:
        owner.taken.append(frame)
        link.throttle(0)

    for _ in range(2):
        link.send(b"frame", awaited(take))
        link.flush()
    for at in range(0, len(data), piece):
        link.data_received(data[at : at + piece])
    link.data_received(GOOD)
    link.connection_lost(None)
    assert len(owner.lost) == 1
    assert said in owner.lost[0]
    assert set(owner.taken) <= {GOOD[4:]}
    assert len(owner.taken) == (2 if "no request" in said else 1 if data.startswith(GOOD) else 0)
    assert pipe.closing


async def test_an_owner_that_closes_the_link_gets_no_further_callbacks() -> None:
    link, owner, _ = linked()

    def ends(frame: bytes) -> None:
        owner.taken.append(frame)
        link.close()

    link.send(b"", awaited(ends))

    link.flush()
    link.send(b"", awaited(owner.taken.append))
    link.flush()
    link.data_received(GOOD + GOOD)
    link.close()
    link.connection_lost(ConnectionResetError("reset"))
    assert owner.taken == [GOOD[4:]]
    assert owner.lost == []


async def test_a_link_to_an_upstream_that_never_reads_is_closed_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "LAST_REQUESTS_S", 0)
    link, _, pipe = linked()
    link.close()
    assert not pipe.aborted
    gone = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, gone.set)
    await gone.wait()
    assert pipe.aborted


async def test_an_upstream_that_reads_again_resumes_the_owner() -> None:
    link, owner, pipe = linked()
    link.pause_writing()
    states = [link.is_writable]
    link.resume_writing()
    states.append(link.is_writable)
    assert (states, owner.writable) == ([False, True], 1)
    link.pause_reading()
    reads = [pipe.reads]
    link.resume_reading()
    reads.append(pipe.reads)
    pipe.close()
    link.pause_reading()
    reads.append(pipe.reads)
    assert reads == [False, True, True], "a closing connection is not touched"


async def test_a_closed_link_drains_before_it_ends() -> None:
    link, owner, pipe = linked()
    link.send(b"one", awaited(owner.taken.append))
    link.flush()
    link.send(b"two", awaited(owner.taken.append))
    link.flush()
    link.pause_reading()
    link.close()
    assert (pipe.closing, pipe.reads, owner.links) == (False, True, {link})
    link.data_received(GOOD)
    assert (pipe.closing, owner.taken, owner.links, owner.lost) == (True, [], set(), [])
    assert pipe.written == b"onetw", "the broker never has the complete second request"
    link.connection_lost(None)
    assert owner.ended == 1


async def test_the_wait_for_the_last_answer_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "DRAIN_S", 0)
    link, owner, pipe = linked()
    link.send(b"", awaited(owner.taken.append))
    link.flush()
    link.close()
    assert owner.links == {link}
    await asyncio.to_thread(wait_until, lambda: pipe.aborted, what="cut")
    assert owner.links == {link}, "a frozen broker may still begin it"
    link.forget()


async def test_requests_of_a_cut_link_stay_owed_until_released() -> None:
    link, owner, pipe = linked()
    link.send(b"", awaited(owner.taken.append, allowed=False))
    link.flush()
    done = link.until_answered()
    assert done is not None
    link.revoke()
    link.connection_lost(None)
    link.data_received(GOOD)
    assert (pipe.aborted, len(owner.lost), owner.ended, owner.taken) == (True, 1, 1, [])
    assert owner.links == {link}
    assert link.is_provable
    assert not done.done()
    link.forget()
    assert done.done()
    assert owner.links == set()


async def test_a_link_with_bytes_unread_by_the_broker_is_not_cut() -> None:
    link, owner, pipe = linked()
    link.throttle(None)
    link.send(b"", awaited(owner.taken.append, allowed=False))
    link.flush()
    done = link.until_answered()
    assert done is not None
    link.revoke()
    assert (pipe.aborted, len(owner.lost), owner.links) == (False, 1, {link})
    link.data_received(GOOD)
    assert done.done()
    assert pipe.closing
    link.connection_lost(None)


@pytest.mark.parametrize(
    ("error", "is_known"), [(None, True), (ConnectionResetError(), True), (TimeoutError(), False)]
)
async def test_a_connection_closed_by_the_broker_owes_nothing(
    error: Exception | None, is_known: bool
) -> None:
    link, owner, _ = linked()
    link.send(b"", awaited(owner.taken.append))
    link.flush()
    link.connection_lost(error)
    assert (owner.links == set()) == is_known
    link.forget()


async def test_only_requests_that_would_now_be_denied_are_awaited() -> None:
    link, owner, _ = linked()
    link.send(b"one", awaited(owner.taken.append))
    link.flush()
    assert link.until_answered() is None
    link.send(b"two", awaited(owner.taken.append, allowed=False))
    link.flush()
    assert link.until_answered() is None, "the broker has only a part of it"
    other, _, _ = linked()
    other.send(b"one", awaited(owner.taken.append, allowed=False))
    other.flush()
    done = other.until_answered()
    assert done is other.until_answered()
    other.data_received(GOOD)
    assert done is not None
    assert done.done()


async def test_an_answer_to_a_partially_sent_request_is_invalid() -> None:
    link, owner, pipe = linked()

    def take(frame: bytes) -> None:
        owner.taken.append(frame)
        link.throttle(60_000)

    for _ in range(2):
        link.send(b"frame", awaited(take))
        link.flush()
    link.data_received(GOOD + GOOD)
    assert len(owner.taken) == len(owner.lost) == 1
    assert pipe.aborted


async def test_a_third_frame_is_never_sent_inside_the_second() -> None:
    link, owner, pipe = linked()
    for _ in range(2):
        link.send(b"abc", awaited(owner.taken.append))
        link.flush()
    with pytest.raises(RuntimeError):
        link.send(b"abc", awaited(owner.taken.append))
    assert pipe.written == b"abcab"


@dataclass
class Stream:
    """Keeps the bytes of a link; `begins` False declines, `fails_at` is the number of accepted bytes."""

    begins: bool = True
    fails_at: int = 1000
    sizes: list[int] = field(default_factory=list)
    passed: bytes = b""

    def begin(self, size_bytes: int, head: bytes) -> bool:
        self.sizes.append(size_bytes)
        if self.begins:
            self.feed(head)
        return self.begins

    def feed(self, data: bytes) -> None:
        self.passed += data
        if len(self.passed) > self.fails_at:
            raise MalformedMessageError("not this")


LONG = b"\0\0\0\x14\0\0\0\7" + b"sixteen letters."


def stream_of(owner: Owner, stream: Stream) -> Awaited:
    return Awaited(7, owner.taken.append, lambda: True, stream=stream)


@pytest.mark.parametrize("piece", [1, 5, 9, 23])
async def test_an_incomplete_answer_is_streamed_and_the_next_is_not(piece: int) -> None:
    link, owner, _ = linked()
    stream = Stream()
    link.send(b"one", stream_of(owner, stream))
    link.flush()
    link.send(b"two", awaited(owner.taken.append))
    link.flush()
    link.throttle(0)
    for at in range(0, len(LONG), piece):
        link.data_received(LONG[at : at + piece])
    assert (stream.sizes, stream.passed, owner.taken) == ([20], LONG[4:], [b""])
    link.throttle(0)
    link.data_received(GOOD)
    assert owner.taken == [b"", GOOD[4:]]
    assert (owner.lost, owner.links) == ([], set())


async def test_complete_and_declined_answers_are_not_streamed() -> None:
    for begins, cut in ((True, len(LONG)), (False, 12)):
        link, owner, _ = linked()
        stream = Stream(begins=begins)
        link.send(b"one", stream_of(owner, stream))
        link.flush()
        link.data_received(LONG[:cut])
        if cut < len(LONG):
            link.data_received(LONG[cut:])
        assert (owner.taken, stream.passed) == ([LONG[4:]], b"")


async def test_bytes_that_a_stream_rejects_cut_the_link() -> None:
    link, owner, pipe = linked()
    link.send(b"one", stream_of(owner, Stream(fails_at=10)))
    link.flush()
    link.data_received(LONG[:12])
    link.data_received(LONG[12:])
    assert pipe.aborted
    assert owner.lost == ["upstream broke the protocol: not this"]
    assert owner.taken == []
    link.forget()


async def test_an_answer_out_of_order_is_not_streamed() -> None:
    link, owner, pipe = linked()
    stream = Stream()
    link.send(b"one", stream_of(owner, stream))
    link.flush()
    link.data_received(LONG[:4] + b"\0\0\0\x08" + LONG[8:12])
    assert pipe.aborted
    assert stream.passed == b""
    assert "out of order" in owner.lost[0]


async def test_a_streamed_answer_is_owed_until_its_last_byte_and_stops_at_a_close() -> None:
    link, owner, pipe = linked()
    stream = Stream()
    link.send(b"one", Awaited(7, owner.taken.append, lambda: False, stream=stream))
    link.flush()
    link.data_received(LONG[:12])
    done = link.until_answered()
    assert done is not None
    link.close()
    link.data_received(LONG[12:20])
    assert (stream.passed, done.done(), pipe.closing) == (LONG[4:12], False, False)
    link.data_received(LONG[20:])
    assert (stream.passed, done.done(), pipe.closing) == (LONG[4:12], True, True)
    assert owner.taken == []
    assert owner.links == set()
