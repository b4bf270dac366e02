"""A broker and a node of kustos beside it, with the same listeners, users, tickets, keys and certificates."""

import base64
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509

from kustos.wire import ApiKey
from testkit.bearer_tokens import AUDIENCE, ISSUER, public
from testkit.certificates import Authority
from testkit.conversations.documents import LISTENERS, SASL_PLAINTEXT
from testkit.conversations.play import Side
from testkit.conversations.tickets import KEYTABS
from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import writer_pid
from testkit.kafka import KafkaNode, Listener, NodeSettings
from testkit.kdc import Kdc
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.login_keys import ALLOWED_URLS, MODULES, bearer_keys, kerberos_keys, pem_keys
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.waiting import wait_until

USERS: Final = {"alice": "alice-s3cret", "bob": "b0b-s3cret", "admin": "admin-s3cret"}
SCRAM_USERS: Final = {
    ("alice", ScramMechanism.SCRAM_SHA_256): (4096, "alice-s3cret"),
    ("alice", ScramMechanism.SCRAM_SHA_512): (4096, "alice-s3cret"),
    ("bob", ScramMechanism.SCRAM_SHA_256): (8192, "b0b-s3cret"),
    ("bob", ScramMechanism.SCRAM_SHA_512): (16_384, "b0b-s3cret"),
    ("a=b,c", ScramMechanism.SCRAM_SHA_256): (4096, "p=q,r"),
    ("only512", ScramMechanism.SCRAM_SHA_512): (4096, "only-s3cret"),
    ("unicode", ScramMechanism.SCRAM_SHA_256): (4096, "pässwörd €"),
}
"""(User, mechanism) → iterations, password."""

LIFE_MS: Final = 3_600_000
SHORT_LIFE_MS: Final = 1_500
"""Of sessions by SCRAM-SHA-512, which a test sees expire."""

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
TOKEN_SECRET: Final = "the-token-s3cret"
EXPIRED_AFTER_MS: Final = 1


@dataclass(frozen=True, slots=True)
class Scene:
    """Both sides, ready to be talked to."""

    kafka: Side
    kustos: Side
    kustos_of_workers: Side | None = None


def _login_keys(keytab: Path, jwks: Path) -> dict[str, str]:
    """Return the keys of both listeners with logins, without the listener's prefix."""
    lives = {
        "scram-sha-512.connections.max.reauth.ms": str(SHORT_LIFE_MS),
        # below the life of a token, which is not the same to the millisecond for both
        "oauthbearer.connections.max.reauth.ms": str(LIFE_MS // 2),
    }
    return bearer_keys(jwks.as_uri(), AUDIENCE, ISSUER) | kerberos_keys(keytab) | lives


_COMMON: Final = {
    "connections.max.reauth.ms": str(LIFE_MS),
    "delegation.token.secret.key": TOKEN_SECRET,
    "sasl.kerberos.service.name": "kafka",
    "sasl.kerberos.principal.to.local.rules": "RULE:[2:$1-$2](batch-.*),RULE:[1:$1](alice|bob)",
    "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+),O=kustos$/$1/,RULE:^CN=no-.*$//,DEFAULT",
}

_MANY_AT_ONCE: Final = {"socket.listen.backlog.size": "512"}
"""As many connections may wait to be accepted as at kustos; a broker's default is 50."""


def _kafka(folder: Path, login: Mapping[str, str], tls: Mapping[str, str], *, for_speed: bool) -> KafkaNode:
    listeners = (
        Listener(name="SASL_PLAINTEXT", protocol="SASL_PLAINTEXT", mechanisms=MECHANISMS, properties=login),
        Listener(name="SASL_SSL", protocol="SASL_SSL", mechanisms=MECHANISMS, properties={**login, **tls}),
        Listener(name="SSL", protocol="SSL", properties={**tls, "ssl.client.auth": "required"}),
    )
    properties = _COMMON | (_MANY_AT_ONCE if for_speed else {})
    settings = NodeSettings(listeners=listeners, users=USERS, properties=properties, peak=for_speed)
    return KafkaNode(folder, settings)


def _kustos(
    folder: Path,
    upstream: str,
    login: Mapping[str, str],
    tls: Mapping[str, str],
    ports: Mapping[str, int],
    *,
    audit: bool,
    workers: int = 1,
) -> KustosNode:
    properties = dict(_COMMON)
    plain = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    for name in ports:
        prefix = f"listener.name.{name.lower()}."
        properties[prefix + "kustos.broker.port.start"] = str(free_port_range(BROKER_PORTS))
        if name.startswith("SASL"):
            properties |= {prefix + key: value for key, value in login.items()}
            properties[prefix + "plain.sasl.jaas.config"] = (
                f"{MODULES}.plain.PlainLoginModule required {plain};"
            )
        if name.endswith("SSL"):
            properties |= {prefix + key: value for key, value in tls.items()}
    properties |= {
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "kustos.workers": str(workers),
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items()),
        # all clients come from one address, and many of them are refused
        "kustos.failed.logins.per.ip.burst": "0",
        ALLOWED_URLS: login["oauthbearer.sasl.oauthbearer.jwks.endpoint.url"],
    }
    settings = KustosSettings(users={"admin": USERS["admin"]}, audit=audit, properties=properties)
    return KustosNode(folder, upstream, settings)


def _add_users(properties: Mapping[str, str]) -> None:
    """Give a side the users, with the same salts as the other side."""
    # the answers end with the client
    admin = AdminClient(dict(properties))
    for (user, mechanism), (iterations, password) in SCRAM_USERS.items():
        form = ScramCredentialInfo(mechanism, iterations)
        change = UserScramCredentialUpsertion(user, form, password.encode(), f"salt of {user}".encode())
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result()


def _tokens(address: str) -> dict[str, str]:
    """Return a delegation token of alice at this side, and one that has expired."""
    secrets: dict[str, str] = {}
    with RawClient(address, "tokens").log_in("alice", USERS["alice"]) as client:
        for prefix, life_ms in (("", -1), ("expired-", EXPIRED_AFTER_MS)):
            made = client.ask(
                int(ApiKey.CREATE_DELEGATION_TOKEN),
                3,
                owner_principal_type=None,
                owner_principal_name=None,
                renewers=(),
                max_lifetime=timedelta(milliseconds=life_ms),
            )
            secrets[f"{prefix}token"] = made.token_id
            secrets[f"{prefix}hmac"] = base64.b64encode(made.hmac).decode()
    ends_s = time.time() + EXPIRED_AFTER_MS / 1000
    wait_until(lambda: time.time() > ends_s, what="the token has expired")
    return secrets


def _client_contexts(folder: Path, authority: Authority) -> dict[str, ssl.SSLContext]:
    """Return how clients open TLS, by what they are."""
    holders = {
        "alice": authority.issue(x509.Name.from_rfc4514_string("CN=alice,O=kustos"), address=None),
        "no-rule": authority.issue(x509.Name.from_rfc4514_string("CN=no-body,O=kustos"), address=None),
        "expired": authority.issue("expired", ends=datetime.now(UTC) - timedelta(days=2)),
        "stranger": Authority("stranger").issue("stranger"),
    }
    contexts = {}
    for name, issued in holders.items():
        contexts[name] = _context()
        contexts[name].load_cert_chain(issued.write(folder / f"{name}.pem"))
    contexts["nobody"] = _context()
    # there a server answers the client's certificate within the handshake
    for name, holder in (("tls 1.2", "alice"), ("nobody 1.2", None), ("stranger 1.2", "stranger")):
        contexts[name] = _context()
        contexts[name].maximum_version = ssl.TLSVersion.TLSv1_2
        if holder is not None:
            contexts[name].load_cert_chain(folder / f"{holder}.pem")
    return contexts


def _context() -> ssl.SSLContext:
    # who the server is, others check: here it must only be the same handshake
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def scene(
    folder: Path, *, for_speed: bool = False, audit: bool = True, workers: int | None = None
) -> Iterator[Scene]:
    """Start the KDC, the broker and kustos; end them with the context.

    `for_speed`: the broker's JVM optimizes as in real life. `audit`: kustos writes what it decides to files.
    `workers`: another node has so many of them.
    """
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        kdc = stack.enter_context(Kdc(folder / "kdc"))
        jwks = folder / "jwks.json"
        jwks.write_text(json.dumps({"keys": [public("rsa-1", alg="RS256"), public("ec256-1", alg="ES256")]}))
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        patch.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED_URLS}={jwks.as_uri()}")
        for user in ("alice", "bob", "batch/jobs", "nobody"):
            patch.setitem(KEYTABS, user, str(kdc.keytab(user)))
        # a service that has tickets, but none of our listeners is it
        kdc.keytab("kafka/elsewhere")
        authority = Authority()
        store = authority.issue("server", hosts=["localhost"]).write(folder / "server.pem")
        login = _login_keys(kdc.keytab("kafka/localhost"), jwks)
        tls = pem_keys(store, authority.write(folder / "authority.pem"))
        kafka = stack.enter_context(_kafka(folder / "kafka", login, tls, for_speed=for_speed))
        upstream = kafka.internal_client["bootstrap.servers"]
        contexts = _client_contexts(folder, authority)

        def ours(name: str, count: int) -> Side:
            ports = {each: free_port() for each in LISTENERS}
            node = _kustos(folder / name, upstream, login, tls, ports, audit=audit, workers=count)
            stack.enter_context(node)
            addresses = {each: f"{LOOPBACK}:{port}" for each, port in ports.items()}
            return _side(name, addresses, contexts, writer_pid(node))

        theirs = _side("kafka", {name: kafka.address(name) for name in LISTENERS}, contexts, kafka.pid)
        yield Scene(
            theirs, ours("kustos", 1), None if workers is None else ours(f"kustos of {workers}", workers)
        )


def _side(name: str, addresses: Mapping[str, str], contexts: Mapping[str, ssl.SSLContext], pid: int) -> Side:
    plain = addresses[SASL_PLAINTEXT]
    _add_users(
        {
            "bootstrap.servers": plain,
            "security.protocol": SASL_PLAINTEXT,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": USERS["admin"],
        }
    )
    return Side(name, addresses, _tokens(plain), contexts, pid)
