"""Our reader before Kafka 2.8.2, which fetches topics by name and keeps messages of the old magics."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from kustos.client import ClientSettings, KafkaError
from kustos.client.topics import FetchLimits, TopicReader
from kustos.wire import batch_headers
from testkit.kafka.legacy import ADMIN, LegacyBroker, legacy_broker
from testkit.waiting import wait_until
from tests.conformance.topic_records import consumed, new_topic, produce, read

USERS = {ADMIN: "of-a-test-broker"}
VALUES = [None if number % 7 == 0 else b"%d," % number * 30 for number in range(300)]
FORMATS = {"0.9.0": 0, "0.10.0": 1, "2.8": 2}
"""`message.format.version` of a topic -> the magic of its messages."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LegacyBroker]:
    with legacy_broker(tmp_path_factory.mktemp("legacy"), USERS) as running:
        yield running


def settings_of(broker: LegacyBroker) -> ClientSettings:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return ClientSettings.from_properties(
        broker.bootstrap,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} required username="{ADMIN}" password="{USERS[ADMIN]}";',
        },
    )


def make_topic(broker: LegacyBroker, **config: str) -> str:
    name = f"read-{uuid.uuid4()}"
    admin = AdminClient(broker.client(ADMIN))
    admin.create_topics([new_topic(name, 1, 1, **config)])[name].result(60)
    wait_until(lambda: name in admin.list_topics(timeout=60).topics, what="the topic is known")
    return name


# LZ4 in magic 0 has a checksum that only Kafka computes so, and no broker since 0.10 writes anew (KIP-57)
@pytest.mark.parametrize(
    ("version", "codec"),
    [
        (version, codec)
        for version in FORMATS
        for codec in ("none", "gzip", "snappy", "lz4")
        if (version, codec) != ("0.9.0", "lz4")
    ],
)
async def test_messages_of_every_magic_are_read_as_another_client_reads_them(
    broker: LegacyBroker, version: str, codec: str
) -> None:
    topic = make_topic(broker, message_format_version=version)
    client = dict[str, object](broker.client(ADMIN))
    produce(client, topic, VALUES, compression_type=codec, has_headers=version == "2.8")
    async with TopicReader(settings_of(broker), topic, FetchLimits(partition_max_bytes=3000)) as reader:
        described = await reader.describe()
        assert described.topic_id is not None
        records = (await reader.fetch(0, 0)).records
        assert next(batch_headers(records)).magic == FORMATS[version]
        rows = await read(reader)
    assert rows == consumed(client, topic)
    assert [value for _, value in rows] == VALUES


async def test_a_topic_that_was_recreated_is_noticed_when_it_is_looked_up(broker: LegacyBroker) -> None:
    topic = make_topic(broker)
    async with TopicReader(settings_of(broker), topic) as reader:
        former = await reader.describe()
        admin = AdminClient(broker.client(ADMIN))
        admin.delete_topics([topic])[topic].result(60)
        wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, what="the topic is gone")
        wait_until(lambda: remade(admin, topic), what="the topic is there again")
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            await reader.describe()
    async with TopicReader(settings_of(broker), topic, topic_id=former.topic_id) as reader:
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_ID"):
            await reader.fetch(0, 0)


def remade(admin: AdminClient, topic: str) -> bool:
    """Return whether a topic is there, made if it is not; its former self may not be gone yet."""
    admin.create_topics([new_topic(topic)])[topic].exception(60)
    return topic in admin.list_topics(timeout=60).topics
