"""One OAUTHBEARER exchange on either side, with a validator that knows one token."""

import pytest

from kustos.auth import (
    INSUFFICIENT_SCOPE,
    INVALID_TOKEN,
    OAUTHBEARER,
    AcceptedToken,
    Authenticated,
    BearerToken,
    Fail,
    OAuthBearerClient,
    OAuthBearerServer,
    ProofRefused,
    RefusedToken,
    SaslAuthenticationError,
    SaslClientError,
    SaslMechanismError,
    SaslServerMachine,
    SaslServerSettings,
)
from kustos.auth.errors import REFUSAL_MAX_CHARACTERS
from kustos.auth.mechanisms import Challenge, Proven
from kustos.auth.mechanisms.oauthbearer_messages import EXTENSIONS_MAX
from testkit.clocks import ManualClock
from testkit.sasl import (
    api_versions_body,
    handshake,
    log_in,
    refusal,
    token,
)

GOOD, LIFE_MS, NOW_MS = "good.token.x", 60_000, 1_700_000_000_000
RAISED = "a.storm.x"


def validate(value: str) -> AcceptedToken | RefusedToken:
    if value == RAISED:
        raise RuntimeError(value)
    if value == "narrow":
        return RefusedToken(INSUFFICIENT_SCOPE, "the scope is missing", "write read")
    if value != GOOD:
        return RefusedToken(INVALID_TOKEN, "the signature is wrong", claimed_name="mallory")
    return AcceptedToken("alice", NOW_MS + LIFE_MS)


def server(clock: ManualClock | None = None, max_reauth_ms: int = 0) -> SaslServerMachine:
    return SaslServerMachine(
        SaslServerSettings({OAUTHBEARER: max_reauth_ms}),
        {OAUTHBEARER: OAuthBearerServer.factory(validate)},
        api_versions_body,
        clock or ManualClock(NOW_MS),
    )


def first(value: str, identity: str = "", rest: str = "") -> bytes:
    return f"n,{identity},\x01auth=Bearer {value}\x01{rest}\x01".encode()


@pytest.mark.behaviour("B241", "B251", "B252", "B305")
def test_a_valid_token_logs_in_until_it_expires() -> None:
    done = log_in(server(), OAuthBearerClient(BearerToken(GOOD, {"traceId": "7"})))
    assert isinstance(done, Authenticated)
    assert (str(done.principal), done.mechanism) == ("User:alice", "OAUTHBEARER")
    assert done.session_lifetime_ms == LIFE_MS
    shorter = log_in(server(max_reauth_ms=LIFE_MS // 2), OAuthBearerClient(BearerToken(GOOD)))
    assert isinstance(shorter, Authenticated)
    assert shorter.session_lifetime_ms == LIFE_MS // 2


@pytest.mark.behaviour("B306")
@pytest.mark.parametrize(("identity", "is_own"), [("", True), ("a=alice", True), ("a=bob", False)])
def test_an_authorization_id_is_the_principals_own(identity: str, is_own: bool) -> None:
    exchange = OAuthBearerServer(validate)
    if is_own:
        assert exchange.respond(first(GOOD, identity)) == Proven(b"", "alice", NOW_MS + LIFE_MS)
        assert exchange.claimed_name == "alice"
        return
    with pytest.raises(SaslAuthenticationError) as caught:
        exchange.respond(first(GOOD, identity))
    assert str(caught.value) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the "
        "token's principal name (alice)"
    )
    assert exchange.claimed_name == "bob"


@pytest.mark.behaviour("B309")
def test_a_refused_token_gets_a_document_then_the_refusal() -> None:
    exchange = OAuthBearerServer(validate)
    refused = exchange.respond(first("bad"))
    assert refused == Challenge(b'{"status":"invalid_token"}', ProofRefused("the signature is wrong"))
    assert exchange.claimed_name == "mallory"
    with pytest.raises(SaslAuthenticationError) as caught:
        exchange.respond(b"\x01")
    assert str(caught.value) == '{"status":"invalid_token"}'
    assert caught.value.reason == "the signature is wrong"


@pytest.mark.behaviour("B241", "B316")
def test_a_missing_scope_is_named_in_the_document() -> None:
    answer = OAuthBearerServer(validate).respond(first("narrow"))
    document = b'{"status":"insufficient_scope", "scope":"write read"}'
    assert answer == Challenge(document, ProofRefused("the scope is missing"))


def test_after_a_refused_token_another_may_come_but_byte_one_counts_only_then() -> None:
    exchange = OAuthBearerServer(validate)
    with pytest.raises(SaslMechanismError):
        exchange.respond(b"\x01")
    exchange.respond(first("bad"))
    assert isinstance(exchange.respond(first(GOOD)), Proven)
    with pytest.raises(SaslMechanismError):
        exchange.respond(b"\x01")


def test_the_client_reads_the_document_and_learns_the_reason() -> None:
    assert isinstance(log_in(server(), OAuthBearerClient(BearerToken("bad"))), Fail)
    machine = server()
    machine.receive(handshake(OAUTHBEARER))
    refused, _ = machine.receive(token(first("bad")))
    assert refused == ProofRefused("the signature is wrong"), "with the document, whatever the client does"
    (failure,) = machine.receive(token(b"\x01"))
    assert isinstance(failure, Fail)
    assert refusal(failure.response) == (58, '{"status":"invalid_token"}')
    assert (failure.reason, failure.was_announced) == ("the signature is wrong", True)


def test_an_expired_token_and_a_validator_that_raises_are_refused_without_their_text() -> None:
    clock = ManualClock(NOW_MS)
    clock.now_ms += LIFE_MS
    for machine, value in ((server(clock), GOOD), (server(), RAISED)):
        machine.receive(handshake(OAUTHBEARER))
        (failure,) = machine.receive(token(first(value)))
        assert isinstance(failure, Fail)
        assert refusal(failure.response)[1] == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism OAUTHBEARER"
        )
        assert value not in failure.reason


@pytest.mark.behaviour("B311")
def test_more_extensions_than_the_limit_are_refused() -> None:
    def extensions(count: int) -> str:
        return "".join(f"{'k' * (number + 1)}=v\x01" for number in range(count))

    assert isinstance(
        OAuthBearerServer(validate).respond(first(GOOD, rest=extensions(EXTENSIONS_MAX))), Proven
    )
    with pytest.raises(SaslMechanismError, match="extensions"):
        OAuthBearerServer(validate).respond(first(GOOD, rest=extensions(EXTENSIONS_MAX + 1)))


def test_a_refusal_that_quotes_half_a_megabyte_is_short_and_recorded() -> None:
    machine = server()
    machine.receive(handshake(OAUTHBEARER))
    message = f"n,a={'x' * 400_000},\x01auth=Bearer {GOOD}\x01\x01".encode()
    (failure,) = machine.receive(token(message))
    assert isinstance(failure, Fail)
    code, text = refusal(failure.response)
    assert (code, len(text)) == (58, REFUSAL_MAX_CHARACTERS)
    assert text.startswith("Authentication failed: Client requested an authorization id (xxx")
    assert len(failure.reason) == REFUSAL_MAX_CHARACTERS
    assert failure.was_judged


def test_a_scheme_other_than_bearer_is_refused_without_its_text() -> None:
    with pytest.raises(SaslMechanismError, match="Invalid scheme"):
        OAuthBearerServer(validate).respond(b"n,,\x01auth=Basic c2VjcmV0\x01\x01")


@pytest.mark.behaviour("B311", "B312")
@pytest.mark.parametrize(
    ("value", "extensions"),
    [("a b", {}), ("", {}), ("a\x01b", {}), ("ok", {"auth": "x"}), ("ok", {"k1": "x"}), ("ok", {"k": "ä"})],
)
def test_the_client_sends_no_malformed_message(value: str, extensions: dict[str, str]) -> None:
    with pytest.raises(SaslClientError) as caught:
        OAuthBearerClient(BearerToken(value, extensions))
    assert not value or value == "ok" or value not in str(caught.value)


def test_the_client_ends_with_the_servers_first_answer() -> None:
    client = OAuthBearerClient(BearerToken(GOOD))
    assert client.respond(b"") is None
    assert client.is_complete
    with pytest.raises(SaslClientError):
        client.respond(b"")
    refused = OAuthBearerClient(BearerToken(GOOD))
    assert refused.respond(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslClientError):
        refused.respond(b"")
    assert not refused.is_complete


def test_no_token_is_shown() -> None:
    shown = repr(
        (OAuthBearerClient(BearerToken(GOOD)), BearerToken(GOOD, {"k": "v"}), OAuthBearerServer(validate))
    )
    assert GOOD not in shown
