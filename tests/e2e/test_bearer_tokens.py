"""Real clients with tokens of a real OpenID provider, through kustos to Kafka, judged between two taps."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import aiokafka.abc
import kafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from testkit.guarded.cluster import GuardedCluster, Op, Type, acl
from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import KafkaTools
from testkit.kustos import KustosSettings
from testkit.waiting import wait_until

ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
LOGIN_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
CLIENTS = {"alice": "alice-provider-secret", "bob": "bob-provider-secret"}
WAIT_S = 60.0
LISTENER = "listener.name.sasl_plaintext.oauthbearer."


def properties(provider: IdentityProvider) -> dict[str, str]:
    """The settings of a listener that takes this provider's tokens."""
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        LISTENER + "sasl.jaas.config": f"{MODULE} required;",
        LISTENER + "sasl.server.callback.handler.class": HANDLER,
        LISTENER + "sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
        LISTENER + "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "500",
        LISTENER + "sasl.oauthbearer.expected.audience": provider.settings.audience,
        LISTENER + "sasl.oauthbearer.expected.issuer": provider.issuer,
        ALLOWED: provider.jwks_url,
    }


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    with IdentityProvider(tmp_path_factory.mktemp("provider"), ProviderSettings(clients=CLIENTS)) as running:
        yield running


@pytest.fixture(scope="module")
def oauth_world(
    tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider
) -> Iterator[GuardedCluster]:
    acls = [acl("alice", operation, Type.TOPIC, "orders") for operation in (Op.READ, Op.WRITE)]
    acls += [acl("alice", Op.READ, Type.GROUP, "*")]
    settings = KustosSettings(users={"admin": "admin-secret"}, acls=acls, properties=properties(provider))
    with GuardedCluster(tmp_path_factory.mktemp("oauth"), settings, topics=("orders", "secret")) as scene:
        yield scene


@pytest.fixture
def scene(oauth_world: GuardedCluster) -> Iterator[GuardedCluster]:
    yield oauth_world
    try:
        oauth_world.assert_proper()
    finally:
        oauth_world.begin_anew()


def by_oidc(scene: GuardedCluster, provider: IdentityProvider, client: str, **more: Any) -> dict[str, Any]:
    """librdkafka gets the token itself."""
    return {
        "bootstrap.servers": scene.bootstrap,
        "client.id": client,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": client,
        "sasl.oauthbearer.client.secret": CLIENTS[client],
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.scope": "kafka",
        "log_level": 0,
    } | {name.replace("_", "."): value for name, value in more.items()}


def by_token(scene: GuardedCluster, token: Callable[[], str], **more: Any) -> dict[str, Any]:
    """librdkafka asks a function of ours."""
    return {
        "bootstrap.servers": scene.bootstrap,
        "client.id": "alice",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _config: (token(), time.time() + 3600),
        "log_level": 0,
    } | more


def produce(config: dict[str, Any], topic: str) -> list[str | None]:
    errors: list[str | None] = []
    producer = Producer(config)
    producer.produce(
        topic, b"1", on_delivery=lambda error, _: errors.append(None if error is None else error.name())
    )
    assert producer.flush(WAIT_S) == 0
    return errors


@pytest.mark.behaviour("B241", "B318")
def test_librdkafka_logs_in_by_itself_and_may_do_what_its_acls_say(
    scene: GuardedCluster, provider: IdentityProvider
) -> None:
    assert produce(by_oidc(scene, provider, "alice"), "orders") == [None]
    assert produce(by_oidc(scene, provider, "alice"), "secret") == ["TOPIC_AUTHORIZATION_FAILED"]
    assert produce(by_oidc(scene, provider, "bob"), "orders") == ["TOPIC_AUTHORIZATION_FAILED"]
    config = by_oidc(scene, provider, "alice", group_id="g", auto_offset_reset="earliest")
    consumer = Consumer(config)
    consumer.subscribe(["orders"])
    message = consumer.poll(WAIT_S)
    consumer.close()
    assert message is not None
    assert message.error() is None


def test_aiokafka_logs_in(scene: GuardedCluster, provider: IdentityProvider) -> None:
    class Tokens(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return await asyncio.to_thread(provider.token, "alice")

    async def send() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=scene.bootstrap,
            client_id="alice",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Tokens(),
        )
        async with producer:
            await producer.send_and_wait("orders", b"2")

    asyncio.run(send())


def test_kafka_python_logs_in(scene: GuardedCluster, provider: IdentityProvider) -> None:
    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        def token(self) -> str:
            return provider.token("alice")

    producer = kafka.KafkaProducer(
        bootstrap_servers=scene.bootstrap,
        client_id="alice",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(),
    )
    assert producer.send("orders", b"3").get(WAIT_S).offset >= 0
    producer.close()


def java(provider: IdentityProvider, client: str) -> dict[str, str]:
    return {
        "client.id": client,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f'{MODULE} required clientId="{client}" clientSecret="{CLIENTS[client]}" '
        'scope="kafka";',
        "sasl.login.callback.handler.class": LOGIN_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
    }


def test_the_java_console_tools_log_in(
    scene: GuardedCluster,
    provider: IdentityProvider,
    kafka_tools: KafkaTools,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED}={provider.token_url}")
    kafka_tools.run(
        "ConsoleProducer",
        *("--bootstrap-server", scene.bootstrap, "--topic", "orders"),
        stdin="from java\n",
        client_properties=java(provider, "alice"),
    ).require()
    read = kafka_tools.run(
        "ConsoleConsumer",
        *(
            "--bootstrap-server",
            scene.bootstrap,
            "--topic",
            "orders",
            "--from-beginning",
            "--max-messages",
            "1",
        ),
        client_properties=java(provider, "alice"),
    ).require()
    assert read.strip()


def login_error(config: dict[str, Any]) -> str:
    """The error that a client without a good token gets."""
    seen: list[KafkaError] = []
    admin = AdminClient(config | {"error_cb": seen.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5)
    wait_until(lambda: (admin.poll(0.1), seen)[1], what="the client reports an error")
    return " ".join(error.str() for error in seen)


@pytest.mark.behaviour("B309", "B358")
def test_a_tampered_token_is_refused_and_audited(scene: GuardedCluster, provider: IdentityProvider) -> None:
    token = provider.token("alice")
    head, payload, signature = token.split(".")
    forged = f"{head}.{payload}.{signature[:-8]}{'A' * 8}"
    assert "invalid_token" in login_error(by_token(scene, lambda: forged))

    def failures() -> list[dict[str, Any]]:
        return [event for event in scene.kustos.security_events() if event["result"] == "FAILURE"]

    event = wait_until(failures, what="the failed login is audited")[0]
    assert (event["mechanism"], event["claimed_name"]) == ("OAUTHBEARER", "alice")
    assert event["failure"] == "its signature is wrong"
    log = scene.kustos.directory / "kustos.log"
    for text in (
        log.read_text(),
        *(path.read_text() for path in scene.kustos.audit_directory.rglob("*.jsonl")),
    ):
        assert payload not in text
        assert signature not in text


@pytest.mark.behaviour("B325")
def test_after_a_rotation_the_new_keys_come_by_themselves(
    scene: GuardedCluster, provider: IdentityProvider
) -> None:
    old = provider.token("alice")
    provider.rotate()

    def works() -> bool:
        try:
            AdminClient(by_token(scene, lambda: provider.token("alice"))).list_topics(timeout=5)
        except KafkaException:
            return False
        return True

    wait_until(works, what="a token of the new key logs in")
    assert "invalid_token" in login_error(by_token(scene, lambda: old))
