"""Theorems about the SASL state machines, for any bytes that a client sends."""

from hypothesis import given
from hypothesis import strategies as st

from kustos.auth import (
    Authenticated,
    Close,
    Fail,
    JaasError,
    SaslServerMachine,
    SaslState,
    client_mechanism,
    parse_jaas_config,
)
from kustos.auth.mechanisms.scram_messages import ClientFinal, ClientFirst, ScramSyntaxError, escape_name
from testkit.sasl import (
    NAMES,
    OTHER_PASSWORD,
    PASSWORD,
    UNSUPPORTED_VERSIONS_REQUEST,
    SeededEntropy,
    handshake,
    log_in,
    machine,
    request,
    token,
    versions_request,
)

PREFIXES = (
    [],
    [UNSUPPORTED_VERSIONS_REQUEST],
    [versions_request()],
    *([handshake(name, version)] for name in NAMES for version in (0, 1)),
    [handshake("SCRAM-SHA-256"), token(b"n,,n=alice,r=abc")],
    [handshake("SCRAM-SHA-512", 0), b"n,,n=nobody,r=abc"],
    [handshake(), token(b"\0alice\0" + PASSWORD.encode())],
)
KNOWN = st.sampled_from(
    [
        versions_request(0), versions_request(), UNSUPPORTED_VERSIONS_REQUEST, handshake(), handshake("X"),
        handshake("PLAIN", 0), token(b"\0alice\0wrong"), token(b"n,,n=alice,r=abc"), request(3, 9),
        token(b"\0alice\0" + PASSWORD.encode()), b"\0alice\0" + PASSWORD.encode(), b"n,,n=alice,r=abc",
        request(0, 9), request(36, 0, auth_bytes=b""),
    ]
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    frame = bytearray(draw(KNOWN))
    for _ in range(draw(st.integers(1, 3))):
        if frame:
            frame[draw(st.integers(0, len(frame) - 1))] = draw(st.integers(0, 255))
    return bytes(frame[: draw(st.integers(0, len(frame)))]) if draw(st.booleans()) else bytes(frame)


ASCII_NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1)
FRAMES = st.lists(st.one_of(st.binary(max_size=60), KNOWN, damaged()), max_size=20)


def begun(prefix: list[bytes]) -> SaslServerMachine:
    server = machine()
    for frame in prefix:
        server.receive(frame)
    return server


@given(st.sampled_from(PREFIXES), FRAMES)
def test_no_bytes_raise_and_nothing_is_accepted_after_the_end(
    prefix: list[bytes], frames: list[bytes]
) -> None:
    server = begun(prefix)
    for frame in frames:
        failed = server.state is SaslState.FAILED
        effects = server.receive(frame)
        shown = repr(effects) + repr(server)
        assert PASSWORD not in shown
        assert OTHER_PASSWORD not in shown
        if failed:
            assert effects == ()
            assert server.principal is None
        else:
            assert effects
            assert isinstance(effects[-1], Close | Fail) == (server.state is SaslState.FAILED)
            assert isinstance(effects[-1], Authenticated) == (server.state is SaslState.COMPLETE)


@given(
    st.sampled_from(NAMES),
    st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),  # RFC 4616: no NUL
)
def test_only_the_right_password_of_a_known_user_logs_in(mechanism: str, user: str, password: str) -> None:
    done = log_in(machine(), client_mechanism(mechanism, user, password, SeededEntropy()))
    assert isinstance(done, Fail)
    known = log_in(machine(), client_mechanism(mechanism, "alice", PASSWORD, SeededEntropy()))
    assert isinstance(known, Authenticated)


@given(ASCII_NAMES)
def test_every_escaped_name_is_read_back(name: str) -> None:
    assert ClientFirst.parse(f"n,,n={escape_name(name)},r=abc".encode()).username == name


@given(st.binary(max_size=80))
def test_scram_messages_are_parsed_or_refused(message: bytes) -> None:
    for parse in (ClientFirst.parse, ClientFinal.parse):
        text = ""
        try:
            parse(message)
        except ScramSyntaxError as error:
            text = str(error)
        assert text in {
            "", "invalid SCRAM client first message format", "invalid SCRAM client final message format",
        }  # fmt: skip


PIECES = ["module", "required", "a", "=", '"', "'", "hunter2", "\\", ";", "/", "/*", "*/", "1", " ", "\n"]
JAAS = st.lists(st.sampled_from(PIECES)).map("".join)


@given(st.one_of(JAAS, st.text()))
def test_jaas_texts_are_read_or_refused_without_repeating_them(text: str) -> None:
    said = ""
    try:
        entries = parse_jaas_config(text)
    except JaasError as error:
        said = str(error)
    else:
        assert entries
    assert "hunter2" not in said
