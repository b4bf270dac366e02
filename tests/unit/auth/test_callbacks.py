"""Answers of custom callback handlers and mechanisms are validated; everything else denies."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kustos.auth import (
    INVALID_TOKEN,
    AcceptedToken,
    CallbackError,
    Challenge,
    CustomServer,
    Fail,
    HandlerCredentials,
    HandlerPasswords,
    HandlerTokens,
    OAuthBearerValidatorCallbackHandler,
    PlainServerCallbackHandler,
    Proven,
    RefusedToken,
    RunInThread,
    SaslAuthenticationError,
    SaslServerExchange,
    SaslServerMachine,
    SaslServerMechanism,
    SaslServerSettings,
    ScramHash,
    ScramServerCallbackHandler,
    Surroundings,
    configured_handler,
)
from kustos.auth.errors import UnverifiedCredentialsError
from kustos.auth.mechanisms.base import BlockingStep
from kustos.metadata import ScramMechanism, scram_credential
from kustos.wire.api_keys import ApiKey
from testkit.clocks import ManualClock
from testkit.gateway.sessions import request

SECRET = "correct horse"
AROUND = Surroundings("CLIENTS PIN", 100)
GOOD = scram_credential(ScramMechanism.SCRAM_SHA_256, SECRET, b"salt", 4096)


def raises(error: BaseException) -> Any:
    raise error


class Plain(PlainServerCallbackHandler):
    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def authenticate(self, username: str, password: str) -> bool:
        return self.answer()  # type: ignore[no-any-return]


class Scram(ScramServerCallbackHandler):
    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def credential(self, username: str) -> Any:
        return self.answer()


class Tokens(OAuthBearerValidatorCallbackHandler):
    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def validate(self, token: str) -> AcceptedToken | RefusedToken:
        return self.answer()  # type: ignore[no-any-return]


@pytest.mark.parametrize("answer", [True, False])
def test_a_password_is_right_or_wrong(answer: bool) -> None:
    assert HandlerPasswords(Plain(lambda: answer)).verify("alice", SECRET.encode()) is answer


@pytest.mark.parametrize("answer", [1, "yes", None, object(), [True]])
def test_only_true_admits_a_user_of_plain(answer: object) -> None:
    with pytest.raises(
        UnverifiedCredentialsError, match="credentials for user could not be verified"
    ) as caught:
        HandlerPasswords(Plain(lambda: answer)).verify("alice", SECRET.encode())
    assert (
        caught.value.reason == f"the callback handler returned an invalid answer, a `{type(answer).__name__}`"
    )


def test_a_password_that_is_not_text_is_wrong_without_a_call() -> None:
    assert not HandlerPasswords(Plain(lambda: True)).verify("alice", b"\xff")


@dataclass
class Loose:
    salt: Any = GOOD.salt
    stored_key: Any = GOOD.stored_key
    server_key: Any = GOOD.server_key
    iterations: Any = GOOD.iterations


def test_credentials_are_copied_so_that_they_cannot_change_after_the_check() -> None:
    own = Loose()
    found = HandlerCredentials(Scram(lambda: own))("alice", ScramHash.SHA_256)
    own.stored_key = b"other"
    assert found is not None
    assert (found.salt, found.stored_key, found.iterations) == (b"salt", GOOD.stored_key, 4096)
    assert HandlerCredentials(Scram(lambda: None))("alice", ScramHash.SHA_256) is None


@pytest.mark.parametrize(
    "answer",
    [
        "alice",
        object(),
        False,
        replace(Loose(), stored_key=b"short"),
        replace(Loose(), server_key="text"),
        replace(Loose(), salt=b""),
        replace(Loose(), salt=b"x" * 1025),
        replace(Loose(), salt=None),
        replace(Loose(), iterations=4095),
        replace(Loose(), iterations=16385),
        replace(Loose(), iterations=True),
        replace(Loose(), stored_key=b"k" * 64, server_key=b"k" * 64),
    ],
)
def test_unusable_credentials_are_refused(answer: object) -> None:
    with pytest.raises(CallbackError, match="an invalid answer"):
        HandlerCredentials(Scram(lambda: answer))("alice", ScramHash.SHA_256)


def test_a_token_is_accepted_or_refused_and_reasons_of_others_stay_out_of_the_log() -> None:
    accepted = AcceptedToken("alice", 99, groups=("ops", "dev"))
    assert HandlerTokens(Tokens(lambda: accepted))("t") == accepted
    refused = RefusedToken(INVALID_TOKEN, SECRET, None, "mallory")
    found = HandlerTokens(Tokens(lambda: refused))("t")
    assert found == RefusedToken(INVALID_TOKEN, "the callback handler refused the token", None, "mallory")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "alice",
        AcceptedToken("", 99),
        AcceptedToken("alice", -1),
        AcceptedToken("alice", 1.5),  # type: ignore[arg-type]
        AcceptedToken("\ud800", 99),
        AcceptedToken("a" * 40_000, 99),
        RefusedToken('x", "y":"', ""),
        RefusedToken(INVALID_TOKEN, "", 'a"b'),
        type("Subclass", (AcceptedToken,), {})("alice", 99),
    ],
)
def test_unusable_verdicts_are_refused(answer: object) -> None:
    with pytest.raises(CallbackError, match="an invalid answer"):
        HandlerTokens(Tokens(lambda: answer))("t")


def test_the_log_names_only_the_type_of_a_handlers_exception() -> None:
    for call in (
        lambda: HandlerPasswords(Plain(lambda: raises(ValueError(SECRET)))).verify("alice", b"x"),
        lambda: HandlerCredentials(Scram(lambda: raises(ValueError(SECRET))))("alice", ScramHash.SHA_256),
        lambda: HandlerTokens(Tokens(lambda: raises(ValueError(SECRET))))("t"),
    ):
        with pytest.raises((CallbackError, UnverifiedCredentialsError)) as caught:
            call()
        assert getattr(caught.value, "reason", "") == "the callback handler raised ValueError"
        assert caught.value.__suppress_context__
        assert SECRET not in str(caught.value)


def test_a_handler_that_cannot_be_configured_keeps_its_options_secret() -> None:
    class Broken(Plain):
        def __init__(self) -> None:
            super().__init__(lambda: True)

        def configure(self, configs: Any, mechanism: str, options: Any) -> None:
            raise ValueError(options["password"])

    with pytest.raises(CallbackError, match="`Broken` for `PLAIN` cannot be configured") as caught:
        configured_handler(Broken, {}, "PLAIN", {"password": SECRET})
    assert SECRET not in str(caught.value)


class Exchange(SaslServerExchange):
    def __init__(self, steps: list[Callable[[], Any]]) -> None:
        self.steps = steps

    def respond(self, token: bytes) -> Any:
        return self.steps.pop(0)()


class Own(SaslServerMechanism):
    def __init__(self, *steps: Callable[[], Any]) -> None:
        self.steps = list(steps)

    def exchange(self) -> SaslServerExchange:
        return Exchange(self.steps)


def step_of(server: CustomServer) -> Any:
    blocking = server.respond(b"token")
    assert isinstance(blocking, BlockingStep)
    assert (blocking.group, blocking.timeout_ms) == (AROUND.group, AROUND.timeout_ms)
    return blocking.run()


def test_a_custom_mechanism_runs_its_steps() -> None:
    server = CustomServer(Own(lambda: Challenge(b"more"), lambda: Proven(b"done", "alice", 99)), AROUND)
    assert step_of(server) == Challenge(b"more")
    assert step_of(server) == Proven(b"done", "alice", 99)


def test_a_custom_mechanism_cannot_claim_a_delegation_token() -> None:
    server = CustomServer(Own(lambda: Proven(b"", "alice", None, token_authenticated=True)), AROUND)
    assert step_of(server) == Proven(b"", "alice", None, token_authenticated=False)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "alice",
        b"token",
        Challenge("text"),  # type: ignore[arg-type]
        Challenge(b"x" * 524_289),
        Proven(b"", ""),
        Proven(b"", b"alice"),  # type: ignore[arg-type]
        Proven(b"", "\ud800"),
        Proven(b"", "alice", -1),
        Proven(None, "alice"),  # type: ignore[arg-type]
        BlockingStep(lambda: Proven(b"", "alice")),
    ],
)
def test_unusable_steps_are_refused(answer: object) -> None:
    with pytest.raises(CallbackError, match="the mechanism returned an invalid answer"):
        step_of(CustomServer(Own(lambda: answer), AROUND))


def test_the_text_of_a_refusal_is_sent_but_not_logged() -> None:
    server = CustomServer(Own(lambda: raises(SaslAuthenticationError("no " + "x" * 5000, SECRET))), AROUND)
    with pytest.raises(SaslAuthenticationError) as caught:
        step_of(server)
    assert str(caught.value) == "no " + "x" * 997
    assert caught.value.reason == "the mechanism refused the login"


def test_an_unusable_claimed_name_is_none_and_is_read_in_the_thread() -> None:
    class Sly(Exchange):
        @property
        def claimed_name(self) -> str:  # type: ignore[override]
            raise RuntimeError(SECRET)

    class Mechanism(Own):
        def exchange(self) -> SaslServerExchange:
            return Sly(self.steps)

    server = CustomServer(Mechanism(lambda: Challenge(b"")), AROUND)
    assert step_of(server) == Challenge(b"")
    assert server.claimed_name is None


@pytest.mark.parametrize(
    ("end", "was_judged", "text"),
    [
        (lambda: raises(SaslAuthenticationError("the PIN is wrong")), True, b"the PIN is wrong"),
        (lambda: raises(ValueError(SECRET)), False, b"invalid credentials with SASL mechanism PIN"),
        (lambda: "nonsense", False, b"invalid credentials with SASL mechanism PIN"),
    ],
)
def test_only_a_judged_login_counts_as_a_guess(end: Any, was_judged: bool, text: bytes) -> None:
    factories = {"PIN": CustomServer.factory(Own(end), AROUND)}
    machine = SaslServerMachine(SaslServerSettings(), factories, lambda _: b"", ManualClock())
    machine.receive(request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PIN"))
    (blocking,) = machine.receive(request(ApiKey.SASL_AUTHENTICATE, 1, 2, auth_bytes=b"x"))
    assert isinstance(blocking, RunInThread)
    assert (blocking.group, blocking.timeout_ms) == ("CLIENTS PIN", 100)
    (failure,) = machine.resume(blocking.step)
    assert isinstance(failure, Fail)
    assert failure.was_judged is was_judged
    assert text in failure.response
    assert SECRET not in failure.reason
