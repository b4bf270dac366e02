"""Our own logins to a real broker with tokens of a real provider."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kustos.auth import OAUTHBEARER
from kustos.client import AuthenticationFailedError, ClientSettings, connect
from testkit.bearer_tokens import AUDIENCE, claims, compact
from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import KafkaNode, Listener, NodeSettings
from testkit.kustos import KustosNode, KustosSettings

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
def kafka(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Iterator[KafkaNode]:
    url = provider.jwks_url
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
