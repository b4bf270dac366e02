"""kustos over TLS to the cluster it guards: a certificate or a login, the right host, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kustos.server.main import EXIT_UNREACHABLE, EXIT_USAGE
from testkit.certificates import STORE_PASSWORD, Authority, keytool
from testkit.kafka import KafkaNode, Listener, NodeSettings
from testkit.kustos import KustosNode, KustosSettings
from testkit.processes import ChildError

USERS = {"admin": "admin-secret"}
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PREFIX = "kustos.upstream."
WAIT_S = 60


class Upstream:
    """A broker with TLS listeners, and the stores of kustos."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority()
        self.trust = self.authority.write(directory / "authority.pem")
        self.store = self.authority.issue("kustos", address=None).write(
            directory / "kustos.pem", STORE_PASSWORD
        )
        broker = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.authority.issue("broker").write(directory / "broker.pem")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }
        self.java_trust = directory / "trust.jks"
        keytool(
            *("-importcert", "-noprompt", "-alias", "authority", "-file", str(self.trust)),
            *("-storetype", "JKS", "-keystore", str(self.java_trust), "-storepass", STORE_PASSWORD),
        )
        mutual = Listener(name="MUTUAL", protocol="SSL", properties=broker | {"ssl.client.auth": "required"})
        login = Listener(name="LOGIN", protocol="SASL_SSL", mechanisms=("SCRAM-SHA-512",), properties=broker)
        settings = NodeSettings(
            listeners=(mutual, login), users={"svc": "svc-secret"}, auto_create_topics=True
        )
        self.kafka = KafkaNode(directory / "kafka", settings)

    def by_certificate(self) -> dict[str, str]:
        """Return the settings of kustos with a certificate of its own."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.store),
            "ssl.key.password": STORE_PASSWORD,
        }

    def by_login(self) -> dict[str, str]:
        """Return the settings of kustos with an account."""
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": str(self.java_trust),
            "ssl.truststore.password": STORE_PASSWORD,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{MODULE} required username="svc" password="svc-secret";',
        }

    def guarded(self, directory: Path, address: str, keys: dict[str, str]) -> KustosNode:
        """Return a node that connects in this way."""
        properties = {PREFIX + key: value for key, value in keys.items()}
        return KustosNode(directory, address, KustosSettings(users=USERS, properties=properties))


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upstream]:
    made = Upstream(tmp_path_factory.mktemp("upstream"))
    with made.kafka:
        yield made


@pytest.mark.parametrize("by", ["certificate", "login"])
def test_a_client_produces_through_a_node_that_speaks_tls_upstream(
    tmp_path: Path, upstream: Upstream, by: str
) -> None:
    has_certificate = by == "certificate"
    keys = upstream.by_certificate() if has_certificate else upstream.by_login()
    address = upstream.kafka.address("MUTUAL" if has_certificate else "LOGIN")
    with upstream.guarded(tmp_path, address, keys) as node:
        delivered: list[object] = []
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "admin",
                "sasl.password": USERS["admin"],
            }
        )
        for size in (10, 900_000):
            producer.produce(f"by-{by}", b"x" * size, on_delivery=lambda error, _: delivered.append(error))
        assert producer.flush(WAIT_S) == 0
        assert delivered == [None, None]


def end_of(node: KustosNode, exit_code: int) -> str:
    """Return what the node logged before it ended with this code."""
    with pytest.raises(ChildError, match=f"ended with {exit_code}"):
        node.start()
    return (node.directory / "kustos.log").read_text()


@pytest.mark.behaviour("B260")
def test_a_broker_of_another_name_is_refused_unless_names_do_not_matter(
    tmp_path: Path, upstream: Upstream
) -> None:
    elsewhere = upstream.kafka.address("MUTUAL").replace("127.0.0.1", "localhost")
    text = end_of(upstream.guarded(tmp_path, elsewhere, upstream.by_certificate()), EXIT_UNREACHABLE)
    assert "not valid for 'localhost'" in text
    lenient = upstream.by_certificate() | {"ssl.endpoint.identification.algorithm": ""}
    with upstream.guarded(tmp_path, elsewhere, lenient):
        pass


def test_a_broker_of_an_unknown_authority_is_refused(tmp_path: Path, upstream: Upstream) -> None:
    stranger = Authority("stranger").write(tmp_path / "stranger.pem")
    keys = upstream.by_certificate() | {"ssl.truststore.location": str(stranger)}
    text = end_of(upstream.guarded(tmp_path, upstream.kafka.address("MUTUAL"), keys), EXIT_UNREACHABLE)
    assert "certificate verify failed" in text


def test_unusable_stores_are_named_at_the_start(tmp_path: Path, upstream: Upstream) -> None:
    keys = upstream.by_certificate() | {"ssl.key.password": "wrong-secret"}
    text = end_of(upstream.guarded(tmp_path, upstream.kafka.address("MUTUAL"), keys), EXIT_USAGE)
    assert "in the settings that begin with `kustos.upstream.`" in text
    assert "`ssl.key.password` is wrong" in text
    assert "wrong-secret" not in text
