"""Real clients over TLS: certificates and logins, before one process and before workers."""

import subprocess
from collections.abc import Iterator
from typing import Any

import aiokafka
import kafka as kafka_python
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.cimpl import NewTopic

from testkit.certificates import STORE_PASSWORD, keytool
from testkit.kafka import KafkaNode, KafkaTools, count_records, make_topics
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until
from tests.e2e.tls_scene import ALICE, FORBIDDEN, TOPIC, USERS, TlsScene

WAIT_S = 60.0


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kafka: KafkaNode
) -> Iterator[TlsScene]:
    made = TlsScene(tmp_path_factory.mktemp("tls"), kafka, request.param)
    make_topics([kafka], *(NewTopic(f"{name}-{request.param}", 1, 1) for name in (TOPIC, FORBIDDEN)))
    made.directory.joinpath("suffix").write_text(str(request.param))
    with made.kustos:
        yield made


@pytest.fixture
def topics(scene: TlsScene) -> tuple[str, str]:
    """The topic that both may use, and the one that nobody may."""
    suffix = scene.directory.joinpath("suffix").read_text()
    return f"{TOPIC}-{suffix}", f"{FORBIDDEN}-{suffix}"


def produce(configuration: dict[str, Any], topic: str, values: list[str]) -> list[str | None]:
    errors: list[str | None] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        errors.append(None if error is None else error.name())

    producer = Producer(configuration)
    for value in values:
        producer.produce(topic, value.encode(), on_delivery=delivered)
    assert producer.flush(WAIT_S) == 0
    return errors


def consume(configuration: dict[str, Any], topic: str, group: str, last: str) -> list[str]:
    consumer = Consumer(configuration | {"group.id": group, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        values: list[str] = []
        while last not in values:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"only {values}"
            assert message.error() is None, message.error()
            values.append((message.value() or b"").decode())
        return values
    finally:
        consumer.close()


@pytest.mark.behaviour("B216", "B240", "B257")
@pytest.mark.parametrize("user", [None, "bob"])
def test_librdkafka_is_who_its_certificate_or_its_login_says(
    scene: TlsScene, topics: tuple[str, str], user: str | None
) -> None:
    topic, forbidden = topics
    value = f"librdkafka-{user}"
    assert produce(scene.librdkafka(user), topic, [value]) == [None]
    assert value in consume(scene.librdkafka(user), topic, f"{TOPIC}-{value}", value)
    assert produce(scene.librdkafka(user), forbidden, ["x"]) == ["TOPIC_AUTHORIZATION_FAILED"]
    name = user or ALICE
    wait_until(
        lambda: {
            (event["host"], event["security_protocol"])
            for event in scene.kustos.audit_events()
            if event["resource_name"] == forbidden and event["principal_name"] == name
        },
        holds=lambda seen: seen == {(LOOPBACK, "SASL_SSL" if user else "SSL")},
        what="the denial is in the audit log, in the right name",
    )


@pytest.mark.parametrize("user", [None, "bob"])
async def test_aiokafka_produces_and_consumes(
    scene: TlsScene, topics: tuple[str, str], user: str | None
) -> None:
    value = f"aiokafka-{user}".encode()
    async with aiokafka.AIOKafkaProducer(**scene.python(user)) as producer:
        await producer.send_and_wait(topics[0], value)
    consumer = aiokafka.AIOKafkaConsumer(
        topics[0], **scene.python(user), group_id=f"{TOPIC}-aio-{user}", auto_offset_reset="earliest"
    )
    async with consumer:
        while (await consumer.getone()).value != value:
            pass


@pytest.mark.parametrize("user", [None, "bob"])
def test_kafka_python_produces_and_consumes(
    scene: TlsScene, topics: tuple[str, str], user: str | None
) -> None:
    value = f"kafka-python-{user}".encode()
    producer = kafka_python.KafkaProducer(**scene.python(user))
    producer.send(topics[0], value).get(WAIT_S)
    producer.close()
    consumer = kafka_python.KafkaConsumer(
        topics[0],
        **scene.python(user),
        group_id=f"{TOPIC}-python-{user}",
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(WAIT_S * 1000),
    )
    assert any(message.value == value for message in consumer)
    consumer.close()


def java_stores(scene: TlsScene) -> dict[str, str]:
    """Return the settings of a Java client with the stores of Java, made of alice's files."""
    key_store, trust_store = scene.directory / "alice.p12", scene.directory / "trust.jks"
    if not trust_store.exists():
        subprocess.run(
            [
                *("openssl", "pkcs12", "-export", "-in", str(scene.alice_store), "-out", str(key_store)),
                *("-passout", f"pass:{STORE_PASSWORD}", "-name", "alice"),
            ],
            check=True,
            capture_output=True,
        )
        keytool(
            *("-importcert", "-noprompt", "-alias", "authority", "-file", str(scene.trust)),
            *("-storetype", "JKS", "-keystore", str(trust_store), "-storepass", STORE_PASSWORD),
        )
    return {
        "security.protocol": "SSL",
        "ssl.truststore.location": str(trust_store),
        "ssl.truststore.password": STORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(key_store),
        "ssl.keystore.password": STORE_PASSWORD,
    }


def java_login(scene: TlsScene) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(scene.trust),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} required username="bob" password="{USERS["bob"]}";',
    }


@pytest.mark.parametrize("by", ["certificate", "login"])
def test_the_tools_of_java_produce_and_consume(
    scene: TlsScene, topics: tuple[str, str], kafka: KafkaNode, kafka_tools: KafkaTools, by: str
) -> None:
    has_certificate = by == "certificate"
    properties = java_stores(scene) if has_certificate else java_login(scene)
    address = scene.by_certificate if has_certificate else scene.kustos.bootstrap
    to = ("--bootstrap-server", address, "--topic", topics[0])
    value = f"java-{by}"
    kafka_tools.run("ConsoleProducer", *to, stdin=f"{value}\n", client_properties=properties).require()
    read = kafka_tools.run(
        "ConsoleConsumer",
        *to,
        *("--from-beginning", "--group", f"{TOPIC}-{by}"),
        *("--max-messages", str(count_records(kafka, topics[0])), "--timeout-ms", "45000"),
        client_properties=properties,
    )
    assert value in read.stdout.splitlines(), read.stderr


def test_a_client_without_a_certificate_is_refused_and_counted(scene: TlsScene) -> None:
    before = scene.failures("no_certificate")
    configuration = scene.librdkafka()
    del configuration["ssl.key.location"], configuration["ssl.certificate.location"]
    producer = Producer(configuration)
    wait_until(
        lambda: producer.poll(0.1) is not None and scene.failures("no_certificate") > before,
        what="it is counted",
    )
    assert '"kind": "no_certificate"' in (scene.kustos.directory / "kustos.log").read_text()


def test_the_key_of_client_auth_without_the_listener_is_warned_of(scene: TlsScene) -> None:
    log = (scene.kustos.directory / "kustos.log").read_text()
    assert "`ssl.client.auth` has no effect on the `SASL_SSL` listener `SASL_SSL`" in log
    assert STORE_PASSWORD not in log
