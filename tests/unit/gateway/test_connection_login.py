"""A login whose step runs beside the loop counts as it ends, even if its client did not wait for that."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    CustomServer,
    LoginStep,
    Proven,
    RunBeside,
    SaslAuthenticationError,
    SaslServerExchange,
    SaslServerMachine,
    SaslServerMechanism,
    SaslServerSettings,
    Surroundings,
)
from kustos.gateway.listener.handshakes import HandshakeRefusal
from kustos.gateway.listener.login import ConnectionLogin
from kustos.gateway.session.logins import Login
from kustos.wire.api_keys import ApiKey
from testkit.clocks import ManualClock
from testkit.gateway.sessions import request

HOST = "10.0.0.7"


class Exchange(SaslServerExchange):
    def respond(self, token: bytes) -> Proven:
        self.claimed_name = "alice"
        if token != b"right":
            raise SaslAuthenticationError("wrong")
        return Proven(b"", "alice")


class Mechanism(SaslServerMechanism):
    def exchange(self) -> SaslServerExchange:
        return Exchange()


@dataclass
class Scene:
    """The port and the connection of a login, and what they were told."""

    host: str = HOST
    told: list[str] = field(default_factory=list)
    logins: list[Login] = field(default_factory=list)
    step: LoginStep | None = None

    def __post_init__(self) -> None:
        machine = SaslServerMachine(
            SaslServerSettings(failed_authentication_delay_ms=0),
            {"PIN": CustomServer.factory(Mechanism(), Surroundings("", 1000))},
            lambda _: b"",
            ManualClock(),
        )
        port: Any = SimpleNamespace(
            name="CLIENTS",
            security_protocol="SASL_PLAINTEXT",
            is_throttled=lambda _: False,
            login_failed=lambda host: self.told.append(f"failed {host}"),
            login_threads=SimpleNamespace(run=self.run),
            metrics=SimpleNamespace(authenticated=lambda *_: None),
            observer=SimpleNamespace(login_ended=self.login_ended),
        )
        self.login = ConnectionLogin(self, port, machine)

    def run(self, work: RunBeside, resume: Any) -> None:
        self.step, self.resume = work.step, resume

    def login_ended(self, login: Login) -> bool:
        self.logins.append(login)
        return True

    def write(self, frame: bytes) -> None:
        self.told.append("written")

    def close(self, reason: str, *, logged: bool = True) -> None:
        self.told.append("closed")

    def refuse(self, refusal: HandshakeRefusal) -> None:
        self.told.append("refused")

    def admitted(self, principal: KafkaPrincipal) -> None:
        self.told.append(f"admitted {principal}")

    def verified(self, go_on: Callable[[], None]) -> None:
        self.told.append("verified")
        go_on()

    def listen_no_more(self) -> None:
        self.told.append("deaf")

    def begin(self, token: bytes) -> None:
        self.login.receive(request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PIN"))
        self.login.receive(request(ApiKey.SASL_AUTHENTICATE, 1, 2, auth_bytes=token))
        assert self.step is not None


async def test_a_login_ends_as_its_step_does() -> None:
    scene = Scene()
    scene.begin(b"right")
    scene.resume(scene.step)
    assert scene.told == ["written", "verified", "written", "admitted User:alice"]
    assert [login.failure for login in scene.logins] == [None]


@pytest.mark.parametrize(("token", "failures"), [(b"wrong", ["wrong"]), (b"right", [])])
async def test_who_leaves_before_the_end_is_counted_if_he_guessed_and_is_never_admitted(
    token: bytes, failures: list[str]
) -> None:
    scene = Scene()
    scene.begin(token)
    scene.login.end()
    scene.resume(scene.step)
    assert scene.told == ["written", *([f"failed {HOST}"] if failures else [])]
    assert [login.claimed_name for login in scene.logins] == ["alice"] * len(failures)
    assert all(login.failure is not None for login in scene.logins)
