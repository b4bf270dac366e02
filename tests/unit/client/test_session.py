"""A session that is due is prolonged once, before the next request, or its connection ends."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.auth import SaslServerSettings
from kustos.client import (
    AuthenticationFailedError,
    CannotConnectError,
    ClientSettings,
    ConnectionClosedError,
    KafkaConnection,
    SaslSession,
    connect,
)
from kustos.client.session import Exchange
from kustos.wire import request_codec
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import PASSWORD, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK

QUESTION = request_codec(ApiKey.METADATA, 12).root.fit(topics=[])


class Drawn:
    """Entropy that is known."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def token_bytes(self, size: int) -> bytes:
        return self.data[:size].ljust(size, b"\0")


class Login:
    """A login that asks for ApiVersions in place of SASL, since the scripted broker has none."""

    def __init__(self) -> None:
        self.count = 0
        self.error: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def __call__(self, exchange: Exchange) -> int:
        self.count += 1
        await self.may_go_on.wait()
        codec = request_codec(ApiKey.API_VERSIONS, 3)
        await exchange(ApiKey.API_VERSIONS, 3, codec.encode(codec.root.fit()))
        if self.error is not None:
            raise self.error
        return 3_600_000


@asynccontextmanager
async def logged_in() -> AsyncIterator[tuple[ScriptedBroker, KafkaConnection, SaslSession, Login]]:
    broker, login = ScriptedBroker(1), Login()
    await broker.start()
    session = SaslSession(login, "broker:9092", timeout_ms=60_000)
    connection = await KafkaConnection.open(LOOPBACK, broker.port)
    await connection.authenticate(session)
    try:
        yield broker, connection, session, login
    finally:
        connection.close()
        broker.stop()


def fall_due(session: SaslSession) -> None:
    session.due_at_s = asyncio.get_running_loop().time()


@given(st.binary(min_size=4, max_size=4), st.integers(1, 10**12))
def test_a_session_is_due_after_85_to_95_percent_of_its_life(drawn: bytes, lifetime_ms: int) -> None:
    async def log_in(_: Exchange) -> int:
        return lifetime_ms

    async def due_after_s() -> float:
        session = SaslSession(log_in, "x", 1000, Drawn(drawn))  # type: ignore[arg-type]
        begun_s = asyncio.get_running_loop().time()
        await session.begin(None)  # type: ignore[arg-type]
        ended_s = asyncio.get_running_loop().time()
        assert session.due_at_s is not None
        life_s = lifetime_ms / 1000
        assert begun_s + 0.85 * life_s <= session.due_at_s <= ended_s + 0.95 * life_s + 1e-6 * life_s
        return session.due_at_s

    asyncio.run(due_after_s())


async def test_requests_that_find_it_due_wait_for_one_login() -> None:
    async with logged_in() as (broker, connection, session, login):
        assert login.count == 1
        await connection.send(ApiKey.METADATA, 12, QUESTION)
        assert login.count == 1
        login.may_go_on.clear()
        fall_due(session)
        asked = len(broker.asked)
        waiting = [asyncio.ensure_future(connection.send(ApiKey.METADATA, 12, QUESTION)) for _ in range(5)]
        # one that gives up does not end the login of the others
        await asyncio.sleep(0)
        waiting.pop().cancel()
        login.may_go_on.set()
        await asyncio.gather(*waiting)
        assert login.count == 2
        assert broker.asked[asked:] == [ApiKey.API_VERSIONS, *(ApiKey.METADATA,) * 4]


@pytest.mark.parametrize("error", [AuthenticationFailedError("no longer known"), CannotConnectError("away")])
async def test_a_failure_ends_the_connection_and_says_why(error: Exception) -> None:
    async with logged_in() as (broker, connection, session, login):
        login.error = error
        fall_due(session)
        asked = len(broker.asked)
        with pytest.raises(ConnectionClosedError, match=f"could not be prolonged: {error}"):
            await connection.send(ApiKey.METADATA, 12, QUESTION)
        assert not connection.is_open
        assert broker.asked[asked:] == [ApiKey.API_VERSIONS]


async def test_a_session_keeps_nothing_of_a_connection_whose_transport_was_handed_over() -> None:
    # what a broker offers takes some 10 KB, and each client of a gateway has a session upstream
    sasl = SaslServerSettings({"PLAIN": 3_600_000})
    async with running_gateway([await started()], sasl=sasl) as gateway:
        keys = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="alice" password="{PASSWORD}";',
        }
        settings = ClientSettings.from_properties(f"{LOOPBACK}:{gateway.port}", keys)
        connection = await connect(settings.bootstrap_servers[0], settings)
        session, transport = connection.session, connection.release()
        transport.set_protocol(asyncio.Protocol())
        kept = weakref.ref(connection)
        del connection
        gc.collect()
        assert kept() is None
        assert session is not None
        assert session.due_at_s is not None
        transport.close()


async def started() -> ScriptedBroker:
    broker = ScriptedBroker(1)
    await broker.start()
    return broker


async def test_a_login_that_does_not_end_is_given_up() -> None:
    async with logged_in() as (_, connection, _, login):
        # the first login has all the time that a busy machine takes
        connection.session = hasty = SaslSession(login, "broker:9092", timeout_ms=300)
        login.may_go_on.clear()
        fall_due(hasty)
        with pytest.raises(ConnectionClosedError, match="did not finish the login within 300 ms"):
            await connection.send(ApiKey.METADATA, 12, QUESTION)
        assert not connection.is_open
