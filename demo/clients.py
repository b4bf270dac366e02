"""The Python clients: confluent-kafka, aiokafka, kafka-python. Each tells in a word what it got to hear."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiokafka
import confluent_kafka
import kafka
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]
from kafka.errors import KafkaError as PythonKafkaError

MECHANISM: Final = "SCRAM-SHA-256"
PATIENCE_S: Final = 60.0
"""A record arrives in milliseconds; a client that heard nothing for so long will hear nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Where a client connects and as whom. The password is in no repr."""

    bootstrap: str
    user: str
    password: str

    def __repr__(self) -> str:
        """Return it without the password."""
        return f"Login({self.user} at {self.bootstrap})"

    def librdkafka(self) -> dict[str, Any]:
        """Return the configuration of confluent-kafka; it prints nothing by itself."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "log_level": 0,
        }

    def python(self) -> dict[str, Any]:
        """Return what kafka-python and aiokafka both take."""
        return {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.user,
            "sasl_plain_password": self.password,
        }


def broker_setting(bootstrap: str, name: str) -> str:
    """Return one setting of the only broker of a Kafka without SASL, as that broker tells it."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    resource = ConfigResource(ResourceType.BROKER, "1")
    (answer,) = admin.describe_configs([resource]).values()
    value: str = answer.result(PATIENCE_S)[name].value
    return value


def create_topics(login: Login, topics: Sequence[str]) -> str:
    """Create topics with confluent-kafka; return those that were, or the error's name."""
    admin = AdminClient(login.librdkafka())
    made = admin.create_topics([NewTopic(topic, 1, 1) for topic in topics])
    try:
        for future in made.values():
            future.result(PATIENCE_S)
    except confluent_kafka.KafkaException as error:
        return str(error.args[0].name())
    return f"created {', '.join(made)}"


def produce(login: Login, topic: str, records: Sequence[str]) -> str:
    """Produce with confluent-kafka; return how many records were acknowledged, or the error's name."""
    heard: Counter[str] = Counter()

    def delivered(error: confluent_kafka.KafkaError | None, _message: confluent_kafka.Message) -> None:
        heard["acknowledged" if error is None else str(error.name())] += 1

    producer = confluent_kafka.Producer(login.librdkafka() | {"message.timeout.ms": int(PATIENCE_S * 1000)})
    for record in records:
        producer.produce(topic, record.encode(), on_delivery=delivered)
    deadline = time.monotonic() + PATIENCE_S
    while len(producer) and time.monotonic() < deadline:
        producer.flush(0.2)  # short, so that a signal is heard in between
    return ", ".join(f"{count} {name}" for name, count in heard.items()) or "no answer"


def consume(login: Login, group: str, topics: Sequence[str], count: int) -> str:
    """Consume `count` records with kafka-python; return how many came of each topic, or the error's name."""
    consumer = kafka.KafkaConsumer(
        *topics,
        **login.python(),
        group_id=group,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(PATIENCE_S * 1000),
    )
    seen: Counter[str] = Counter()
    try:
        for record in consumer:
            seen[record.topic] += 1
            if seen.total() == count:
                break
    except PythonKafkaError as error:
        return type(error).__name__
    finally:
        consumer.close()
    return counted(seen)


def describe_cluster(login: Login) -> str:
    """Describe the cluster with kafka-python's admin client; return the brokers that it was told."""
    admin = kafka.KafkaAdminClient(**login.python())
    try:
        brokers = admin.describe_cluster()["brokers"]
    except PythonKafkaError as error:
        return type(error).__name__
    finally:
        admin.close()
    return ", ".join(f"broker {each['broker_id']} at {each['host']}:{each['port']}" for each in brokers)


def create_topic_as(login: Login, topic: str) -> str:
    """Create a topic with kafka-python's admin client; return `created` or the error's name."""
    admin = kafka.KafkaAdminClient(**login.python())
    try:
        admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])
    except PythonKafkaError as error:
        return type(error).__name__
    finally:
        admin.close()
    return "created"


def consume_async(login: Login, group: str, topics: Sequence[str], count: int) -> str:
    """Consume `count` records with aiokafka; return how many came of each topic, or the error's name."""
    return asyncio.run(_consume(login, group, topics, count))


async def _consume(login: Login, group: str, topics: Sequence[str], count: int) -> str:
    seen: Counter[str] = Counter()
    consumer = _aio_consumer(login, group, topics, "earliest")
    try:
        await consumer.start()
        while seen.total() < count:
            record = await asyncio.wait_for(consumer.getone(), PATIENCE_S)
            seen[record.topic] += 1
    except AioKafkaError as error:
        return type(error).__name__
    finally:
        await consumer.stop()
    return counted(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """What a consumer heard whose ACL was taken away: records before, error after."""

    records: int
    error: str
    late_ms: float
    """From the end of `revoke` to the error; negative where the error came first."""


def consume_until_revoked(
    login: Login, group: str, topic: str, *, feed: Callable[[], object], revoke: Callable[[], object]
) -> CutOff:
    """Consume with aiokafka while `feed` produces one record and then `revoke` takes the ACL away."""
    return asyncio.run(_consume_until_revoked(login, group, topic, feed, revoke))


async def _consume_until_revoked(
    login: Login, group: str, topic: str, feed: Callable[[], object], revoke: Callable[[], object]
) -> CutOff:
    consumer = _aio_consumer(login, group, [topic], "latest")
    records, error_name = 0, "no error"
    revoked_at = heard_at = time.monotonic()
    try:
        await consumer.start()
        for partition in consumer.assignment():
            await consumer.position(partition)  # the end, as it is before the next record
        await asyncio.to_thread(feed)
        await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        records += 1

        async def take_away() -> float:
            await asyncio.to_thread(revoke)
            return time.monotonic()

        revoking = asyncio.create_task(take_away())
        try:
            await asyncio.wait_for(consumer.getone(), PATIENCE_S)
            records += 1
        except AioKafkaError as error:
            error_name = type(error).__name__
        heard_at = time.monotonic()
        revoked_at = await revoking
    except AioKafkaError as error:
        error_name = type(error).__name__
    finally:
        await consumer.stop()
    return CutOff(records=records, error=error_name, late_ms=(heard_at - revoked_at) * 1000)


def _aio_consumer(login: Login, group: str, topics: Sequence[str], start: str) -> Any:
    return aiokafka.AIOKafkaConsumer(*topics, **login.python(), group_id=group, auto_offset_reset=start)


def counted(seen: Mapping[str, int]) -> str:
    """Return `5 records from orders, 2 from payroll`."""
    parts = [f"{seen[topic]} from {topic}" for topic in sorted(seen)]
    return ", ".join(parts).replace(" from", " records from", 1) if parts else "0 records"
