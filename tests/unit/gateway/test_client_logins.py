"""Logins over real sockets: their records, frames that arrive with them, and the end of a session."""

import threading
from typing import Any

from kustos.auth import CallbackServer, PlainServer, Surroundings
from kustos.gateway.listener.plans import ConnectionSettings
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import PATIENCE_S, USERS, Caller, handshake, running_gateway, token
from testkit.gateway.sessions import heartbeat, versions
from tests.unit.gateway.test_client import REAUTHENTICATING, SASL, broker, only, until


async def test_a_login_is_recorded_before_its_answer_and_admitted_only_if_recorded() -> None:
    async with running_gateway([await broker()], sasl=SASL) as served:
        served.is_full = True
        caller = await Caller.at(served.port)
        caller.send(handshake(1))
        await caller.frame()
        caller.send(token(2), heartbeat(3))
        assert await caller.is_closed(), "without an answer to the login"
        assert [login.failure for login in served.logins] == [None]
        assert served.counted["logins"] == 0
        assert ApiKey.HEARTBEAT not in served.brokers[0].asked
        served.is_full = False
        caller = await Caller.at(served.port)
        await caller.log_in()
        (_, login) = served.logins
        assert (str(login.principal), login.claimed_name, login.mechanism) == ("User:alice", "alice", "PLAIN")
        caller.close()


async def test_an_expired_session_is_reported() -> None:
    async with running_gateway([await broker()], sasl=REAUTHENTICATING) as served:
        caller = await Caller.at(served.port)
        await caller.log_in()
        served.clock.now_ms += 120_000
        caller.send(heartbeat(1))
        assert await caller.is_closed()
        assert [str(each.principal) for each in served.expired] == ["User:alice"]


async def test_the_frame_limit_of_an_unauthenticated_client_is_lower_than_in_a_session() -> None:
    settings = ConnectionSettings(sasl_server_max_receive_size=1000, socket_request_max_bytes=2000)
    async with running_gateway([await broker()], sasl=SASL, settings=settings) as served:
        caller = await Caller.at(served.port)
        caller.writer.write((1001).to_bytes(4, "big"))
        assert await caller.is_closed()
        caller = await Caller.at(served.port)
        await caller.log_in()
        caller.send(heartbeat(1, "g" * 1500))
        assert await caller.correlation_ids(1) == [1]
        caller.writer.write((2001).to_bytes(4, "big"))
        assert await caller.is_closed()
        caller = await Caller.at(served.port)
        caller.writer.write(b"\xff\xff\xff\xff")
        assert await caller.is_closed()


async def test_an_oversized_frame_after_a_login_does_not_suppress_the_login_answer() -> None:
    settings = ConnectionSettings(sasl_server_max_receive_size=1000, socket_request_max_bytes=2000)
    async with running_gateway([await broker()], sasl=SASL, settings=settings) as served:
        for last in ((2001).to_bytes(4, "big"), b"\xff\xff\xff\xff"):
            caller = await Caller.at(served.port)
            caller.writer.write(framed(handshake(1), token(2)) + last)
            assert await caller.correlation_ids(2) == [1, 2]
            assert await caller.is_closed()
        assert served.counted["logins"] == 2


async def test_a_failed_login_is_answered_whatever_follows_it() -> None:
    async with running_gateway([await broker()], sasl=SASL) as served:
        caller = await Caller.at(served.port)
        caller.writer.write(framed(handshake(1), token(2, "wrong")) + b"\xff\xff\xff\xff")
        assert await caller.correlation_ids(2) == [1, 2]
        assert await caller.is_closed()
        assert (served.counted["logins"], served.counted["failed logins"]) == (0, 1)


async def test_bytes_after_a_login_are_subject_to_the_session_limits() -> None:
    settings = ConnectionSettings(sasl_server_max_receive_size=1000, socket_request_max_bytes=2000)
    async with running_gateway([await broker()], sasl=SASL, settings=settings) as served:
        caller = await Caller.at(served.port)
        caller.send(handshake(1), token(2), heartbeat(3), heartbeat(4, "g" * 1500), heartbeat(5))
        assert await caller.correlation_ids(5) == [1, 2, 3, 4, 5]
        caller.close()


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


async def test_a_reauthentication_between_requests_keeps_the_order() -> None:
    async with running_gateway([await broker()], sasl=REAUTHENTICATING) as served:
        caller = await Caller.at(served.port)
        await caller.log_in()
        served.clock.now_ms += 30_000
        caller.send(heartbeat(1), heartbeat(2), handshake(3), token(4), heartbeat(5), versions(6))
        assert await caller.correlation_ids(6) == [1, 2, 3, 4, 5, 6]
        assert (served.counted["logins"], served.counted["logins again"]) == (1, 1)
        served.clock.now_ms += 59_000
        caller.send(heartbeat(7))
        assert await caller.correlation_ids(1) == [7]
        served.clock.now_ms += 1_000
        caller.send(heartbeat(8))
        assert await caller.is_closed()


async def test_a_failed_reauthentication_ends_the_session() -> None:
    async with running_gateway([await broker()], sasl=REAUTHENTICATING) as served:
        caller = await Caller.at(served.port)
        await caller.log_in()
        served.clock.now_ms += 30_000
        caller.send(handshake(1), token(2, "wrong"), heartbeat(3), token(4), heartbeat(5))
        assert await caller.correlation_ids(2) == [1, 2]
        assert await caller.is_closed()
        assert ApiKey.HEARTBEAT not in served.brokers[0].asked


async def test_an_expired_session_may_reauthenticate() -> None:
    async with running_gateway([await broker()], sasl=REAUTHENTICATING) as served:
        caller = await Caller.at(served.port)
        await caller.log_in()
        served.clock.now_ms += 120_000
        assert await caller.log_in() is not None
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        caller.close()


async def test_requests_of_several_reads_after_a_pending_login_are_all_served() -> None:
    may_end = threading.Event()

    class SlowServer(PlainServer):
        def respond(self, token: bytes) -> Any:
            may_end.wait(PATIENCE_S)
            return super().respond(token)

    slow = CallbackServer.factory(lambda: SlowServer(USERS), Surroundings("CLIENTS", 60_000))
    async with running_gateway([await broker()], sasl=SASL, plain=slow) as served:
        caller = await Caller.at(served.port)
        caller.send(handshake(1), token(2))
        assert await caller.correlation_ids(1) == [1]
        await until(lambda: only(served).is_verifying, "the password is verified")
        # TLS decrypts one read of the socket in several parts
        for frame in (heartbeat(3), versions(4)):
            came = len(frame).to_bytes(4, "big") + frame
            only(served).get_buffer(len(came))[: len(came)] = came
            only(served).buffer_updated(len(came))
        may_end.set()
        assert await caller.correlation_ids(3) == [2, 3, 4]
        caller.close()
