"""Our reader before listeners that want a login, and before an authorizer: every refusal comes at once."""

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from kustos.client import AuthenticationFailedError, CannotConnectError, ClientSettings, KafkaError
from kustos.client.topics import FetchLimits, TopicReader
from testkit.kafka import STANDARD_AUTHORIZER, KafkaNode, Listener, NodeFactory, NodeSettings
from tests.conformance.tls_stores import Stores, make_stores
from tests.conformance.topic_records import consumed, make_topic, produce, read

PATIENT = FetchLimits(default_api_timeout_ms=600_000)
"""Longer than a test may take: what is refused is not tried again."""

VALUES = [b"%d" % number * 100 for number in range(500)]
USERS = {"admin": "admin-secret", "eve": "eve-secret"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory, stores: Stores) -> KafkaNode:
    store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(stores.broker)}
    login = Listener(name="LOGIN", protocol="SASL_SSL", mechanisms=("SCRAM-SHA-512",), properties=store)
    return kafka_node(
        NodeSettings(
            listeners=(login,),
            users=USERS,
            authorizer=STANDARD_AUTHORIZER,
            super_users=("User:admin",),
        )
    )


def settings_of(
    node: KafkaNode, stores: Stores, user: str = "admin", password: str | None = None
) -> ClientSettings:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return ClientSettings.from_properties(
        node.bootstrap,
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="{user}" password="{password or USERS[user]}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(stores.authority),
        },
    )


def allow(node: KafkaNode, user: str, operation: AclOperation, topic: str) -> None:
    binding = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{user}", "*", operation,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    admin = AdminClient(node.internal_client)
    for made in admin.create_acls([binding]).values():
        made.result(60)


async def test_a_topic_is_read_over_tls_with_a_login(node: KafkaNode, stores: Stores) -> None:
    topic = make_topic(node)
    produce(node.internal_client, topic, VALUES, compression_type="zstd")
    async with TopicReader(settings_of(node, stores), topic, PATIENT) as reader:
        assert await read(reader) == consumed(node.internal_client, topic)


async def test_a_wrong_password_is_refused_at_once_and_not_shown(node: KafkaNode, stores: Stores) -> None:
    async with TopicReader(settings_of(node, stores, password="hunter2"), "any", PATIENT) as reader:
        for ask in (reader.describe(), reader.fetch(0, 0), reader.end_offsets([0])):
            with pytest.raises(AuthenticationFailedError, match="as `admin`") as raised:
                await ask
            assert "hunter2" not in str(raised.value)


async def test_who_may_not_know_or_not_read_a_topic_is_told_at_once(node: KafkaNode, stores: Stores) -> None:
    topic = make_topic(node)
    produce(node.internal_client, topic, VALUES)
    refused = f"TOPIC_AUTHORIZATION_FAILED: topic `{topic}`"
    async with TopicReader(settings_of(node, stores, "eve"), topic, PATIENT) as reader:
        for ask in (reader.describe(), reader.fetch(0, 0), reader.first_offsets([0])):
            with pytest.raises(KafkaError, match=refused) as raised:
                await ask
            assert raised.value.is_authorization_failure
        allow(node, "eve", AclOperation.DESCRIBE, topic)
        await known(reader)
        assert await reader.end_offsets([0]) == {0: len(VALUES)}
        with pytest.raises(KafkaError, match=f"{refused}, partition 0, offset 0"):
            await reader.fetch(0, 0)


async def known(reader: TopicReader) -> None:
    """Return when the reader may describe its topic: a broker reads of an ACL later than it was made."""
    while True:
        try:
            await reader.describe()
        except KafkaError as error:
            if not error.is_authorization_failure:
                raise
        else:
            return


async def test_another_security_protocol_or_authority_is_refused_at_once(
    node: KafkaNode, stores: Stores
) -> None:
    plain = ClientSettings.from_properties(
        node.bootstrap, {"security.protocol": "SSL", "socket.connection.setup.timeout.ms": "60000"}
    )
    async with TopicReader(plain, "any", PATIENT) as reader:
        with pytest.raises(CannotConnectError, match="certificate verify failed"):
            await reader.describe()
