"""Clients without a valid login: they are closed first when the node is full, and are throttled."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.auth import SaslServerSettings
from kustos.gateway.listener import FailedLoginLimits, admission
from kustos.gateway.listener.plans import ConnectionSettings
from testkit.gateway.gateways import Caller, RunningGateway, handshake, running_gateway, token
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat
from testkit.waiting import wait_until

SASL = SaslServerSettings(failed_authentication_delay_ms=20)


async def broker() -> ScriptedBroker:
    made = ScriptedBroker(1)
    await made.start()
    return made


async def until(condition: Any, what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


def kinds(logs: Any) -> list[str]:
    return [entry["kind"] for entry in logs if entry["event"] == "connections failed before a login"]


async def silent(served: RunningGateway, count: int) -> list[Caller]:
    before = served.counted["unauthenticated"]
    found = [await Caller.at(served.port) for _ in range(count)]
    await until(lambda: served.counted["unauthenticated"] == before + count, "they are there")
    return found


async def test_a_new_connection_replaces_the_oldest_silent_connection() -> None:
    settings = ConnectionSettings(max_unauthenticated_connections=3)
    async with running_gateway([await broker()], sasl=SASL, settings=settings) as served:
        callers = await silent(served, 3)
        with capture_logs() as logs:
            newcomer = await Caller.at(served.port)
            assert await newcomer.log_in() is not None
            assert await callers[0].is_closed()
        assert kinds(logs) == ["crowded_out"]
        callers[1].send(heartbeat(9))
        assert served.counted["unauthenticated"] == 2
        assert served.counted["handshake: crowded_out"] == 1


async def test_the_global_limit_holds_in_addition_to_the_listener_limits() -> None:
    async with running_gateway([await broker()], sasl=SASL, max_unauthenticated_connections=3) as served:
        callers = await silent(served, 3)
        newcomer = await Caller.at(served.port)
        assert await newcomer.log_in() is not None
        assert await callers[0].is_closed()
        assert served.counted["handshake: crowded_out"] == 1
        assert served.counted["unauthenticated"] == 2


async def test_memory_is_released_after_most_connections_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released: list[None] = []
    monkeypatch.setattr(admission, "CROWD", 4)
    monkeypatch.setattr(admission, "RELEASE_DELAY_S", 0)
    monkeypatch.setattr(admission, "release_freed_memory", lambda: released.append(None))
    async with running_gateway([await broker()], sasl=SASL) as served:
        for _ in range(2):
            callers = await silent(served, 4)
            for left, caller in zip((3, 2), callers, strict=False):
                caller.close()
                await until(lambda left=left: served.counted["unauthenticated"] == left, "it has left")
            assert len(released) <= 1
            for caller in callers:
                caller.close()
            await until(lambda: served.counted["unauthenticated"] == 0, "all have left")
            await until(lambda: len(released) == 1, "once, and not again within a minute")


async def test_silent_clients_are_closed_first_when_the_node_is_full() -> None:
    async with running_gateway([await broker()], sasl=SASL, max_connections=3) as served:
        sessions = [await Caller.at(served.port)]
        assert await sessions[0].log_in() is not None
        quiet = await silent(served, 2)
        for each in quiet:
            sessions.append(await Caller.at(served.port))
            assert await sessions[-1].log_in() is not None
            assert await each.is_closed()
        assert await (await Caller.at(served.port)).is_closed(), "no client is silent any more"
        assert served.counted["rejected"] == 1


async def test_silent_connections_leave_file_descriptors_to_those_that_log_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "descriptor_limit", lambda: admission.DESCRIPTORS_RESERVED + 5)
    async with running_gateway([await broker()], sasl=SASL) as served:
        quiet = await silent(served, 4)
        first, second = await Caller.at(served.port), await Caller.at(served.port)
        assert await first.log_in() is not None
        assert await second.log_in() is not None
        assert [await each.is_closed() for each in quiet] == [True] * 4
        assert served.counted["rejected"] == 0
        assert await (await Caller.at(served.port)).is_closed()
        assert served.counted["rejected"] == 1


async def test_an_address_over_its_failure_rate_is_rejected_until_the_rate_allows_a_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = FailedLoginLimits(burst=3, per_minute=60)
    now_s = asyncio.get_running_loop().time()
    async with running_gateway([await broker()], sasl=SASL, failed_logins=limits) as served:
        monkeypatch.setattr(served.gateway.admission, "_clock", lambda: now_s)
        live = await Caller.at(served.port)
        assert await live.log_in() is not None
        waiting = await Caller.at(served.port)
        waiting.send(handshake(1))
        assert await waiting.frame() is not None
        with capture_logs() as logs:
            for _ in range(3):
                caller = await Caller.at(served.port)
                assert await caller.log_in("wrong") is not None
                assert await caller.is_closed()
            assert await (await Caller.at(served.port)).is_closed(), "on arrival"
            waiting.send(token(2))
            assert await waiting.is_closed(), "its password is not checked"
        assert served.counted["handshake: throttled"] >= 2
        assert kinds(logs) == ["throttled"]
        assert [login.failure is None for login in served.logins] == [True, False, False, False]
        live.send(heartbeat(1))
        assert await live.correlation_ids(1) == [1], "a session goes on"
        assert served.gateway.admission.is_throttled("127.0.0.1")
        now_s += 1
        assert await (await Caller.at(served.port)).log_in() is not None


async def test_a_connection_without_credentials_is_not_a_failed_login() -> None:
    limits = FailedLoginLimits(burst=1, per_minute=1)
    async with running_gateway([await broker()], sasl=SASL, failed_logins=limits) as served:
        for first in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00", b"\0\0\0\x04quit", b""):
            caller = await Caller.at(served.port)
            caller.writer.write(first)
            caller.writer.write_eof()
            assert await caller.is_closed()
        caller = await Caller.at(served.port)
        caller.send(handshake(1), heartbeat(2))
        while await caller.frame() is not None:
            pass
        assert await (await Caller.at(served.port)).log_in() is not None
