"""A node with TLS listeners before a real broker, and the certificates of everybody."""

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography import x509

from testkit.certificates import STORE_PASSWORD, Authority, Holder
from testkit.guarded.cluster import PREFIXED, Op, Type, acl
from testkit.guarded.raw_client import RawClient
from testkit.kafka import KafkaNode
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port, free_port_range

USERS = {"admin": "admin-secret", "bob": "bob-secret"}
ALICE = "CN=alice,O=kustos"
TOPIC, FORBIDDEN = "tls-orders", "tls-secret"
ACLS = tuple(
    acl(user, operation, kind, "tls-orders", PREFIXED)
    for user in (ALICE, "bob")
    for operation, kind in ((Op.READ, Type.TOPIC), (Op.WRITE, Type.TOPIC), (Op.READ, Type.GROUP))
)


class TlsScene:
    """A broker, kustos with an SSL and a SASL_SSL listener before it, and the stores of its clients."""

    def __init__(self, directory: Path, kafka: KafkaNode, workers: int, patience_ms: int = 60_000) -> None:
        self.directory = directory
        self.authority = Authority()
        self.trust = self.authority.write(directory / "authority.pem")
        self.node_store = self.node_certificate().write(directory / "node.pem", STORE_PASSWORD)
        alice = self.authority.issue(x509.Name.from_rfc4514_string(ALICE), address=None)
        self.alice_store = alice.write(directory / "alice.pem")
        (directory / "alice.key").write_text(alice.key_pem)
        (directory / "alice.crt").write_text(alice.chain_pem)
        self.ssl_port = free_port()
        own = {
            "listener.name.ssl.kustos.broker.port.start": str(free_port_range(BROKER_PORTS)),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.node_store),
            "ssl.key.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
            # of no effect on the listener with logins
            "ssl.client.auth": "required",
            "kustos.workers": str(workers),
            "kustos.ssl.handshake.timeout.ms": str(patience_ms),
        }
        self.admin_address = f"{LOOPBACK}:{free_port()}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        own |= {
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.name.controller.plain.sasl.jaas.config": (
                f'{module} required user_admin="{USERS["admin"]}";'
            ),
        }
        settings = KustosSettings(users=USERS, acls=ACLS, protocol="SASL_SSL", properties=own)
        self.kustos = KustosNode(directory / "kustos", kafka.bootstrap, settings)
        listeners = f"SASL_SSL://{self.kustos.bootstrap},SSL://{self.by_certificate}"
        own["listeners"] = f"{listeners},CONTROLLER://{self.admin_address}"
        self.kustos.settings = replace(settings, properties=own)

    @property
    def by_certificate(self) -> str:
        """`host:port` of the listener without logins."""
        return f"{LOOPBACK}:{self.ssl_port}"

    def node_certificate(self) -> Holder:
        """Return a new key and certificate of the node."""
        return self.authority.issue("kustos", hosts=["localhost"])

    def administrator(self) -> RawClient:
        """Return a connection to the admin listener."""
        return RawClient(self.admin_address, "operator").log_in("admin", USERS["admin"])

    @property
    def log(self) -> str:
        """What the node logged so far."""
        return (self.kustos.directory / "kustos.log").read_text()

    def librdkafka(self, user: str | None = None, **properties: Any) -> dict[str, Any]:
        """Return the configuration of a librdkafka client: of a user, or of alice by her certificate."""
        common = {"ssl.ca.location": str(self.trust), "log_level": 0, "client.id": user or "alice"}
        if user is None:
            own = {
                "bootstrap.servers": self.by_certificate,
                "security.protocol": "SSL",
                "ssl.key.location": str(self.directory / "alice.key"),
                "ssl.certificate.location": str(self.directory / "alice.crt"),
            }
        else:
            own = {
                "bootstrap.servers": self.kustos.bootstrap,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": user,
                "sasl.password": USERS[user],
            }
        return common | own | {name.replace("_", "."): value for name, value in properties.items()}

    def python(self, user: str | None = None) -> dict[str, Any]:
        """Return what aiokafka and kafka-python both take."""
        context = ssl.create_default_context(cafile=str(self.trust))
        if user is None:
            context.load_cert_chain(self.alice_store)
            own: dict[str, Any] = {"bootstrap_servers": self.by_certificate, "security_protocol": "SSL"}
        else:
            own = {
                "bootstrap_servers": self.kustos.bootstrap,
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": user,
                "sasl_plain_password": USERS[user],
            }
        return own | {"ssl_context": context}

    def failures(self, kind: str) -> float:
        """Return how many handshakes failed in this way."""
        return sum(
            float(line.rpartition(" ")[2])
            for line in self.kustos.metrics().splitlines()
            if line.startswith("kustos_failed_handshakes_total{") and f'kind="{kind}"' in line
        )
