"""Three brokers, a relay before each, kustos with two workers, a relay before each of its ports."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka.cimpl import NewTopic

from testkit.faults.observers import Decided, DecisionKey, Paired, Timeline
from testkit.faults.relay import Relays
from testkit.faults.schedule import Side
from testkit.guarded.cluster import PREFIXED, UPSTREAM_HOST, Op, Type, acl
from testkit.kafka import KafkaCluster, NodeSettings, make_topics
from testkit.kustos import BROKER_PORTS, KustosNode, KustosSettings
from testkit.ports import LOOPBACK, free_port_range

BROKERS: Final = 3
WORKERS: Final = 2
PARTITIONS: Final = 3
WRITTEN_TOPICS: Final = (
    "alice-records",
    "alice-payments",
    "jane-records",
    "jane-payments",
    "carol-records",
    "changing",
)
"""Those that somebody may write to."""

TOPICS: Final = (*WRITTEN_TOPICS, "hidden-plans")

SHARED_TOPIC: Final = "carol-records"
SHARED_GROUP: Final = "carol-group"
"""A topic, and the group of two libraries that must have read all of it in the end."""

USERS: Final = {
    name: f"{name}-secret"
    for name in ("admin", "alice", "jane", "carol", "erin", "adam", "mallory", "reader")
}
ACLS: Final = (
    *[
        binding
        for user in ("alice", "jane", "carol")
        for binding in (
            acl(user, Op.WRITE, Type.TOPIC, f"{user}-", PREFIXED),
            acl(user, Op.READ, Type.TOPIC, f"{user}-", PREFIXED),
            acl(user, Op.READ, Type.GROUP, f"{user}-", PREFIXED),
            acl(user, Op.WRITE, Type.TRANSACTIONAL_ID, f"{user}-", PREFIXED),
        )
    ],
    acl("jane", Op.READ, Type.TOPIC, "changing"),
    acl("erin", Op.READ, Type.TOPIC, "changing"),
    acl("erin", Op.WRITE, Type.TOPIC, "changing"),
    acl("erin", Op.READ, Type.GROUP, "erin-", PREFIXED),
    acl("erin", Op.IDEMPOTENT_WRITE, Type.CLUSTER, "kafka-cluster"),
    *[
        acl("adam", operation, Type.TOPIC, "made-", PREFIXED)
        for operation in (Op.CREATE, Op.DELETE, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)
    ],
    acl("reader", Op.READ, Type.TOPIC, "*"),
    acl("reader", Op.READ, Type.GROUP, "reader"),
)
"""`mallory` may nothing, nobody but `reader` may see `hidden-plans`."""

REPLICATED: Final = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "3",
    "min.insync.replicas": "2",
    # a broker that is killed or paused is replaced within seconds
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}
GATEWAY: Final = {
    "kustos.workers": str(WORKERS),
    # a worker that is paused or waits for a core is not to be taken for one that hangs
    "kustos.workers.apply.timeout.ms": "60000",
    "kustos.upstream.metadata.max.age.ms": "2000",
}


class FaultScene:
    """The whole line; as a context manager everything runs inside."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        kafka = NodeSettings(heap="384m", properties=REPLICATED)
        self.brokers = KafkaCluster(directory / "kafka", kafka, nodes=BROKERS, controllers=BROKERS)
        self.relays = Relays()
        self.timeline = Timeline(ACLS, LOOPBACK, frozenset({"User:admin"}))
        self.decisions: Counter[DecisionKey] = Counter()
        self.bootstrap = ""
        self.kustos: KustosNode
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            relays = stack.enter_context(self.relays)
            for node in self.brokers.nodes:
                target = (LOOPBACK, node.ports["PLAINTEXT"])
                port = relays.relay(Side.UPSTREAM, target, self._decided, host=UPSTREAM_HOST)
                node.advertised["PLAINTEXT"] = f"{UPSTREAM_HOST}:{port}"
            stack.enter_context(self.brokers)
            make_topics(self.brokers.nodes, *(NewTopic(name, PARTITIONS, BROKERS) for name in TOPICS))
            self.kustos = stack.enter_context(self._node())
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _decided(self) -> Decided:
        return Decided(self.relays.report, self.timeline, self.decisions)

    def _paired(self) -> Paired:
        return Paired(self.relays.report)

    def _node(self) -> KustosNode:
        """Return the node, its ports in a row, and relays in an equal row before it."""
        first = free_port_range(BROKER_PORTS + 1)
        self.bootstrap = f"{LOOPBACK}:{first}"
        advertised = {"advertised.listeners": f"SASL_PLAINTEXT://{self.bootstrap}"}
        settings = KustosSettings(users=USERS, acls=ACLS, properties=GATEWAY | advertised)
        seen = ",".join(node.advertised["PLAINTEXT"] for node in self.brokers.nodes)
        node = KustosNode(self.directory / "kustos", seen, settings)
        node.port = free_port_range(BROKER_PORTS + 1)
        node.first_broker_port = node.port + 1
        for index in range(BROKER_PORTS + 1):
            target = (LOOPBACK, node.port + index)
            self.relays.relay(Side.CLIENTS, target, self._paired, port=first + index)
        return node

    @property
    def broker_ids(self) -> frozenset[int]:
        """The ids of the brokers."""
        return frozenset(node.node_id for node in self.brokers.nodes)

    @property
    def direct(self) -> str:
        """Where Kafka is reached past everything."""
        return ",".join(f"{LOOPBACK}:{node.internal_port}" for node in self.brokers.nodes)

    def librdkafka(self, user: str, purpose: str) -> dict[str, Any]:
        """Return the configuration of a client of librdkafka."""
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": f"{user}:{purpose}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": USERS[user],
            "log_level": 0,
        }
