"""Concurrent TLS handshakes are limited; silent clients delay others only briefly."""

import asyncio
import ssl
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kustos.gateway.listener import handshake_turns
from kustos.gateway.listener.handshake_turns import CHECKED_EVERY_S, GRACE_S, HandshakeTurns
from kustos.gateway.listener.handshakes import HandshakeRefusal
from testkit.gateway.gateways import Caller, running_gateway
from testkit.hellos import client_hello
from testkit.waiting import wait_until
from tests.unit.gateway.test_pending_logins import Clock
from tests.unit.gateway.test_tls_transport import Certificates, broker, metadata_answered

MAXIMUM = 3


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake_turns, "HANDSHAKES_MAX", MAXIMUM)


class Scene:
    """Clients that are texts; `log` says what became of them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.log: list[str] = []
        self.soon: list[Any] = []
        self.clients: dict[str, Client] = {}
        self.turns = HandshakeTurns(lambda: self.clock.now_s, self.clock.call_later, self.soon.append)

    def begin(self, *names: str) -> None:
        """Begin the handshakes of clients; the text before the `/` of a name is its host."""
        for name in names:
            client = self.clients[name] = Client(name, self)
            if self.turns.begin(client, client.host, partial(self.log.append, name)):
                self.log.append(name)

    def end(self, name: str) -> None:
        self.turns.end(self.clients[name], self.clients[name].host)
        self.go_on()

    def go_on(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def wait(self, seconds: float) -> None:
        self.clock.go_to(self.clock.now_s + seconds)
        self.go_on()


class Client:
    def __init__(self, name: str, scene: Scene) -> None:
        self.name, self.scene = name, scene
        self.host = name.partition("/")[0]

    def fail(self, refusal: HandshakeRefusal) -> None:
        self.scene.log.append(f"{self.name} {refusal.kind}")
        self.scene.turns.end(self, self.host)


def test_waiting_handshakes_start_as_others_end_in_turns_by_network() -> None:
    scene = Scene()
    scene.begin("a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "b/1")
    assert scene.log == ["a/1", "a/2", "a/3"]
    scene.end("a/5")
    for name in ("a/2", "a/2", "a/1", "a/4"):
        scene.end(name)
    assert scene.log[3:] == ["a/4", "b/1", "a/6"], "a handshake that ends twice frees one place"
    scene.wait(10 * GRACE_S)
    assert len(scene.log) == 6, "no handshake waits, so none is too slow"


def test_slow_handshakes_end_oldest_first_while_others_wait() -> None:
    scene = Scene()
    scene.begin("a/1", "b/1", "a/2")
    scene.wait(GRACE_S - CHECKED_EVERY_S)
    scene.begin("c/1")
    scene.wait(CHECKED_EVERY_S / 2)
    assert len(scene.log) == 3, "they have their time"
    scene.wait(CHECKED_EVERY_S)
    assert scene.log[3:] == ["a/1 crowded_out", "c/1"]
    scene.begin("c/2", "c/3", "c/4")
    scene.wait(CHECKED_EVERY_S)
    assert scene.log[5:] == ["b/1 crowded_out", "a/2 crowded_out", "c/2", "c/3"]
    scene.wait(GRACE_S + CHECKED_EVERY_S)
    assert scene.log[9:] == ["c/1 crowded_out", "c/4"]
    assert scene.clock.due == [], "no timer without a waiting handshake"


async def test_clients_that_do_not_read_delay_others_only_briefly(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        hello = client_hello(b"localhost", ssl.TLSVersion.TLSv1_3)
        silent = [await Caller.at(served.port) for _ in range(MAXIMUM)]
        for caller in silent:
            caller.writer.write(hello)
        honest = [asyncio.create_task(Caller.at(served.port, certificates.client())) for _ in range(MAXIMUM)]
        for caller in await asyncio.gather(*honest):
            assert await metadata_answered(caller)
        crowded = "handshake: crowded_out"
        await asyncio.to_thread(wait_until, lambda: served.counted[crowded] > 0, what="others had to go")
        assert served.counted[crowded] + served.counted["unauthenticated"] == len(silent)
