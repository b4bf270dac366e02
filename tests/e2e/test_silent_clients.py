"""Ten thousand clients that fall silent anywhere before a login: the node serves others, and ends them.

And many that log in wrongly, before one process and before workers that share their count.
"""

import itertools
import resource
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from kustos.gateway.listener.handshake_turns import HANDSHAKES_MAX
from kustos.wire.api_keys import ApiKey
from testkit.certificates import STORE_PASSWORD, Authority
from testkit.gateway.sessions import request
from testkit.guarded.raw_client import SASL_HANDSHAKE, RawClient
from testkit.guarded.workers import worker_pids
from testkit.hellos import client_hello
from testkit.kafka import KafkaNode
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.waiting import wait_until

USERS = {"alice": "alice-secret"}
SILENT = 10_000
"""As many as a node admits at once by default, on all its listeners."""

OF_ONE_ADDRESS = 1_250
"""Below the limit of one address; an address has no more than 28,000 ports."""

HALF_FRAME = (100_000).to_bytes(4, "big") + bytes(8_000)
"""A frame that a login may send, of which more does not come."""

LOGIN_TIMEOUT_S = 90
"""Longer than it takes to open them all."""

UNREAD_FLIGHTS = 3_000
"""Three times as many as may shake hands at once."""

RSS_MAX_BYTES = 300 * 10**6
DESCRIPTORS = SILENT + 500
GUESSES = 20
NO_EXTRAS = {
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


class World:
    """A node with a listener without TLS and one with it."""

    def __init__(self, directory: Path, kafka: KafkaNode) -> None:
        authority = Authority()
        self.trust = authority.write(directory / "authority.pem")
        self.tls_address = f"{LOOPBACK}:{free_port()}"
        store = authority.issue("kustos", hosts=["localhost"]).write(directory / "node.pem", STORE_PASSWORD)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        own = {
            "listener.name.sasl_ssl.kustos.broker.port.start": str(free_port_range(BROKER_PORTS)),
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f'{module} required user_alice="{USERS["alice"]}";'
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.key.password": STORE_PASSWORD,
            "kustos.login.timeout.ms": str(1000 * LOGIN_TIMEOUT_S),
            "kustos.ssl.handshake.timeout.ms": str(1000 * LOGIN_TIMEOUT_S),
            "kustos.max.unauthenticated.connections": str(SILENT),
        }
        settings = KustosSettings(users=USERS, properties=own)
        self.node = KustosNode(directory / "kustos", kafka.bootstrap, settings)
        own["listeners"] = f"SASL_PLAINTEXT://{self.node.bootstrap},SASL_SSL://{self.tls_address}"
        self.node.settings = replace(settings, properties=own)

    @property
    def rss_bytes(self) -> int:
        """The memory of the node's process."""
        assert self.node.server is not None
        status = Path(f"/proc/{self.node.server.pid}/status").read_text()
        return 1024 * int(status.split("VmRSS:")[1].split()[0])

    def figure(self, name: str, *labels: str) -> float:
        """Return the sum of a metric's series with these labels."""
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.node.metrics().splitlines()
            if line.startswith(name) and all(label in line for label in labels)
        )


@pytest.fixture
def world(tmp_path: Path, kafka: KafkaNode) -> Iterator[World]:
    made = World(tmp_path, kafka)
    with made.node:
        yield made


@pytest.fixture
def descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < DESCRIPTORS:
        pytest.fail(f"a process may have {hard} files open, {DESCRIPTORS} are needed: raise `ulimit -Hn`")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connected(address: str, number: int) -> socket.socket:
    """Return a connection that comes from the address with this number."""
    host, _, port = address.rpartition(":")
    return socket.create_connection(
        (host, int(port)), timeout=60, source_address=(f"127.0.1.{1 + number // OF_ONE_ADDRESS}", 0)
    )


class State(NamedTuple):
    """A place where clients fall silent."""

    name: str
    has_tls: bool
    shakes_hands: bool
    sent: Callable[["World"], bytes]
    clients: int


def hello(_: World) -> bytes:
    return client_hello(b"localhost")


def handshake(_: World) -> bytes:
    frame = request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PLAIN")
    return len(frame).to_bytes(4, "big") + frame


STATES = (
    State("no byte, without TLS", False, False, lambda _: b"", 2_000),
    State("half a frame, without TLS", False, False, lambda _: HALF_FRAME, 1_000),
    State("within a login, without TLS", False, False, handshake, 1_500),
    State("no byte", True, False, lambda _: b"", 1_000),
    State("half a ClientHello", True, False, lambda world: hello(world)[:100], 1_000),
    State("answer to the ClientHello unread", True, False, hello, 900),
    State("after the handshake", True, True, lambda _: b"", 1_000),
    State("within a login", True, True, handshake, 1_000),
    State("half a frame", True, True, lambda _: HALF_FRAME, 600),
)
assert sum(state.clients for state in STATES) == SILENT


def is_served(address: str, trust: Path | None) -> bool:
    with RawClient(address, "honest") as client:
        if trust is not None:
            context = ssl.create_default_context(cafile=str(trust))
            client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
        client.log_in("alice", USERS["alice"])
        return bool(client.ask(3, 9, topics=None, **NO_EXTRAS).brokers)


@pytest.mark.slow
def test_ten_thousand_silent_clients_lock_nobody_out_and_end_in_time(
    world: World, descriptors: None, capsys: pytest.CaptureFixture[str]
) -> None:
    before = world.rss_bytes
    context = ssl.create_default_context(cafile=str(world.trust))
    opened_s: list[float] = []
    clients: list[socket.socket] = []
    for state in itertools.chain.from_iterable([state] * state.clients for state in STATES):
        # before it is there: its time runs from then on at the earliest, however long this process waits
        opened_s.append(time.monotonic())
        client = connected(world.tls_address if state.has_tls else world.node.bootstrap, len(clients))
        if state.shakes_hands:
            client = context.wrap_socket(client, server_hostname="localhost")
        client.sendall(state.sent(world))
        clients.append(client)
    name = "kustos_unauthenticated_connections{"
    wait_until(lambda: world.figure(name) == SILENT, what="all are there at once")
    held = world.rss_bytes
    assert is_served(world.node.bootstrap, None)
    assert is_served(world.tls_address, world.trust)
    # the first that was served took the place of a silent one, and left it to the second
    assert world.figure("kustos_failed_handshakes_total", 'kind="crowded_out"') == 1
    ended_s = ends_of(clients)
    lives_s = sorted(ended_s[client] - began_s for client, began_s in zip(clients, opened_s, strict=True))
    # one was crowded out, no other lost a second of its time
    assert lives_s[1] > LOGIN_TIMEOUT_S - 1
    wait_until(lambda: world.figure(name) == 0, what="none is left")
    assert world.figure("kustos_failed_handshakes_total", 'kind="timeout"') > 0
    assert world.figure("kustos_failed_handshakes_total", 'kind="login_timeout"') > 0
    with capsys.disabled():
        sys.stdout.write(
            f"\n{SILENT} silent clients: RSS {before / 1e6:.0f} MB before, {held / 1e6:.0f} MB with them, "
            f"{world.rss_bytes / 1e6:.0f} MB after; ended {lives_s[1]:.1f} s to {lives_s[-1]:.1f} s after "
            f"they came (limit {LOGIN_TIMEOUT_S} s)\n"
        )
    assert held < RSS_MAX_BYTES
    assert is_served(world.node.bootstrap, None)


@pytest.mark.slow
def test_clients_silent_within_their_handshake_take_little_and_lock_nobody_out(
    world: World, descriptors: None, capsys: pytest.CaptureFixture[str]
) -> None:
    before = world.rss_bytes
    clients = [connected(world.tls_address, number) for number in range(UNREAD_FLIGHTS)]
    for client in clients:
        client.sendall(client_hello(b"localhost"))
    assert is_served(world.tls_address, world.trust)
    crowded_out = ("kustos_failed_handshakes_total", 'kind="crowded_out"')
    wait_until(
        lambda: world.figure(*crowded_out) >= UNREAD_FLIGHTS - HANDSHAKES_MAX,
        what="no more shake hands than may",
    )
    held = world.rss_bytes
    for client in clients:
        client.close()
    name = "kustos_unauthenticated_connections{"
    wait_until(lambda: world.figure(name) == 0, what="none is left")
    wait_until(lambda: world.rss_bytes - before < (held - before) // 2, what="memory is given back")
    with capsys.disabled():
        sys.stdout.write(
            f"\n{UNREAD_FLIGHTS} clients amid a handshake: RSS {before / 1e6:.0f} MB before, "
            f"{held / 1e6:.0f} MB with them, {world.rss_bytes / 1e6:.0f} MB after\n"
        )
    assert held - before < 100 * 10**6


def ends_of(clients: list[socket.socket]) -> dict[socket.socket, float]:
    """Return when the node ended each connection."""
    ended_s: dict[socket.socket, float] = {}
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(3 * LOGIN_TIMEOUT_S)
            assert ready, f"{len(selector.get_map())} connections do not end"
            for key, _ in ready:
                ended = key.fileobj
                assert isinstance(ended, socket.socket)
                if has_ended(ended):
                    ended_s[ended] = time.monotonic()
                    selector.unregister(ended)
                    ended.close()
    return ended_s


def has_ended(client: socket.socket) -> bool:
    try:
        while client.recv(4096):
            pass
    except (ssl.SSLWantReadError, BlockingIOError):
        return False
    except (ConnectionResetError, ssl.SSLError):
        pass
    return True


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_address_that_guesses_is_slowed_in_every_process_and_others_are_not(
    tmp_path: Path, kafka: KafkaNode, workers: int
) -> None:
    own = {
        "kustos.workers": str(workers),
        "kustos.failed.logins.per.ip.burst": str(GUESSES),
        "kustos.failed.logins.per.ip.per.minute": "1",
        "kustos.proxy.protocol": "true",
        "kustos.proxy.protocol.addresses": "127.0.0.0/8",
    }
    settings = KustosSettings(users=USERS, properties=own)
    with KustosNode(tmp_path / "kustos", kafka.bootstrap, settings) as node:
        if workers > 1:
            assert len(worker_pids(node)) == workers
        failed = 0
        while failed < GUESSES:
            with behind_balancer(node, "203.0.113.7") as client, pytest.raises(PermissionError):
                client.log_in("alice", "guess")
            failed += 1
        wait_until(lambda: is_rejected(node, "203.0.113.7"), what="each process knows of the failures")
        # by the address that the balancer reports, not by its own
        with behind_balancer(node, "203.0.113.8") as client:
            client.log_in("alice", USERS["alice"])
        wait_until(
            lambda: 'kind="throttled"' in node.metrics(), what="what was turned away is in the figures"
        )
        log = (node.directory / "kustos.log").read_text()
        assert "too many logins from its address failed" in log


def behind_balancer(node: KustosNode, host: str) -> RawClient:
    client = RawClient(node.bootstrap, "guesser")
    client.socket.sendall(f"PROXY TCP4 {host} 127.0.0.1 50000 9092\r\n".encode())
    return client


def is_rejected(node: KustosNode, host: str) -> bool:
    """Return whether none of many connections gets an answer: the kernel spreads them over the workers."""
    for _ in range(16):
        with behind_balancer(node, host) as client:
            try:
                client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
            except (EOFError, BrokenPipeError, ConnectionResetError):
                continue
            return False
    return True
