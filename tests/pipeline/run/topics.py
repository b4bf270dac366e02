"""Topics of a real broker, made and filled."""

import uuid
from collections.abc import Iterable

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from kustos.pipeline.run.topic import TopicSettings
from testkit.kafka import KafkaNode, Listener, NodeSettings, make_topics
from testkit.waiting import wait_until

PASSWORD = "s3cr3t hunter]2"  # of a test broker on loopback; with what a text may be cut at
CLIENT = Listener(name="CLIENT", protocol="SASL_PLAINTEXT", mechanisms=("PLAIN",))
GUARDED = NodeSettings(
    listeners=(CLIENT,),
    users={"admin": PASSWORD, "eve": PASSWORD},
    authorizer="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    super_users=("User:admin",),
)


def client_properties(node: KafkaNode, user: str = "admin", password: str = PASSWORD) -> dict[str, str]:
    """Return what Kafka's clients need for a broker of `GUARDED`."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
        "group.id": "of-another-tool",
    }


def librdkafka_settings(node: KafkaNode) -> dict[str, str | int | float | bool]:
    """Return the same for the client that fills topics, which wants no JAAS."""
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": node.bootstrap}
    if node.settings.users:
        settings |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        settings |= {"sasl.username": "admin", "sasl.password": PASSWORD}
    return settings


def settings_of(node: KafkaNode, topic: str, maximum_records: int = 500_000) -> TopicSettings:
    """Return the settings for a topic of a broker without logins."""
    properties = {"bootstrap.servers": node.bootstrap}
    return TopicSettings(topic=topic, client_properties=properties, maximum_records=maximum_records)


def new_topic(name: str, partitions: int = 2) -> NewTopic:
    """Return a topic to make."""
    return NewTopic(name, partitions, 1)


def make_topic(node: KafkaNode, partitions: int = 2) -> str:
    """Make a topic of a new name."""
    name = f"audit-{uuid.uuid4()}"
    make_topics([node], new_topic(name, partitions))
    return name


def delete_topic(node: KafkaNode, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient(librdkafka_settings(node))
    admin.delete_topics([topic])[topic].result(timeout=30)


def add_partitions(node: KafkaNode, topic: str, count: int) -> None:
    """Let a topic have so many partitions; return when the broker knows them."""
    admin = AdminClient(librdkafka_settings(node))
    admin.create_partitions([NewPartitions(topic, count)])[topic].result(timeout=30)
    wait_until(
        lambda: len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == count,
        what="the broker knows the partitions",
    )


def delete_records(node: KafkaNode, topic: str, before: int) -> None:
    """Delete the records of partition 0 before an offset."""
    admin = AdminClient(librdkafka_settings(node))
    place = TopicPartition(topic, 0, before)
    admin.delete_records([place])[place].result(timeout=30)


def fill(node: KafkaNode, topic: str, values: Iterable[str | bytes | None]) -> None:
    """Put values into a topic and return when the broker has them all."""
    producer = Producer({**librdkafka_settings(node), "linger.ms": 5})
    for at, value in enumerate(values):
        data = value.encode() if isinstance(value, str) else value
        while True:
            try:
                producer.produce(topic, data, key=str(at % 7))
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0
