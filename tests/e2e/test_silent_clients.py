"""Ten thousand clients that connect and do not log in: the node holds them, serves others, and ends them.

And many that log in wrongly, before one process and before workers that share their count.
"""

import resource
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from testkit.certificates import STORE_PASSWORD, Authority
from testkit.guarded.raw_client import SASL_HANDSHAKE, RawClient
from testkit.guarded.workers import worker_pids
from testkit.kafka import KafkaNode
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.waiting import wait_until

USERS = {"alice": "alice-secret"}
SILENT = 10_000
"""As many as a listener admits at once by default, here of two listeners."""

OF_ONE_ADDRESS = 1_250
"""Below the limit of one address; an address has no more than 28,000 ports."""

AFTER_HANDSHAKE = 2_500
"""Of those with TLS, half say nothing and half fall silent after a handshake, which holds most memory."""

LOGIN_TIMEOUT_S = 60
"""Longer than it takes to open them all."""

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
            "kustos.max.unauthenticated.connections": str(SILENT // 2),
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
    for number in range(SILENT):
        # before it is there: its time runs from then on at the earliest, however long this process waits
        opened_s.append(time.monotonic())
        client = connected(world.tls_address if number < SILENT // 2 else world.node.bootstrap, number)
        if number < AFTER_HANDSHAKE:
            client = context.wrap_socket(client, server_hostname="localhost")
        clients.append(client)
    name = "kustos_unauthenticated_connections{"
    wait_until(lambda: world.figure(name) == SILENT, what="all are there at once")
    held = world.rss_bytes
    assert is_served(world.node.bootstrap, None)
    assert is_served(world.tls_address, world.trust)
    # the two that were served took the places of others
    assert world.figure("kustos_failed_handshakes_total", 'kind="crowded_out"') == 2
    ended_s = ends_of(clients)
    lives_s = sorted(ended_s[client] - began_s for client, began_s in zip(clients, opened_s, strict=True))
    # two were crowded out, nobody else lost a second of his time
    assert lives_s[2] > LOGIN_TIMEOUT_S - 1
    wait_until(lambda: world.figure(name) == 0, what="none is left")
    assert world.figure("kustos_failed_handshakes_total", 'kind="timeout"') > 0
    assert world.figure("kustos_failed_handshakes_total", 'kind="login_timeout"') > 0
    with capsys.disabled():
        sys.stdout.write(
            f"\n{SILENT} silent clients: RSS {before / 1e6:.0f} MB before, {held / 1e6:.0f} MB with them, "
            f"{world.rss_bytes / 1e6:.0f} MB after; ended {lives_s[2]:.1f} s to {lives_s[-1]:.1f} s after "
            f"they came (limit {LOGIN_TIMEOUT_S} s)\n"
        )
    assert held < RSS_MAX_BYTES
    assert is_served(world.node.bootstrap, None)


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
        wait_until(lambda: is_turned_away(node, "203.0.113.7"), what="each process knows of the failures")
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


def is_turned_away(node: KustosNode, host: str) -> bool:
    """Return whether none of many connections gets an answer: the kernel spreads them over the workers."""
    for _ in range(16):
        with behind_balancer(node, host) as client:
            try:
                client.ask(SASL_HANDSHAKE, 1, mechanism="PLAIN")
            except (EOFError, BrokenPipeError, ConnectionResetError):
                continue
            return False
    return True
