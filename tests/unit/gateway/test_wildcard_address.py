"""A listener on `::` takes clients of IPv6 and IPv4, as Java's does, and knows each by its own address."""

import asyncio

import pytest

from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.sessions import heartbeat
from tests.unit.gateway.test_client import broker


@pytest.mark.parametrize(
    ("bind_host", "hosts"),
    [
        ("::", {"127.0.0.1": "127.0.0.1", "::1": "0:0:0:0:0:0:0:1"}),
        ("0.0.0.0", {"127.0.0.1": "127.0.0.1"}),
        ("::1", {"::1": "0:0:0:0:0:0:0:1"}),
    ],
)
async def test_a_client_has_its_source_address(bind_host: str, hosts: dict[str, str]) -> None:
    async with running_gateway([await broker()], bind_host=bind_host) as served:
        for address in ("127.0.0.1", "::1"):
            if address not in hosts:
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection(address, served.port)
                continue
            for port in (served.port, served.first_port + 1):
                caller = Caller(*await asyncio.open_connection(address, port))
                caller.send(heartbeat(1))
                assert await caller.correlation_ids(1) == [1]
                assert served.hosts[-1] == hosts[address]
