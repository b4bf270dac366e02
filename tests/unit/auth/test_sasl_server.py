"""The SASL server from the first frame to a principal or a failure."""

import pytest

from kustos.acl import KafkaPrincipal
from kustos.auth import (
    Authenticated,
    Close,
    Fail,
    SaslServerMachine,
    SaslServerSettings,
    SaslState,
    SendFrame,
    client_mechanism,
    sasl_server_diagram,
)
from kustos.auth.mechanisms import MechanismStep, Proven
from kustos.auth.sasl_table import SASL_SERVER_TRANSITIONS
from kustos.auth.settings import FRAMES_PER_AUTHENTICATION
from testkit.clocks import ManualClock
from testkit.sasl import (
    NAMES,
    PASSWORD,
    UNSUPPORTED_VERSIONS_REQUEST,
    SeededEntropy,
    api_versions_body,
    handshake,
    log_in,
    machine,
    only_send,
    refusal,
    request,
    response,
    token,
    versions_request,
)

ALICE = KafkaPrincipal("User", "alice")
PLAIN_TOKEN = b"\0alice\0" + PASSWORD.encode()
GENERAL = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


@pytest.mark.behaviour("B216", "B219", "B224")
@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_mechanism_logs_in(mechanism: str, version: int) -> None:
    server = machine()
    client = client_mechanism(mechanism, "alice", PASSWORD, SeededEntropy(3))
    done = log_in(server, client, version)
    assert done == Authenticated(ALICE, mechanism, 0, None)
    assert server.principal == ALICE
    assert server.state is SaslState.COMPLETE


@pytest.mark.behaviour("B221")
def test_scram_names_with_equals_and_comma() -> None:
    done = log_in(machine(), client_mechanism("SCRAM-SHA-256", "a=b,c", "b0b-s3cret", SeededEntropy()))
    assert isinstance(done, Authenticated)
    assert done.principal == KafkaPrincipal("User", "a=b,c")


@pytest.mark.behaviour("B226", "B229", "B250")
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_api_versions_may_come_first(version: int) -> None:
    server = machine()
    effects = server.receive(versions_request(version))
    answered = response(only_send(effects), 18, version)
    assert [key.api_key for key in answered.api_keys] == [18]
    assert server.state is SaslState.HANDSHAKE
    assert response(only_send(server.receive(handshake())), 17, 1).mechanisms == list(NAMES)


@pytest.mark.behaviour("B226")
def test_unknown_api_versions_version_is_answered_in_version_0_and_may_be_retried() -> None:
    server = machine()
    refused = response(only_send(server.receive(UNSUPPORTED_VERSIONS_REQUEST)), 18, 0)
    assert refused.error_code == 35
    assert [(key.api_key, key.min_version, key.max_version) for key in refused.api_keys] == [(18, 0, 5)]
    assert response(only_send(server.receive(versions_request())), 18, 4).error_code == 0


@pytest.mark.behaviour("B227")
@pytest.mark.parametrize("name", ["", "-x", "x ", "x_y", "näme", "x\n"])
def test_invalid_software_name_is_refused_and_may_be_retried(name: str) -> None:
    server = machine()
    assert response(only_send(server.receive(versions_request(4, name))), 18, 4).error_code == 42
    assert response(only_send(server.receive(versions_request())), 18, 4).error_code == 0


@pytest.mark.behaviour("B228")
@pytest.mark.parametrize("second", [versions_request(), UNSUPPORTED_VERSIONS_REQUEST])
def test_second_api_versions_closes(second: bytes) -> None:
    server = machine()
    server.receive(versions_request())
    assert isinstance(server.receive(second)[0], Close)
    assert server.receive(handshake()) == ()


@pytest.mark.behaviour("B225")
def test_an_unknown_mechanism_gets_the_enabled_ones_after_the_delay() -> None:
    server = machine(failed_authentication_delay_ms=250)
    (failure,) = server.receive(handshake("GSSAPI"))
    assert isinstance(failure, Fail)
    assert failure.delay_ms == 250
    body = response(failure.response, 17, 1)
    assert (body.error_code, body.mechanisms) == (33, list(NAMES))


@pytest.mark.behaviour("B230")
def test_handshake_of_unknown_version_closes() -> None:
    frame = b"\x00\x11\x00\x02" + handshake()[4:]
    assert isinstance(machine().receive(frame)[0], Close)


@pytest.mark.behaviour("B231", "B249")
@pytest.mark.parametrize(
    "frame", [b"", b"\x60", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"\xff" * 40]
)
def test_garbage_closes_without_an_answer(frame: bytes) -> None:
    assert [type(effect) for effect in machine().receive(frame)] == [Close]


@pytest.mark.behaviour("B233", "B248")
@pytest.mark.parametrize("frame", [request(3, 9), token(PLAIN_TOKEN), request(0, 9)])
def test_other_requests_before_the_handshake_close(frame: bytes) -> None:
    server = machine()
    assert [type(effect) for effect in server.receive(frame)] == [Close]
    later = machine()
    later.receive(versions_request())
    assert [type(effect) for effect in later.receive(frame)] == [Close]


@pytest.mark.behaviour("B233", "B359")
def test_another_request_during_the_login_is_an_illegal_state() -> None:
    for frame, api_key, version in (
        (versions_request(), 18, 4),
        (UNSUPPORTED_VERSIONS_REQUEST, 18, 0),
        (handshake(), 17, 1),
    ):
        server = machine()
        server.receive(handshake())
        (failure,) = server.receive(frame)
        assert isinstance(failure, Fail)
        assert response(failure.response, api_key, version).error_code == 34
        assert server.receive(token(PLAIN_TOKEN)) == ()


def test_a_request_without_a_common_error_shape_is_refused_by_the_shape_given() -> None:
    def shaped(api_key: int, version: int, code: int, text: str) -> bytes | None:
        assert "during SASL authentication" in text
        return b"\x01\x02" if (api_key, version, code) == (3, 9, 34) else None

    for error_body, expected in ((shaped, b"\0\0\0\x07\0\0\0\x05\0\x01\x02"), (None, b"")):
        settings = SaslServerSettings()
        made = (
            machine()
            if error_body is None
            else SaslServerMachine(
                settings, {"PLAIN": Broken}, api_versions_body, ManualClock(1_000_000), error_body
            )
        )
        made.receive(handshake())
        (failure,) = made.receive(request(3, 9))
        assert isinstance(failure, Fail)
        assert failure.response == expected


@pytest.mark.behaviour("B217", "B218", "B303", "B304")
@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\xff\xfe\0\xff", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"bob" + PLAIN_TOKEN,
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"\0*\0" + PASSWORD.encode(), GENERAL + "PLAIN"),
    ],
)
def test_plain_refusals_have_kafkas_texts(sent: bytes, text: str) -> None:
    server = machine()
    server.receive(handshake())
    (failure,) = server.receive(token(sent))
    assert isinstance(failure, Fail)
    assert refusal(failure.response) == (58, text)
    assert failure.delay_ms == 100
    assert PASSWORD not in repr(failure)


@pytest.mark.behaviour("B303")
def test_plain_authorization_id_may_repeat_the_name() -> None:
    server = machine()
    server.receive(handshake())
    assert isinstance(server.receive(token(b"alice" + PLAIN_TOKEN))[1], Authenticated)


@pytest.mark.behaviour("B234", "B229")
def test_handshake_0_uses_bare_tokens_and_refuses_without_a_text() -> None:
    server = machine()
    response(only_send(server.receive(handshake("PLAIN", 0))), 17, 0)
    assert server.receive(PLAIN_TOKEN) == (
        SendFrame(b"\0\0\0\0"),
        Authenticated(ALICE, "PLAIN", 0, None),
    )
    other = machine()
    other.receive(handshake("PLAIN", 0))
    (failure,) = other.receive(b"\0alice\0wrong")
    assert isinstance(failure, Fail)
    assert failure.response == b""


@pytest.mark.behaviour("B232", "B247")
def test_oversized_frame_fails_late_and_silently() -> None:
    server = machine()
    (failure,) = server.oversized()
    assert isinstance(failure, Fail)
    assert failure.response == b""
    assert server.receive(versions_request()) == ()
    assert SaslServerSettings().max_receive_size == 524288


def test_an_endless_login_is_closed() -> None:
    server = machine()
    for _ in range(FRAMES_PER_AUTHENTICATION):
        assert isinstance(server.receive(UNSUPPORTED_VERSIONS_REQUEST)[0], SendFrame)
    assert isinstance(server.receive(UNSUPPORTED_VERSIONS_REQUEST)[0], Close)


class Broken:
    claimed_name = None

    def claim(self, token: bytes) -> None:
        raise OSError(f"cannot read {token!r}")

    def respond(self, token: bytes) -> MechanismStep:
        raise OSError(f"cannot check {token!r}")


class Expiring:
    claimed_name = None
    expires_at_ms: int | None = None

    def claim(self, token: bytes) -> None:
        """Say nothing."""

    def respond(self, token: bytes) -> MechanismStep:
        return Proven(b"", "alice", self.expires_at_ms)


def test_a_failed_credential_store_denies_without_its_text() -> None:
    server = SaslServerMachine(
        SaslServerSettings(), {"PLAIN": Broken}, api_versions_body, ManualClock(1_000_000)
    )
    server.receive(handshake())
    (failure,) = server.receive(token(PLAIN_TOKEN))
    assert isinstance(failure, Fail)
    assert refusal(failure.response) == (58, GENERAL + "PLAIN")
    assert PASSWORD not in str(failure)
    assert PASSWORD.encode() not in failure.response


@pytest.mark.behaviour("B245", "B251", "B252", "B253")
@pytest.mark.parametrize(
    ("credential_ms", "max_reauth_ms", "lifetime_ms", "expires_in_ms"),
    [
        (None, 0, 0, None),
        (None, -5, 0, None),
        (None, 7000, 7000, 7000),
        (3000, 0, 3000, 3000),
        (3000, 7000, 3000, 3000),
        (9000, 7000, 7000, 7000),
        (2**70, 2**63 - 1, 2**63 - 1, 2**63 - 1),
    ],
)
def test_session_life(
    credential_ms: int | None, max_reauth_ms: int, lifetime_ms: int, expires_in_ms: int | None
) -> None:
    clock = ManualClock(1_000_000)

    class Ends(Expiring):
        expires_at_ms = None if credential_ms is None else clock.now_ms + credential_ms

    server = SaslServerMachine(
        SaslServerSettings({"PLAIN": max_reauth_ms}), {"PLAIN": Ends}, api_versions_body, clock
    )
    server.receive(handshake())
    effects = server.receive(token(b"x", 1))
    assert response(only_send(effects), 36, 1).session_lifetime == lifetime_ms
    expires_at_ms = None if expires_in_ms is None else clock.now_ms + expires_in_ms
    assert effects[-1] == Authenticated(ALICE, "PLAIN", lifetime_ms, expires_at_ms)
    assert not server.is_expired()
    if expires_in_ms is not None:
        clock.now_ms += expires_in_ms
        assert server.is_expired()


def test_an_expired_credential_does_not_log_in() -> None:
    clock = ManualClock(1_000_000)

    class Ended(Expiring):
        expires_at_ms = clock.now_ms

    server = SaslServerMachine(SaslServerSettings(), {"PLAIN": Ended}, api_versions_body, clock)
    server.receive(handshake())
    (failure,) = server.receive(token(b"x"))
    assert isinstance(failure, Fail)
    assert refusal(failure.response) == (58, GENERAL + "PLAIN")


def test_a_server_without_mechanisms_raises() -> None:
    with pytest.raises(ValueError, match=r"sasl\.enabled\.mechanisms"):
        SaslServerMachine(SaslServerSettings(), {}, api_versions_body, ManualClock(1_000_000))


def test_the_diagram_has_an_arrow_for_each_transition() -> None:
    drawn = sasl_server_diagram()
    assert drawn.count(" --> ") == len(SASL_SERVER_TRANSITIONS) + 2
    assert all(state.name in drawn for state in SaslState)
    assert len({(row.state, row.event) for row in SASL_SERVER_TRANSITIONS}) == len(SASL_SERVER_TRANSITIONS)
