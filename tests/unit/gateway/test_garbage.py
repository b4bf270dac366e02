"""Closed connections are freed immediately, since a full garbage collection is rare."""

import asyncio
import gc
from typing import Any

import pytest
import uvloop

from kustos.auth import SaslServerSettings
from kustos.gateway.listener.connection import ClientConnection
from kustos.gateway.session.client_session import ClientSession
from kustos.gateway.upstream.link import UpstreamLink
from testkit.gateway.gateways import PASSWORD, Caller, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat
from testkit.waiting import wait_until

SASL = SaslServerSettings(failed_authentication_delay_ms=0)
CLIENTS = 20
PARTS = (ClientConnection, ClientSession, UpstreamLink)


def alive() -> dict[str, int]:
    """Return how many of each part of a connection there are."""
    kinds = [type(each) for each in gc.get_objects()]
    return {part.__name__: kinds.count(part) for part in PARTS}


async def come_and_go(password: str) -> None:
    broker = ScriptedBroker(1)
    await broker.start()
    async with running_gateway([broker], sasl=SASL) as served:
        before = alive()
        for number in range(CLIENTS):
            caller = await Caller.at(served.port)
            await caller.log_in(password)
            caller.send(heartbeat(number))
            if await caller.frame() is not None:
                assert password == PASSWORD
                assert min(alive()[name] - before[name] for name in before) > 0, "all parts are in use"
            caller.close()
        made: Any = served.gateway

        def no_connection_is_left() -> bool:
            return not made.admission.connections

        await asyncio.to_thread(wait_until, no_connection_is_left, what="all connections are closed")
        await asyncio.to_thread(wait_until, lambda: alive() == before, what="nothing is left of them")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("password", [PASSWORD, "wrong"])
def test_connections_are_freed_without_the_garbage_collector(run: Any, password: str) -> None:
    gc.collect()
    gc.disable()
    try:
        run(come_and_go(password))
    finally:
        gc.enable()
