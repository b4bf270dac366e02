"""Client certificates before a listener of Kafka and one of ours: who is admitted, and by which name."""

import base64
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from socket import create_connection

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

from kustos.auth import ListenerPrincipals
from kustos.server.tls import certificate_principals
from kustos.tls import Side, TlsError, make_context, tls_settings
from kustos.wire import DerTag
from testkit.certificates import (
    ALGORITHM_AT,
    ISSUER_AT,
    SHA1,
    SUBJECT_AT,
    Authority,
    Holder,
    Key,
    der,
    pem,
    resigned,
    rsa_key,
)
from testkit.handshakes import shake_hands
from testkit.kafka.compiled import java_program
from testkit.ports import LOOPBACK

PATIENCE_S = 60
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
NAMES = certificate_principals(ListenerPrincipals(listener_name="CLIENTS", security_protocol="SSL"))
NODE = Authority("of nodes").issue("node")


@dataclass(frozen=True)
class Client:
    """What the listener trusts, and what the client presents, in PEM."""

    trusted: str
    key: str
    chain: str

    @classmethod
    def of(cls, holder: Holder, *trusted: str) -> "Client":
        return cls("".join(trusted), holder.key_pem, holder.chain_pem)

    def context(self, directory: Path) -> ssl.SSLContext:
        """Return a context that presents anything, and trusts whom it meets."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        # TLS 1.3 has no signatures of unusual curves
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        path = directory / "client.pem"
        path.write_text(self.key + self.chain)
        context.load_cert_chain(path)
        return context


class Kafka:
    """A process that serves Kafka's TLS to one client at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_program(Path(__file__).with_name("TrustProbe.java")),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def answer(self, client: Client, directory: Path) -> str | None:
        """Return the name of a client, None if it is refused."""
        words = (client.trusted, NODE.key_pem, NODE.chain_pem)
        assert self._process.stdin is not None
        line = " ".join(base64.b64encode(word.encode()).decode() for word in words)
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        port = int(self._line())
        try:
            with (
                create_connection((LOOPBACK, port), PATIENCE_S) as plain,
                client.context(directory).wrap_socket(plain) as half,
            ):
                half.recv(1)
        except OSError:
            # the refusal; the probe has its reason
            pass
        told = self._line()
        return base64.b64decode(told[1:]).decode() if told.startswith("+") else None

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the probe has ended"
        return line

    def stop(self) -> None:
        self._process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def kafka_tls() -> Iterator[Kafka]:
    kafka = Kafka()
    yield kafka
    kafka.stop()


def our_answer(client: Client, directory: Path) -> str | None:
    keys = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": NODE.key_pem,
        "ssl.keystore.certificate.chain": NODE.chain_pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": client.trusted,
        "ssl.client.auth": "required",
    }
    listener = make_context(tls_settings(keys), Side.SERVER).context
    try:
        shown = shake_hands(listener, client.context(directory)).server.getpeercert(binary_form=True)
        return NAMES(LOOPBACK, shown).name
    except (ssl.SSLError, TlsError):
        return None


ROOT = Authority("root")
ROTATED = [Authority("rotated") for _ in range(3)]
BETWEEN = [Authority("between", ROOT) for _ in range(2)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_each_key_of_a_rotated_authority_counts(
    kafka_tls: Kafka, order: tuple[int, ...], tmp_path: Path
) -> None:
    trusted = [ROTATED[index].pem for index in order]
    for authority in ROTATED:
        client = Client.of(authority.issue("alice"), *trusted)
        assert our_answer(client, tmp_path) == kafka_tls.answer(client, tmp_path) == "CN=alice"
    stranger = Client.of(Authority("rotated").issue("alice"), *trusted)
    assert our_answer(stranger, tmp_path) is kafka_tls.answer(stranger, tmp_path) is None


COMMON_NAME, ORGANIZATION, UNIT = (bytes.fromhex(f"0603{each}") for each in ("550403", "55040a", "55040b"))
PRINTABLE, UTF8, IA5, TELETEX, BMP, UNIVERSAL, NUMERIC = 19, 12, 22, 20, 30, 28, 18


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("trusted", [0, 1])
def test_an_authority_under_two_others_leads_to_the_trusted_one(
    kafka_tls: Kafka, trusted: int, order: tuple[int, ...], tmp_path: Path
) -> None:
    above = [Authority("old"), Authority("new")]
    first = Authority("crossed", above[0])
    second = Authority("crossed", above[1], key=first.key)
    leaf = first.issue("alice")
    sent = [(first.certificate, second.certificate)[index] for index in order]
    client = Client(above[trusted].pem, leaf.key_pem, pem([leaf.certificate, *sent]))
    assert our_answer(client, tmp_path) == kafka_tls.answer(client, tmp_path) == "CN=alice"


Attribute = tuple[bytes, int, bytes]
"""The DER of a type, the tag of a value, and the value."""


def name(*parts: Sequence[Attribute]) -> bytes:
    """Return a Name of parts, each of which has one attribute or more, in this order."""
    return der(DerTag.SEQUENCE, b"".join(map(part_of, parts)))


def part_of(attributes: Sequence[Attribute]) -> bytes:
    pairs = [kind + der(tag, value) for kind, tag, value in attributes]
    return der(DerTag.SET, b"".join(der(DerTag.SEQUENCE, pair) for pair in pairs))


ODD_NAMES = {
    "forbidden character": name(((ORGANIZATION, PRINTABLE, b"AT&T"),), ((UNIT, PRINTABLE, b"a@b_c*"),)),
    "unsorted part": name(((COMMON_NAME, UTF8, b"zz"), (ORGANIZATION, UTF8, b"a")), ((UNIT, UTF8, b"x"),)),
    "sorted part": name(((ORGANIZATION, UTF8, b"a"), (COMMON_NAME, UTF8, b"zz"))),
    "empty text": name(((ORGANIZATION, UTF8, b""),), ((COMMON_NAME, PRINTABLE, b"alice"),)),
    "one attribute twice": name(((UNIT, UTF8, b"b"), (UNIT, UTF8, b"a")), ((COMMON_NAME, UTF8, b"c"),)),
    "not ASCII in IA5String": name(((COMMON_NAME, IA5, "Zoë".encode()),)),
    "UTF-8 in T61String": name(((COMMON_NAME, TELETEX, "Zoë".encode()),)),
    "BMPString": name(((COMMON_NAME, BMP, "Zoe".encode("utf-16-be")),)),
    "UniversalString": name(((COMMON_NAME, UNIVERSAL, "Al".encode("utf-32-be")),)),
    "NumericString": name(((COMMON_NAME, NUMERIC, b"42"),)),
    "unknown type": name(((bytes.fromhex("06032a0304"), PRINTABLE, b"x&y"),), ((COMMON_NAME, UTF8, b"a"),)),
    "to escape": name(((COMMON_NAME, PRINTABLE, b' #a,b+c"d\\<e>;=  '),)),
    "long": name(((COMMON_NAME, PRINTABLE, b"&" * 300),)),
}


@pytest.mark.parametrize("kind", ODD_NAMES)
def test_an_oddly_encoded_name_is_the_user_that_it_is_in_kafka(
    kafka_tls: Kafka, kind: str, tmp_path: Path
) -> None:
    holder = ROOT.issue("placeholder")
    odd = resigned(holder.certificate, ROOT.key, {SUBJECT_AT: ODD_NAMES[kind]})
    client = Client(ROOT.pem, holder.key_pem, odd)
    theirs = kafka_tls.answer(client, tmp_path)
    assert theirs is not None
    assert our_answer(client, tmp_path) == theirs


@pytest.mark.parametrize("kind", ODD_NAMES)
def test_an_authority_with_an_oddly_encoded_name_is_trusted(
    kafka_tls: Kafka, kind: str, tmp_path: Path
) -> None:
    odd = resigned(ROOT.certificate, ROOT.key, {ISSUER_AT: ODD_NAMES[kind], SUBJECT_AT: ODD_NAMES[kind]})
    holder = ROOT.issue("alice")
    client = Client(odd, holder.key_pem, resigned(holder.certificate, ROOT.key, {ISSUER_AT: ODD_NAMES[kind]}))
    for trusted in (odd, Authority().pem + odd):
        asked = replace(client, trusted=trusted)
        assert our_answer(asked, tmp_path) == kafka_tls.answer(asked, tmp_path) == "CN=alice"


def expired_root() -> Client:
    return Client.of(ROOT.issue("alice"), pem([ROOT.renewed(YESTERDAY)]))


def weak_root() -> Client:
    weak = Authority("weak", key=rsa_key(1024))
    return Client.of(weak.issue("alice"), weak.pem)


def sha1() -> Client:
    holder = ROOT.issue("alice")
    return Client(ROOT.pem, holder.key_pem, resigned(holder.certificate, ROOT.key, {ALGORITHM_AT: SHA1}))


def pinned_issuer() -> Client:
    pinned = ROOT.issue("pinned")
    above = Authority("pinned", key=pinned.key)
    return Client.of(above.issue("alice"), pem([pinned.certificate]))


def pinned(ends: datetime | None = None) -> Client:
    holder = ROOT.issue("alice", ends=ends)
    return Client.of(holder, holder.chain_pem)


def used_for(usage: x509.ObjectIdentifier) -> Client:
    return Client.of(ROOT.issue("alice", usages=[usage]), ROOT.pem)


def with_key(key: Key) -> Client:
    return Client.of(ROOT.issue("alice", key=key), ROOT.pem)


def chain_of(length: int) -> Client:
    """Return a client that sends so many certificates, and needs all of them."""
    issuer = ROOT
    for number in range(length - 1):
        issuer = Authority(f"level {number}", issuer)
    return Client.of(issuer.issue("alice"), ROOT.pem)


ADMITTED_BY_BOTH: dict[str, Callable[[], Client]] = {
    "a pinned certificate": pinned,
    "a pinned intermediate": lambda: Client.of(BETWEEN[0].issue("alice"), BETWEEN[0].pem),
    "clientAuth": lambda: used_for(Usage.CLIENT_AUTH),
    "a chain of 6 certificates": lambda: chain_of(6),
    "RSA of 2048 bits": lambda: with_key(rsa_key(2048)),
}
REFUSED_BY_BOTH: dict[str, Callable[[], Client]] = {
    "expired": lambda: Client.of(ROOT.issue("alice", ends=YESTERDAY), ROOT.pem),
    "serverAuth only": lambda: used_for(Usage.SERVER_AUTH),
    "issued by a pinned certificate": pinned_issuer,
    "a chain of 11 certificates": lambda: chain_of(11),
    "secp256k1": lambda: with_key(ec.generate_private_key(ec.SECP256K1())),
    "other intermediate of the name": lambda: Client.of(BETWEEN[0].issue("alice"), BETWEEN[1].pem),
}
ADMITTED_BY_KAFKA: dict[str, Callable[[], Client]] = {
    "under an expired authority": expired_root,
    "a pinned certificate that has expired": lambda: pinned(YESTERDAY),
    "under an authority with RSA of 1024 bits": weak_root,
    "RSA of 1024 bits": lambda: with_key(rsa_key(1024)),
    "SHA-1": sha1,
    "anyExtendedKeyUsage": lambda: used_for(Usage.ANY_EXTENDED_KEY_USAGE),
}
"""The differences that `docs/how-to/tls.md` declares."""


@pytest.mark.parametrize(("kind", "theirs", "ours"), [
    *((kind, "CN=alice", "CN=alice") for kind in ADMITTED_BY_BOTH),
    *((kind, None, None) for kind in REFUSED_BY_BOTH),
    *((kind, "CN=alice", None) for kind in ADMITTED_BY_KAFKA),
])  # fmt: skip
def test_a_certificate_is_admitted_as_in_kafka_or_by_a_declared_difference(
    kafka_tls: Kafka, kind: str, theirs: str | None, ours: str | None, tmp_path: Path
) -> None:
    client = (ADMITTED_BY_BOTH | REFUSED_BY_BOTH | ADMITTED_BY_KAFKA)[kind]()
    assert kafka_tls.answer(client, tmp_path) == theirs
    assert our_answer(client, tmp_path) == ours
