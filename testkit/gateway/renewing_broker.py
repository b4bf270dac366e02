"""A link whose session at the broker ends soon, and that broker: a real login machine, and no socket."""

import asyncio
from dataclasses import dataclass, field

from kustos.auth import (
    Authenticated,
    PlainServer,
    PlainUsers,
    SaslClientMachine,
    SaslServerMachine,
    SaslServerSettings,
    SendFrame,
    client_mechanism,
)
from kustos.client import SaslSession
from kustos.client.session import Exchange
from kustos.gateway.upstream.bursts import Burst
from kustos.gateway.upstream.link import Awaited, UpstreamLink
from kustos.runtime import SystemEntropy
from testkit.clocks import ManualClock
from testkit.gateway.sessions import TURNS_MAX, Pipe
from testkit.sasl import api_versions_body

PASSWORD = "svc-s3cret"
NEVER_MS = 60_000
HANDSHAKE, AUTHENTICATE = b"\0\x11", b"\0\x24"


@dataclass
class RenewingBroker:
    """The broker, the link, and the link's owner."""

    password: str = PASSWORD
    lifetime_ms: int = NEVER_MS
    bytes_in: bytes = b""
    requests: list[bytes] = field(default_factory=list)
    arrived: list[tuple[int, int]] = field(default_factory=list)
    """Each received request, with the number of logins completed before it."""
    logins: list[bytes] = field(default_factory=list)
    logins_done: int = 0
    lost: list[str] = field(default_factory=list)
    writable: int = 0
    taken: list[bytes] = field(default_factory=list)
    is_allowed: bool = True
    answers_logins: bool = True
    sees_all_changes: bool = True
    links: set[UpstreamLink] = field(default_factory=set)

    def __post_init__(self) -> None:
        users = PlainUsers({"svc": PASSWORD}, SystemEntropy())
        self.clock = ManualClock(1_000_000)
        self.machine = SaslServerMachine(
            SaslServerSettings({"PLAIN": self.lifetime_ms}),
            {"PLAIN": PlainServer.factory(users)},
            api_versions_body,
            self.clock,
        )
        self.pipe = Pipe(self._written)
        self.outgoing = Burst(lambda _frames: None)
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
            if frame[:2] in {HANDSHAKE, AUTHENTICATE}:
                assert not self.requests, "a login arrived between requests in flight"
                self.logins.append(frame)
                if self.answers_logins:
                    asyncio.get_running_loop().call_soon(self.answer_login)
            else:
                assert not self.logins, "a request arrived during a login"
                self.requests.append(frame)
                self.arrived.append((numbers([frame])[0], self.logins_done))

    def answer_login(self) -> None:
        frame = self.logins.pop()
        effects = None
        if frame[:2] == HANDSHAKE:
            # a server refuses logins within a second
            self.clock.now_ms += 2_000
            effects = self.machine.begin_reauthentication(frame)
        for effect in self.machine.receive(frame) if effects is None else effects:
            self.logins_done += isinstance(effect, Authenticated)
            if isinstance(effect, SendFrame):
                assert self.pipe.reads, "the link does not read the answer to its login"
                self.link.data_received(effect.data)

    @property
    def is_due(self) -> bool:
        """Whether the link knows that its session is due."""
        renewal = self.link._renewal
        assert renewal is not None
        return renewal.is_due

    async def fall_due(self) -> None:
        """Let the session be due now, as the timer of the link sees it."""
        renewal = self.link._renewal
        assert renewal is not None
        self.session.due_at_s = asyncio.get_running_loop().time()
        renewal._schedule()
        await self.settle()
        assert self.is_due

    async def settle(self) -> None:
        for _ in range(TURNS_MAX):
            await asyncio.sleep(0)

    def send(self, number: int, *, at_once: bool = False) -> None:
        frame = number.to_bytes(4, "big") + b"a request"
        awaited = Awaited(number, self.taken.append, lambda: self.is_allowed, answered_at_once=at_once)
        self.link.send(len(frame).to_bytes(4, "big") + frame, awaited)
        self.link.flush()

    def answer(self) -> None:
        """Answer the oldest request."""
        self.link.data_received(b"\0\0\0\4" + self.requests.pop(0)[:4])

    # the client half

    def upstream_writable(self) -> None:
        self.writable += 1

    def upstream_lost(self, reason: str) -> None:
        self.lost.append(reason)

    def has_expired(self, in_ms: int = 0) -> bool:
        return False

    def upstream_ended(self) -> None: ...


def numbers(frames: list[bytes]) -> list[int]:
    return [int.from_bytes(frame[:4], "big") for frame in frames]
