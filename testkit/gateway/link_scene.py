"""A real link and a scripted broker at two ends of a socket pair, on a loop whose time can be advanced."""

import asyncio
import errno
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from socket import socket, socketpair
from typing import Any, Self

from kustos.client import AuthenticationFailedError, SaslSession
from kustos.client.session import Exchange
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.link import Awaited, UpstreamLink
from kustos.wire import ApiKey

TURNS = 12
"""Turns of the event loop in which everything that can happen by itself has happened."""

LENGTH_BYTES = 4
ID_AT = 8
"""Where a request with its length has its correlation id."""

REFUSED = b"no"
ANSWER = b" an answer"


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time can be advanced."""

    skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_s

    def pending_timers(self) -> list[asyncio.TimerHandle]:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return [timer for timer in timers if not timer.cancelled()]


class UnreliableSocket(socket):
    """A socket whose network fails on command."""

    is_cut_off = False

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        if self.is_cut_off:
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
        return super().recv(bufsize, flags)


@dataclass
class Passed:
    """Takes the parts of a streamed answer."""

    scene: "LinkScene"
    parts: list[bytes] = field(default_factory=list)

    def begin(self, size_bytes: int, head: bytes) -> bool:
        self.feed(head)
        return True

    def feed(self, data: bytes) -> None:
        assert not self.scene.is_over, "no bytes are passed on after the end"
        self.parts.append(data)


@dataclass
class LinkScene:
    """A link, its owner, the registry, and the broker. Made by `open`, inside a `SkippingLoop`."""

    requests: list[Awaited] = field(default_factory=list)
    """All requests in order; the correlation id of each is its place."""
    taken: list[int] = field(default_factory=list)
    """The correlation ids of the answers that the client got."""
    lost: list[str] = field(default_factory=list)
    is_over: bool = False
    """Whether the client half has left the link."""
    ended: int = 0
    writable: int = 0
    forbidden: set[int] = field(default_factory=set)
    """The requests that the present ACLs deny."""
    is_expired: bool = False
    leaves_next: bool = False
    """Whether the client half leaves when it has got the next answer."""
    fails_next: bool = False
    """Whether the owner has a bug."""
    failures: list[dict[str, Any]] = field(default_factory=list)
    """The exceptions of callbacks of the event loop."""
    links: set[UpstreamLink] = field(default_factory=set)
    sees_all_changes: bool = True
    outgoing: Burst = field(default_factory=lambda: Burst(lambda _frames: None))
    unread: bytes = b""
    whole: list[int] = field(default_factory=list)
    """The correlation ids of the requests that the broker has got as a whole."""
    unanswered: deque[int] = field(default_factory=deque)
    logins: deque[bytes] = field(default_factory=deque)
    """The correlation ids of logins that the broker has not answered."""
    throttle_times_ms: deque[int | None] = field(default_factory=deque)
    """The throttle times of the answers that are on their way."""
    loop: SkippingLoop = field(init=False)
    near: UnreliableSocket = field(init=False)
    """The end of the link."""
    far: socket = field(init=False)
    """The end of the broker."""
    session: SaslSession = field(init=False)
    link: UpstreamLink = field(init=False)

    @classmethod
    async def open(cls) -> Self:
        scene = cls()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SkippingLoop)
        scene.loop = loop
        loop.set_exception_handler(lambda _, context: scene.failures.append(context))
        ours, scene.far = socketpair()
        scene.far.setblocking(False)
        scene.near = UnreliableSocket(fileno=ours.detach())
        transport, _ = await loop.create_connection(asyncio.Protocol, sock=scene.near)
        scene.session = SaslSession(scene.log_in, "broker:9092", 60_000)
        scene.session.due_at_s = loop.time() + 3600
        scene.link = UpstreamLink(transport, scene, 1000, scene, ("broker", 9092), scene.session)
        return scene

    async def settle(self) -> None:
        """Run all pending callbacks."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
            self.read()

    async def skip(self, seconds: float) -> None:
        """Let time pass."""
        self.loop.skipped_s += seconds
        await self.settle()

    def end(self) -> None:
        self.far.close()
        self.near.close()

    # the client's half

    def send(
        self,
        *,
        at_once: bool = False,
        waits_for_replicas: bool = False,
        streamed: bool = False,
        flushed: bool = True,
    ) -> Awaited:
        """Send a request, and hand it over to the socket if it is to be flushed."""
        number = len(self.requests)
        stream = Passed(self) if streamed else None
        awaited = Awaited(
            number,
            lambda answer: self.take(number, answer or b"".join(stream.parts if stream else ())),
            lambda: number not in self.forbidden,
            answered_at_once=at_once,
            waits_for_replicas=waits_for_replicas,
            stream=stream,
        )
        self.requests.append(awaited)
        body = b"\0\0\0\1" + number.to_bytes(4, "big") + b"a request"
        self.link.send(len(body).to_bytes(4, "big") + body, awaited)
        if flushed:
            self.link.flush()
        return awaited

    def take(self, number: int, answer: bytes) -> None:
        assert not self.is_over, "no answer comes after the end"
        assert answer == number.to_bytes(4, "big") + ANSWER
        self.taken.append(number)
        if self.leaves_next:
            self.leave()
        self.link.throttle(self.throttle_times_ms.popleft())

    def leave(self) -> None:
        """Close the link."""
        self.is_over = True
        self.link.close()

    def upstream_writable(self) -> None:
        self.writable += 1
        if self.fails_next:
            self.fails_next = False
            raise ValueError("a bug of ours")

    def upstream_lost(self, reason: str) -> None:
        assert not self.is_over, "the end is reported once, and not after the client's half has left"
        self.lost.append(reason)
        self.leave()

    def has_expired(self, in_ms: int = 0) -> bool:
        return self.is_expired

    def upstream_ended(self) -> None:
        self.ended += 1

    async def log_in(self, exchange: Exchange) -> int:
        if await exchange(ApiKey.SASL_AUTHENTICATE, 0, b"") == REFUSED:
            raise AuthenticationFailedError("the broker refuses the login")
        return 3_600_000

    @property
    def is_due(self) -> bool:
        renewal = self.link._renewal
        return renewal is not None and renewal.is_due

    async def fall_due(self) -> None:
        """Let the session be due now."""
        renewal = self.link._renewal
        assert renewal is not None
        assert renewal._timer is not None
        renewal._timer.cancel()
        self.session.due_at_s = self.loop.time()
        renewal._schedule()
        await self.settle()

    # the broker's half

    def read(self) -> None:
        """Take what has arrived."""
        while True:
            try:
                data = self.far.recv(65536)
            except OSError:
                break
            if not data:
                break
            self.unread += data
        while len(self.unread) >= ID_AT and len(self.unread) >= self._frame_end():
            frame, self.unread = self.unread[: self._frame_end()], self.unread[self._frame_end() :]
            number = frame[ID_AT : ID_AT + 4]
            if frame[4:6] == ApiKey.SASL_AUTHENTICATE.to_bytes(2, "big"):
                self.logins.append(number)
            else:
                self.whole.append(int.from_bytes(number, "big"))
                self.unanswered.append(self.whole[-1])

    def _frame_end(self) -> int:
        return LENGTH_BYTES + int.from_bytes(self.unread[:LENGTH_BYTES], "big")

    async def answer(
        self,
        *throttle_times_ms: int | None,
        pieces: int = 1,
        amid: Callable[[], object] = lambda: None,
    ) -> None:
        """Answer the oldest requests, one for each throttle time; call `amid` after each piece."""
        self.throttle_times_ms.extend(throttle_times_ms)
        numbers = [self.unanswered.popleft() for _ in throttle_times_ms]
        bodies = [number.to_bytes(4, "big") + ANSWER for number in numbers]
        data = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
        size = -(-len(data) // pieces)
        for at in range(0, len(data), size):
            await self.write(data[at : at + size])
            amid()

    async def answer_login(self, body: bytes = b"yes") -> None:
        answer = self.logins.popleft() + body
        await self.write(len(answer).to_bytes(4, "big") + answer)

    async def write(self, data: bytes) -> None:
        with suppress(BrokenPipeError):
            self.far.send(data)
        await self.settle()

    async def hang_up(self) -> None:
        self.far.close()
        await self.settle()

    async def lose_network(self) -> None:
        """Let the network fail on the broker's connection."""
        self.near.is_cut_off = True
        await self.write(b"\0")
