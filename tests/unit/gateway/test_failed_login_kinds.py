"""Only credentials that were checked and refused count against an address: each mechanism, on real sockets.

Everything else can be sent by a client that has no credentials, such as a health check or a scanner, and must
not keep the logins of others at its address out.
"""

import asyncio
import ssl
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import gssapi
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kustos.auth import (
    AcceptedToken,
    CallbackServer,
    CustomServer,
    GssapiCredentials,
    GssapiServer,
    HandlerPasswords,
    MechanismFactory,
    OAuthBearerServer,
    PlainServer,
    PlainServerCallbackHandler,
    Proven,
    RefusedToken,
    SaslAuthenticationError,
    SaslServerExchange,
    SaslServerMechanism,
    SaslServerSettings,
    Surroundings,
    client_mechanism,
)
from kustos.auth.jwt import TokenClaimRules, validate_signed
from kustos.gateway.listener import FailedLoginLimits
from kustos.wire import Message, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.bearer_tokens import NOW_S, claims, compact, known_keys
from testkit.certificates import Authority, Holder
from testkit.gateway.gateways import Caller, RunningGateway, running_gateway
from testkit.gateway.sessions import request
from testkit.kdc import REALM, Kdc, kdc_of_this_process
from testkit.sasl import PASSWORD, SeededEntropy, mechanisms
from testkit.waiting import wait_until
from tests.unit.gateway.test_client import broker
from tests.unit.gateway.test_tls_transport import Certificates, first_answer

SASL = SaslServerSettings(failed_authentication_delay_ms=1)
ONE_TRY = FailedLoginLimits(burst=1, per_minute=1)
AROUND = Surroundings("custom", 10_000)

HEADER = {"alg": "RS256", "kid": "rsa-1"}

Tokens = Generator[bytes, bytes, None]
"""Yields what a client sends, takes what the server answers; the client closes the connection at its end."""


class Pin(SaslServerExchange):
    def respond(self, token: bytes) -> Proven:
        if token == b"broken":
            raise ValueError(token)
        if not token.isdigit():
            raise SaslAuthenticationError("this is not a PIN", was_judged=False)
        raise SaslAuthenticationError("the PIN is wrong")


class Pins(SaslServerMechanism):
    def exchange(self) -> SaslServerExchange:
        return Pin()


class Directory(PlainServerCallbackHandler):
    def authenticate(self, username: str, password: str) -> bool:
        if username == "broken":
            raise ConnectionError(username)
        return False


def validate(token: str) -> AcceptedToken | RefusedToken:
    return validate_signed(token, known_keys("rsa-1"), TokenClaimRules(), NOW_S * 1000).outcome


def one(token: bytes) -> Callable[[], Tokens]:
    def tokens() -> Tokens:
        yield token

    return tokens


def bearer(token: str, authorization_id: str = "") -> bytes:
    return f"n,{authorization_id},\x01auth=Bearer {token}\x01\x01".encode()


def bearer_read_to_the_end() -> Tokens:
    document = yield bearer(compact(claims(exp=NOW_S - 1000), "rsa-1"))
    assert b"invalid_token" in document
    yield b"\x01"


def scram(user: str, password: str, *, via_token: bool = False) -> Callable[[], Tokens]:
    """Return a whole exchange."""

    def tokens() -> Tokens:
        client = client_mechanism("SCRAM-SHA-256", user, password, SeededEntropy(7), via_token)
        answer = yield client.first()
        proof = client.respond(answer)
        assert proof is not None
        yield proof

    return tokens


def scram_last(change: Callable[[bytes], bytes]) -> Callable[[], Tokens]:
    """Return an exchange with the right password, whose last message is changed."""

    def tokens() -> Tokens:
        client = client_mechanism("SCRAM-SHA-256", "alice", PASSWORD, SeededEntropy(7))
        answer = yield client.first()
        proof = client.respond(answer)
        assert proof is not None
        yield change(proof)

    return tokens


ATTEMPTS: tuple[tuple[str, str, Callable[[], Tokens], bool], ...] = (
    ("PLAIN", "wrong password", one(b"\0alice\0wrong"), True),
    ("PLAIN", "unknown user", one(b"\0mallory\0wrong"), True),
    ("PLAIN", "password that is not text", one(b"\0alice\0\xff\xff"), True),
    ("PLAIN", "right password for another", one(b"bob\0alice\0" + PASSWORD.encode()), True),
    ("PLAIN", "empty", one(b""), False),
    ("PLAIN", "too few parts", one(b"alice\0" + PASSWORD.encode()), False),
    ("PLAIN", "too many parts", one(b"\0alice\0wrong\0x"), False),
    ("PLAIN", "no user", one(b"\0\0wrong"), False),
    ("PLAIN", "no password", one(b"\0alice\0"), False),
    ("DIRECTORY", "refused by the handler", one(b"\0alice\0wrong"), True),
    ("DIRECTORY", "handler that fails", one(b"\0broken\0wrong"), False),
    ("SCRAM-SHA-256", "wrong password", scram("alice", "wrong"), True),
    ("SCRAM-SHA-256", "unknown user", scram("mallory", "wrong"), True),
    ("SCRAM-SHA-256", "unknown delegation token", scram("id", "hmac", via_token=True), True),
    ("SCRAM-SHA-256", "proof too short", scram_last(lambda it: it.split(b",p=")[0] + b",p=AAAA"), True),
    ("SCRAM-SHA-256", "garbage", one(b"garbage"), False),
    ("SCRAM-SHA-256", "other authorization id", one(b"n,a=bob,n=alice,r=nonce"), False),
    ("SCRAM-SHA-256", "broken off", one(b"n,,n=alice,r=nonce"), False),
    ("SCRAM-SHA-256", "garbage at the end", scram_last(lambda _: b"garbage"), False),
    ("SCRAM-SHA-256", "no proof", scram_last(lambda it: it.split(b",p=")[0]), False),
    ("SCRAM-SHA-256", "other nonce", scram_last(lambda it: it.replace(b"r=", b"r=x")), False),
    ("OAUTHBEARER", "expired", one(bearer(compact(claims(exp=NOW_S - 1000), "rsa-1"))), True),
    ("OAUTHBEARER", "expired, read to the end", bearer_read_to_the_end, True),
    ("OAUTHBEARER", "forged", one(bearer(compact(claims(), "rsa-2", header=HEADER))), True),
    ("OAUTHBEARER", "of an unknown key", one(bearer(compact(claims(), "rsa-2"))), True),
    ("OAUTHBEARER", "right token for another", one(bearer(compact(claims(), "rsa-1"), "a=bob")), True),
    ("OAUTHBEARER", "no message", one(b"garbage"), False),
    ("OAUTHBEARER", "no token", one(bearer("garbage")), False),
    ("OAUTHBEARER", "no JSON", one(bearer("a.b.c")), False),
    ("PIN", "refused", one(b"1234"), True),
    ("PIN", "no PIN", one(b"garbage"), False),
    ("PIN", "mechanism that fails", one(b"broken"), False),
    ("GSSAPI", "garbage", one(b"garbage"), False),
    ("GSSAPI", "empty", one(b""), False),
    ("UNKNOWN", "mechanism", one(b""), False),
)


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with kdc_of_this_process(tmp_path_factory.mktemp("kdc")) as running:
        yield running


@pytest.fixture(scope="module")
def credentials(kdc: Kdc) -> GssapiCredentials:
    return GssapiCredentials.acquire(kdc.keytab("kafka/localhost"), f"kafka/localhost@{REALM}")


@pytest.fixture(scope="module")
def alice(kdc: Kdc) -> Any:
    keytab = kdc.keytab("alice")
    # tickets of one KDC are of no use at the next
    store: Any = {"client_keytab": str(keytab), "ccache": f"MEMORY:{keytab}"}
    name = gssapi.Name(f"alice@{REALM}", gssapi.NameType.kerberos_principal)
    return gssapi.Credentials(usage="initiate", store=store, name=name)


@pytest.fixture
def enabled(credentials: GssapiCredentials) -> dict[str, MechanismFactory]:
    return {
        **mechanisms(),
        "DIRECTORY": CallbackServer.factory(PlainServer.factory(HandlerPasswords(Directory())), AROUND),
        "OAUTHBEARER": OAuthBearerServer.factory(validate),
        "PIN": CustomServer.factory(Pins(), AROUND),
        "GSSAPI": GssapiServer.factory(credentials),
    }


def answered(frame: bytes) -> Message:
    return response_codec(ApiKey.SASL_AUTHENTICATE, 1).decode(frame, 4).message


async def attempt(served: RunningGateway, mechanism: str, tokens: Tokens) -> None:
    """Log in with these tokens, until the server or the client ends it; wait until the connection is gone."""
    caller = await Caller.at(served.port)
    caller.send(request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism=mechanism))
    assert await caller.frame() is not None
    answer: bytes | None = None
    try:
        while True:
            data = next(tokens) if answer is None else tokens.send(answer)
            caller.send(request(ApiKey.SASL_AUTHENTICATE, 1, 2, auth_bytes=data))
            frame = await caller.frame()
            if frame is None or (body := answered(frame)).error_code:
                assert await caller.is_closed()
                break
            answer = body.auth_bytes
    except StopIteration:
        pass
    caller.close()
    await asyncio.to_thread(wait_until, lambda: served.counted["connections"] == 0, what="it has ended")


async def keeps_others_out(served: RunningGateway) -> bool:
    """Return whether a good login from the same address, with one try, is turned away."""
    caller = await Caller.at(served.port)
    caller.send(request(ApiKey.SASL_HANDSHAKE, 1, 1, mechanism="PLAIN"))
    if await caller.frame() is None:
        return True
    caller.send(request(ApiKey.SASL_AUTHENTICATE, 1, 2, auth_bytes=b"\0alice\0" + PASSWORD.encode()))
    answer = await caller.frame()
    caller.close()
    assert answer is not None
    assert answered(answer).error_code == 0
    return False


@pytest.mark.parametrize(
    ("mechanism", "tokens", "counts"),
    [pytest.param(each[0], each[2], each[3], id=f"{each[0]}: {each[1]}") for each in ATTEMPTS],
)
async def test_only_invalid_credentials_count(
    enabled: dict[str, MechanismFactory], mechanism: str, tokens: Callable[[], Tokens], counts: bool
) -> None:
    options: Any = {"plain": enabled["PLAIN"], "other_mechanisms": enabled}
    async with running_gateway([await broker()], sasl=SASL, failed_logins=ONE_TRY, **options) as served:
        await attempt(served, mechanism, tokens())
        assert await keeps_others_out(served) is counts


async def test_a_decrypted_and_rejected_ticket_counts(
    credentials: GssapiCredentials, alice: Any, kdc: Kdc, enabled: dict[str, MechanismFactory]
) -> None:
    def ticket() -> bytes:
        target = gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)
        token = gssapi.SecurityContext(name=target, usage="initiate", creds=alice).step()
        assert isinstance(token, bytes)
        return token

    replayed = ticket()
    credentials.context().step(replayed)
    whole = ticket()
    keytab = kdc.directory / "kafka-localhost.keytab"
    cases: tuple[tuple[str, bytes, bool], ...] = (
        ("cut off", whole[:100], False),
        ("zeros behind its header", whole[:17] + bytes(len(whole) - 17), False),
        ("replayed", replayed, True),
        ("modified", whole[:-5] + bytes(5), True),
    )
    options: Any = {"plain": enabled["PLAIN"], "other_mechanisms": enabled}
    for what, token, counts in cases:
        async with running_gateway([await broker()], sasl=SASL, failed_logins=ONE_TRY, **options) as served:
            await attempt(served, "GSSAPI", one(token)())
            assert await keeps_others_out(served) is counts, what
    async with running_gateway([await broker()], sasl=SASL, failed_logins=ONE_TRY, **options) as served:
        hidden = keytab.rename(keytab.with_suffix(".hidden"))
        await attempt(served, "GSSAPI", one(ticket())())
        hidden.rename(keytab)
        assert not await keeps_others_out(served), "the node could not read its own keytab"


def with_foreign_key(holder: Holder, path: Path) -> Path:
    """Write a certificate and another private key, in a file that claims that both belong together."""
    own, other = holder.key, ec.generate_private_key(ec.SECP256R1())
    assert isinstance(own, ec.EllipticCurvePrivateKey)
    der = own.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    secret, other_secret = (key.private_numbers().private_value.to_bytes(32) for key in (own, other))
    assert secret in der, "the public key stays, and OpenSSL compares only that"
    key_pem = ssl.DER_cert_to_PEM_cert(der.replace(secret, other_secret))
    path.write_text(key_pem.replace("CERTIFICATE", "PRIVATE KEY") + holder.chain_pem)
    return path


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("name", "kind", "counts"),
    [
        (None, "no_certificate", False),
        ("untrusted", "untrusted", True),
        ("self-signed", "untrusted", True),
        ("expired", "expired", True),
        ("revoked", "revoked", True),
        ("without a list", "revocation_unknown", False),
        ("foreign key", "invalid_certificate", True),
    ],
)
async def test_only_rejected_certificates_count(
    certificates: Certificates, version: ssl.TLSVersion, name: str | None, kind: str, counts: bool
) -> None:
    unlisted = Authority("unlisted", certificates.authority)
    certificates.holders["without a list"] = unlisted.issue("carol")
    tls = certificates.listener(
        ssl_client_auth="required", kustos_ssl_crl_location=str(certificates.revocations)
    )
    context = certificates.client(
        None if name == "foreign key" else name, minimum_version=version, maximum_version=version
    )
    if name == "foreign key":
        path = certificates.directory / f"foreign-{version.name}.pem"
        context.load_cert_chain(with_foreign_key(certificates.holders["alice"], path))
    async with running_gateway([await broker()], tls=tls, failed_logins=ONE_TRY) as served:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await first_answer(served.port, context)
        await asyncio.to_thread(
            wait_until, lambda: served.counted[f"handshake: {kind}"] == 1, what="it is counted"
        )
        assert served.gateway.admission.is_throttled("127.0.0.1") is counts
        assert [bool(login.failure) for login in served.logins] == [True], "the audit log has it in any case"
