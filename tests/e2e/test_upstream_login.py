"""kustos logs in upstream like any client: by PLAIN and both SCRAMs, or not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kustos.server.main import EXIT_UNREACHABLE
from testkit.kafka import SASL_PLAINTEXT, KafkaNode, NodeSettings
from testkit.kustos import KustosNode, KustosSettings
from testkit.processes import ChildError

MODULES = {"PLAIN": "plain.Plain", "SCRAM-SHA-256": "scram.Scram", "SCRAM-SHA-512": "scram.Scram"}
USERS = {"admin": "admin-secret"}
WAIT_S = 60


@pytest.fixture(scope="module")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker that knows one service principal and lets nobody in without a password."""
    settings = NodeSettings(listeners=(SASL_PLAINTEXT,), users={"svc": "svc-secret"}, auto_create_topics=True)
    with KafkaNode(tmp_path_factory.mktemp("kafka"), settings) as node:
        yield node


def guard(directory: Path, upstream: KafkaNode, mechanism: str, password: str) -> KustosNode:
    module = f"org.apache.kafka.common.security.{MODULES[mechanism]}LoginModule"
    prefix = "kustos.upstream."
    properties = {
        prefix + "security.protocol": "SASL_PLAINTEXT",
        prefix + "sasl.mechanism": mechanism,
        prefix + "sasl.jaas.config": f'{module} required username="svc" password="{password}";',
    }
    return KustosNode(directory, upstream.bootstrap, KustosSettings(users=USERS, properties=properties))


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_client_produces_through_a_node_that_logs_in_upstream(
    tmp_path: Path, upstream: KafkaNode, mechanism: str
) -> None:
    with guard(tmp_path, upstream, mechanism, "svc-secret") as node:
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
        producer.produce(f"by-{mechanism}", b"1", on_delivery=lambda error, _: delivered.append(error))
        assert producer.flush(WAIT_S) == 0
        assert delivered == [None]


def test_a_node_that_upstream_refuses_says_so_without_the_password(
    tmp_path: Path, upstream: KafkaNode
) -> None:
    node = guard(tmp_path, upstream, "SCRAM-SHA-256", "wrong-secret")
    with pytest.raises(ChildError, match=f"ended with {EXIT_UNREACHABLE}"):
        node.start()
    text = (tmp_path / "kustos.log").read_text()
    assert "cannot log in" in text
    assert "wrong-secret" not in text
