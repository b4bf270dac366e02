"""Re-authentication of SASL sessions (KIP-368)."""

from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    AcceptedToken,
    Authenticated,
    CallbackServer,
    Fail,
    GssapiServer,
    OAuthBearerServer,
    RunInThread,
    SaslServerMachine,
    SaslServerSettings,
    SaslState,
    Surroundings,
    client_mechanism,
)
from kustos.auth.mechanisms.base import UNGUESSABLE
from testkit.clocks import ManualClock
from testkit.sasl import (
    NAMES,
    PASSWORD,
    SeededEntropy,
    api_versions_body,
    handshake,
    log_in,
    machine,
    only_send,
    refusal,
    response,
    token,
    versions_request,
)
from tests.unit.auth.test_sasl_server import Expiring

ALICE = KafkaPrincipal("User", "alice")
PLAIN_TOKEN = b"\0alice\0" + PASSWORD.encode()
BEARER = OAuthBearerServer.factory(lambda _: AcceptedToken("alice", 2_000_000))


def live(clock: ManualClock, mechanism: str = "PLAIN") -> SaslServerMachine:
    server = machine(clock, connections_max_reauth_ms=dict.fromkeys(NAMES, 60_000))
    assert isinstance(
        log_in(server, client_mechanism(mechanism, "alice", PASSWORD, SeededEntropy())), Authenticated
    )
    return server


@pytest.mark.behaviour("B244")
def test_reauthentication_renews_the_session_at_most_once_a_second() -> None:
    clock = ManualClock(1_000_000)
    server = live(clock)
    clock.now_ms += 61_000
    assert server.is_expired()
    again = log_in(server, client_mechanism("PLAIN", "alice", PASSWORD, SeededEntropy()))
    assert again == Authenticated(ALICE, "PLAIN", 60_000, clock.now_ms + 60_000, True)
    assert server.begin_reauthentication(handshake()) is None
    clock.now_ms += 1000
    assert server.begin_reauthentication(handshake()) is not None
    assert machine().begin_reauthentication(handshake()) is None


def test_a_session_without_an_end_is_not_reauthenticated() -> None:
    server = machine()
    log_in(server, client_mechanism("PLAIN", "alice", PASSWORD, SeededEntropy()))
    assert server.begin_reauthentication(handshake()) is None
    assert server.state is SaslState.COMPLETE


@pytest.mark.behaviour("B242")
def test_reauthentication_as_another_principal_fails() -> None:
    server = live(ManualClock(1_000_000))
    server.begin_reauthentication(handshake())
    (failure,) = server.receive(token(b"\0bob\0b0b-s3cret"))
    assert isinstance(failure, Fail)
    assert refusal(failure.response) == (
        58, "Cannot change principals during re-authentication from User.alice: User.bob",
    )  # fmt: skip
    assert server.principal is None


@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("version", [0, 1])
def test_only_a_renewal_with_the_users_own_login_is_no_guess(mechanism: str, version: int) -> None:
    def framed(data: bytes) -> bytes:
        return token(data) if version else data

    server = live(ManualClock(1_000_000), mechanism)
    server.begin_reauthentication(handshake(mechanism, version))
    for name in ("bob", "Alice", "alice2"):
        assert server.may_guess(framed(client_mechanism(mechanism, name, PASSWORD, SeededEntropy()).first()))
    for other in (b"", b"\0", b"alice", b"n,,n=alice", b"\0alice\0a\0b"):
        assert server.may_guess(framed(other))
    assert server.may_guess(versions_request()) or not version
    for password in (PASSWORD, "wrong"):
        assert not server.may_guess(
            framed(client_mechanism(mechanism, "alice", password, SeededEntropy()).first())
        )


def test_the_proof_of_a_scram_renewal_belongs_to_its_first_name() -> None:
    for name in ("alice", "bob"):
        server = live(ManualClock(1_000_000), "SCRAM-SHA-256")
        server.begin_reauthentication(handshake("SCRAM-SHA-256"))
        server.receive(token(client_mechanism("SCRAM-SHA-256", name, PASSWORD, SeededEntropy()).first()))
        assert server.may_guess(token(b"c=biws,r=x,p=")) == (name != "alice")


def test_without_a_session_or_a_claimant_there_is_no_renewal() -> None:
    server = machine()
    server.receive(handshake())
    assert server.may_guess(token(PLAIN_TOKEN))
    silent = SaslServerMachine(
        SaslServerSettings({"PLAIN": 60_000}), {"PLAIN": Expiring}, api_versions_body, ManualClock(1_000_000)
    )
    silent.receive(handshake())
    silent.receive(token(b"x"))
    silent.begin_reauthentication(handshake())
    assert silent.may_guess(token(b"x"))


def test_credentials_that_cannot_be_guessed_are_no_guess() -> None:
    around = Surroundings("TOKENS", 1000)
    for factory in (BEARER, CallbackServer.factory(BEARER, around)):
        server = SaslServerMachine(
            SaslServerSettings({"OAUTHBEARER": 60_000}),
            {"OAUTHBEARER": factory},
            api_versions_body,
            ManualClock(1_000_000),
        )
        server.receive(handshake("OAUTHBEARER"))
        effects = server.receive(token(b"n,,\x01auth=Bearer t\x01\x01"))
        if isinstance(effects[0], RunInThread):
            effects = server.resume(effects[0].step)
        assert isinstance(effects[-1], Authenticated)
        server.begin_reauthentication(handshake("OAUTHBEARER"))
        assert not server.may_guess(token(b"n,,\x01auth=Bearer of another\x01\x01"))
    ticket: Any = None
    assert GssapiServer(ticket).claim(b"x") is UNGUESSABLE


@pytest.mark.behaviour("B243")
def test_reauthentication_with_another_mechanism_fails_at_the_next_frame() -> None:
    server = live(ManualClock(1_000_000))
    agreed = server.begin_reauthentication(handshake("SCRAM-SHA-256"))
    assert agreed is not None
    assert response(only_send(agreed), 17, 1).error_code == 0
    (failure,) = server.receive(token(PLAIN_TOKEN))
    assert failure == Fail(
        b"",
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for "
        "re-authentication of mechanism 'PLAIN'",
        100,
    )


def test_a_reauthentication_failure_is_reported() -> None:
    server = live(ManualClock(1_000_000), "SCRAM-SHA-512")
    failed = log_in(server, client_mechanism("SCRAM-SHA-512", "alice", "wrong", SeededEntropy()))
    assert isinstance(failed, Fail)
    assert b"during re-authentication due to invalid credentials" in failed.response
