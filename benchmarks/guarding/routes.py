"""The ways to one broker: direct, through the relay, through kustos; with TLS or without."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.guarding.load import Route
from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from testkit.certificates import STORE_PASSWORD, Authority
from testkit.kafka import KafkaNode, NodeSettings
from testkit.kafka.listeners import PLAINTEXT, SASL_PLAINTEXT, Listener
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

TOPIC = "bench"
USER = "bench"
PASSWORD = "bench-secret"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
START_TIMEOUT_S = 60.0
NOISE_ACLS = 1_000
"""Other people's ACLs, so that the index is not empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """Nodes connect to `upstream`."""

    direct: Route
    relay: Route
    kustos: Route
    upstream: str

    @property
    def ways(self) -> tuple[Route, Route, Route]:
        """Direct, by the relay, and by kustos."""
        return self.direct, self.relay, self.kustos


def allow(resource_type: ResourceType, name: str, principal: str, operation: AclOperation) -> AclBinding:
    """Return an ACL that allows this on names that begin so."""
    pattern = ResourcePattern(resource_type, name, PatternType.PREFIXED)
    return AclBinding(pattern, AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW))


def acls() -> list[AclBinding]:
    """Return what the client may do, among the ACLs of others."""
    others = [
        allow(ResourceType.TOPIC, f"other-{n}-", f"User:other-{n}", AclOperation.ALL)
        for n in range(NOISE_ACLS)
    ]
    own = [
        allow(ResourceType.TOPIC, TOPIC, f"User:{USER}", AclOperation.ALL),
        allow(ResourceType.GROUP, TOPIC, f"User:{USER}", AclOperation.ALL),
    ]
    return others + own


def client_file(directory: Path, name: str, bootstrap: str, protocol: str, trust: Path) -> Path:
    """Write the properties of a client."""
    path = directory / f"{name}.properties"
    path.write_text(
        f"bootstrap.servers={bootstrap}\nsecurity.protocol={protocol}\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={MODULE} required username="{USER}" password="{PASSWORD}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={trust}\n"
    )
    return path


@contextmanager
def started(directory: Path) -> Iterator[tuple[Routes, Routes]]:
    """Start a broker, two relays and two nodes; yield the routes without TLS, and those with it."""
    authority = Authority()
    trust = authority.write(directory / "authority.pem")
    users = {USER: PASSWORD, "admin": "admin-secret"}
    stores = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trust), "ssl.keystore.type": "PEM"}
    broker_store = authority.issue("broker").write(directory / "broker.pem")
    own_store = authority.issue("kustos").write(directory / "kustos.pem", STORE_PASSWORD)
    own_stores = stores | {"ssl.keystore.location": str(broker_store)}
    relayed, encrypted, relayed_tls = (
        Listener(name=name, protocol=protocol, mechanisms=SASL_PLAINTEXT.mechanisms, properties=properties)
        for name, protocol, properties in (
            ("RELAYED", "SASL_PLAINTEXT", {}),
            ("SASL_SSL", "SASL_SSL", own_stores),
            ("RELAYED_TLS", "SASL_SSL", own_stores),
        )
    )
    listeners = (PLAINTEXT, SASL_PLAINTEXT, relayed, encrypted, relayed_tls)
    kafka = KafkaNode(
        directory / "kafka", NodeSettings(listeners=listeners, users=users, peak=True, heap="1g")
    )
    relay_ports = {each.name: free_port() for each in (relayed, relayed_tls)}
    kafka.advertised |= {name: f"{LOOPBACK}:{port}" for name, port in relay_ports.items()}
    upstream = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{MODULE} required username="{USER}" password="{PASSWORD}";',
    }
    listener = stores | {"ssl.keystore.location": str(own_store), "ssl.key.password": STORE_PASSWORD}
    with_tls = listener | {f"kustos.upstream.{key}": value for key, value in upstream.items()}
    plain = KustosNode(
        directory / "kustos", kafka.address("PLAINTEXT"), KustosSettings(users=users, acls=acls())
    )
    secured = KustosNode(
        directory / "kustos-tls",
        kafka.address("SASL_SSL"),
        KustosSettings(users=users, acls=acls(), protocol="SASL_SSL", properties=with_tls),
    )
    with ExitStack() as stack:
        for node in (kafka, plain, secured):
            stack.enter_context(node)
        relays = {}
        for name, files in (("RELAYED", ()), ("RELAYED_TLS", (str(own_store), str(trust)))):
            log = directory / f"{name}.log"
            relays[name] = _relay(log, relay_ports[name], kafka.ports[name], *files)
            stack.callback(relays[name].kill)

        def route(name: str, bootstrap: str, node: KustosNode | Server | None, protocol: str) -> Route:
            file = client_file(directory, name, bootstrap, protocol, trust)
            process = node.server if isinstance(node, KustosNode) else node
            pid = None if process is None else process.pid
            return Route(name=name, bootstrap=bootstrap, topic=TOPIC, properties=file, pid=pid)

        yield (
            Routes(
                direct=route("direct", kafka.address("SASL_PLAINTEXT"), None, "SASL_PLAINTEXT"),
                relay=route("relay", kafka.advertised["RELAYED"], relays["RELAYED"], "SASL_PLAINTEXT"),
                kustos=route("kustos", plain.bootstrap, plain, "SASL_PLAINTEXT"),
                upstream=kafka.address("PLAINTEXT"),
            ),
            Routes(
                direct=route("direct-tls", kafka.address("SASL_SSL"), None, "SASL_SSL"),
                relay=route("relay-tls", kafka.advertised["RELAYED_TLS"], relays["RELAYED_TLS"], "SASL_SSL"),
                kustos=route("kustos-tls", secured.bootstrap, secured, "SASL_SSL"),
                upstream=kafka.address("SASL_SSL"),
            ),
        )


def _relay(log: Path, port: int, broker_port: int, *files: str) -> Server:
    line = [sys.executable, "-m", "benchmarks.guarding.relay", str(port), str(broker_port), *files]
    relay = Server("relay", line, log)
    relay.wait_ready(lambda: _listens(port), timeout_s=START_TIMEOUT_S)
    return relay


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0
