"""The states of a client connection over real sockets: every row of the table is taken."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kustos.auth import SaslServerSettings
from kustos.gateway.life_cycle import IllegalTransitionError
from kustos.gateway.listener import connection as connection_module
from kustos.gateway.listener.life_cycle import CONNECTION_LIFE, ConnectionEvent, ConnectionState
from testkit.gateway.gateways import Caller, handshake, running_gateway, token
from testkit.gateway.life_rows import RecordedLife
from testkit.gateway.sessions import heartbeat, produce
from testkit.waiting import wait_until
from tests.unit.gateway.test_drain import PATIENT_MS, HoldingBroker
from tests.unit.gateway.test_tls_transport import Certificates

S, E = ConnectionState, ConnectionEvent
Row = tuple[ConnectionState, ConnectionEvent]

PATIENT = SaslServerSettings(
    failed_authentication_delay_ms=PATIENT_MS, connections_max_reauth_ms={"PLAIN": PATIENT_MS}
)
"""A refusal waits until the test ends the connection."""


class Scene:
    """A gateway before a broker that holds its answers, and one client."""

    def __init__(self, stack: AsyncExitStack, certificates: Certificates, life: RecordedLife) -> None:
        self._stack = stack
        self._certificates = certificates
        self.life = life

    async def serve(self, *, tls: bool = False, sasl: bool = False, **settings: Any) -> None:
        broker = HoldingBroker(1)
        await broker.start()
        self.broker = broker
        if tls:
            settings["tls"] = self._certificates.listener(logs_in=sasl)
        self.made = await self._stack.enter_async_context(
            running_gateway([broker], sasl=PATIENT if sasl else None, drain_timeout_ms=PATIENT_MS, **settings)
        )

    async def call(self, *, over_tls: bool = False) -> None:
        context = self._certificates.client() if over_tls else None
        self.caller = await Caller.at(self.made.port, context)

    async def until(self, state: ConnectionState) -> None:
        await asyncio.to_thread(
            wait_until, lambda: self.made.connections and self.connection.state is state, what=state.name
        )

    @property
    def connection(self) -> Any:
        (connection,) = self.made.connections
        return connection

    async def taken(self, row: Row) -> None:
        await asyncio.to_thread(wait_until, lambda: row in self.life.taken, what=str(row))


class BrokenMechanisms:
    """Mechanisms that cannot create a state machine."""

    def keys(self) -> Any:
        raise InjectedError


class InjectedError(Exception):
    """A bug."""


async def accept(scene: Scene, event: ConnectionEvent) -> None:
    settings: dict[str, Any] = {}
    if event is E.ENDS:
        settings["max_connections"] = 0
    elif event is E.SOCKET_LOST:
        settings["other_mechanisms"] = BrokenMechanisms()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    sasl = event in {E.LOGIN_BEGINS, E.SOCKET_LOST}
    await scene.serve(tls=event is E.HANDSHAKE_BEGINS, sasl=sasl, **settings)
    await scene.call()
    if event is E.SOCKET_LOST:
        await scene.until(S.ACCEPTED)
        scene.caller.writer.transport.abort()


async def shake_hands(scene: Scene, event: ConnectionEvent) -> None:
    await scene.serve(tls=True, sasl=event is E.LOGIN_BEGINS)
    await scene.call(over_tls=event in {E.LOGIN_BEGINS, E.AUTHENTICATED})
    if event not in {E.LOGIN_BEGINS, E.AUTHENTICATED}:
        await scene.until(S.HANDSHAKING)


async def authenticate(scene: Scene, _event: ConnectionEvent) -> None:
    await scene.serve(sasl=True)
    await scene.call()
    await scene.until(S.AUTHENTICATING)


async def be_refused(scene: Scene, event: ConnectionEvent) -> None:
    await authenticate(scene, event)
    scene.caller.send(handshake(1), token(2, "wrong"), heartbeat(3))
    assert await scene.caller.correlation_ids(1) == [1]
    await scene.until(S.REFUSED)


async def be_served(scene: Scene, event: ConnectionEvent) -> None:
    await authenticate(scene, event)
    assert await scene.caller.log_in() is not None


async def owe(scene: Scene, event: ConnectionEvent) -> None:
    await be_served(scene, event)
    scene.caller.send(produce(1))
    await asyncio.to_thread(wait_until, lambda: scene.broker.held, what="the broker works")


async def drain(scene: Scene, event: ConnectionEvent) -> None:
    await owe(scene, event)
    await begin_to_stop(scene)
    await scene.until(S.DRAINING)


async def half_close(scene: Scene, event: ConnectionEvent) -> None:
    await be_served(scene, event)
    await stop_with_unsent_bytes(scene)


async def close(scene: Scene, event: ConnectionEvent) -> None:
    await owe(scene, event)
    scene.connection.close("the test says so")
    assert scene.connection.state is S.CLOSING


async def begin_to_stop(scene: Scene) -> None:
    scene.stopping = asyncio.ensure_future(scene.made.gateway.drain())  # type: ignore[attr-defined]
    await asyncio.to_thread(wait_until, lambda: not scene.made.gateway.is_open, what="the gateway stops")


async def stop_with_unsent_bytes(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection_module, "has_unsent", lambda _transport: True)
        await begin_to_stop(scene)
        (row,) = [row for row in scene.life.taken if row[1] is E.NODE_STOPS_UNSENT]
    assert CONNECTION_LIFE[row] is S.HALF_CLOSED


async def nothing(_scene: Scene) -> None:
    """The state is left immediately."""


async def log_in(scene: Scene) -> None:
    assert await scene.caller.log_in() is not None


async def fail_to_log_in(scene: Scene) -> None:
    scene.caller.send(handshake(1), token(2, "wrong"))


async def owe_and_stop(scene: Scene) -> None:
    scene.caller.send(produce(1))
    await asyncio.to_thread(wait_until, lambda: scene.broker.held, what="the broker works")
    await begin_to_stop(scene)


async def end(scene: Scene) -> None:
    scene.connection.close("the test says so")


async def hang_up(scene: Scene) -> None:
    if scene.made.connections and scene.connection.state is S.REFUSED:
        # nothing is read, so only a failed write shows that the client has disconnected
        scene.connection._transport.abort()
    scene.caller.writer.transport.abort()


ENTER: dict[ConnectionState, Callable[[Scene, ConnectionEvent], Awaitable[None]]] = {
    S.ACCEPTED: accept,
    S.HANDSHAKING: shake_hands,
    S.AUTHENTICATING: authenticate,
    S.REFUSED: be_refused,
    S.SERVING: be_served,
    S.DRAINING: drain,
    S.HALF_CLOSED: half_close,
    S.CLOSING: close,
}
CAUSE: dict[ConnectionEvent, Callable[[Scene], Awaitable[None]]] = {
    E.HANDSHAKE_BEGINS: nothing,
    E.LOGIN_BEGINS: nothing,
    E.AUTHENTICATED: log_in,
    E.LOGIN_FAILS: fail_to_log_in,
    E.NODE_STOPS_OWING: owe_and_stop,
    E.NODE_STOPS_UNSENT: stop_with_unsent_bytes,
    E.ENDS: end,
    E.SOCKET_LOST: hang_up,
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("row", CONNECTION_LIFE, ids=lambda row: f"{row[0].name} {row[1].name}")
async def test_every_transition_happens_over_a_real_socket(
    row: Row, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, event = row
    life = RecordedLife(CONNECTION_LIFE)
    monkeypatch.setattr(connection_module, "CONNECTION_LIFE", life)
    async with AsyncExitStack() as stack:
        scene = Scene(stack, certificates, life)
        await ENTER[state](scene, event)
        if state is not S.ACCEPTED and not (state is S.HANDSHAKING and event is E.AUTHENTICATED):
            await CAUSE[event](scene)
        await scene.taken(row)
        if event in {E.ENDS, E.NODE_STOPS_UNSENT, E.SOCKET_LOST}:
            assert await scene.caller.is_closed()
        if event is E.SOCKET_LOST:
            # a link that is owed an answer counts until that arrives
            scene.broker.release()
            counted = scene.made.counted
            await asyncio.to_thread(
                wait_until, lambda: counted["connections"] == counted["unauthenticated"] == 0, what="its end"
            )


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (S.ACCEPTED, E.LOGIN_FAILS),
        (S.REFUSED, E.AUTHENTICATED),
        (S.CLOSED, E.AUTHENTICATED),
        (S.CLOSING, E.ENDS),
        (S.DRAINING, E.LOGIN_BEGINS),
    ],
)
def test_an_impossible_transition_raises(state: ConnectionState, event: ConnectionEvent) -> None:
    with pytest.raises(IllegalTransitionError):
        CONNECTION_LIFE[state, event]


async def test_bytes_after_a_failed_login_reach_nothing(certificates: Certificates) -> None:
    async with AsyncExitStack() as stack:
        scene = Scene(stack, certificates, RecordedLife(CONNECTION_LIFE))
        await be_refused(scene, E.ENDS)
        scene.caller.send(*map(heartbeat, range(100)))
        assert not scene.connection._transport.is_reading()
        assert scene.made.contexts == []
        scene.connection.close("the test says so")
        assert await scene.caller.is_closed()
        assert scene.made.counted["connections"] == scene.made.counted["unauthenticated"] == 0
