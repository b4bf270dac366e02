"""Three brokers behind one port: real clients find each by the host name that TLS tells."""

import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from aiokafka.helpers import create_ssl_context
from confluent_kafka.cimpl import NewTopic
from cryptography import x509

from testkit.certificates import STORE_PASSWORD, Authority
from testkit.guarded.cluster import PREFIXED, Op, Type, acl
from testkit.kafka import KafkaCluster, KafkaTools, count_records, make_topics
from testkit.kafka.tools import write_properties
from testkit.kustos import KustosNode, KustosSettings
from testkit.loopback_names import LoopbackNames
from testkit.ports import LOOPBACK, free_port
from testkit.waiting import wait_until

NODES = 3
PARTITIONS = 6
USERS = {"admin": "admin-secret", "bob": "bob-secret"}
ALICE = "CN=alice,O=kustos"
CLIENTS, MACHINES = "kafka.example.com", "machines.example.org"
PATTERNS = {CLIENTS: "broker-{}.kafka.example.com", MACHINES: "m{}.machines.example.org"}
TOPIC = "named-orders"
ACLS = tuple(
    acl(user, operation, kind, "named-", PREFIXED)
    for user in (ALICE, "bob")
    for operation, kind in ((Op.READ, Type.TOPIC), (Op.WRITE, Type.TOPIC), (Op.READ, Type.GROUP))
) + tuple(acl(user, Op.DESCRIBE, Type.CLUSTER, "kafka-cluster") for user in (ALICE, "bob"))
WAIT_S = 60.0


class NamedScene:
    """kustos with a listener for logins and one for certificates, each with names of its own."""

    def __init__(self, directory: Path, upstream: str, workers: int) -> None:
        self.directory = directory
        authority = Authority()
        self.trust = authority.write(directory / "authority.pem")
        hosts = [each for name in (CLIENTS, MACHINES) for each in (name, f"*.{name}")]
        store = authority.issue("kustos", hosts=hosts, address=None).write(
            directory / "node.pem", STORE_PASSWORD
        )
        alice = authority.issue(x509.Name.from_rfc4514_string(ALICE), address=None)
        self.alice = alice.write(directory / "alice.pem")
        (directory / "alice.key").write_text(alice.key_pem)
        (directory / "alice.crt").write_text(alice.chain_pem)
        self.ports = {CLIENTS: free_port(), MACHINES: free_port()}
        bound = {"SASL_SSL": self.ports[CLIENTS], "MACHINES": self.ports[MACHINES]}
        own = {
            "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in bound.items()),
            "advertised.listeners": f"SASL_SSL://{self.at(CLIENTS)},MACHINES://{self.at(MACHINES)}",
            "listener.security.protocol.map": "MACHINES:SSL",
            "listener.name.sasl_ssl.kustos.broker.host.pattern": PATTERNS[CLIENTS].format("$(nodeId)"),
            "listener.name.machines.kustos.broker.host.pattern": PATTERNS[MACHINES].format("$(nodeId)"),
            "listener.name.machines.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(store),
            "ssl.key.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            "kustos.workers": str(workers),
        }
        settings = KustosSettings(users=USERS, acls=ACLS, protocol="SASL_SSL", properties=own)
        self.kustos = KustosNode(directory / "kustos", upstream, settings)
        every = [pattern.format(number) for pattern in PATTERNS.values() for number in range(NODES + 2)]
        self.names = LoopbackNames(directory, [*PATTERNS, *every])

    def at(self, host: str) -> str:
        """Return the bootstrap address of a listener."""
        return f"{host}:{self.ports[host]}"

    def brokers(self, host: str) -> dict[int, tuple[str, int]]:
        """Return what clients of a listener must be told."""
        return {number: (PATTERNS[host].format(number), self.ports[host]) for number in range(1, NODES + 1)}

    def librdkafka(self, host: str) -> dict[str, Any]:
        common = {"bootstrap.servers": self.at(host), "ssl.ca.location": str(self.trust)}
        if host == MACHINES:
            key, certificate = self.directory / "alice.key", self.directory / "alice.crt"
            return common | {
                "security.protocol": "SSL",
                "ssl.key.location": str(key),
                "ssl.certificate.location": str(certificate),
            }
        return common | {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "bob",
            "sasl.password": USERS["bob"],
        }

    def python(self, host: str) -> dict[str, Any]:
        context = create_ssl_context(cafile=str(self.trust))
        if host == MACHINES:
            context.load_cert_chain(self.alice)
            own: dict[str, Any] = {"security_protocol": "SSL"}
        else:
            own = {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_plain_username": "bob",
                "sasl_plain_password": USERS["bob"],
            }
        return own | {"bootstrap_servers": self.at(host), "ssl_context": context}

    def java(self, host: str, user: str = "bob") -> dict[str, str]:
        common = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.trust)}
        if host == MACHINES:
            own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.alice)}
            return common | own | {"security.protocol": "SSL"}
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        return common | {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="{user}" password="{USERS[user]}";',
        }

    def failures(self, kind: str) -> float:
        """Return how many handshakes failed in this way."""
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.kustos.metrics().splitlines()
            if line.startswith("kustos_failed_handshakes_total{") and f'kind="{kind}"' in line
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("three"), nodes=NODES) as made:
        make_topics(made.nodes, NewTopic(TOPIC, PARTITIONS, 1))
        yield made


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cluster: KafkaCluster
) -> Iterator[NamedScene]:
    made = NamedScene(tmp_path_factory.mktemp("named"), cluster.bootstrap, request.param)
    with made.kustos:
        yield made


def described(addresses: dict[str, list[Any]]) -> dict[int, tuple[str, int]]:
    return {int(node_id): (host, port) for node_id, (host, port) in addresses.items()}


@pytest.mark.parametrize("host", [CLIENTS, MACHINES])
def test_librdkafka_reaches_every_leader_by_its_name(
    scene: NamedScene, cluster: KafkaCluster, host: str
) -> None:
    task = {
        "configuration": scene.librdkafka(host),
        "topic": TOPIC,
        "group": f"named-rd-{host}-{scene.ports[host]}",
        "text": f"librdkafka-{scene.ports[host]}",
        "partitions": PARTITIONS,
    }
    line = scene.names.before(sys.executable, "-m", "testkit.librdkafka_child")
    child = subprocess.run(line, input=json.dumps(task), capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    found = json.loads(child.stdout)
    assert described(found["listed"]) == described(found["described"]) == scene.brokers(host)
    assert (found["left"], found["errors"]) == (0, [None] * PARTITIONS)


@pytest.mark.parametrize("host", [CLIENTS, MACHINES])
async def test_aiokafka_reaches_every_leader_by_its_name(scene: NamedScene, host: str) -> None:
    values = {f"aiokafka-{scene.ports[host]}-{number}".encode() for number in range(PARTITIONS)}
    async with scene.names.known():
        async with aiokafka.AIOKafkaProducer(**scene.python(host)) as producer:
            for number, value in enumerate(sorted(values)):
                await producer.send_and_wait(TOPIC, value, partition=number)
            known = {each.nodeId: (each.host, each.port) for each in producer.client.cluster.brokers()}
            assert known == scene.brokers(host)
        consumer = aiokafka.AIOKafkaConsumer(
            TOPIC, **scene.python(host), group_id=f"named-aio-{host}", auto_offset_reset="earliest"
        )
        async with consumer:
            while values:
                values.discard((await consumer.getone()).value)


@pytest.mark.parametrize("host", [CLIENTS, MACHINES])
def test_the_tools_of_java_reach_every_leader_and_coordinator_by_name(
    scene: NamedScene, cluster: KafkaCluster, kafka_tools: KafkaTools, host: str
) -> None:
    properties = scene.java(host)
    to = ("--bootstrap-server", scene.at(host))
    values = {f"java-{scene.ports[host]}-{number}" for number in range(3 * PARTITIONS)}
    written = "".join(f"{value}:{value}\n" for value in sorted(values))
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    kafka_tools.run(
        "ConsoleProducer",
        *(*to, "--topic", TOPIC, *keyed),
        stdin=written,
        client_properties=properties,
        environment=scene.names.java,
    ).require()
    group = f"named-java-{host}-{scene.ports[host]}"
    count = str(count_records(cluster.nodes[0], TOPIC))
    read = kafka_tools.run(
        "ConsoleConsumer",
        *(*to, "--topic", TOPIC, "--from-beginning", "--group", group),
        *("--max-messages", count),
        client_properties=properties,
        environment=scene.names.java,
    )
    assert values <= set(read.stdout.splitlines()), read.stderr
    told = kafka_tools.run(
        "ConsumerGroupCommand",
        *(*to, "--describe", "--group", group, "--state"),
        client_properties=properties,
        environment=scene.names.java,
    ).require()
    assert any(f"{name}:{port}" in told for name, port in scene.brokers(host).values()), told


def test_no_tool_shows_an_address_of_upstream(
    scene: NamedScene, cluster: KafkaCluster, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    file = tmp_path / "admin.properties"
    write_properties(file, scene.java(CLIENTS, "admin"))
    to = ("--bootstrap-server", scene.at(CLIENTS), "--command-config", str(file))

    def said(tool: str, *arguments: str) -> str:
        return kafka_tools.run(tool, *to, *arguments, environment=scene.names.java).require()

    versions = said("BrokerApiVersionsCommand")
    assert all(
        f"{name}:{port} (id: {number}" in versions for number, (name, port) in scene.brokers(CLIENTS).items()
    )
    texts = [
        versions,
        said("ConfigCommand", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "2"),
        said("MetadataQuorumCommand", "describe", "--status"),
        said("TopicCommand", "--describe", "--topic", TOPIC),
    ]
    upstream = [f":{port}" for node in cluster.nodes for port in (*node.ports.values(), node.internal_port)]
    assert upstream
    assert [(address, text) for text in texts for address in upstream if address in text] == []


@pytest.mark.parametrize(
    ("host", "name", "kind"),
    [
        (CLIENTS, PATTERNS[MACHINES].format(1), "unknown_host"),
        (MACHINES, PATTERNS[CLIENTS].format(1), "unknown_host"),
        (CLIENTS, f"{CLIENTS}.evil.org", "unknown_host"),
        (CLIENTS, None, "unknown_host"),
        (CLIENTS, PATTERNS[CLIENTS].format(NODES + 1), "unknown_broker"),
    ],
)
def test_another_name_or_none_is_closed_counted_and_logged(
    scene: NamedScene, host: str, name: str | None, kind: str
) -> None:
    before = scene.failures(kind)
    context = ssl.create_default_context(cafile=str(scene.trust))
    context.check_hostname = False
    with (
        socket.create_connection((LOOPBACK, scene.ports[host]), timeout=WAIT_S) as plain,
        pytest.raises((ssl.SSLError, OSError)) as ended,
    ):
        context.wrap_socket(plain, server_hostname=name)
    assert ("UNRECOGNIZED_NAME" in str(ended.value)) == (kind == "unknown_host"), ended.value
    wait_until(lambda: scene.failures(kind) > before, what="it is counted")
    assert f'"kind": "{kind}"' in (scene.kustos.directory / "kustos.log").read_text()
