"""Deadlines of a fraction of a second: only late clients lose their connections.

A busy machine may exceed these deadlines; the test then retries.
"""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.gateway.listener.plans import ConnectionSettings
from testkit.gateway.gateways import Caller, RunningGateway, handshake, running_gateway
from testkit.gateway.sessions import heartbeat
from tests.unit.gateway.test_admission import SASL, broker, kinds, until
from tests.unit.gateway.test_tls_transport import CLIENT_HELLO, KAFKA, Certificates, raw

HASTY_MS = 300
IDLE_MS = 400
HASTY = ConnectionSettings(login_timeout_ms=HASTY_MS)
ATTEMPTS = 20


@pytest.mark.parametrize("says", ["nothing", "a handshake"])
async def test_a_login_has_a_deadline_whatever_the_client_sends(says: str) -> None:
    for _ in range(ATTEMPTS):
        async with running_gateway([await broker()], sasl=SASL, settings=HASTY) as served:
            # before it connects: its deadline may begin, and even pass, before it knows that it is connected
            began_s = asyncio.get_running_loop().time()
            with capture_logs() as logs:
                caller = await Caller.at(served.port)
                if says == "a handshake":
                    caller.send(handshake(1))
                    if await caller.frame() is None:
                        continue
                assert await caller.is_closed()
            assert asyncio.get_running_loop().time() - began_s >= 0.25
            assert kinds(logs) == ["login_timeout"]
            assert served.counted["handshake: login_timeout"] == 1
            await until(lambda at=served: at.counted["unauthenticated"] == 0, "it is counted out")
            assert served.logins == [], "no client tried to log in"
            return
    raise AssertionError("no handshake is answered within the deadline")


async def logged_in(served: RunningGateway) -> Caller:
    """Return a client that made it within its deadline."""
    for _ in range(ATTEMPTS):
        caller = await Caller.at(served.port)
        if await caller.log_in() is not None:
            return caller
    raise AssertionError("no login is made within its deadline")


async def test_a_session_has_no_login_deadline() -> None:
    async with running_gateway([await broker()], sasl=SASL, settings=HASTY) as served:
        caller, other = await logged_in(served), await Caller.at(served.port)
        assert await other.is_closed()
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        assert served.counted["unauthenticated"] == 0


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    settings, loop = ConnectionSettings(connections_max_idle_ms=IDLE_MS), asyncio.get_running_loop()
    for _ in range(ATTEMPTS):
        async with running_gateway([await broker()], settings=settings) as served:
            times_s, asked, answered = [loop.time()], 0, [0]
            idle, busy = await Caller.at(served.port), await Caller.at(served.port)
            ended = loop.create_task(idle.is_closed())
            while answered == [asked] and not (asked and ended.done()):
                asked += 1
                busy.send(heartbeat(asked))
                answered = await busy.correlation_ids(1)
                times_s.append(loop.time())
            await ended
            busy.send(heartbeat(0))
            last = await busy.correlation_ids(1)
            times_s.append(loop.time())
            if max(after - before for before, after in pairwise(times_s)) * 1000 < IDLE_MS / 2:
                assert (answered, last) == ([asked], [0])
                return
    raise AssertionError("no client was busy all the time")


@pytest.mark.parametrize("sent", [b"", CLIENT_HELLO[:40]])
async def test_a_slow_handshake_has_one_deadline_and_counts_as_a_connection(
    tmp_path: Path, sent: bytes
) -> None:
    tls = Certificates(tmp_path).listener(HASTY_MS)
    for _ in range(ATTEMPTS):
        async with running_gateway([await broker()], tls=tls, max_connections_per_ip=1) as served:
            counted = served.counted
            slow = asyncio.ensure_future(raw(served.port, *(bytes([each]) for each in sent)))
            await until(
                lambda at=counted: at["connections"] == 1 or at["handshake: timeout"] == 1, "it is there"
            )
            answer = await raw(served.port, KAFKA)
            was_there = counted["handshake: timeout"] == 0
            await slow
            assert counted["handshake: timeout"] == 1
            assert counted["connections"] == 0
            if was_there:
                assert (answer, counted["rejected"]) == (b"", 1)
                return
    raise AssertionError("no client connects within the deadline of another")
