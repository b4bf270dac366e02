"""Five clients, every mechanism, with TLS and without: each logs in, produces, and reads what it produced."""

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka as kafka_python
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import NewTopic
from kafka.net.sasl.oauth import AbstractTokenProvider

from testkit.identity_provider import IdentityProvider
from testkit.kafka import KafkaNode, KafkaTools, make_topics
from testkit.kdc import REALM
from testkit.login_keys import KERBEROS_MODULE, MODULES
from testkit.waiting import wait_until
from tests.e2e.login_scene import CLIENTS, MECHANISMS, PREFIX, PROTOCOLS, USERS, LoginScene, login_scene

pytestmark = pytest.mark.slow

WAIT_S = 60.0
ALICE = USERS["alice"]

Exchange = Callable[[LoginScene, str, str, str], list[str]]
"""(scene, protocol, mechanism, topic) → the values read, after a value named as the topic was produced."""


def java(scene: LoginScene, protocol: str, mechanism: str, topic: str) -> list[str]:
    """Kafka's console tools."""
    oauth = f"{MODULES}.oauthbearer.OAuthBearerLogin"
    jaas = {
        "PLAIN": f'{MODULES}.plain.PlainLoginModule required username="alice" password="{ALICE}";',
        "OAUTHBEARER": f'{oauth}Module required clientId="alice" clientSecret="{CLIENTS["alice"]}" '
        'scope="kafka";',
        "GSSAPI": f'{KERBEROS_MODULE} required useKeyTab=true storeKey=true keyTab="{scene.keytab}" '
        f'principal="alice@{REALM}";',
    }
    scram = f'{MODULES}.scram.ScramLoginModule required username="alice" password="{ALICE}";'
    properties = {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas.get(mechanism, scram),
        "sasl.kerberos.service.name": "kafka",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(scene.trust),
    }
    if mechanism == "OAUTHBEARER":
        properties["sasl.login.callback.handler.class"] = f"{oauth}CallbackHandler"
        properties["sasl.oauthbearer.token.endpoint.url"] = scene.provider.token_url
    to, tools = ("--bootstrap-server", scene.bootstrap(protocol), "--topic", topic), KafkaTools()
    tools.run("ConsoleProducer", *to, stdin=f"{topic}\n", client_properties=properties).require()
    read = ("--from-beginning", "--max-messages", "1", "--group", topic)
    return tools.run("ConsoleConsumer", *to, *read, client_properties=properties).require().split()


def librdkafka_settings(scene: LoginScene, protocol: str, mechanism: str) -> dict[str, str]:
    """Return the configuration of confluent-kafka and of kcat."""
    settings = {
        "bootstrap.servers": scene.bootstrap(protocol),
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "ssl.ca.location": str(scene.trust),
    }
    oidc = {
        "method": "oidc",
        "client.id": "alice",
        "client.secret": CLIENTS["alice"],
        "token.endpoint.url": scene.provider.token_url,
        "scope": "kafka",
    }
    match mechanism:
        case "OAUTHBEARER":
            settings |= {f"sasl.oauthbearer.{key}": value for key, value in oidc.items()}
        case "GSSAPI":
            # the library takes tickets by the keytab itself; librdkafka insists on a command for it
            settings |= {"sasl.kerberos.service.name": "kafka", "sasl.kerberos.kinit.cmd": "true"}
        case _:
            settings |= {"sasl.username": "alice", "sasl.password": ALICE}
    return settings


def librdkafka(scene: LoginScene, protocol: str, mechanism: str, topic: str) -> list[str]:
    """confluent-kafka."""
    settings: dict[str, Any] = librdkafka_settings(scene, protocol, mechanism)
    producer = Producer(settings)
    producer.produce(topic, topic.encode())
    assert producer.flush(WAIT_S) == 0
    consumer = Consumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(WAIT_S)
    consumer.close()
    return [] if message is None or message.error() else [(message.value() or b"").decode()]


def newer_librdkafka(scene: LoginScene) -> dict[str, str]:
    """Return the environment in which kcat finds the library of confluent-kafka.

    Debian's own (2.0) is the one with Kerberos, but it sends its half of a SCRAM nonce twice, which Kafka
    refuses since CVE-2024-56128, and it cannot ask a provider for tokens.
    """
    bundled = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    (library,) = bundled.glob("librdkafka-*.so.1")
    link = scene.directory / "librdkafka.so.1"
    if not link.exists():
        link.symlink_to(library)
    return {"LD_LIBRARY_PATH": f"{link.parent}:{bundled}"}


def kcat(scene: LoginScene, protocol: str, mechanism: str, topic: str) -> list[str]:
    """Debian's kcat."""
    settings = librdkafka_settings(scene, protocol, mechanism)
    options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    environment = {} if mechanism == "GSSAPI" else newer_librdkafka(scene)

    def run(*arguments: str, said: str = "") -> str:
        done = subprocess.run(
            ["kcat", *arguments, "-t", topic, *options], env={**os.environ, **environment},
            input=said, capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-P", said=f"{topic}\n")
    return run("-C", "-o", "beginning", "-c", "1", "-q").split()


def python_settings(scene: LoginScene, protocol: str, mechanism: str, tokens: object) -> dict[str, Any]:
    """Return what aiokafka and kafka-python share."""
    return {
        "bootstrap_servers": scene.bootstrap(protocol),
        "security_protocol": protocol,
        "ssl_context": scene.context(protocol),
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": ALICE,
        "sasl_kerberos_service_name": "kafka",
        "sasl_kerberos_domain_name": "localhost",
        "sasl_oauth_token_provider": tokens if mechanism == "OAUTHBEARER" else None,
    }


class AioTokens(aiokafka.abc.AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, provider: IdentityProvider) -> None:
        self.provider = provider

    async def token(self) -> str:
        return await asyncio.to_thread(self.provider.token, "alice")


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, provider: IdentityProvider) -> None:
        super().__init__()
        self.provider = provider

    def token(self) -> str:
        return self.provider.token("alice")


def aiokafka_client(scene: LoginScene, protocol: str, mechanism: str, topic: str) -> list[str]:
    """aiokafka."""

    async def exchange() -> list[str]:
        settings = python_settings(scene, protocol, mechanism, AioTokens(scene.provider))
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, topic.encode())
        consumer = aiokafka.AIOKafkaConsumer(topic, **settings, group_id=topic, auto_offset_reset="earliest")
        async with consumer:
            return [(await asyncio.wait_for(consumer.getone(), WAIT_S)).value.decode()]

    return asyncio.run(exchange())


def kafka_python_client(scene: LoginScene, protocol: str, mechanism: str, topic: str) -> list[str]:
    """kafka-python."""
    settings = python_settings(scene, protocol, mechanism, Tokens(scene.provider))
    producer = kafka_python.KafkaProducer(**settings)
    producer.send(topic, topic.encode()).get(WAIT_S)
    producer.close()
    consumer = kafka_python.KafkaConsumer(
        topic,
        **settings,
        group_id=topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(WAIT_S * 1000),
    )
    value = next(iter(consumer)).value.decode()
    consumer.close()
    return [value]


CLIENTS_OF: dict[str, Exchange] = {
    "java": java,
    "confluent-kafka": librdkafka,
    "kcat": kcat,
    "aiokafka": aiokafka_client,
    "kafka-python": kafka_python_client,
}

IMPOSSIBLE = {
    ("confluent-kafka", "GSSAPI"): "its wheels have no Cyrus SASL; kcat shows librdkafka with it",
}
"""Cells that no version of a client has, with the reason."""

CELLS = [
    (client, mechanism, protocol)
    for client in CLIENTS_OF
    for mechanism in MECHANISMS
    for protocol in PROTOCOLS
    if (client, mechanism) not in IMPOSSIBLE
]


def topic_of(client: str, mechanism: str, protocol: str) -> str:
    return f"{PREFIX}{client}-{mechanism}-{protocol.replace('_', '-')}"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, kafka: KafkaNode) -> Iterator[LoginScene]:
    make_topics([kafka], *(NewTopic(topic_of(*cell), 1, 1) for cell in CELLS))
    with login_scene(tmp_path_factory.mktemp("logins"), kafka) as made:
        yield made


@pytest.mark.behaviour("B216", "B219", "B224", "B241", "B292")
@pytest.mark.parametrize(("client", "mechanism", "protocol"), CELLS)
def test_a_client_logs_in_produces_and_reads(
    scene: LoginScene, client: str, mechanism: str, protocol: str
) -> None:
    is_it = {"mechanism": mechanism, "security_protocol": protocol, "principal_name": "alice"}
    before = scene.logins(**is_it, result="SUCCESS")
    topic = topic_of(client, mechanism, protocol)
    assert CLIENTS_OF[client](scene, protocol, mechanism, topic) == [topic]
    wait_until(
        lambda: scene.logins(**is_it, result="SUCCESS") > before, what="the logins are in the audit log"
    )


def test_the_matrix_is_whole() -> None:
    assert len(CELLS) + 2 * len(IMPOSSIBLE) == 5 * len(MECHANISMS) * len(PROTOCOLS) == 50
