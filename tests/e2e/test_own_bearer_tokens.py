"""kustos gets its own tokens by assertions that a real provider verifies: commands, links, a quorum."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    PublicFormat,
)
from joserfc.jwk import ECKey, RSAKey

from kustos.acl import AclPermissionType
from kustos.client import AuthenticationFailedError, ClientSettings
from kustos.client.oauth import TokenSource
from kustos.server.main import EXIT_USAGE
from kustos.wire.api_keys import ApiKey
from testkit.cli import run_program
from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import STANDARD_AUTHORIZER, KafkaNode, Listener, NodeSettings, make_topics
from testkit.kafka.listeners import INTERNAL_USER
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosNode, KustosSettings
from testkit.login_keys import ALLOWED_URLS, MODULES, bearer_keys
from testkit.ports import LOOPBACK
from testkit.processes import ChildError
from testkit.quorum.controllers import Quorum
from testkit.quorum.nodes import DENIED, UNKNOWN_TOPIC, create_acls, kraft_node, logged_in, topic_error
from testkit.quorum.nodes import ann as ann_of
from testkit.tap import Tap
from testkit.waiting import wait_until

pytestmark = pytest.mark.slow

ALLOWED_FILES = "org.apache.kafka.sasl.oauthbearer.allowed.files"
BEARER_RETRIEVER = f"{MODULES}.oauthbearer.JwtBearerJwtRetriever"
BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PASSPHRASE = "opens-the-key-of-this-test"
LIFETIME_S = 20
"""Of a token, and of a session by it. A node gets the next one after four fifths of it."""

RENEWALS = 3
PATIENCE_S = 180.0
TOPIC = "bearing"
USERS = {"admin": "admin-secret"}
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Service:
    """A client of the provider that signs its assertions, and its keys by their ids."""

    folder: Path
    keys: Mapping[str, PrivateKey]

    @property
    def public(self) -> list[dict[str, Any]]:
        """The entries of its key set."""
        return [public_jwk(key_id, key) for key_id, key in self.keys.items()]

    def use(self, key_id: str) -> None:
        """Write this key and the template that names it, as a rotation does."""
        encryption = BestAvailableEncryption(PASSPHRASE.encode())
        pem = self.keys[key_id].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        for name, data in (
            ("key.pem", pem),
            ("template.json", json.dumps({"header": {"kid": key_id}}).encode()),
        ):
            fresh = self.folder / f"{name}.new"
            fresh.write_bytes(data)
            fresh.rename(self.folder / name)


def public_jwk(key_id: str, key: PrivateKey) -> dict[str, Any]:
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    kind = RSAKey if isinstance(key, rsa.RSAPrivateKey) else ECKey
    return dict(kind.import_key(pem, {"kid": key_id, "use": "sig"}).as_dict(private=False))


class Tokens:
    """The provider, and its clients that sign assertions."""

    def __init__(self, folder: Path) -> None:
        self.services = {
            "svc": Service(
                folder / "svc", {f"rsa-{n}": rsa.generate_private_key(65537, 2048) for n in (1, 2)}
            ),
            "svc-es": Service(folder / "svc-es", {"ec-1": ec.generate_private_key(ec.SECP256R1())}),
        }
        for service in self.services.values():
            service.folder.mkdir()
            service.use(next(iter(service.keys)))
        public = {name: service.public for name, service in self.services.items()}
        given = ProviderSettings(public_keys=public, lifetime_s=LIFETIME_S)
        self.provider = IdentityProvider(folder / "provider", given)

    @property
    def taking(self) -> dict[str, str]:
        """The keys of a listener of Kafka that takes the provider's tokens."""
        provider = self.provider
        return bearer_keys(provider.jwks_url, provider.settings.audience, provider.issuer)

    def keys(self, name: str, **more: str) -> dict[str, str]:
        """Return the keys of a client that logs in as this service."""
        folder, assertion = self.services[name].folder, "sasl.oauthbearer.assertion"
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            "sasl.login.refresh.min.period.seconds": "0",
            "sasl.login.refresh.buffer.seconds": "0",
            "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
            "sasl.oauthbearer.scope": "kafka",
            f"{assertion}.private.key.file": str(folder / "key.pem"),
            f"{assertion}.private.key.passphrase": PASSPHRASE,
            f"{assertion}.template.file": str(folder / "template.json"),
            f"{assertion}.claim.iss": name,
            f"{assertion}.claim.sub": name,
            f"{assertion}.claim.aud": self.provider.token_url,
            f"{assertion}.claim.jti.include": "true",
            ALLOWED_URLS: self.provider.token_url,
            ALLOWED_FILES: f"{folder / 'key.pem'},{folder / 'template.json'}",
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def grants(self, since: int = 0) -> list[dict[str, str]]:
        """Return the provider's grants."""
        return self.provider.grants()[since:]


class Upstream:
    """A broker behind a tap that takes these tokens only."""

    def __init__(self, folder: Path, tokens: Tokens, tap: Tap) -> None:
        self.tap = tap
        listener = Listener(
            name="LOGIN", protocol="SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",), properties=tokens.taking
        )
        settings = NodeSettings(
            listeners=(listener,),
            authorizer=STANDARD_AUTHORIZER,
            super_users=tuple(f"User:{name}" for name in tokens.services),
        )
        self.kafka = KafkaNode(folder, settings)
        port = tap.relay((LOOPBACK, self.kafka.ports["LOGIN"]))
        self.address = self.kafka.advertised["LOGIN"] = f"{LOOPBACK}:{port}"

    def renewed_links(self) -> int:
        """Return how many links of producers have logged in several times."""
        links = (each for each in self.tap.connections if each.count(ApiKey.PRODUCE))
        return sum(each.count(ApiKey.SASL_HANDSHAKE) >= RENEWALS for each in links)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    made = Tokens(tmp_path_factory.mktemp("tokens"))
    with made.provider, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED_URLS}={made.provider.jwks_url}")
        yield made


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory, tokens: Tokens) -> Iterator[Upstream]:
    with Tap() as tap:
        made = Upstream(tmp_path_factory.mktemp("kafka"), tokens, tap)
        with made.kafka:
            make_topics([made.kafka], NewTopic(TOPIC, 1, 1))
            yield made


def prefixed(prefix: str, keys: Mapping[str, str]) -> dict[str, str]:
    """Return the keys as a node takes them: the lists of what is allowed have no prefix."""
    return {key if key.startswith("org.") else prefix + key: value for key, value in keys.items()}


@pytest.mark.parametrize(
    ("name", "more", "grant", "algorithm"),
    [
        ("svc", {}, "client_credentials", "RS256"),
        ("svc-es", {"sasl_oauthbearer_assertion_algorithm": "ES256"}, "client_credentials", "ES256"),
        ("svc", {"sasl_oauthbearer_jwt_retriever_class": BEARER_RETRIEVER}, BEARER_GRANT, "RS256"),
    ],
)
def test_a_command_logs_in_by_an_assertion(
    tmp_path: Path,
    upstream: Upstream,
    tokens: Tokens,
    name: str,
    more: dict[str, str],
    grant: str,
    algorithm: str,
) -> None:
    file, since = tmp_path / "client.properties", len(tokens.grants())
    write_properties(file, tokens.keys(name, **more))
    place = ("--bootstrap-server", upstream.address, "--command-config", str(file))
    outcome = run_program("acls", "list", *place)
    assert outcome.exit_code == 0, outcome
    seen = tokens.grants(since)
    assert {(each["client"], each["grant"], each["alg"]) for each in seen} == {(name, grant, algorithm)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("claim.aud", "https://another.example"),
        ("claim.iss", "svc-es"),
        ("claim.jti.include", "false"),
    ],
)
@pytest.mark.parametrize("retriever", ["DefaultJwtRetriever", "JwtBearerJwtRetriever"])
async def test_an_assertion_that_the_provider_refuses_gets_no_token(
    tokens: Tokens, key: str, value: str, retriever: str
) -> None:
    keys = tokens.keys("svc") | {
        "sasl.oauthbearer.jwt.retriever.class": f"{MODULES}.oauthbearer.{retriever}",
        f"sasl.oauthbearer.assertion.{key}": value,
    }
    sasl = ClientSettings.from_properties("127.0.0.1:1", keys).sasl
    assert sasl is not None
    assert sasl.oauth is not None
    with pytest.raises(AuthenticationFailedError, match="HTTP status 401") as caught:
        await TokenSource(sasl.oauth).token()
    assert "eyJ" not in str(caught.value)
    assert PASSPHRASE not in str(caught.value)


def test_links_get_new_tokens_and_use_a_new_key(tmp_path: Path, upstream: Upstream, tokens: Tokens) -> None:
    since, errors = len(tokens.grants()), list[object]()
    keys = prefixed("kustos.upstream.", tokens.keys("svc"))
    with KustosNode(tmp_path, upstream.address, KustosSettings(users=USERS, properties=keys)) as node:
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": USERS["admin"],
                "error_cb": errors.append,
            }
        )

        def key_ids() -> list[str]:
            producer.produce(
                TOPIC, b"1", on_delivery=lambda error, _: errors.append(error) if error else None
            )
            producer.poll(0)
            return [each["kid"] for each in tokens.grants(since)]

        wait_until(key_ids, holds=lambda ids: len(ids) > 1, timeout_s=PATIENCE_S, what="a second token")
        tokens.services["svc"].use("rsa-2")
        try:
            wait_until(
                lambda: (key_ids(), upstream.renewed_links()),
                holds=lambda seen: seen[0].count("rsa-2") >= RENEWALS - 1 and seen[1] > 0,
                timeout_s=PATIENCE_S,
                what="tokens by the new key, and a link that logs in with them",
            )
        finally:
            tokens.services["svc"].use("rsa-1")
        assert producer.flush(60) == 0
        assert errors == []
    told = (tmp_path / "kustos.log").read_text()
    assert "eyJ" not in told
    assert PASSPHRASE not in told
    assert "could not" not in told


def test_a_node_does_not_start_with_a_key_that_it_cannot_open(
    tmp_path: Path, upstream: Upstream, tokens: Tokens
) -> None:
    keys = prefixed(
        "kustos.upstream.", tokens.keys("svc", sasl_oauthbearer_assertion_private_key_passphrase="x")
    )
    node = KustosNode(tmp_path, upstream.address, KustosSettings(users=USERS, properties=keys))
    with pytest.raises(ChildError, match=f"ended with {EXIT_USAGE}"):
        node.start()
    assert "has no private key in PEM that" in (tmp_path / "kustos.log").read_text()


async def test_a_node_follows_a_quorum_with_tokens(tmp_path: Path, tokens: Tokens) -> None:
    taking = {f"listener.name.controller.{key}": value for key, value in tokens.taking.items()}
    properties = taking | {
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "super.users": f"User:admin;User:ANONYMOUS;User:{INTERNAL_USER};User:svc",
    }
    with Quorum(tmp_path / "quorum", count=1, properties=properties) as quorum:
        since = len(tokens.grants())
        keys = prefixed("kustos.quorum.", tokens.keys("svc"))
        with kraft_node(tmp_path / "kustos", quorum, keys) as node:
            ann, admin = await logged_in(node, "ann"), await logged_in(node, "admin")
            assert await topic_error(ann, TOPIC) == DENIED
            # longer than the first session at the controllers, and the first token, last
            await asyncio.to_thread(
                wait_until,
                lambda: len(tokens.grants(since)),
                holds=lambda count: count > RENEWALS,
                timeout_s=PATIENCE_S,
                what="several tokens",
            )
            answer = await create_acls(admin, ann_of(TOPIC, AclPermissionType.ALLOW))
            assert [result.error_code for result in answer.results] == [0]
            assert await topic_error(ann, TOPIC) == UNKNOWN_TOPIC
        assert {each["client"] for each in tokens.grants(since)} == {"svc"}
        told = (tmp_path / "kustos" / "kustos.log").read_text()
    assert "eyJ" not in told
    assert PASSPHRASE not in told
