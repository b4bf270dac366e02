"""The client over TLS against a real broker: PEM stores, host names, client certificates."""

import asyncio

import pytest

from kustos.client import CannotConnectError, ClientSettings, SettingsError, connect
from kustos.client.admin.client import AdminClient
from testkit.kafka import KafkaNode, Listener, NodeFactory, NodeSettings
from tests.conformance.tls_stores import Stores, make_stores

KEY_PASSWORD = "key-secret"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SESSION_MS = 600_000


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("tls"), KEY_PASSWORD)


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory, stores: Stores) -> KafkaNode:
    broker = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stores.broker),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stores.authority),
    }
    one_way = Listener(name="ONEWAY", protocol="SSL", properties=broker)
    mutual = Listener(name="MUTUAL", protocol="SSL", properties={**broker, "ssl.client.auth": "required"})
    expiring = {**broker, "connections.max.reauth.ms": str(SESSION_MS)}
    login = Listener(name="LOGIN", protocol="SASL_SSL", mechanisms=MECHANISMS, properties=expiring)
    return kafka_node(NodeSettings(listeners=(one_way, mutual, login), users={"ann": "ann-secret"}))


def trusting(stores: Stores) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stores.authority),
    }


def presenting(stores: Stores, password: str = KEY_PASSWORD) -> dict[str, str]:
    return {
        **trusting(stores),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stores.client),
        "ssl.key.password": password,
    }


async def cluster_id(address: str, properties: dict[str, str]) -> str | None:
    async with AdminClient(ClientSettings.from_properties(address, properties)) as admin:
        return (await admin.describe_cluster()).cluster_id


@pytest.mark.parametrize("protocols", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
async def test_a_trusted_broker_is_asked(node: KafkaNode, stores: Stores, protocols: str) -> None:
    properties = {**trusting(stores), "ssl.enabled.protocols": protocols}
    assert await cluster_id(node.address("ONEWAY"), properties) == node.cluster_id


async def test_a_client_certificate_is_presented(node: KafkaNode, stores: Stores) -> None:
    assert await cluster_id(node.address("MUTUAL"), presenting(stores)) == node.cluster_id
    with pytest.raises(CannotConnectError):
        await cluster_id(node.address("MUTUAL"), trusting(stores))


async def test_an_unknown_authority_is_refused(node: KafkaNode) -> None:
    with pytest.raises(CannotConnectError, match="certificate verify failed"):
        await cluster_id(node.address("ONEWAY"), {"security.protocol": "SSL"})


async def test_another_host_name_is_refused_unless_told_otherwise(node: KafkaNode, stores: Stores) -> None:
    elsewhere = node.address("ONEWAY").replace("127.0.0.1", "localhost")
    with pytest.raises(CannotConnectError, match="not valid for 'localhost'"):
        await cluster_id(elsewhere, trusting(stores))
    lenient = {**trusting(stores), "ssl.endpoint.identification.algorithm": ""}
    assert await cluster_id(elsewhere, lenient) == node.cluster_id


async def test_the_wrong_protocol_or_key_password_is_told(node: KafkaNode, stores: Stores) -> None:
    with pytest.raises(CannotConnectError, match=r"check that `security\.protocol` matches the listener"):
        await cluster_id(node.address("ONEWAY"), {"socket.connection.setup.timeout.ms": "5000"})
    with pytest.raises(SettingsError, match=r"`ssl\.key\.password` is wrong") as caught:
        await cluster_id(node.address("MUTUAL"), presenting(stores, "wrong-secret"))
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_login_inside_tls_is_due_again_before_its_session_ends(
    node: KafkaNode, stores: Stores, mechanism: str
) -> None:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    properties = {
        **trusting(stores),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        'username="ann" password="ann-secret";',
    }
    settings = ClientSettings.from_properties(node.address("LOGIN"), properties)
    link = await connect(settings.bootstrap_servers[0], settings)
    async with link:
        session = link.session
        assert session is not None
        due_at_s = session.due_at_s
        assert due_at_s is not None
        now = asyncio.get_running_loop().time()
        assert 0 < due_at_s - now < SESSION_MS / 1000 * 0.95  # KIP-368: some time before the broker ends it
