"""Clients, a tap, kustos, another tap, Kafka: the whole way, recorded on both sides of kustos.

Kafka's advertised listeners are the upper tap, on an address of its own (127.0.0.2), so that kustos's
links to each broker pass it and a leaked address shows; kustos's advertised listener is the lower tap.
Upstream has no authorizer: it trusts kustos, and whatever kustos let through happens.
"""

import gc
import sys
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka.cimpl import NewTopic

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from testkit.guarded.traffic_judge import OWN_CLIENT_ID, Acls, Judge, Verdict
from testkit.kafka import KafkaCluster, KafkaNode, NodeSettings, make_topics
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port_range
from testkit.tap import Tap
from testkit.waiting import wait_until

UPSTREAM_HOST = "127.0.0.2"
"""Where clients must never be sent."""

Op, Type = AclOperation, ResourceType
PREFIXED = PatternType.PREFIXED


def acl(
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: PatternType = PatternType.LITERAL,
    *,
    allow: bool = True,
) -> AclBinding:
    """Return a binding for a user from any host."""
    permission = AclPermissionType.ALLOW if allow else AclPermissionType.DENY
    entry = AccessControlEntry(f"User:{user}", "*", operation, permission)
    return AclBinding(ResourcePattern(kind, name, pattern), entry)


class GuardedCluster:
    """The whole line. `topics` exist upstream when it is entered, `records` are in them."""

    def __init__(
        self,
        directory: Path,
        settings: KustosSettings,
        *,
        nodes: int = 1,
        topics: Sequence[str] = (),
        partitions: int = 1,
        taps_clients: bool = True,
        kafka: NodeSettings | None = None,
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.topics = topics
        self.partitions = partitions
        self.taps_clients = taps_clients
        self.upstream = Tap()
        self.clients = Tap()
        self.cluster = KafkaCluster(directory / "kafka", kafka, nodes=nodes)
        self.judge_of_all = Judge(frozenset(f"User:{name}" for name in settings.super_users), LOOPBACK)
        self._stack = ExitStack()
        self.kustos: KustosNode
        self.bootstrap = ""

    @property
    def acls(self) -> Acls:
        """The ACLs that the node was formatted with."""
        return self.settings.acls

    @property
    def direct(self) -> str:
        """Where Kafka is reached past the taps."""
        return ",".join(f"{LOOPBACK}:{node.internal_port}" for node in self.cluster.nodes)

    def node(self, node_id: int) -> KafkaNode:
        """Return an upstream broker."""
        return self.cluster.nodes[node_id - 1]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.upstream)
            stack.enter_context(self.clients)
            for node in self.cluster.nodes:
                port = self.upstream.relay((LOOPBACK, node.ports["PLAINTEXT"]), UPSTREAM_HOST)
                node.advertised["PLAINTEXT"] = f"{UPSTREAM_HOST}:{port}"
            stack.enter_context(self.cluster)
            self._make_topics()
            seen = [node.advertised["PLAINTEXT"] for node in self.cluster.nodes]
            self.kustos = self._kustos_before(",".join(seen))
            stack.enter_context(self.kustos)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _kustos_before(self, upstream: str) -> KustosNode:
        """Return the node, its ports in a row, and the clients' tap in an equal row before it."""
        node = KustosNode(self.directory / "kustos", upstream, self.settings)
        node.port = free_port_range(BROKER_PORTS + 1)
        node.first_broker_port = node.port + 1
        self.bootstrap = node.bootstrap
        if self.taps_clients:
            first = free_port_range(BROKER_PORTS + 1)
            for index in range(BROKER_PORTS + 1):
                self.clients.relay((LOOPBACK, node.port + index), port=first + index)
            self.bootstrap = f"{LOOPBACK}:{first}"
            advertised = f"{self.settings.protocol}://{self.bootstrap}"
            properties = {**self.settings.properties, "advertised.listeners": advertised}
            node.settings = KustosSettings(
                users=self.settings.users,
                acls=self.settings.acls,
                super_users=self.settings.super_users,
                protocol=self.settings.protocol,
                audit=self.settings.audit,
                properties=properties,
            )
        return node

    def _make_topics(self) -> None:
        if self.topics:
            nodes = self.cluster.nodes
            make_topics(nodes, *(NewTopic(name, self.partitions, len(nodes)) for name in self.topics))

    @property
    def forwarded(self) -> int:
        """How many requests went upstream that kustos did not make for itself."""
        return sum(not each.client_id.startswith(OWN_CLIENT_ID) for each in self.upstream.exchanges)

    def judge(self, *acl_sets: Acls) -> Verdict:
        """Return the verdict on all that passed so far, by the first ACLs or by these."""
        return self.judge_of_all.judge(self.clients, self.upstream, acl_sets or (self.acls,))

    def assert_proper(self, *acl_sets: Acls) -> Verdict:
        """Assert that nothing unauthorised passed, that no address leaked, and that this could be told."""
        verdict = self.judge(*acl_sets)
        assert verdict.violations == [], "\n".join(map(str, verdict.violations))
        assert not self.upstream.strays
        assert not self.clients.strays
        assert self.leaks() == [], self.leaks()
        return verdict

    def begin_anew(self) -> None:
        """Forget what was recorded, once the clients and their upstream halves are gone."""
        # a client lives on in the frames of a test that failed, which pytest keeps though it has reported
        # them, and in the cycle of a traceback that was looked at until it is collected
        failure = getattr(sys, "last_value", None)
        while failure is not None:
            traceback.clear_frames(failure.__traceback__)
            failure = failure.__context__
        gc.collect()
        wait_until(
            lambda: self.clients.open_count == 0 and self.upstream.open_count <= 1,
            what="the clients' connections are closed on both sides of kustos",
        )
        self.upstream.forget()
        self.clients.forget()

    def leaks(self) -> list[str]:
        """Return what clients were sent that holds upstream's address."""
        hosts = UPSTREAM_HOST.encode()
        return [
            f"API {exchange.api_key} to {exchange.client_id}"
            for exchange in self.clients.exchanges
            if exchange.answer is not None and hosts in exchange.answer
        ]

    def librdkafka(self, user: str, mechanism: str = "SCRAM-SHA-256", **properties: Any) -> dict[str, Any]:
        """Return the configuration of a librdkafka client; `_` in names stands for a dot."""
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": user,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self.settings.users[user],
            "log_level": 0,
        } | {name.replace("_", "."): value for name, value in properties.items()}

    def python(self, user: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
        """Return what aiokafka and kafka-python both take."""
        return {
            "bootstrap_servers": self.bootstrap,
            "client_id": user,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": self.settings.users[user],
        }

    def java(self, user: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
        """Return the properties of a Java client."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        password = self.settings.users[user]
        return {
            "client.id": user,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
            f'username="{user}" password="{password}";',
        }
