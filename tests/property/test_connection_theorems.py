"""Theorems about one client connection, for any order of events of its client, its broker and the node.

The gateway, the login, the session and the broker are real; only the client's socket is in memory.
"""

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kustos.auth import SaslServerSettings
from kustos.gateway.listener import connection as connection_module
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.listener.life_cycle import DROPPING, ENDED, ConnectionState
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.request_budget import FLOOR_BYTES, RequestBudget
from testkit.gateway.gateways import RunningGateway, handshake, running_gateway, token
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import Pipe, fetch, heartbeat, produce, versions
from testkit.waiting import wait_until

SESSION_MS = 60_000
SASL = SaslServerSettings(failed_authentication_delay_ms=0, connections_max_reauth_ms={"PLAIN": SESSION_MS})
TURNS = 20
"""Turns of the event loop in which a broker of this process answers."""

FRAMES = {
    "handshake": handshake(1),
    "right": token(2),
    "wrong": token(3, "wrong"),
    "versions": versions(4),
    "heartbeat": heartbeat(5),
    "produce": produce(6),
    "large": heartbeat(7, "g" * 30_000),
    "fetch": fetch(8),
}
EVENTS = (
    "upstream is lost",
    "session expires",
    "client is gone",
    "client stops reading",
    "client reads",
    "node stops",
    "kustos closes",
    "time passes",
)
STEPS = st.lists(
    st.tuples(st.sampled_from([*FRAMES, *EVENTS]), st.integers(1, 3), st.booleans()), min_size=1, max_size=14
)
LOG_IN = [("handshake", 1, True), ("right", 1, True)]


class ClientSocket(Pipe):
    """The client's socket. Its buffer is full while the client does not read."""

    def __init__(self) -> None:
        super().__init__(lambda _data: None)
        self.is_full = False
        self.has_ended = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", 9999) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return 1_000 if self.is_full else 0

    def is_reading(self) -> bool:
        return self.reads

    def write_eof(self) -> None:
        self.has_ended = True


class World:
    """A connection, and its invariants after each step."""

    def __init__(self, made: RunningGateway, broker: ScriptedBroker) -> None:
        self.made = made
        self.broker = broker
        self.socket = ClientSocket()
        (port,) = [port for (_, node_id), port in made.gateway._ports.items() if node_id is None]
        self.client: Any = ClientConnection(port)
        self.client.connection_made(self.socket)
        self.was_authenticated = False
        self.frames = b""

    async def do(self, what: str, pieces: int, settles: bool) -> None:
        before = self.client.state, len(self.made.contexts), self.socket.writes
        match what:
            case "upstream is lost":
                for transport in list(self.broker.open):
                    transport.abort()
            case "session expires":
                self.made.clock.now_ms += 2 * SESSION_MS
            case "client is gone":
                self.lose()
            case "client stops reading" if not self.socket.closing:
                self.socket.is_full = True
                self.client.pause_writing()
            case "client reads" if self.socket.is_full and not self.socket.closing:
                self.socket.is_full = False
                self.client.resume_writing()
            case "node stops":
                self.client.drain()
            case "kustos closes":
                self.client.close("the test says so")
            case name if name in FRAMES:
                self.receive(FRAMES[name], pieces)
        self.check(*before)
        for _ in range(TURNS if settles else 1):
            before = self.client.state, len(self.made.contexts), self.socket.writes
            await asyncio.sleep(0)
            self.check(*before)

    def receive(self, frame: bytes, pieces: int) -> None:
        """Let the client send a frame in pieces; unread bytes stay in the kernel."""
        self.frames += len(frame).to_bytes(4, "big") + frame
        size = -(-len(self.frames) // pieces)
        while self.frames and self.socket.reads and not self.socket.closing:
            buffer = self.client.get_buffer(-1)
            piece = self.frames[: min(size, len(buffer))]
            buffer[: len(piece)] = piece
            self.frames = self.frames[len(piece) :]
            self.client.buffer_updated(len(piece))

    def lose(self) -> None:
        if self.client.state is not ConnectionState.CLOSED:
            self.socket.closing = True
            self.client.connection_lost(None)

    def check(self, state: ConnectionState, contexts: int, writes: int) -> None:
        client, now = self.client, self.client.state
        self.was_authenticated = self.was_authenticated or now is ConnectionState.SERVING
        if not self.was_authenticated:
            assert len(self.made.contexts) == 0, "a request was decided before its client was authenticated"
        if now is ConnectionState.REFUSED:
            assert not self.socket.reads, "a refused client is read"
        if state in {ConnectionState.REFUSED, *DROPPING, *ENDED}:
            assert len(self.made.contexts) == contexts, "a request was decided after the end"
        if state in ENDED:
            assert self.socket.writes == writes, "something was written after the end"
            assert client._session is None
            assert client._login is None
        if now is ConnectionState.CLOSING:
            assert self.socket.closing
        if now is ConnectionState.HALF_CLOSED:
            assert self.socket.has_ended
            assert self.socket.reads
        if now in {ConnectionState.CLOSING, ConnectionState.CLOSED} and client._link is None:
            assert client not in self.made.connections


async def live(steps: list[tuple[str, int, bool]]) -> None:
    broker = ScriptedBroker(1)
    await broker.start()
    answers, requests = AnswerBudget(), RequestBudget(4 * FLOOR_BYTES)
    async with running_gateway([broker], sasl=SASL, answers=answers, requests=requests) as made:
        world = World(made, broker)
        try:
            for step in steps:
                await world.do(*step)
        finally:
            world.lose()
        await asyncio.to_thread(wait_until, lambda: world.client._link is None, what="the link is closed")
        counted = made.counted
        assert world.client.state is ConnectionState.CLOSED
        assert (counted["connections"], counted["unauthenticated"], counted["created"]) == (0, 0, 1)
        assert (requests.used_bytes, answers.used_bytes, requests.waiting) == (0, 0, 0)


@settings(max_examples=60)
@given(steps=STEPS, logs_in=st.booleans(), has_unsent=st.booleans())
@example(steps=[("produce", 1, False), ("node stops", 1, True)], logs_in=True, has_unsent=False)
@example(steps=[("heartbeat", 2, True), ("upstream is lost", 1, True)], logs_in=True, has_unsent=False)
@example(
    steps=[("handshake", 1, True), ("wrong", 1, False), ("produce", 1, False), ("node stops", 1, True)],
    logs_in=True,
    has_unsent=True,
)
@example(
    steps=[("client stops reading", 1, False), ("large", 3, True), ("node stops", 1, True)],
    logs_in=True,
    has_unsent=True,
)
@example(
    steps=[("versions", 1, True), ("heartbeat", 1, True), ("fetch", 1, False), ("kustos closes", 1, True)],
    logs_in=True,
    has_unsent=False,
)
def test_the_invariants_of_a_connection_hold_after_any_events(
    steps: list[tuple[str, int, bool]], logs_in: bool, has_unsent: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection_module, "has_unsent", lambda _transport: has_unsent)
        asyncio.run(live([*LOG_IN, *steps] if logs_in else steps))
