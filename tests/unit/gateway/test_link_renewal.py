"""A link whose session is due logs in between two requests; none passes before that, or beside it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from kustos.auth import (
    PlainServer,
    PlainUsers,
    SaslClientMachine,
    SaslServerMachine,
    SaslServerSettings,
    SendFrame,
    client_mechanism,
)
from kustos.client import AuthenticationFailedError, SaslSession
from kustos.client.session import Exchange
from kustos.gateway.upstream.awaited import Awaited
from kustos.gateway.upstream.link import UpstreamLink
from kustos.runtime import SystemEntropy
from testkit.clocks import ManualClock
from testkit.gateway.sessions import TURNS_MAX, Pipe
from testkit.sasl import api_versions_body

PASSWORD = "svc-s3cret"
NEVER_MS = 60_000


@dataclass
class Broker:
    """The other end: a real login machine, and a list of all other frames."""

    password: str = PASSWORD
    lifetime_ms: int = NEVER_MS
    bytes_in: bytes = b""
    requests: list[bytes] = field(default_factory=list)
    logins: list[bytes] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    writable: int = 0
    taken: list[bytes] = field(default_factory=list)
    is_allowed: bool = True
    answers_logins: bool = True
    sees_all_changes: bool = True

    def __post_init__(self) -> None:
        users = PlainUsers({"svc": PASSWORD}, SystemEntropy())
        self.machine = SaslServerMachine(
            SaslServerSettings({"PLAIN": self.lifetime_ms}),
            {"PLAIN": PlainServer.factory(users)},
            api_versions_body,
            ManualClock(1_000_000),
        )
        self.pipe = Pipe(self._written)
        self.session = SaslSession(self.log_in, "broker:9092", 60_000)
        self.session.due_at_s = asyncio.get_running_loop().time() + 3600
        self.link = UpstreamLink(self.pipe, self, 2**20, self, ("broker", 9092), self.session)

    async def log_in(self, exchange: Exchange) -> int:
        mechanism = client_mechanism("PLAIN", "svc", self.password, SystemEntropy())
        machine = SaslClientMachine(mechanism, 2)
        request = machine.start()
        while True:
            following = machine.receive(await exchange(request.api_key, request.api_version, request.body))
            if following is None:
                return machine.session_lifetime_ms
            request = following

    def _written(self, data: bytes) -> None:
        self.bytes_in += data
        while len(self.bytes_in) >= 4 and len(self.bytes_in) >= 4 + int.from_bytes(self.bytes_in[:4], "big"):
            size = int.from_bytes(self.bytes_in[:4], "big")
            frame, self.bytes_in = self.bytes_in[4 : 4 + size], self.bytes_in[4 + size :]
            if frame[:2] in {b"\0\x11", b"\0\x24"}:
                self.logins.append(frame)
                if self.answers_logins:
                    asyncio.get_running_loop().call_soon(self.answer_login)
            else:
                assert not self.logins, "a request came amid a login"
                self.requests.append(frame)

    def answer_login(self) -> None:
        frame = self.logins.pop()
        for effect in self.machine.receive(frame):
            if isinstance(effect, SendFrame):
                assert self.pipe.reads, "the link does not read the answer to its login"
                self.link.data_received(effect.data)

    async def fall_due(self) -> None:
        """Let the session be due now, as the timer of the link sees it."""
        renewal = self.link._renewal
        assert renewal is not None
        self.session.due_at_s = asyncio.get_running_loop().time()
        renewal._schedule()
        await self.settle()
        assert renewal.is_due

    async def settle(self) -> None:
        for _ in range(TURNS_MAX):
            await asyncio.sleep(0)

    def send(self, number: int, *, at_once: bool = False) -> None:
        frame = number.to_bytes(4, "big") + b"a request"
        awaited = Awaited(number, self.taken.append, lambda: self.is_allowed, answered_at_once=at_once)
        self.link.send(len(frame).to_bytes(4, "big") + frame, awaited)

    def answer(self) -> None:
        """Answer the oldest request."""
        self.link.data_received(b"\0\0\0\4" + self.requests.pop(0)[:4])

    # the client half, and the registry

    def upstream_writable(self) -> None:
        self.writable += 1

    def upstream_lost(self, reason: str) -> None:
        self.lost.append(reason)

    def has_expired(self, in_ms: int = 0) -> bool:
        return False

    def upstream_ended(self) -> None: ...

    def add(self, link: Any) -> None: ...

    def discard(self, link: Any) -> None: ...


def numbers(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(frame[:4], "big") for frame in frames]


async def test_a_request_that_finds_the_session_due_goes_behind_a_login() -> None:
    broker = Broker()
    await broker.fall_due()
    # an idle link does not log in
    assert broker.logins == []
    broker.send(1)
    assert broker.requests == []
    was_writable = [broker.link.is_writable]
    await broker.settle()
    assert broker.machine.principal is not None
    assert numbers(broker.requests) == [1]
    assert [*was_writable, broker.link.is_writable] == [False, True]
    assert broker.writable == 1
    broker.answer()
    assert broker.taken == [b"\0\0\0\1"]
    # the new session is not due
    assert broker.session.due_at_s is not None
    assert broker.session.due_at_s > asyncio.get_running_loop().time()
    broker.send(2)
    assert numbers(broker.requests) == [2]


async def test_a_login_waits_for_all_that_is_in_flight() -> None:
    broker = Broker()
    broker.send(1, at_once=True)
    broker.link.throttle(0)
    broker.send(2, at_once=True)
    await broker.fall_due()
    broker.send(3)
    await broker.settle()
    assert (numbers(broker.requests), broker.machine.principal) == ([1, 2], None)
    broker.answer()
    await broker.settle()
    assert (numbers(broker.requests), broker.machine.principal) == ([2], None)
    broker.answer()
    await broker.settle()
    assert broker.machine.principal is not None
    assert numbers(broker.requests) == [3]


async def test_a_request_that_was_sent_in_part_is_sent_before_the_login() -> None:
    broker = Broker()
    broker.send(1)
    broker.send(2)
    assert broker.bytes_in
    await broker.fall_due()
    broker.answer()
    await broker.settle()
    assert (numbers(broker.requests), broker.machine.principal) == ([2], None)
    broker.send(3)
    broker.answer()
    await broker.settle()
    assert broker.machine.principal is not None
    assert numbers(broker.requests) == [3]


async def test_what_is_forbidden_meanwhile_is_not_sent() -> None:
    broker = Broker()
    await broker.fall_due()
    broker.send(1)
    # it is not at the broker, so that a change need not wait for it
    broker.is_allowed = False
    assert broker.link.until_answered() is None
    await broker.settle()
    assert broker.requests == []
    assert broker.lost == ["a request in flight is no longer allowed"]
    assert broker.pipe.aborted


async def test_a_login_that_fails_ends_the_link_and_the_request_is_not_sent() -> None:
    broker = Broker(password="another")

    async def log_in(exchange: Exchange) -> int:
        raise AuthenticationFailedError("cannot log in")

    broker.session._log_in = log_in  # type: ignore[misc]
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    assert broker.lost == ["the session with upstream could not be prolonged: cannot log in"]
    assert (broker.requests, broker.pipe.aborted) == ([], True)


@pytest.mark.parametrize("end", ["close", "lost"])
async def test_a_link_that_ends_amid_a_login_ends_it(end: str) -> None:
    broker = Broker(answers_logins=False)
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    assert len(broker.logins) == 1
    if end == "close":
        broker.link.close()
        assert broker.pipe.closing
    else:
        broker.link.connection_lost(None)
        assert broker.lost == ["upstream closed the connection"]
    await broker.settle()
    assert broker.requests == []
    assert broker.session.due_at_s is not None


async def test_the_login_is_read_while_the_client_reads_nothing() -> None:
    broker = Broker()
    await broker.fall_due()
    broker.send(1)
    broker.link.pause_reading()
    reads = [broker.pipe.reads]
    await broker.settle()
    assert numbers(broker.requests) == [1]
    reads.append(broker.pipe.reads)
    broker.link.resume_reading()
    assert [*reads, broker.pipe.reads] == [True, False, True]


@pytest.mark.parametrize("wrong", [b"\0\0\0\4\0\0\0\1", b"\0\0\0\0", b"\x7f\xff\xff\xff"])
async def test_anything_but_the_answer_to_the_login_ends_the_link(wrong: bytes) -> None:
    broker = Broker(answers_logins=False)
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    broker.link.data_received(wrong)
    await broker.settle()
    assert len(broker.lost) == 1
    assert "upstream broke the protocol" in broker.lost[0]
    assert (broker.requests, broker.taken, broker.pipe.aborted) == ([], [], True)


async def test_a_second_answer_to_one_request_of_the_login_ends_the_link() -> None:
    broker = Broker(answers_logins=False)
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    [effect] = broker.machine.receive(broker.logins.pop())
    assert isinstance(effect, SendFrame)
    broker.link.data_received(effect.data + effect.data)
    await broker.settle()
    assert broker.lost == ["upstream broke the protocol: an answer came that nobody waits for"]
    assert broker.requests == []
