"""Reads from many connections after the budget is used up, on real sockets and both event loops."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kustos.gateway.session import request_budget
from kustos.gateway.session.request_budget import FLOOR_BYTES, READ_BYTES, SCARCE_READ_BYTES, RequestBudget
from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.sessions import heartbeat
from testkit.waiting import wait_until
from tests.unit.gateway.test_client import broker
from tests.unit.gateway.test_tls_transport import Certificates

CONNECTIONS = 30
ROOM_BYTES = 4 * READ_BYTES
RECORD_BYTES = 2**14
"""The largest record of TLS (RFC 8446, section 5.1), which is decrypted as a whole."""


def beginning(size_bytes: int) -> bytes:
    """The beginning of a large request, with its length."""
    frame = heartbeat(1, "g" * 30_000) + bytes(size_bytes)
    return (2 * len(frame)).to_bytes(4, "big") + frame


async def held_beyond_the_limit(certificates: Certificates | None) -> int:
    """Return the most that a connection holds that begins a large request after all was used."""
    budget = RequestBudget(ROOM_BYTES)
    tls = None if certificates is None else certificates.listener()
    context = None if certificates is None else certificates.client()

    async def until(condition: Callable[[], bool], what: str) -> None:
        await asyncio.to_thread(wait_until, condition, what=what)

    async def came() -> Caller:
        return Caller(
            *await asyncio.open_connection(
                "127.0.0.1", made.port, ssl=context, server_hostname=context and "localhost"
            )
        )

    async with running_gateway([await broker()], requests=budget, tls=tls) as made:
        hoarders = [await came() for _ in range(3)]
        for each in hoarders:
            each.writer.write(beginning(3 * ROOM_BYTES // 4))
        await until(lambda: budget.waiting > 0, "all is used, and one waits")
        waited = budget.waiting
        known = made.connections
        crowd = [await came() for _ in range(CONNECTIONS)]
        for each in crowd:
            each.writer.write(beginning(2 * READ_BYTES))
        await until(lambda: budget.waiting == waited + CONNECTIONS, "all of them wait")
        late = set(made.connections) - set(known)
        held_bytes = max(each._incoming.share.held_bytes for each in late)
        small = await came()
        small.send(heartbeat(7))
        assert await small.correlation_ids(1) == [7], "small requests never wait"
        for each in (*hoarders, *crowd, small):
            each.writer.transport.abort()
        await until(lambda: budget.used_bytes == 0, "all is given back")
    return held_bytes


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_connections_hold_little_beyond_the_limit(
    run: Any, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # no client is closed meanwhile
    monkeypatch.setattr(request_budget, "FINISH_S", 3600.0)
    certificates = Certificates(tmp_path) if protocol == "SSL" else None
    most_bytes = FLOOR_BYTES + SCARCE_READ_BYTES + (RECORD_BYTES if certificates else 0)
    assert run(held_beyond_the_limit(certificates)) <= most_bytes
