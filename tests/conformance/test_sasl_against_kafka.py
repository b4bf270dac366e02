"""The same bytes to a real broker and to our machine, and our client's logins to the real broker."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from kustos.auth import (
    Authenticated,
    Close,
    Fail,
    SaslClientError,
    SaslClientMachine,
    SaslServerMachine,
    SendFrame,
    client_mechanism,
)
from kustos.auth.mechanisms.scram import ScramClient
from kustos.auth.mechanisms.scram_keys import ScramHash
from kustos.runtime import SystemEntropy
from kustos.wire import read_response_header, request_codec, request_frame, response_codec
from testkit.kafka import SASL_PLAINTEXT, KafkaNode, NodeSettings
from testkit.sasl import (
    NAMES,
    PASSWORD,
    UNSUPPORTED_VERSIONS_REQUEST,
    handshake,
    log_in,
    machine,
    request,
    token,
    versions_request,
)

TIMEOUT_S = 60
CLOSED = "closed"
USERS = {"alice": PASSWORD, "bob": "b0b-s3cret"}
GOOD = b"\0alice\0" + PASSWORD.encode()
Script = Sequence[bytes]
Answers = list[bytes | str]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = NodeSettings(
        listeners=(SASL_PLAINTEXT,), users=USERS, properties={"connections.max.reauth.ms": "3600000"}
    )
    with KafkaNode(tmp_path_factory.mktemp("kafka"), settings) as node:
        yield node


class Link:
    """A blocking connection that speaks whole frames."""

    def __init__(self, kafka: KafkaNode) -> None:
        host, _, port = kafka.address("SASL_PLAINTEXT").rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)

    def __enter__(self) -> "Link":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes | None:
        """One frame without its length, None when the peer closed."""
        head = self._exactly(4)
        return None if head is None else self._exactly(int.from_bytes(head))

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self._socket.recv(size - len(data))
            except ConnectionResetError:
                return None
            if not more:
                return None
            data += more
        return data


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


def kafkas_answers(kafka: KafkaNode, script: Script) -> Answers:
    answers: Answers = []
    with Link(kafka) as link:
        for frame in script:
            link.send(framed(frame))
            answer = link.receive()
            if answer is None:
                return [*answers, CLOSED]
            answers.append(answer)
            # the refusal is followed by the end of the connection, which is then the next answer
    return answers


def our_answers(script: Script, server: SaslServerMachine | None = None) -> Answers:
    server = server or machine(connections_max_reauth_ms=dict.fromkeys(NAMES, 3_600_000))
    answers: Answers = []
    for frame in script:
        effects = server.receive(frame)
        if not effects:
            return [*answers, CLOSED]
        for effect in effects:
            match effect:
                case SendFrame(data):
                    answers.append(data[4:])
                case Fail(response):
                    answers.append(response[4:] if response else CLOSED)
                case Close():
                    answers.append(CLOSED)
        if CLOSED in answers:
            return answers
    return answers


def comparable(script: Script, answers: Answers) -> list[object]:
    """Answers as written, but mechanisms in any order and an ApiVersions answer by its error code alone."""
    shown: list[object] = []
    for frame, answer in zip(script, answers, strict=False):
        if isinstance(answer, str) or answer == b"":
            shown.append(answer)
            continue
        api_key, version = int.from_bytes(frame[:2]), int.from_bytes(frame[2:4])
        if api_key == 17 and version < 2:
            offset = read_response_header(answer, False)[1]
            body = response_codec(17, version).decode(answer, offset).message
            shown.append((answer[:4], body.error_code, sorted(body.mechanisms)))
        elif api_key == 18 and answer[4:6] == b"\0\0":
            shown.append(answer[:6])
        else:
            shown.append(answer)
    return shown


SCRIPTS: dict[str, Script] = {
    "plain": [handshake(), token(GOOD)],
    "plain, SaslAuthenticate 1": [handshake(), token(GOOD, 1)],
    "plain, SaslAuthenticate 0": [handshake(), token(GOOD, 0)],
    "plain after ApiVersions 0": [versions_request(0), handshake(), token(GOOD)],
    "plain after ApiVersions 4": [versions_request(4), handshake(), token(GOOD)],
    "plain, bare": [handshake("PLAIN", 0), GOOD],
    "plain, authorization id": [handshake(), token(b"alice" + GOOD)],
    "unsupported ApiVersions, then again": [UNSUPPORTED_VERSIONS_REQUEST, versions_request(), handshake()],
    "unsupported ApiVersions twice": [UNSUPPORTED_VERSIONS_REQUEST] * 2 + [handshake()],
    "negative ApiVersions version": [b"\0\x12\xff\xff\0\0\0\x05\0\x01c", versions_request()],
    "invalid software name": [versions_request(4, "-x"), versions_request(3, ""), versions_request()],
    "second ApiVersions": [versions_request(), versions_request()],
    "second ApiVersions, unsupported": [versions_request(), UNSUPPORTED_VERSIONS_REQUEST],
    "unknown mechanism": [handshake("GSSAPI"), handshake()],
    "unknown mechanism, version 0": [handshake("plain", 0), handshake()],
    "handshake of version 2": [b"\0\x11\0\x02" + handshake()[4:], handshake()],
    "garbage": [b"\x60\x03\x02\x01" * 8],
    "http": [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"],
    "nothing": [b""],
    "unknown API": [b"\x7f\x00\0\0\0\0\0\x05\0\x01c"],
    "Metadata first": [request(3, 9)],
    "Metadata after ApiVersions": [versions_request(), request(3, 9)],
    "SaslAuthenticate first": [token(GOOD)],
    "SaslAuthenticate after ApiVersions": [versions_request(), token(GOOD)],
    "ApiVersions amid the login": [handshake(), versions_request(), token(GOOD)],
    "unsupported ApiVersions amid the login": [handshake(), UNSUPPORTED_VERSIONS_REQUEST],
    "handshake amid the login": [handshake(), handshake()],
    "Heartbeat amid the login": [handshake(), request(12, 4), token(GOOD)],
    "ListGroups amid the login": [handshake(), request(16, 5), token(GOOD)],
    "SaslAuthenticate of version 3": [handshake(), b"\0\x24\0\x03" + token(GOOD)[4:]],
    "garbage amid the login": [handshake(), b"\xff" * 20],
    "bare token after handshake 1": [handshake(), GOOD],
    "two tokens": [handshake(), token(b"alice\0x")],
    "five tokens": [handshake(), token(b"a\0b\0c\0d\0e")],
    "no user": [handshake(), token(b"\0\0x")],
    "no password": [handshake(), token(b"\0alice\0")],
    "wrong password": [handshake(), token(b"\0alice\0wrong"), token(GOOD)],
    "wrong password, version 0": [handshake(), token(b"\0alice\0wrong", 0)],
    "unknown user": [handshake(), token(b"\0nobody\0wrong")],
    "not UTF-8": [handshake(), token(b"\0\xff\xfe\0\xff")],
    "foreign authorization id": [handshake(), token(b"bob" + GOOD)],
    "wrong password, bare": [handshake("PLAIN", 0), b"\0alice\0wrong"],
    "SCRAM, not even a message": [handshake("SCRAM-SHA-256"), token(b"hello")],
    "SCRAM, channel binding": [handshake("SCRAM-SHA-512"), token(b"y,,n=alice,r=abc")],
    "SCRAM, foreign authorization id": [handshake("SCRAM-SHA-256"), token(b"n,a=bob,n=alice,r=abc")],
    "SCRAM, bad name": [handshake("SCRAM-SHA-256"), token(b"n,,n=al=ice,r=abc")],
    "SCRAM, bare, not even a message": [handshake("SCRAM-SHA-256", 0), b"hello"],
}


@pytest.mark.behaviour(
    "B216", "B217", "B218", "B225", "B226", "B227", "B228", "B229", "B230", "B231", "B233", "B234", "B239",
    "B247", "B248", "B249", "B250", "B303", "B304", "B359",
)  # fmt: skip
@pytest.mark.parametrize("name", SCRIPTS)
def test_kafka_and_the_machine_answer_alike(kafka: KafkaNode, name: str) -> None:
    script = SCRIPTS[name]
    theirs = comparable(script, kafkas_answers(kafka, script))
    assert comparable(script, our_answers(script)) == theirs


@pytest.mark.behaviour("B232")
@pytest.mark.parametrize("length", [524_289, 2**31 - 1, 2**32 - 1])
def test_an_oversized_frame_is_closed_silently_by_both(kafka: KafkaNode, length: int) -> None:
    with Link(kafka) as link:
        link.send(length.to_bytes(4) + b"x")
        assert link.receive() is None
    (failure,) = machine().oversized()
    assert isinstance(failure, Fail)
    assert failure.response == b""


def scram_script(ask: Callable[[bytes], bytes], user: str, mechanism: str, damage: bool) -> bytes:
    """Run a SCRAM login whose last token is refused; return the frame that refuses it."""
    chosen = next(h for h in ScramHash if h.mechanism_name == mechanism)
    client = ScramClient(chosen, user, PASSWORD if damage else "wrong", SystemEntropy())
    ask(handshake(mechanism))
    answer = ask(token(client.first()))
    offset = read_response_header(answer, True)[1]
    body = response_codec(36, 2).decode(answer, offset).message
    if body.error_code:
        return answer
    final = client.respond(body.auth_bytes)
    assert final is not None
    return ask(token(final.replace(b",r=", b",r=x") if damage else final))


@dataclass
class Ours:
    server: SaslServerMachine

    def ask(self, frame: bytes) -> bytes:
        effect = self.server.receive(frame)[-1]
        assert isinstance(effect, SendFrame | Fail)
        return (effect.data if isinstance(effect, SendFrame) else effect.response)[4:]


@pytest.mark.behaviour("B219", "B220", "B296")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("user", "damage"), [("alice", False), ("alice", True), ("nobody", False)])
def test_a_refused_scram_login_is_told_the_same(
    kafka: KafkaNode, mechanism: str, user: str, damage: bool
) -> None:
    """For an unknown user Kafka says it one round earlier; the bytes of the refusal are the same."""
    with Link(kafka) as link:

        def ask(frame: bytes) -> bytes:
            link.send(framed(frame))
            answer = link.receive()
            assert answer is not None
            return answer

        theirs = scram_script(ask, user, mechanism, damage)
        assert link.receive() is None
    assert scram_script(Ours(machine()).ask, user, mechanism, damage) == theirs


def log_in_to(link: Link, mechanism: str, user: str, password: str, version: int) -> SaslClientMachine:
    client = SaslClientMachine(client_mechanism(mechanism, user, password, SystemEntropy()), version)
    asked = client.start()
    while True:
        codec = request_codec(asked.api_key, asked.api_version)
        link.send(request_frame(codec, asked.api_key, 1, "kustos", asked.body))
        answer = link.receive()
        assert answer is not None
        offset = read_response_header(answer, response_codec(asked.api_key, asked.api_version).flexible)[1]
        following = client.receive(answer[offset:])
        if following is None:
            return client
        asked = following


@pytest.mark.behaviour("B216", "B219", "B224", "B234")
@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_our_client_logs_in_to_kafka(kafka: KafkaNode, mechanism: str, version: int) -> None:
    with Link(kafka) as link:
        client = log_in_to(link, mechanism, "alice", PASSWORD, version)
        assert client.session_lifetime_ms == (3_600_000 if version else 0)
        link.send(framed(request(3, 9)))
        answer = link.receive()
        assert answer is not None
        offset = read_response_header(answer, True)[1]
        assert response_codec(3, 9).decode(answer, offset).message.brokers


@pytest.mark.behaviour("B235", "B256")
@pytest.mark.parametrize("mechanism", NAMES)
def test_our_client_says_why_kafka_refused(kafka: KafkaNode, mechanism: str) -> None:
    with Link(kafka) as link, pytest.raises(SaslClientError, match=r"(?i)invalid") as raised:
        log_in_to(link, mechanism, "alice", "wrong-s3cret", 2)
    assert raised.value.error_code == 58
    assert "s3cret" not in str(raised.value)


@pytest.mark.behaviour("B242", "B243")
@pytest.mark.parametrize("name", ["same", "somebody else", "another mechanism", "unknown mechanism"])
def test_reauthentication_is_answered_alike(kafka: KafkaNode, name: str) -> None:
    scripts = {
        "same": [handshake(), token(GOOD)],
        "somebody else": [handshake(), token(b"\0bob\0b0b-s3cret")],
        "another mechanism": [handshake("SCRAM-SHA-256"), token(b"n,,n=alice,r=abc")],
        "unknown mechanism": [handshake("GSSAPI")],
    }
    script = scripts[name]
    theirs = comparable(script, kafkas_answers(kafka, [handshake(), token(GOOD), *script])[2:])
    server = machine(connections_max_reauth_ms={"PLAIN": 3_600_000})
    our_answers([handshake(), token(GOOD)], server)
    first = server.begin_reauthentication(script[0])
    assert first is not None
    opening: Answers = [first[-1].data[4:] if isinstance(first[-1], SendFrame) else CLOSED]
    assert comparable(script, opening + our_answers(script[1:], server)) == theirs


def test_the_worlds_agree_on_who_is_who() -> None:
    done = log_in(machine(), client_mechanism("PLAIN", "bob", USERS["bob"], SystemEntropy()))
    assert isinstance(done, Authenticated)
