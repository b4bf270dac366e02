"""A login counts once with its outcome, even if its client disconnects early."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    INVALID_TOKEN,
    AcceptedToken,
    CallbackServer,
    CustomServer,
    MechanismFactory,
    OAuthBearerServer,
    Proven,
    RefusedToken,
    RunInThread,
    SaslAuthenticationError,
    SaslServerExchange,
    SaslServerMachine,
    SaslServerMechanism,
    SaslServerSettings,
    Surroundings,
)
from kustos.auth.mechanisms import HASHING, BlockingStep
from kustos.gateway.listener.handshakes import HandshakeRefusal
from kustos.gateway.listener.login import ConnectionLogin
from kustos.gateway.session.logins import Login
from kustos.wire.api_keys import ApiKey
from testkit.clocks import ManualClock
from testkit.gateway.sessions import request

HOST = "10.0.0.7"
NOW_MS = 1_700_000_000_000


class Exchange(SaslServerExchange):
    def respond(self, token: bytes) -> Proven:
        self.claimed_name = "alice"
        if token != b"right":
            raise SaslAuthenticationError("wrong")
        return Proven(b"", "alice")


class Mechanism(SaslServerMechanism):
    def exchange(self) -> SaslServerExchange:
        return Exchange()


PIN = CustomServer.factory(Mechanism(), Surroundings("", 1000))


class SlowProof:
    """An exchange whose handler step requests a second step that hashes the proof."""

    claimed_name = "alice"

    def claim(self, token: bytes) -> None:
        """Say nothing."""

    def respond(self, token: bytes) -> BlockingStep:
        return BlockingStep(lambda: Exchange().respond(token), HASHING)


def bearer(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def validate(token: str) -> AcceptedToken | RefusedToken:
    if token != "right":
        return RefusedToken(INVALID_TOKEN, f"{token} is none", claimed_name="mallory")
    return AcceptedToken("alice", NOW_MS + 1000)


BEARER = OAuthBearerServer.factory(validate)


@dataclass
class Scene:
    """The port and the connection of a login; `events` are the calls that they received."""

    host: str = HOST
    mechanism: MechanismFactory = PIN
    events: list[str] = field(default_factory=list)
    logins: list[Login] = field(default_factory=list)
    counted: list[bool] = field(default_factory=list)
    steps: list[RunInThread] = field(default_factory=list)
    cancelled: int = 0
    is_full: bool = False

    def __post_init__(self) -> None:
        machine = SaslServerMachine(
            SaslServerSettings(failed_authentication_delay_ms=0),
            {"PIN": self.mechanism},
            lambda _: b"",
            ManualClock(NOW_MS),
        )
        port: Any = SimpleNamespace(
            name="CLIENTS",
            security_protocol="SASL_PLAINTEXT",
            gateway=SimpleNamespace(
                admission=SimpleNamespace(is_throttled=lambda _: False),
                login_failed=lambda host: self.events.append(f"failed {host}"),
                login_threads=SimpleNamespace(run=self.run),
            ),
            parts=SimpleNamespace(
                metrics=SimpleNamespace(
                    authenticated=lambda _, succeeded, __: self.counted.append(succeeded)
                ),
                observer=SimpleNamespace(login_ended=self.login_ended),
            ),
        )
        self.login = ConnectionLogin(self, port, machine)

    def run(self, work: RunInThread, resume: Any) -> Callable[[], None]:
        self.steps.append(work)
        self.resume = resume
        return self.cancel

    def cancel(self) -> None:
        self.cancelled += 1

    def login_ended(self, login: Login) -> bool:
        self.logins.append(login)
        return not (self.is_full and login.failure is None)

    def write(self, frame: bytes) -> None:
        self.events.append("written")

    def close(self, reason: str, *, logged: bool = True) -> None:
        self.events.append("closed")

    def refuse(self, refusal: HandshakeRefusal) -> None:
        self.events.append("refused")

    def admitted(self, principal: KafkaPrincipal) -> None:
        self.events.append(f"admitted {principal}")

    def verified(self, go_on: Callable[[], None]) -> None:
        self.events.append("verified")
        go_on()

    def login_failed(self) -> None:
        self.events.append("deaf")

    def begin(self, *tokens: bytes) -> None:
        self.login.receive(request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PIN"))
        for token in tokens:
            self.login.receive(request(ApiKey.SASL_AUTHENTICATE, 1, 2, auth_bytes=token))

    def end_step(self) -> None:
        """Let the step end that began last."""
        self.resume(self.steps[-1].step)


async def test_a_login_ends_as_its_step_does() -> None:
    scene = Scene()
    scene.begin(b"right")
    scene.end_step()
    assert scene.events == ["written", "verified", "written", "admitted User:alice"]
    assert scene.counted == [True]
    assert [login.failure for login in scene.logins] == [None]


@pytest.mark.parametrize(("token", "failures"), [(b"wrong", ["wrong"]), (b"right", [])])
async def test_a_client_that_disconnects_early_is_never_admitted_and_its_guess_counts(
    token: bytes, failures: list[str]
) -> None:
    scene = Scene()
    scene.begin(token)
    scene.login.end()
    assert scene.cancelled == 1, "a step that still waits for a thread is not run"
    scene.end_step()
    assert scene.counted == [False] * len(failures)
    assert scene.events == ["written", *([f"failed {HOST}"] if failures else [])]
    assert [login.claimed_name for login in scene.logins] == ["alice"] * len(failures)
    assert all(login.failure is not None for login in scene.logins)


async def test_a_full_audit_log_fails_a_valid_login() -> None:
    scene = Scene(is_full=True)
    scene.begin(b"right")
    scene.end_step()
    assert scene.events == ["written", "verified", "closed"]
    assert scene.counted == [False]


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_nested_step_runs_in_its_own_thread_and_counts_if_the_client_leaves(
    leaves: bool,
) -> None:
    scene = Scene(mechanism=CallbackServer.factory(SlowProof, Surroundings("handler", 1000)))
    scene.begin(b"wrong")
    assert [(work.group, work.timeout_ms) for work in scene.steps] == [("handler", 1000)]
    if leaves:
        scene.login.end()
    scene.end_step()
    assert scene.logins == [], "no outcome is reported yet"
    assert [(work.group, work.timeout_ms) for work in scene.steps[1:]] == [(HASHING, None)]
    assert scene.login.is_verifying
    scene.end_step()
    assert [login.failure for login in scene.logins] == ["wrong"]
    assert scene.events.count(f"failed {HOST}") == 1
    assert scene.counted == [False]


@pytest.mark.parametrize("behind", [[], [b"\x01"]])
async def test_an_invalid_bearer_token_counts_once_and_immediately_as_a_failed_login(
    behind: list[bytes],
) -> None:
    scene = Scene(mechanism=BEARER)
    scene.begin(bearer("wrong"), *behind)
    scene.login.end()
    assert [(login.failure, login.claimed_name) for login in scene.logins] == [("wrong is none", "mallory")]
    assert scene.events == ["written", f"failed {HOST}", "written", *["deaf"] * len(behind)]
    assert scene.counted == [False]


async def test_each_invalid_bearer_token_counts_and_a_valid_one_after_them_logs_in() -> None:
    scene = Scene(mechanism=BEARER)
    scene.begin(bearer("first"), bearer("second"), bearer("right"))
    assert [login.failure for login in scene.logins] == ["first is none", "second is none", None]
    assert scene.events.count(f"failed {HOST}") == 2
    assert scene.counted == [False, False, True]
    assert scene.events[-1] == "admitted User:alice"
