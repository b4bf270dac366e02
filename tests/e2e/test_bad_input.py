"""The same bad bytes to kustos and to a real Kafka SASL listener: the same answer, or the same end.

kustos says each time in exactly one line of its log why, and nothing of it reaches upstream.
"""

import json
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import TOPICS, USERS, settings
from testkit.guarded.raw_client import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    RawClient,
    framed,
    request_bytes,
)
from testkit.kafka import PLAINTEXT, SASL_PLAINTEXT, NodeSettings
from testkit.waiting import wait_until, whole_lines

METADATA, API_VERSIONS = 3, 18
SEED = 20_090_617
GARBAGE = random.Random(SEED).randbytes(300)
NAMELESS = struct.pack(">h", -1)
MAX_CONNECTIONS = 1_500


def bare(api_key: int, version: int, body: bytes = b"", correlation_id: int = 7) -> bytes:
    """A request by hand, for versions that no library knows."""
    return struct.pack(">hhi", api_key, version, correlation_id) + NAMELESS + body


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def handshake(mechanism: str, version: int = 1) -> bytes:
    return framed(bare(SASL_HANDSHAKE, version, text(mechanism)))


def token(data: bytes) -> bytes:
    return framed(bare(SASL_AUTHENTICATE, 1, struct.pack(">i", len(data)) + data))


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return token(f"{authorization_id}\0{user}\0{password}".encode())


CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + GARBAGE[:32] + b"\x00" * 165
HTTP = b"GET / HTTP/1.1\r\nHost: kafka\r\nAccept: */*\r\n\r\n"
PRODUCE_BODY = b"\xff\xff\x00\x01\x00\x00\x27\x10\x00\x00\x00\x00"
LOGIN = handshake("PLAIN") + plain("admin", USERS["admin"])
METADATA_OF_ONE = struct.pack(">i", 1) + text("orders-eu")


@dataclass(frozen=True)
class Case:
    """Bytes, and how many frames answer them before the end; `stays`: then the connection still serves."""

    data: bytes
    answers: int = 0
    stays: bool = False


BEFORE_LOGIN = {
    "garbage": Case(GARBAGE),
    "http": Case(HTTP),
    "client hello of TLS": Case(CLIENT_HELLO),
    "negative length": Case(struct.pack(">i", -1) + GARBAGE),
    "most negative length": Case(struct.pack(">i", -(2**31))),
    "length above the limit": Case(struct.pack(">i", 524_289) + GARBAGE),
    "empty frame": Case(framed(b"")),
    "four bytes": Case(framed(b"\0\x12\0\0")),
    "header cut in its client id": Case(framed(struct.pack(">hhih", API_VERSIONS, 0, 1, 500))),
    "unknown API": Case(framed(bare(999, 0))),
    "negative API": Case(framed(bare(-1, 0))),
    "API of no version": Case(framed(bare(API_VERSIONS, -1)), answers=1, stays=True),
    "ApiVersions of the future": Case(framed(bare(API_VERSIONS, 99, b"\0")), answers=1, stays=True),
    "SaslHandshake of the future": Case(framed(bare(SASL_HANDSHAKE, 9, text("PLAIN")))),
    "Metadata before a login": Case(framed(bare(METADATA, 1, METADATA_OF_ONE))),
    "Produce before a login": Case(framed(bare(0, 3, PRODUCE_BODY))),
    "token without a handshake": Case(plain("admin", USERS["admin"])),
    "unknown mechanism": Case(handshake("DIGEST-MD5"), answers=1),
    "mechanism in small letters": Case(handshake("plain"), answers=1),
    "Heartbeat between handshake and token": Case(
        handshake("PLAIN") + framed(bare(12, 0, text("g") + struct.pack(">i", 1) + text("m"))), answers=2
    ),
    "wrong password": Case(handshake("PLAIN") + plain("alice", "wrong"), answers=2),
    "unknown user": Case(handshake("PLAIN") + plain("nobody", "wrong"), answers=2),
    "empty password": Case(handshake("PLAIN") + plain("alice", ""), answers=2),
    "other authorization id": Case(handshake("PLAIN") + plain("alice", USERS["alice"], "admin"), answers=2),
    "token without NUL": Case(handshake("PLAIN") + token(b"alice"), answers=2),
    "token of too many parts": Case(handshake("PLAIN") + token(b"\0a\0b\0c"), answers=2),
    "empty token": Case(handshake("PLAIN") + token(b""), answers=2),
    "token that is not UTF-8": Case(handshake("PLAIN") + token(b"\0\xff\xfe\0\xff"), answers=2),
    "SCRAM token of garbage": Case(handshake("SCRAM-SHA-256") + token(GARBAGE), answers=2),
    "SCRAM token for channel binding": Case(handshake("SCRAM-SHA-256") + token(b"y,,n=a,r=b"), answers=2),
    "two handshakes": Case(handshake("PLAIN") + handshake("PLAIN"), answers=2),
    "bare token after handshake 0": Case(handshake("PLAIN", 0) + framed(b"\0alice\0wrong"), answers=1),
}
AFTER_LOGIN = {
    "unknown API": Case(framed(bare(999, 0))),
    "negative API": Case(framed(bare(-1, 0))),
    "API that is gone": Case(framed(bare(6, 7))),
    "Metadata of the future": Case(framed(bare(METADATA, 99))),
    "ApiVersions of the future": Case(framed(bare(API_VERSIONS, 99, b"\0")), answers=1, stays=True),
    "Metadata cut short": Case(framed(bare(METADATA, 1, METADATA_OF_ONE[:-3]))),
    "array longer than the frame": Case(framed(bare(METADATA, 1, struct.pack(">i", 2**31 - 1)))),
    "name of a negative length": Case(framed(bare(METADATA, 1, struct.pack(">ih", 1, -7)))),
    "negative length": Case(struct.pack(">i", -1)),
    "length above the limit": Case(struct.pack(">i", 104_857_601)),
    "empty frame": Case(framed(b"")),
    "garbage": Case(framed(GARBAGE)),
    "http": Case(HTTP),
    "another handshake": Case(handshake("PLAIN"), answers=1, stays=True),
    "another token": Case(plain("alice", USERS["alice"]), answers=1, stays=True),
}

STRICTER = {
    "array of a negative length, which Kafka takes for null": Case(
        framed(bare(METADATA, 1, struct.pack(">i", -5)))
    ),
    "number in more bytes than it needs": Case(framed(bare(METADATA, 12, b"\0" + b"\x81\x00" + b"\0\0\0"))),
}
"""What Kafka answers and kustos does not: two ways to read one frame are a way in."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    kafka = NodeSettings(listeners=(PLAINTEXT, SASL_PLAINTEXT), users=USERS)
    limits = settings(
        **{
            "max.connections": str(MAX_CONNECTIONS),
            "connections.max.idle.ms": "600000",
            # the last of so many clients logs in long after it has connected
            "kustos.login.timeout.ms": "600000",
        }
    )
    with GuardedCluster(
        tmp_path_factory.mktemp("bad"), limits, topics=TOPICS, taps_clients=False, kafka=kafka
    ) as scene:
        yield scene


def outcome(address: str, case: Case, *, login: bool) -> list[bytes]:
    """Return the frames that came back; the end must be as the case says."""
    with RawClient(address, "admin") as client:
        if login:
            client.socket.sendall(LOGIN)
            for _ in range(2):
                client.receive()
        client.socket.sendall(case.data)
        try:
            answers = [client.receive() for _ in range(case.answers)]
        except EOFError as end:
            raise AssertionError(f"{address} answers less than {case.answers} times: {end}") from end
        if case.stays:
            client.socket.sendall(framed(bare(API_VERSIONS, 0, correlation_id=99)))
            assert client.receive()[:4] == struct.pack(">i", 99)
        else:
            assert client.is_closed(), "a byte more came"
    return answers


def reasons(scene: GuardedCluster) -> list[dict[str, Any]]:
    lines = whole_lines(scene.kustos.directory / "kustos.log")
    told = [json.loads(line) for line in lines if line.startswith("{")]
    return [line for line in told if line["event"] in {"connection closed", "authentication failed"}]


def ordered(frame: bytes) -> bytes:
    """Return the frame with the SCRAM mechanisms in one order: Kafka's is that of a hash table."""
    return frame.replace(
        text("SCRAM-SHA-512") + text("SCRAM-SHA-256"), text("SCRAM-SHA-256") + text("SCRAM-SHA-512")
    )


def assert_alike(scene: GuardedCluster, case: Case, *, login: bool, as_kafka: bool = True) -> None:
    passed, links = scene.forwarded, len(scene.upstream.connections)
    before = reasons(scene)
    ours = outcome(scene.bootstrap, case, login=login)
    kafka = outcome(scene.node(1).address("SASL_PLAINTEXT"), case, login=login) if as_kafka else ours
    if not case.stays or case.data[4:6] != struct.pack(">h", API_VERSIONS):
        assert list(map(ordered, ours)) == list(map(ordered, kafka))
    else:
        assert [frame[:10] for frame in ours] == [frame[:10] for frame in kafka]
    if not case.stays:
        wait_until(lambda: len(reasons(scene)) > len(before), what="the log says why")
    told = reasons(scene)[len(before) :]
    assert len(told) == (0 if case.stays else 1), told
    assert all(line["reason"] and "secret" not in json.dumps(line) for line in told)
    assert scene.forwarded == passed
    if not login:
        assert len(scene.upstream.connections) == links


@pytest.mark.parametrize("name", BEFORE_LOGIN)
def test_before_a_login_bad_input_ends_as_in_kafka(both: GuardedCluster, name: str) -> None:
    assert_alike(both, BEFORE_LOGIN[name], login=False)


def test_amid_a_login_no_item_is_read_of_another_request(both: GuardedCluster) -> None:
    """Kafka answers each topic of a Metadata request; here that would be a stranger's list to read."""
    data = handshake("PLAIN") + framed(bare(METADATA, 1, METADATA_OF_ONE))
    assert_alike(both, Case(data, answers=1), login=False, as_kafka=False)
    outcome(both.node(1).address("SASL_PLAINTEXT"), Case(data, answers=2), login=False)


@pytest.mark.parametrize("name", AFTER_LOGIN)
def test_after_a_login_bad_input_ends_as_in_kafka(both: GuardedCluster, name: str) -> None:
    assert_alike(both, AFTER_LOGIN[name], login=True)


@pytest.mark.parametrize("name", STRICTER)
def test_what_can_be_read_in_two_ways_ends_the_connection(both: GuardedCluster, name: str) -> None:
    case = STRICTER[name]
    assert_alike(both, case, login=True, as_kafka=False)
    kafka = both.node(1).address("SASL_PLAINTEXT")
    outcome(kafka, Case(case.data, answers=1, stays=True), login=True)


def scram_refusal(scene: GuardedCluster, user: str) -> list[bytes]:
    """Return the two answers to a SCRAM login with a wrong proof, what is random in them made alike."""
    with RawClient(scene.bootstrap, "x") as client:
        client.socket.sendall(handshake("SCRAM-SHA-256") + token(f"n,,n={user},r=abc".encode()))
        client.receive()
        first = client.receive()
        nonce = first[first.index(b"r=") + 2 : first.index(b",s=")]
        proof = b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"="
        client.socket.sendall(token(proof))
        second = client.receive()
        assert client.is_closed()
    return [first[:8], first[first.index(b",i=") :], second]


def test_an_unknown_user_and_a_wrong_password_are_told_the_same_at_the_same_step(
    both: GuardedCluster,
) -> None:
    known, unknown = scram_refusal(both, "alice"), scram_refusal(both, "nobody-here")
    assert known == unknown
    assert b"invalid credentials" in known[2]


def test_requests_that_come_byte_by_byte_are_answered(both: GuardedCluster) -> None:
    with RawClient(both.bootstrap, "admin") as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in LOGIN + framed(bare(API_VERSIONS, 0)):
            client.socket.sendall(bytes((byte,)))
        assert [client.receive()[:4] for _ in range(3)] == [struct.pack(">i", 7)] * 3


def test_a_frame_that_never_ends_holds_up_nobody_else(both: GuardedCluster) -> None:
    with ExitStack() as stack:
        for _ in range(50):
            client = stack.enter_context(RawClient(both.bootstrap, "slow"))
            client.socket.sendall(struct.pack(">i", 500_000) + b"\0\x11")
        serves(both)


def serves(scene: GuardedCluster) -> None:
    """Log in and ask upstream something."""
    with RawClient(scene.bootstrap, "alice") as client:
        client.log_in("alice", USERS["alice"])
        answer = client.ask(METADATA, 1, topics=None)
        assert "orders-eu" in {str(topic.name) for topic in answer.topics}


def fill(link: socket.socket, data: bytes, limit: int) -> None:
    """Send the data again and again; raise TimeoutError where the other side takes no more."""
    sent = 0
    while sent < limit:
        sent += link.send(data)


def test_a_client_that_never_reads_is_not_read_from_for_ever(both: GuardedCluster) -> None:
    """What waits for it is bounded by the buffers of the kernel and one high-water mark.

    With 4 MiB to send and 32 MiB to receive (the kernel's own limits here), and 11 bytes asked for each
    byte answered, the kernel alone may take 80 MiB: the limit must lie well above.
    """
    request = framed(request_bytes(API_VERSIONS, 0, 1, "x" * 4000, b""))
    with RawClient(both.bootstrap, "admin") as client:
        client.log_in("admin", USERS["admin"])
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.settimeout(3.0)
        with pytest.raises(TimeoutError):
            fill(client.socket, request * 16, 512 << 20)
        serves(both)
    serves(both)


def test_too_many_connections_are_turned_away_and_those_that_are_in_are_served(both: GuardedCluster) -> None:
    """Clients that have not logged in make room; those that have keep their places."""
    with ExitStack() as stack:

        def connected(count: int) -> list[RawClient]:
            return [stack.enter_context(RawClient(both.bootstrap, "many")) for _ in range(count)]

        silent = connected(MAX_CONNECTIONS)
        served = [client.log_in("alice", USERS["alice"]) for client in connected(MAX_CONNECTIONS)]
        assert all(client.is_closed() for client in silent)
        for client in connected(100):
            assert client.is_closed()
        for client in served[::300]:
            assert client.ask(METADATA, 1, topics=None).topics
    wait_until(lambda: _logs_in(both), what="there is room again")


def _logs_in(scene: GuardedCluster) -> bool:
    try:
        serves(scene)
    except (EOFError, OSError):
        return False
    return True


def test_the_node_lives_and_none_of_it_was_an_error(both: GuardedCluster) -> None:
    serves(both)
    log = (both.kustos.directory / "kustos.log").read_text()
    assert "Traceback" not in log
    assert not [line for line in log.splitlines() if '"level": "error"' in line or '"critical"' in line]
