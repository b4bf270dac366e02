"""Clients behind HAProxy: the hosts that kustos sees are theirs, by both versions of the PROXY protocol."""

import asyncio
import ipaddress
import os
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kustos.auth import ListenerPrincipals, SaslServerSettings
from kustos.gateway.listener import ListenerTls
from kustos.gateway.upstream import AddressRanges
from kustos.server.tls import certificate_principals
from kustos.tls import Side, TlsContexts, tls_settings
from kustos.wire.api_keys import ApiKey
from testkit.certificates import Authority
from testkit.gateway.gateways import Caller, RunningGateway, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import request, versions
from testkit.ports import LOOPBACK, free_port
from testkit.processes import spawn
from testkit.waiting import wait_until

PROGRAM = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin") or "haproxy"
ENDS_S = 60.0
CLIENT = "127.0.0.9"
BALANCER = AddressRanges((ipaddress.ip_network("127.0.0.1"),))
OTHERS = AddressRanges((ipaddress.ip_network("127.0.0.128/25"), ipaddress.ip_network("::/0")))
V1 = b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 9192\r\n"
V2_LOCAL = b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"


async def broker() -> ScriptedBroker:
    made = ScriptedBroker(1)
    await made.start()
    return made


@asynccontextmanager
async def balanced(directory: Path, port: int, option: str) -> AsyncIterator[int]:
    """Start HAProxy before a port; yield its own port."""
    own = free_port()
    file = directory / "haproxy.cfg"
    file.write_text(
        "defaults\n  mode tcp\n  timeout connect 20s\n  timeout client 60s\n  timeout server 60s\n"
        f"listen kafka\n  bind {LOOPBACK}:{own}\n"
        f"  server kustos {LOOPBACK}:{port} source 127.0.0.1 {option}\n"
    )
    process = spawn([PROGRAM, "-db", "-f", str(file)])
    try:
        await asyncio.to_thread(wait_until, lambda: is_open(own), what="HAProxy listens")
        yield own
    finally:
        process.terminate()
        process.wait(ENDS_S)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


async def caller_from(host: str, port: int, tls: ssl.SSLContext | None = None) -> Caller:
    opened = await asyncio.open_connection(LOOPBACK, port, ssl=tls, local_addr=(host, 0))
    return Caller(*opened)


async def metadata_answered(caller: Caller) -> bool:
    caller.send(request(ApiKey.METADATA, 12, 7, topics=None))
    return await caller.correlation_ids(1) == [7]


@pytest.mark.parametrize(
    "option", ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options unique-id"]
)
async def test_a_client_behind_haproxy_has_its_own_host(tmp_path: Path, option: str) -> None:
    async with (
        running_gateway([await broker()], proxies=BALANCER) as served,
        balanced(tmp_path, served.port, option) as port,
    ):
        assert await metadata_answered(await caller_from(CLIENT, port))
        assert {context.host for context in served.contexts} == {CLIENT}


async def test_a_login_and_its_failure_have_the_clients_host(tmp_path: Path) -> None:
    async with (
        running_gateway([await broker()], proxies=BALANCER, sasl=SaslServerSettings()) as served,
        balanced(tmp_path, served.port, "send-proxy-v2") as port,
    ):
        await (await caller_from(CLIENT, port)).log_in()
        await (await caller_from("127.0.0.10", port)).log_in("wrong")
        await asyncio.to_thread(wait_until, lambda: len(served.logins) == 2, what="both are recorded")
        assert {login.host for login in served.logins} == {CLIENT, "127.0.0.10"}


async def test_the_header_comes_before_tls(tmp_path: Path) -> None:
    authority = Authority()
    node = authority.issue("node", hosts=["localhost"], ends=datetime.now(UTC) + timedelta(days=2))
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": node.key_pem,
        "ssl.keystore.certificate.chain": node.chain_pem,
    }
    principals = ListenerPrincipals(listener_name="CLIENTS", security_protocol="SSL")
    contexts = TlsContexts(tls_settings(keys), Side.SERVER)
    tls = ListenerTls(contexts, certificate_principals(principals), 60_000)
    async with (
        running_gateway([await broker()], proxies=BALANCER, tls=tls) as served,
        balanced(tmp_path, served.port, "send-proxy") as port,
    ):
        trusting = ssl.create_default_context(cadata=authority.pem)
        trusting.check_hostname = False
        assert await metadata_answered(await caller_from(CLIENT, port, trusting))
        assert {context.host for context in served.contexts} == {CLIENT}


async def refused(served: RunningGateway, data: bytes, host: str = LOOPBACK) -> bool:
    """Return whether a connection that begins so is closed without an answer."""
    caller = await caller_from(host, served.port)
    caller.writer.write(data)
    return await caller.is_closed()


KAFKA = len(versions(1)).to_bytes(4, "big") + versions(1)


@pytest.mark.parametrize("data", [KAFKA, b"PROXY TCP4 nobody\r\n" + KAFKA, b"GET / HTTP/1.1\r\n\r\n"])
async def test_a_listed_peer_without_a_header_is_closed(data: bytes) -> None:
    async with running_gateway([await broker()], proxies=BALANCER) as served:
        assert await refused(served, data)
        assert served.counted["handshake: proxy_header"] == 1
        assert served.hosts == []


@pytest.mark.parametrize("proxies", [None, OTHERS])
@pytest.mark.parametrize("header", [V1, V2_LOCAL])
async def test_an_unlisted_peer_with_a_header_is_closed(proxies: AddressRanges | None, header: bytes) -> None:
    async with running_gateway([await broker()], proxies=proxies) as served:
        assert await refused(served, header + KAFKA)
        assert served.counted["handshake: proxy_header"] == 1


async def test_an_unlisted_peer_without_a_header_is_a_client_with_its_own_host() -> None:
    async with running_gateway([await broker()], proxies=OTHERS) as served:
        assert await metadata_answered(await caller_from(CLIENT, served.port))
        assert set(served.hosts) == {CLIENT}


async def test_a_balancer_that_speaks_for_itself_has_the_host_of_its_socket() -> None:
    async with running_gateway([await broker()], proxies=BALANCER) as served:
        caller = await caller_from(LOOPBACK, served.port)
        # the header byte by byte, the last with the first request
        for byte in V2_LOCAL[:-1]:
            caller.writer.write(bytes([byte]))
            await caller.writer.drain()
        caller.writer.write(V2_LOCAL[-1:])
        assert await metadata_answered(caller)
        assert set(served.hosts) == {LOOPBACK}


async def test_health_checks_that_send_nothing_are_no_failures() -> None:
    async with running_gateway([await broker()], proxies=BALANCER) as served:
        (await caller_from(LOOPBACK, served.port)).close()
        partial = await caller_from(LOOPBACK, served.port)
        partial.writer.write(V1[:9])
        await partial.writer.drain()
        partial.close()
        await asyncio.to_thread(
            wait_until, lambda: served.counted["handshake: proxy_header"] == 1, what="the torn one is counted"
        )
        assert served.counted["connections"] == 0


async def test_the_limit_by_address_counts_clients_and_not_the_balancer() -> None:
    async with running_gateway([await broker()], proxies=BALANCER, max_connections_per_ip=1) as served:
        callers = [await caller_from(LOOPBACK, served.port) for _ in range(2)]
        for last, caller in enumerate(callers, start=7):
            caller.writer.write(V1.replace(b".7 ", f".{last} ".encode()))
            assert await metadata_answered(caller)
        assert await refused(served, V1 + KAFKA)
        assert set(served.hosts) == {"192.0.2.7", "192.0.2.8"}
