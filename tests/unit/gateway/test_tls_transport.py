"""TLS of client connections on real sockets: admission, rejection, and memory."""

import asyncio
import re
import socket
import ssl
import subprocess
import weakref
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kustos.acl import ANONYMOUS, KafkaPrincipal
from kustos.auth import DefaultKafkaPrincipalBuilder, ListenerPrincipals, SaslServerSettings
from kustos.auth.mapping import ssl_principal_mapper
from kustos.gateway.listener import ListenerTls
from kustos.runtime import garbage_collection_paused
from kustos.server.tls import certificate_principals
from kustos.tls import Side, TlsContexts, tls_settings
from kustos.wire.api_keys import ApiKey
from testkit.certificates import SUBJECT_AT, Authority, Holder, resigned
from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat, request, versions
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

PATIENT_MS = 60_000
NAMES = certificate_principals(ListenerPrincipals(listener_name="CLIENTS", security_protocol="SSL"))
HTTP = b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n"
KAFKA = len(versions(1)).to_bytes(4, "big") + versions(1)
CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(190)


class Certificates:
    """The certificates of the clients and of the listener."""

    def __init__(self, directory: Path) -> None:
        now = datetime.now(UTC)
        self.directory = directory
        self.authority, stranger = Authority(), Authority("stranger")
        between, revoked = (Authority(name, self.authority) for name in ("between", "revoked"))
        alone = Authority("alone")
        self.node = self.authority.issue("node", hosts=["localhost"])
        self.holders = {
            "alice": self.authority.issue("alice"),
            "expired": self.authority.issue("expired", ends=now - timedelta(days=1)),
            "untrusted": stranger.issue("mallory"),
            "revoked": self.authority.issue("revoked"),
            "self-signed": Holder(alone.key, (alone.certificate,)),
            "between": between.issue("bob"),
            "under-revoked": revoked.issue("under-revoked"),
        }
        self.revocations = directory / "revocations.pem"
        gone = (self.holders["revoked"].certificate, revoked.certificate)
        self.revocations.write_text(self.authority.revoke(*gone) + between.revoke() + revoked.revoke())

    def listener(self, timeout_ms: int = PATIENT_MS, *, logs_in: bool = False, **keys: str) -> ListenerTls:
        """Return the TLS of a listener; `_` in the names of keys replaces a dot."""
        given = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": self.node.key_pem,
            "ssl.keystore.certificate.chain": self.node.chain_pem,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority.pem,
        } | {name.replace("_", "."): value for name, value in keys.items()}
        contexts = TlsContexts(tls_settings(given), Side.SERVER)
        return ListenerTls(contexts, None if logs_in else NAMES, timeout_ms)

    def client(self, name: str | None = None, **limits: Any) -> ssl.SSLContext:
        """Return a context that trusts the listener, with the certificate of this holder."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        for key, value in limits.items():
            setattr(context, key, value)
        if name is not None:
            holder: Holder = self.holders[name]
            context.load_cert_chain(holder.write(self.directory / f"{name}.pem"))
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


async def broker() -> ScriptedBroker:
    made = ScriptedBroker(1)
    await made.start()
    return made


async def until(condition: Any, what: str) -> None:
    await asyncio.to_thread(wait_until, condition, what=what)


async def metadata_answered(caller: Caller) -> bool:
    """Return whether a request for metadata is answered, rather than the connection closed."""
    caller.send(request(ApiKey.METADATA, 12, 7, topics=None))
    return await caller.correlation_ids(1) == [7]


@pytest.mark.behaviour("B257", "B258", "B270", "B290", "B291")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("auth", "name", "principal"),
    [
        ("required", "alice", "CN=alice"),
        ("requested", "alice", "CN=alice"),
        ("requested", None, None),
        ("none", None, None),
        ("none", "alice", None),
    ],
)
async def test_a_certificate_names_the_principal(
    certificates: Certificates, version: ssl.TLSVersion, auth: str, name: str | None, principal: str | None
) -> None:
    tls = certificates.listener(ssl_client_auth=auth)
    async with running_gateway([await broker()], tls=tls) as served:
        context = certificates.client(name, minimum_version=version, maximum_version=version)
        caller = await Caller.at(served.port, context)
        assert await metadata_answered(caller)
        expected = ANONYMOUS if principal is None else KafkaPrincipal("User", principal)
        assert {each.principal for each in served.contexts} == {expected}
        assert {each.host for each in served.contexts} == {LOOPBACK}
        # a client without a certificate has not logged in
        assert [login.principal for login in served.logins] == ([] if principal is None else [expected])
        caller.close()
        await until(lambda: served.counted["connections"] == 0, "the connection is counted out")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_a_rotated_ca_and_unusual_names_give_kafkas_principal(
    certificates: Certificates, order: tuple[int, int], tmp_path: Path
) -> None:
    generations = [Authority("rotated"), Authority("rotated")]
    trusted = "".join(generations[index].pem for index in order)
    tls = certificates.listener(ssl_client_auth="required", ssl_truststore_certificates=trusted)
    # `O=AT&T` as PrintableString, which has no ampersand
    subject = {SUBJECT_AT: bytes.fromhex("300f310d300b060355040a130441542654")}
    async with running_gateway([await broker()], tls=tls) as served:
        for each in generations:
            holder = each.issue("placeholder")
            file = tmp_path / "client.pem"
            file.write_text(holder.key_pem + resigned(holder.certificate, each.key, subject))
            context = certificates.client()
            context.load_cert_chain(file)
            caller = await Caller.at(served.port, context)
            assert await metadata_answered(caller)
            caller.close()
        assert [each.principal.name for each in served.contexts] == ["O=AT&T"] * 2


async def first_answer(port: int, context: ssl.SSLContext) -> bytes:
    """Return the start of the first answer: a TLS 1.3 client learns of a rejection no earlier."""
    caller = await Caller.at(port, context)
    caller.send(heartbeat(1))
    try:
        return await caller.reader.readexactly(4)
    except asyncio.IncompleteReadError as error:
        raise ConnectionError from error


@pytest.mark.behaviour("B257", "B268")
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        (None, "no_certificate", "peer did not return a certificate"),
        ("untrusted", "untrusted", "unable to get local issuer certificate"),
        ("self-signed", "untrusted", "self-signed certificate"),
        ("expired", "expired", "certificate has expired"),
        ("revoked", "revoked", "certificate revoked"),
        ("under-revoked", "revoked", "certificate revoked"),
    ],
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_an_unverifiable_certificate_is_rejected_counted_and_reported(
    certificates: Certificates, version: ssl.TLSVersion, name: str | None, kind: str, words: str
) -> None:
    revocations = str(certificates.revocations)
    tls = certificates.listener(ssl_client_auth="required", kustos_ssl_crl_location=revocations)
    async with running_gateway([await broker()], tls=tls) as served:
        context = certificates.client(name, minimum_version=version, maximum_version=version)
        with capture_logs() as logs, pytest.raises((ssl.SSLError, ConnectionError)) as raised:
            await first_answer(served.port, context)
        if isinstance(raised.value, ssl.SSLError):
            assert "ALERT" in (raised.value.reason or "")
        await until(lambda: served.counted[f"handshake: {kind}"] > 0, "it is counted")
        await until(lambda: served.counted["connections"] == 0, "the connection is counted out")
        assert [(each["kind"], each["host"]) for each in logs if each["event"].endswith("a login")] == [
            (kind, LOOPBACK)
        ]
        assert (served.logins[0].failure or "").endswith(words)
        assert served.contexts == []


async def test_a_certificate_is_admitted_if_its_issuers_are_not_revoked(certificates: Certificates) -> None:
    revocations = str(certificates.revocations)
    tls = certificates.listener(ssl_client_auth="required", kustos_ssl_crl_location=revocations)
    async with running_gateway([await broker()], tls=tls) as served:
        assert await metadata_answered(await Caller.at(served.port, certificates.client("between")))


async def raw(port: int, *pieces: bytes) -> bytes:
    """Send bytes and nothing more; return the whole answer."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    for piece in pieces:
        writer.write(piece)
    answer = b""
    async with asyncio.timeout(60):
        try:
            while data := await reader.read(1000):
                answer += data
        except ConnectionError:
            pass
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("sent", "kind", "words"),
    [
        (KAFKA, "plaintext", "a client without TLS on a port with TLS"),
        (HTTP, "http", "an HTTP client"),
        (CLIENT_HELLO[:20] + b"\xff" * 200, "protocol", "the TLS handshake failed"),
    ],
)
async def test_other_protocols_on_a_tls_port_are_closed_and_counted(
    certificates: Certificates, sent: bytes, kind: str, words: str
) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        with capture_logs() as logs:
            for _ in range(5):
                await raw(served.port, sent)
        assert served.counted[f"handshake: {kind}"] == 5
        # one line, however many come
        assert [each["reason"][: len(words)] for each in logs] == [words]
        assert served.counted["connections"] == 0
        assert served.contexts == []
        assert served.logins == []


@pytest.mark.parametrize("sasl", [None, SaslServerSettings()])
@pytest.mark.parametrize(
    ("sent", "kind", "words"),
    [(CLIENT_HELLO, "tls", "a client with TLS on a port without TLS"), (HTTP, "http", "an HTTP client")],
)
async def test_other_protocols_on_a_port_without_tls_are_closed_and_counted(
    sasl: SaslServerSettings | None, sent: bytes, kind: str, words: str
) -> None:
    async with running_gateway([await broker()], sasl=sasl) as served:
        with capture_logs() as logs:
            assert await raw(served.port, sent) == b""
        assert served.counted[f"handshake: {kind}"] == 1
        assert [each["reason"][: len(words)] for each in logs] == [words]


@pytest.mark.behaviour("B269")
async def test_an_aborted_handshake_is_counted_and_a_probe_is_not(certificates: Certificates) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        for sent in (b"", CLIENT_HELLO[:40]):
            _, writer = await asyncio.open_connection(LOOPBACK, served.port)
            writer.write(sent)
            await writer.drain()
            writer.close()
        await until(lambda: served.counted["handshake: truncated"] == 1, "it is counted")
        await until(lambda: served.counted["connections"] == 0, "both are counted out")


def s_client(certificates: Certificates, port: int, session: Path, *options: str) -> str:
    """Have `openssl` connect with its session in this file, if there is one; return "New" or "Reused"."""
    holder = certificates.holders["alice"].write(certificates.directory / "s_client.pem")
    (certificates.directory / "authority.pem").write_text(certificates.authority.pem)
    line = [
        *("openssl", "s_client", "-connect", f"{LOOPBACK}:{port}", "-cert", str(holder), "-key", str(holder)),
        *("-CAfile", str(certificates.directory / "authority.pem"), "-sess_out", str(session)),
        *(("-sess_in", str(session)) if session.exists() else ()),
        *options,
    ]
    output = subprocess.run(line, input="Q\n", capture_output=True, text=True, timeout=60, check=True).stdout
    (kind,) = re.findall("^(New|Reused), (?:TLS|SSL)", output, re.MULTILINE)
    return str(kind)


OLD, OLD_WITHOUT_TICKETS, NEW = ("-tls1_2",), ("-tls1_2", "-no_ticket"), ("-tls1_3",)


@pytest.mark.parametrize(
    ("auth", "options", "second"),
    [
        *(("required", each, "New") for each in (OLD, OLD_WITHOUT_TICKETS, NEW)),
        *(("requested", each, "New") for each in (OLD, OLD_WITHOUT_TICKETS, NEW)),
        # clients that are not verified keep a session themselves, in a ticket
        ("none", OLD, "Reused"),
        ("none", OLD_WITHOUT_TICKETS, "New"),
    ],
)
async def test_a_listener_caches_no_session_and_resumes_no_verified_client(
    certificates: Certificates, auth: str, options: tuple[str, ...], second: str, tmp_path: Path
) -> None:
    tls = certificates.listener(ssl_client_auth=auth)
    async with running_gateway([await broker()], tls=tls) as served:
        session = tmp_path / "session.pem"
        for expected in ("New", second):
            output = await asyncio.to_thread(s_client, certificates, served.port, session, *options)
            assert output == expected
        assert tls.contexts.context.session_stats()["number"] == 0


SUITE = {"ssl_enabled_protocols": "TLSv1.2", "ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}


@pytest.mark.behaviour("B267")
@pytest.mark.parametrize(
    ("enabled", "cipher", "is_served"),
    [
        ({"ssl_enabled_protocols": "TLSv1.3"}, "AES256-GCM-SHA384", False),
        (SUITE, "AES128-GCM-SHA256", False),
        (SUITE, "AES256-GCM-SHA384", True),
    ],
)
async def test_a_disabled_version_or_cipher_is_rejected(
    certificates: Certificates, enabled: dict[str, Any], cipher: str, is_served: bool
) -> None:
    async with running_gateway([await broker()], tls=certificates.listener(**enabled)) as served:
        context = certificates.client(maximum_version=ssl.TLSVersion.TLSv1_2)
        context.set_ciphers(f"ECDHE-ECDSA-{cipher}")
        if is_served:
            assert await metadata_answered(await Caller.at(served.port, context))
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await Caller.at(served.port, context)
            await until(lambda: served.counted["handshake: incompatible"] == 1, "it is counted")


def shake_hands(port: int, context: ssl.SSLContext) -> None:
    with socket.create_connection((LOOPBACK, port)) as plain:
        context.wrap_socket(plain, server_hostname=LOOPBACK).close()


async def test_a_client_that_rejects_the_listener_certificate_is_counted(certificates: Certificates) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        # asyncio's client ends without a word
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(shake_hands, served.port, ssl.create_default_context())
        await until(lambda: served.counted["handshake: refused_by_client"] == 1, "it is counted")


async def test_a_principal_without_a_matching_rule_is_rejected(certificates: Certificates) -> None:
    builder = DefaultKafkaPrincipalBuilder(ssl_principal_mapper("RULE:^O=(nobody)$/$1/"), str)
    principals = ListenerPrincipals(listener_name="CLIENTS", security_protocol="SSL", builder=builder)
    tls = certificates.listener(ssl_client_auth="required")
    named = ListenerTls(tls.contexts, certificate_principals(principals), PATIENT_MS)
    async with running_gateway([await broker()], tls=named) as served:
        caller = await Caller.at(served.port, certificates.client("alice"))
        assert await caller.is_closed()
        assert served.counted["handshake: no_principal"] == 1
        assert served.contexts == []


async def test_a_certificate_is_not_admitted_while_the_audit_log_is_full(certificates: Certificates) -> None:
    tls = certificates.listener(ssl_client_auth="required")
    async with running_gateway([await broker()], tls=tls, is_full=True) as served:
        caller = await Caller.at(served.port, certificates.client("alice"))
        assert await caller.is_closed()
        assert served.contexts == []


@pytest.mark.behaviour("B216")
async def test_the_sasl_login_inside_tls_names_the_principal(
    certificates: Certificates,
) -> None:
    tls = certificates.listener(ssl_client_auth="required", logs_in=True)
    async with running_gateway([await broker()], sasl=SaslServerSettings(), tls=tls) as served:
        caller = await Caller.at(served.port, certificates.client("alice"))
        assert await caller.log_in() is not None
        assert await metadata_answered(caller)
        assert {str(each.principal) for each in served.contexts} == {"User:alice"}
        assert [login.mechanism for login in served.logins] == ["PLAIN"]


@pytest.mark.parametrize("piece", [1, 9, 100_000])
async def test_requests_may_come_in_any_pieces(certificates: Certificates, piece: int) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        caller = await Caller.at(served.port, certificates.client())
        stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in map(heartbeat, range(1, 5)))
        for at in range(0, len(stream), piece):
            caller.writer.write(stream[at : at + piece])
            await asyncio.sleep(0)
        assert await caller.correlation_ids(4) == [1, 2, 3, 4]
        assert served.counted["received"] == len(stream)


async def test_bytes_that_a_client_does_not_read_are_counted_and_delivered(
    certificates: Certificates,
) -> None:
    large = bytes(range(256)) * 2**16
    answer = (len(large) + 4).to_bytes(4, "big") + (5).to_bytes(4, "big") + large
    upstream = ScriptedBroker(1)
    await upstream.start()
    async with running_gateway([upstream], tls=certificates.listener()) as served:
        caller = await Caller.at(served.port, certificates.client())
        assert await metadata_answered(caller)
        reading: Any = caller.writer.transport
        reading.pause_reading()
        upstream.answers_raw = answer
        caller.send(heartbeat(5))
        (connection,) = served.connections
        transport: Any = connection._transport
        await until(lambda: transport.get_write_buffer_size() > len(large) // 2, "the answer waits")
        assert served.answers.used_bytes >= transport.get_write_buffer_size()
        reading.resume_reading()
        assert await caller.frame() == answer[4:]
        await until(lambda: served.answers.used_bytes == 0, "it is given back")


async def test_the_end_of_a_connection_sends_close_notify(certificates: Certificates) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        caller = await Caller.at(served.port, certificates.client())
        assert await metadata_answered(caller)
        (connection,) = served.connections
        connection.close("a test ends it")
        # without close_notify this would be an error of the stream
        assert await caller.reader.read() == b""


async def test_a_close_notify_of_a_client_closes_the_connection(certificates: Certificates) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        caller = await Caller.at(served.port, certificates.client())
        assert await metadata_answered(caller)
        caller.close()
        await until(lambda: served.counted["connections"] == 0, "the connection is counted out")


async def test_a_closed_connection_is_freed_without_the_garbage_collector(
    certificates: Certificates,
) -> None:
    async with running_gateway([await broker()], tls=certificates.listener()) as served:
        with garbage_collection_paused():
            caller = await Caller.at(served.port, certificates.client())
            assert await metadata_answered(caller)
            (connection,) = served.connections
            kept: list[Any] = [weakref.ref(connection), weakref.ref(connection._transport)]
            del connection
            caller.close()
            await until(lambda: [each() for each in kept] == [None, None], "nothing of it is left")
