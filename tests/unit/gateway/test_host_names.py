"""Clients choose their broker by the requested host name; an unknown name leads to no broker."""

import asyncio
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import KafkaPrincipal
from kustos.gateway.listener import ListenerTls
from kustos.gateway.upstream.host_names import BrokerHostPattern, BrokerHosts
from kustos.tls import Side, TlsContexts, tls_settings
from kustos.wire import response_codec
from kustos.wire.api_keys import ApiKey
from testkit.certificates import Authority
from testkit.gateway.gateways import Caller, RunningGateway, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker, cluster_of
from testkit.gateway.sessions import heartbeat, request
from testkit.hellos import client_hello
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

PATTERN = BrokerHostPattern.parse("broker-$(nodeId).kafka.example.com")
HOSTS = BrokerHosts("kafka.example.com", PATTERN, 9443)
BY_ADDRESS = BrokerHosts("10.0.7.1", PATTERN, 9443)
OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
VERSIONS = pytest.mark.parametrize("version", [OLD, NEW])
ANYBODY = KafkaPrincipal("User", "anybody")
UNRECOGNIZED_NAME = bytes((2, 112))
"""The body of the alert (RFC 8446, section 6)."""


class Scene:
    """A listener with host names before the brokers 1 and 2."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        self.store = directory / "node.pem"
        self.issue()
        given = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.store)}
        self.tls = ListenerTls(TlsContexts(tls_settings(given), Side.SERVER), lambda *_: ANYBODY, 60_000)

    def issue(self) -> None:
        """Write a new certificate, of all names."""
        hosts = ("kafka.example.com", "*.kafka.example.com")
        self.authority.issue("node", hosts=hosts, address=None).write(self.store)

    def client(self, version: ssl.TLSVersion = NEW) -> ssl.SSLContext:
        """Return a client's context, that verifies the name of the host."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        context.minimum_version = context.maximum_version = version
        return context

    @asynccontextmanager
    async def serving(
        self, hosts: BrokerHosts = HOSTS, brokers: Sequence[ScriptedBroker] = ()
    ) -> AsyncIterator[RunningGateway]:
        self.brokers = list(brokers) or [ScriptedBroker(1), ScriptedBroker(2)]
        await cluster_of(*self.brokers)
        async with running_gateway(self.brokers, tls=self.tls, hosts_of_brokers=hosts) as served:
            yield served

    def heartbeats(self) -> list[int]:
        """Return the ids of the brokers that were asked to answer one."""
        return [each.node_id for each in self.brokers for key in each.asked if key == ApiKey.HEARTBEAT]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


async def connected(port: int, context: ssl.SSLContext, host: str) -> Caller:
    return Caller(*await asyncio.open_connection(LOOPBACK, port, ssl=context, server_hostname=host))


async def until(condition: Any, what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


async def sent(port: int, hello: bytes) -> bytes:
    """Send the first bytes of a client; return all that is answered."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    writer.write(hello)
    answer = b""
    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            answer = await reader.read()
    writer.close()
    return answer


@VERSIONS
@pytest.mark.parametrize(
    ("host", "node_id"),
    [
        ("broker-1.kafka.example.com", 1),
        ("broker-2.kafka.example.com", 2),
        ("BROKER-2.Kafka.EXAMPLE.com", 2),
    ],
)
async def test_a_name_leads_to_its_broker(
    scene: Scene, version: ssl.TLSVersion, host: str, node_id: int
) -> None:
    async with scene.serving() as served:
        caller = await connected(served.port, scene.client(version), host)
        caller.send(heartbeat(1), heartbeat(2))
        assert await caller.correlation_ids(2) == [1, 2]
        assert scene.heartbeats() == [node_id, node_id]
        caller.close()
        await until(lambda: served.counted["connections"] == 0, "the connection is counted out")


async def test_a_name_may_end_in_a_dot(scene: Scene) -> None:
    async with scene.serving() as served:
        context = scene.client()
        # no certificate has such a name
        context.check_hostname = False
        caller = await connected(served.port, context, "broker-2.kafka.example.com.")
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        assert scene.heartbeats() == [2]


async def addresses(caller: Caller) -> dict[int, tuple[str, int]]:
    codec = response_codec(ApiKey.METADATA, 12)
    caller.send(request(ApiKey.METADATA, 12, 7, topics=None))
    frame = await caller.frame()
    assert frame is not None
    answer = codec.decode(frame, 5).message
    return {each.node_id: (each.host, each.port) for each in answer.brokers}


async def test_the_bootstrap_name_leads_to_a_broker_that_advertises_all_names(scene: Scene) -> None:
    async with scene.serving() as served:
        callers = [await connected(served.port, scene.client(), "kafka.example.com") for _ in range(4)]
        for caller in callers:
            assert await addresses(caller) == {
                1: ("broker-1.kafka.example.com", 9443),
                2: ("broker-2.kafka.example.com", 9443),
            }
            caller.send(heartbeat(1))
            assert await caller.correlation_ids(1) == [1]
        assert set(scene.heartbeats()) == {1, 2}


REFUSED = [
    b"broker-1.kafka.example.org",
    b"broker-1.kafka.example.com.evil.org",
    b"x-broker-1.kafka.example.com",
    b"broker-01.kafka.example.com",
    b"broker--1.kafka.example.com",
    b"broker-+1.kafka.example.com",
    b"broker-1 .kafka.example.com",
    b"broker-4294967297.kafka.example.com",
    b"broker-99999999999999999999999999.kafka.example.com",
    b"broker-.kafka.example.com",
    b"broker-1.kafka.example.com..",
    b".kafka.example.com",
    b"127.0.0.1",
    b"broker-\xd9\xa1.kafka.example.com",
    b"broker-1\xe2\x80\x8b.kafka.example.com",
    b"\xff" * 60,
    b"\x1b[31mred\r\nbroker-1.kafka.example.com",
    b"n" * 245,
]


@VERSIONS
@pytest.mark.parametrize("name", [*REFUSED, None])
async def test_an_unknown_or_missing_name_ends_the_handshake_with_one_log_line(
    scene: Scene, version: ssl.TLSVersion, name: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    async with scene.serving() as served:
        with capture_logs() as logs:
            for _ in range(3):
                answer = await sent(served.port, client_hello(name, version))
                # an alert and nothing else; Python has its own for names that are not ASCII
                assert answer[:1] == b"\x15"
                assert (answer[5:] == UNRECOGNIZED_NAME) == (name is None or name.isascii())
        assert served.counted["handshake: unknown_host"] == 3
        assert served.counted["connections"] == 0
        assert served.contexts == []
        (line,) = (each for each in logs if each["event"] == "connections failed before a login")
        assert line["kind"] == "unknown_host"
        assert line["reason"].isascii()
        assert line["reason"].isprintable()
        assert len(line["reason"]) < 200
        assert scene.heartbeats() == []
    assert reported == []


async def test_a_name_with_a_null_byte_fails_the_handshake(scene: Scene) -> None:
    async with scene.serving() as served:
        await sent(served.port, client_hello(b"broker-1.kafka.example.com\0.evil.org"))
        assert served.counted["handshake: protocol"] == 1


async def test_a_missing_name_means_bootstrap_only_if_bootstrap_is_an_address(scene: Scene) -> None:
    async with scene.serving(BY_ADDRESS) as served:
        context = scene.client()
        context.check_hostname = False
        caller = await connected(served.port, context, "")
        assert set(await addresses(caller)) == {1, 2}
        assert await sent(served.port, client_hello(b"kafka.example.com")) != b""
        assert served.counted["handshake: unknown_host"] == 1


async def test_an_unknown_broker_is_queried_and_the_client_may_retry(
    scene: Scene,
) -> None:
    hello = client_hello(PATTERN.host_of(3).encode())
    brokers = [ScriptedBroker(1), ScriptedBroker(2)]
    async with scene.serving(brokers=brokers) as served:
        third = ScriptedBroker(3)
        # the cluster has it, but this process has not heard of it
        await third.start()
        for each in (*brokers, third):
            each.peers = [*brokers, third]
        # without an alert: Java's clients take one for a reason not to come again
        assert await sent(served.port, hello) == b""
        assert served.counted["handshake: unknown_broker"] == 1
        await until(lambda: 3 in served.cluster.brokers, "the broker is known")
        caller = await connected(served.port, scene.client(), PATTERN.host_of(3))
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        assert ApiKey.HEARTBEAT in third.asked
        third.stop()


async def test_names_of_missing_brokers_cause_few_upstream_queries(scene: Scene) -> None:
    async with scene.serving() as served:
        began_s = asyncio.get_running_loop().time()
        before = sum(each.asked.count(ApiKey.METADATA) for each in scene.brokers)
        for node_id in range(100, 150):
            assert await sent(served.port, client_hello(PATTERN.host_of(node_id).encode())) == b""
        passed_s = asyncio.get_running_loop().time() - began_s
        asked = sum(each.asked.count(ApiKey.METADATA) for each in scene.brokers) - before
        # one a second, however many come, and without another login at a broker
        assert 0 < asked <= passed_s + 1
        assert served.counted["handshake: unknown_broker"] == 50
        assert served.logins == []


def resumed(
    port: int, context: ssl.SSLContext, host: str, session: Any = None
) -> tuple[Any, bool | None, int]:
    """Ask for a heartbeat; return the session, whether it was resumed, and how many bytes were answered."""
    with (
        socket.create_connection((LOOPBACK, port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=host, session=session) as client,
    ):
        frame = heartbeat(1)
        try:
            client.sendall(len(frame).to_bytes(4, "big") + frame)
            answered = len(client.recv(100))
        except ConnectionError:
            answered = 0
        return client.session, client.session_reused, answered


@VERSIONS
async def test_a_resumed_session_leads_to_the_requested_host(scene: Scene, version: ssl.TLSVersion) -> None:
    async with scene.serving() as served:
        context = scene.client(version)
        session, _, _ = await asyncio.to_thread(resumed, served.port, context, PATTERN.host_of(1))
        _, was_resumed, answered = await asyncio.to_thread(
            resumed, served.port, context, PATTERN.host_of(1), session
        )
        assert was_resumed
        assert answered
        _, was_resumed, answered = await asyncio.to_thread(
            resumed, served.port, context, PATTERN.host_of(2), session
        )
        if version is OLD:
            # OpenSSL resumes it for the name of its beginning, so it is refused
            assert not answered
            assert served.counted["handshake: unknown_host"] == 1
            assert scene.heartbeats() == [1, 1]
        else:
            assert answered
            assert scene.heartbeats() == [1, 1, 2]


async def test_the_name_applies_after_a_hello_retry_request(scene: Scene) -> None:
    async with scene.serving() as served:
        # the client's first guess is another curve
        scene.tls.contexts.context.set_ecdh_curve("secp384r1")
        caller = await connected(served.port, scene.client(), PATTERN.host_of(2))
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        assert scene.heartbeats() == [2]


async def test_names_apply_under_a_new_certificate(scene: Scene) -> None:
    async with scene.serving() as served:
        scene.issue()
        scene.tls.contexts.replace()
        caller = await connected(served.port, scene.client(), PATTERN.host_of(2))
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        assert scene.heartbeats() == [2]
        answer = await sent(served.port, client_hello(b"elsewhere.example.com"))
        assert answer[5:] == UNRECOGNIZED_NAME
