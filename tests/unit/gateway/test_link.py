"""The upstream half: whose answer it is, and an end that is told once."""

import asyncio
from dataclasses import dataclass, field

import pytest

from kustos.gateway import link as link_module
from kustos.gateway.link import Awaited, UpstreamLink
from tests.unit.gateway.session_worlds import Pipe

GOOD = b"\0\0\0\6\0\0\0\7ok"


@dataclass
class Owner:
    """Keeps what a link tells."""

    lost: list[str] = field(default_factory=list)
    writable: int = 0
    taken: list[bytes] = field(default_factory=list)

    def upstream_writable(self) -> None:
        self.writable += 1

    def upstream_lost(self, reason: str) -> None:
        self.lost.append(reason)


def linked(limit: int = 100) -> tuple[UpstreamLink, Owner, Pipe]:
    owner, pipe = Owner(), Pipe(lambda _: None)
    link = UpstreamLink(pipe, owner, limit)
    assert pipe.protocol is link
    return link, owner, pipe


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD + GOOD + GOOD + GOOD, "nobody waits for"),
        (GOOD + b"\0\0\0\4\0\0\0\x09" + GOOD, "out of turn"),
        (GOOD + b"\0\0\0\3\0\0\7" + GOOD, "out of turn"),
        (GOOD + b"\0\0\0\0" + GOOD, "out of turn"),
        (b"\0\0\0\x65", "outside 0..100"),
        (b"\xff\xff\xff\xff", "outside 0..100"),
    ],
)
@pytest.mark.parametrize("piece", [1, 1000])
async def test_a_broken_answer_is_told_once_and_nothing_after_it_is_taken(
    data: bytes, said: str, piece: int
) -> None:
    link, owner, pipe = linked()
    for _ in range(3):
        link.send(b"", Awaited(7, owner.taken.append))
    for at in range(0, len(data), piece):
        link.data_received(data[at : at + piece])
    link.data_received(GOOD)
    link.connection_lost(None)
    assert len(owner.lost) == 1
    assert said in owner.lost[0]
    assert set(owner.taken) <= {GOOD[4:]}
    assert len(owner.taken) == (3 if "nobody" in said else 1 if data.startswith(GOOD) else 0)
    assert pipe.closing


async def test_who_closes_is_told_nothing_and_an_answer_that_ends_it_all_is_the_last() -> None:
    link, owner, _ = linked()

    def ends(frame: bytes) -> None:
        owner.taken.append(frame)
        link.close()

    link.send(b"", Awaited(7, ends))
    link.send(b"", Awaited(7, owner.taken.append))
    link.data_received(GOOD + GOOD)
    link.close()
    link.connection_lost(ConnectionResetError("reset"))
    assert owner.taken == [GOOD[4:]]
    assert owner.lost == []


async def test_upstream_that_takes_nothing_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "LAST_REQUESTS_S", 0)
    link, _, pipe = linked()
    link.close()
    assert not pipe.aborted
    gone = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, gone.set)
    await gone.wait()
    assert pipe.aborted


async def test_upstream_that_reads_again_lets_the_owner_go_on() -> None:
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
    assert reads == [False, True, True], "what closes is left alone"
