"""A node with every mechanism, with TLS and without, a provider of tokens and a KDC."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from testkit.certificates import Authority
from testkit.guarded.cluster import PREFIXED, Op, Type, acl
from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import KafkaNode
from testkit.kdc import Kdc
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.login_keys import ALLOWED_URLS, MODULES, bearer_keys, kerberos_keys, pem_keys
from testkit.ports import LOOPBACK, free_port, free_port_range

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
USERS = {"alice": "alice-secret", "admin": "admin-secret"}
CLIENTS = {"alice": "alice-provider-secret"}
PREFIX = "matrix-"
"""Of topics and groups that alice may use."""

LIFE_MS = 15_000
"""Of a session by SCRAM-SHA-256. Clients renew it earlier, some by no more than a twentieth, which a busy
machine may be late by."""


@dataclass(frozen=True)
class LoginScene:
    """The node, and what clients need to know."""

    directory: Path
    node: KustosNode
    ports: Mapping[str, int]
    provider: IdentityProvider
    trust: Path
    keytab: Path

    def bootstrap(self, protocol: str) -> str:
        """`host:port` of the listener; a name, since Kerberos needs one."""
        return f"localhost:{self.ports[protocol]}"

    def context(self, protocol: str) -> ssl.SSLContext | None:
        """Return the TLS context of a Python client."""
        return ssl.create_default_context(cafile=str(self.trust)) if protocol == "SASL_SSL" else None

    def logins(self, **fields: str) -> int:
        """Return how many events of logins have these fields."""
        events = self.node.security_events()
        return sum(
            fields.items() <= {k: v for k, v in event.items() if k in fields}.items() for event in events
        )


def _properties(ports: Mapping[str, int], keys: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    found = {
        "listeners": ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.kerberos.service.name": "kafka",
    }
    plain = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    for name in ports:
        own = {
            "kustos.broker.port.start": str(free_port_range(BROKER_PORTS)),
            "plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {plain};",
            "scram-sha-256.connections.max.reauth.ms": str(LIFE_MS),
            **keys["oauth"],
            **keys["kerberos"],
            **(keys["tls"] if name == "SASL_SSL" else {}),
        }
        found |= {f"listener.name.{name.lower()}.{key}": value for key, value in own.items()}
    return found


@contextmanager
def login_scene(folder: Path, kafka: KafkaNode) -> Iterator[LoginScene]:
    """Start the KDC, the provider and the node; Java's tools and libraries find the realm meanwhile."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        kdc = stack.enter_context(Kdc(folder / "kdc"))
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        keytab = kdc.keytab("alice")
        # MIT's library logs in by itself with these
        patch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
        patch.setenv("KRB5CCNAME", f"FILE:{folder / 'tickets'}")
        provider = IdentityProvider(folder / "provider", ProviderSettings(clients=CLIENTS))
        stack.enter_context(provider)
        patch.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED_URLS}={provider.token_url}")
        authority = Authority()
        trust = authority.write(folder / "authority.pem")
        store = authority.issue("kustos", hosts=["localhost"]).write(folder / "node.pem")
        keys = {
            "oauth": bearer_keys(provider.jwks_url, provider.settings.audience, provider.issuer),
            "kerberos": kerberos_keys(kdc.keytab("kafka/localhost")),
            "tls": pem_keys(store, trust),
        }
        ports = {name: free_port() for name in PROTOCOLS}
        properties = _properties(ports, keys) | {ALLOWED_URLS: provider.jwks_url}
        acls = (acl("alice", Op.ALL, Type.TOPIC, PREFIX, PREFIXED), acl("alice", Op.READ, Type.GROUP, "*"))
        settings = KustosSettings(users=USERS, acls=acls, properties=properties)
        node = stack.enter_context(KustosNode(folder / "kustos", kafka.bootstrap, settings))
        yield LoginScene(folder, node, ports, provider, trust, keytab)
