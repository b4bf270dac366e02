"""The same OAUTHBEARER conversations with a real broker and with kustos, and our own logins to the broker."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kustos.auth import OAUTHBEARER, OAuthBearerServer, SaslServerMachine, SaslServerSettings
from kustos.auth.jwt import TokenClaimRules, parse_jwks, validate_signed
from kustos.client import AuthenticationFailedError, ClientSettings, connect
from kustos.runtime import SystemClock
from testkit.bearer_tokens import AUDIENCE, claims, compact, public, with_hmac, without_signature
from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import KafkaNode, Listener, NodeSettings
from testkit.kustos import KustosNode, KustosSettings
from testkit.sasl import api_versions_body, handshake, token, versions_request
from tests.conformance.test_sasl_against_kafka import CLOSED, Script, comparable, kafkas_answers, our_answers

ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
LIFE_MS = 6_000
"""Shorter than any token's life, so that the broker's answers say it exactly."""

CLIENTS = {"svc": "svc-secret", "alice": "alice-secret"}
WAIT_S = 60.0


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    with IdentityProvider(tmp_path_factory.mktemp("provider"), ProviderSettings(clients=CLIENTS)) as running:
        yield running


@pytest.fixture(scope="module")
def jwks_file(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Path:
    """The provider's key, and keys with which a test signs what the provider would not."""
    provided = json.loads(provider_keys(provider))["keys"]
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    file.write_text(json.dumps({"keys": [*provided, public("rsa-1"), public("ec256-1")]}))
    return file


def provider_keys(provider: IdentityProvider) -> bytes:
    import urllib.request

    with urllib.request.urlopen(provider.jwks_url, timeout=30) as answer:
        return bytes(answer.read())


@pytest.fixture(scope="module")
def kafka(
    tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider, jwks_file: Path
) -> Iterator[KafkaNode]:
    url = jwks_file.as_uri()
    own = {
        "oauthbearer.sasl.jaas.config": f"{MODULE} required;",
        "oauthbearer.sasl.server.callback.handler.class": HANDLER,
        "oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
        "oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        "oauthbearer.sasl.oauthbearer.expected.issuer": provider.issuer,
        "oauthbearer.connections.max.reauth.ms": str(LIFE_MS),
    }
    listener = Listener(
        name="SASL_PLAINTEXT", protocol="SASL_PLAINTEXT", mechanisms=(OAUTHBEARER,), properties=own
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED}={url}")
        settings = NodeSettings(listeners=(listener,), auto_create_topics=True)
        with KafkaNode(tmp_path_factory.mktemp("kafka"), settings) as node:
            yield node


def ours(provider: IdentityProvider, jwks_file: Path) -> SaslServerMachine:
    keys = parse_jwks(jwks_file.read_bytes())
    rules = TokenClaimRules(frozenset({AUDIENCE}), provider.issuer)
    clock = SystemClock()
    factory = OAuthBearerServer.factory(
        lambda text: validate_signed(text, keys, rules, clock.wall_ms()).outcome
    )
    settings = SaslServerSettings({OAUTHBEARER: LIFE_MS})
    return SaslServerMachine(settings, {OAUTHBEARER: factory}, api_versions_body, clock)


def first(text: str, identity: str = "", rest: str = "", scheme: str = "Bearer") -> bytes:
    return f"n,{identity},\x01auth={scheme} {text}\x01{rest}\x01".encode()


def scripts(issuer: str, good: str) -> dict[str, Script]:
    now_s = int(time.time())

    def own(name: str = "rsa-1", algorithm: str = "RS256", header: Any = None, **more: Any) -> str:
        return compact(claims(now_s, iss=issuer, **more), name, algorithm, header)

    valid, shake = claims(now_s, iss=issuer), handshake(OAUTHBEARER)
    head, payload, signature = good.split(".")
    refused = {
        "forged": f"{head}.{payload}.{signature[:-8]}AAAAAAAA",
        "no signature": without_signature(valid),
        "no signature, RS256": without_signature(valid, {"alg": "RS256", "kid": "rsa-1"}),
        "HMAC with the public key": with_hmac(valid, json.dumps(public("rsa-1")).encode(), "rsa-1"),
        "unknown key": own("rsa-9"),
        "another's key": own("rsa-9", header={"alg": "RS256", "kid": "rsa-1"}),
        "wrong audience": own(aud="x"),
        "no audience": own(aud=None),
        "wrong issuer": compact(claims(now_s, iss="x")),
        "expired": own(exp=now_s - 1000, iat=now_s - 2000),
        "no expiry": own(exp=None),
        "no issue time": own(iat=None),
        "not yet valid": own(nbf=now_s + 1000),
        "no subject": own(sub=None),
        "subject as number": own(sub=7),
        "expiry as text": own(exp="x"),
        "two subjects": compact(json.dumps(valid)[:-1] + ', "sub": "admin"}'),
        "two parts": "e30.e30",
        "one part": "opaque",
        "five parts": "e30.e30.e30.e30.e30",
        "claims of 40000 characters": own(aud="x", groups="g" * 40_000),
        "nested claims": own(aud="x", a={"b": [[{"c": 1}]]}),
    }
    found: dict[str, Script] = {
        f"{name}, then the byte 1": [shake, token(first(text)), token(b"\x01")]
        for name, text in refused.items()
    }
    bad = first(refused["forged"])
    return found | {
        "a provider's token": [shake, token(first(good))],
        "a provider's token after ApiVersions": [versions_request(), shake, token(first(good))],
        "SaslAuthenticate 1": [shake, token(first(good), 1)],
        "SaslAuthenticate 0": [shake, token(first(good), 0)],
        "bare": [handshake(OAUTHBEARER, 0), first(good)],
        "bare, refused": [handshake(OAUTHBEARER, 0), bad, b"\x01"],
        "an elliptic key": [shake, token(first(own("ec256-1", "ES256")))],
        "extensions": [shake, token(first(good, rest="traceId=7\x01x=y\x01"))],
        "own authorization id": [shake, token(first(own(), "a=alice"))],
        "foreign authorization id": [shake, token(first(own(), "a=bob"))],
        "refused, then a good one": [shake, token(bad), token(first(good))],
        "refused twice": [shake, token(bad), token(bad), token(b"\x01")],
        "refused, then garbage": [shake, token(bad), token(b"\x01\x01")],
        "refused, SaslAuthenticate 0": [shake, token(bad, 0), token(b"\x01", 0)],
        "the byte 1 first": [shake, token(b"\x01")],
        "nothing": [shake, token(b"")],
        "garbage": [shake, token(b"hello")],
        "no auth": [shake, token(b"n,,\x01k=v\x01\x01")],
        "y": [shake, token(b"y" + first(good)[1:])],
        "another mechanism": [handshake("PLAIN")],
        "ApiVersions amid the login": [shake, versions_request()],
    }


@pytest.mark.behaviour("B241", "B305", "B306", "B307", "B309", "B318", "B322", "B358")
def test_kafka_and_kustos_answer_alike(kafka: KafkaNode, provider: IdentityProvider, jwks_file: Path) -> None:
    differing, accepted = {}, 0
    for name, script in scripts(provider.issuer, provider.token("alice")).items():
        theirs = comparable(script, kafkas_answers(kafka, script))
        mine = comparable(script, our_answers(script, ours(provider, jwks_file)))
        if mine != theirs:
            differing[name] = (mine, theirs)
        # after correlation id and tags stands the error code
        accepted += theirs[-1][5:7] == b"\0\0" if isinstance(theirs[-1], bytes) else 0
    assert differing == {}
    assert accepted >= 6


@pytest.mark.parametrize("case", ["scheme", "issued in the future", "expired within the skew", "another alg"])
def test_what_differs_still_does(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider, jwks_file: Path, case: str
) -> None:
    """In Kafka the first closes the connection, and the others log in."""
    now_s = int(time.time())
    valid = claims(now_s, iss=provider.issuer)
    file = tmp_path / "jwks.json"
    entries = json.loads(jwks_file.read_bytes())["keys"]
    file.write_text(json.dumps({"keys": [{**entry, "alg": entry.get("alg", "RS256")} for entry in entries]}))
    message = {
        "scheme": first(compact(valid), scheme="Basic"),
        "issued in the future": first(compact(valid | {"iat": now_s + 1000})),
        "expired within the skew": first(compact(valid | {"exp": now_s - 5})),
        "another alg": first(compact(valid, "rsa-1", "RS512", {"alg": "RS512", "kid": "rsa-1"})),
    }[case]
    script = [handshake(OAUTHBEARER), token(message)]
    theirs, mine = kafkas_answers(kafka, script)[1], our_answers(script, ours(provider, file))[1]
    assert isinstance(mine, bytes)
    if case == "scheme":
        assert theirs == CLOSED
    else:
        assert isinstance(theirs, bytes)
        assert theirs[5:7] == b"\0\0"
        assert b"invalid_token" not in theirs
    assert b"invalid_token" in mine or b"due to invalid credentials with SASL mechanism OAUTHBEARER" in mine


def client_keys(provider: IdentityProvider, client: str, secret: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": OAUTHBEARER,
        "sasl.jaas.config": f'{MODULE} required clientId="{client}" clientSecret="{secret}" scope="kafka" '
        'extension_traceId="7";',
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        ALLOWED: provider.token_url,
    }


@pytest.mark.behaviour("B332")
async def test_our_client_logs_in_to_kafka_with_a_token_of_its_own(
    kafka: KafkaNode, provider: IdentityProvider
) -> None:
    settings = ClientSettings.from_properties(
        kafka.address("SASL_PLAINTEXT"), client_keys(provider, "svc", CLIENTS["svc"])
    )
    async with await connect(settings.bootstrap_servers[0], settings) as connection:
        assert connection.session is not None
        assert connection.session.due_at_s is not None
    wrong = ClientSettings.from_properties(
        kafka.address("SASL_PLAINTEXT"), client_keys(provider, "svc", "wrong-secret")
    )
    with pytest.raises(AuthenticationFailedError, match="HTTP status 401") as caught:
        await connect(wrong.bootstrap_servers[0], wrong)
    assert "wrong-secret" not in str(caught.value)


async def test_a_token_that_kafka_refuses_is_told(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider
) -> None:
    file = tmp_path / "token"
    file.write_text(compact(claims(int(time.time()), iss=provider.issuer, aud="x")))
    keys = client_keys(provider, "svc", "") | {
        "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        ALLOWED: file.as_uri(),
    }
    settings = ClientSettings.from_properties(kafka.address("SASL_PLAINTEXT"), keys)
    with pytest.raises(AuthenticationFailedError, match=r'{"status":"invalid_token"}') as caught:
        await connect(settings.bootstrap_servers[0], settings)
    assert file.read_text() not in str(caught.value)


def test_a_command_logs_in_with_the_file_of_kafkas_tools(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider
) -> None:
    file = tmp_path / "client.properties"
    keys = client_keys(provider, "svc", CLIENTS["svc"])
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    address = kafka.address("SASL_PLAINTEXT")
    command = ["features", "describe", "--bootstrap-server", address, "--command-config", str(file)]
    done = subprocess.run(
        [sys.executable, "-m", "kustos", *command], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "metadata.version" in done.stdout


def test_a_node_logs_in_upstream_with_a_token(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider
) -> None:
    keys = client_keys(provider, "svc", CLIENTS["svc"])
    properties = {f"kustos.upstream.{key}": value for key, value in keys.items() if key != ALLOWED}
    properties[ALLOWED] = keys[ALLOWED]
    settings = KustosSettings(users={"admin": "admin-secret"}, properties=properties)
    with KustosNode(tmp_path, kafka.address("SASL_PLAINTEXT"), settings) as node:
        delivered: list[object] = []
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "admin",
                "sasl.password": "admin-secret",
            }
        )
        until = time.monotonic() + 2.5 * LIFE_MS / 1000
        while time.monotonic() < until:
            # the cluster ends sessions meanwhile, and new ones begin with the token that is held
            producer.produce("by-token", b"1", on_delivery=lambda error, _: delivered.append(error))
            assert producer.flush(WAIT_S) == 0
        assert set(delivered) == {None}
        assert CLIENTS["svc"] not in (tmp_path / "kustos.log").read_text()
