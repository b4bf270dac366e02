"""One Kafka broker (and controller) on this machine: formatted, started, checked for readiness, stopped."""

import base64
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testkit.kafka import probe
from testkit.kafka.java import command
from testkit.kafka.listeners import (
    INTERNAL_PASSWORD,
    INTERNAL_USER,
    PLAINTEXT,
    Listener,
    plain_jaas,
)
from testkit.kafka.tools import KafkaTools, write_properties
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

START_TIMEOUT_S = 120.0
"""A start takes 2 s on an idle machine, ten times as long on a busy one."""

STOP_TIMEOUT_S = 60.0
"""A controlled shutdown takes 1 to 3 s."""

SCRAM_ITERATIONS = 4096
"""Kafka's minimum, since tests wait for it."""

SINGLE_MACHINE = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "controller.quorum.append.linger.ms": "0",
    "log.cleaner.dedupe.buffer.size": "10485760",
    # an idle controller writes a record twice a second, which costs as much as all else that a broker does
    "metadata.max.idle.interval.ms": "10000",
}
"""Internal topics that fit one broker, no delays that tests never need, and little memory."""

GROWING = {"metadata.max.idle.interval.ms": "500"}
"""Kafka's default: for who follows a metadata log, which then grows by itself."""

SNAPSHOTS_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "2000", **GROWING}
"""For who reads Kafka's snapshots: one is taken when the log has grown so far, also if nobody changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """The settings of a broker that a test chooses; the harness sets everything else.

    `users` get a PLAIN password and SCRAM credentials of both strengths. `internal_protocol` is the protocol
    between brokers and controllers: PLAINTEXT as `User:ANONYMOUS`, unless an authorizer is on; then
    SASL_PLAINTEXT as `User:broker`, so that ANONYMOUS may be anybody. `peak` starts the JVM for speed, not
    for a fast start. `authorizer_log_level`: TRACE also shows what Kafka has flagged not to be logged.
    `release_version` is the release for formatting the storage, by default the newest.
    `jars` hold plug-ins.
    """

    listeners: tuple[Listener, ...] = (PLAINTEXT,)
    users: Mapping[str, str] = field(default_factory=dict)
    authorizer: str | None = None
    super_users: tuple[str, ...] = ()
    auto_create_topics: bool = False
    internal_protocol: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    heap: str = "512m"
    peak: bool = False
    authorizer_log_level: str = "DEBUG"
    release_version: str | None = None
    jars: tuple[Path, ...] = ()

    @property
    def internal(self) -> str:
        """The protocol between brokers and controllers."""
        return self.internal_protocol or ("SASL_PLAINTEXT" if self.authorizer else "PLAINTEXT")


def random_id() -> str:
    """Return a random UUID in Kafka's 22-character form."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        continue
    return text


class KafkaNode:
    """A broker on loopback, ready when `start()` returns; as a context manager it is killed at the end.

    By itself it is a whole cluster (combined broker and controller); `KafkaCluster` passes in the voters.
    """

    def __init__(
        self,
        directory: Path,
        settings: NodeSettings | None = None,
        *,
        node_id: int = 1,
        cluster_id: str | None = None,
        controller: bool = True,
    ) -> None:
        self.directory = directory
        self.settings = settings or NodeSettings()
        self.node_id = node_id
        self.cluster_id = cluster_id or random_id()
        self.controller = controller
        self.directory_id = random_id()
        self.voters: Sequence[KafkaNode] = (self,)
        self.ports = {listener.name: free_port() for listener in self.settings.listeners}
        self.advertised: dict[str, str] = {}
        """Listener → `host:port` that clients are told instead: where a relay stands before it."""
        self.internal_port = free_port()
        self.controller_port = free_port()
        self.server: Server | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port` of the first listener."""
        return self.address(self.settings.listeners[0].name)

    def address(self, listener: str) -> str:
        """`host:port` of the listener with that name."""
        return f"{LOOPBACK}:{self.ports[listener]}"

    @property
    def internal_sasl(self) -> bool:
        """Whether brokers log in to each other, by PLAIN as the internal user."""
        return self.settings.internal.startswith("SASL_")

    @property
    def internal_client(self) -> dict[str, Any]:
        """The librdkafka settings to reach the broker past its relays, as a user with every permission."""
        client: dict[str, Any] = {"bootstrap.servers": f"{LOOPBACK}:{self.internal_port}"}
        if self.internal_sasl:
            login = {"username": INTERNAL_USER, "password": INTERNAL_PASSWORD, "mechanism": "PLAIN"}
            client["security.protocol"] = self.settings.internal
            client |= {f"sasl.{key}": value for key, value in login.items()}
        return client

    @property
    def controller_address(self) -> str:
        """`host:port` of the controller listener."""
        return f"{LOOPBACK}:{self.controller_port}"

    @property
    def log_dir(self) -> Path:
        """Kafka's `log.dirs`: partitions and `__cluster_metadata-0`."""
        return self.directory / "data"

    @property
    def configuration_file(self) -> Path:
        """The broker's properties file."""
        return self.directory / "server.properties"

    @property
    def authorizer_log(self) -> Path:
        """The authorizer's own log, at `authorizer_log_level`: allowed and denied alike."""
        return self.directory / "authorizer.log"

    @property
    def output(self) -> Path:
        """Everything the broker printed."""
        return self.directory / "server.log"

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self.server is None:
            raise ValueError(f"node {self.node_id} is not running")
        return self.server.pid

    def configuration(self) -> dict[str, str]:
        """Return the broker's properties."""
        settings, internal = self.settings, self.settings.internal
        clients = {listener.name: self.address(listener.name) for listener in settings.listeners}
        brokers = {**clients, "INTERNAL": f"{LOOPBACK}:{self.internal_port}"}
        bound = {**brokers, "CONTROLLER": self.controller_address} if self.controller else brokers
        told = bound | self.advertised
        protocols = {listener.name: listener.protocol for listener in settings.listeners}
        protocols |= {"INTERNAL": internal, "CONTROLLER": internal}
        keys = {
            "process.roles": "broker,controller" if self.controller else "broker",
            "node.id": str(self.node_id),
            "log.dirs": str(self.log_dir),
            "listeners": ",".join(f"{name}://{address}" for name, address in bound.items()),
            "advertised.listeners": ",".join(f"{name}://{address}" for name, address in told.items()),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
            "inter.broker.listener.name": "INTERNAL",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(node.controller_address for node in self.voters),
            "auto.create.topics.enable": str(settings.auto_create_topics).lower(),
            **SINGLE_MACHINE,
        }
        for listener in settings.listeners:
            keys |= listener.configuration(settings.users)
        if self.internal_sasl:
            keys |= _internal_sasl()
        if settings.authorizer is not None:
            own = "User:ANONYMOUS" if internal == "PLAINTEXT" else f"User:{INTERNAL_USER}"
            keys["authorizer.class.name"] = settings.authorizer
            keys["super.users"] = ";".join((own, *settings.super_users))
        return keys | dict(settings.properties)

    def format(self) -> None:
        """Write the configuration and format the storage with Kafka's StorageTool, including users."""
        self.directory.mkdir(parents=True, exist_ok=True)
        write_properties(self.configuration_file, self.configuration())
        arguments = ["format", "-t", self.cluster_id, "-c", str(self.configuration_file)]
        if self.settings.release_version is not None:
            arguments += ["--release-version", self.settings.release_version]
        if self.controller:
            voters = ",".join(
                f"{node.node_id}@{node.controller_address}:{node.directory_id}" for node in self.voters
            )
            arguments += ["--initial-controllers", voters]
        else:
            arguments += ["--no-initial-controllers"]
        for user, password in self.settings.users.items():
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                fields = f"name={user},password={password},iterations={SCRAM_ITERATIONS}"
                arguments += ["--add-scram", f"{mechanism}=[{fields}]"]
        KafkaTools().run("StorageTool", *arguments).require()

    def launch(self, *, archiving: bool = False) -> None:
        """Start the broker's process without waiting; format first if necessary."""
        if not (self.log_dir / "meta.properties").exists():
            self.format()
        line = command(
            "kafka.Kafka",
            str(self.configuration_file),
            heap=self.settings.heap,
            archive_name="broker",
            logs=self.directory,
            archiving=archiving,
            peak=self.settings.peak,
            jars=self.settings.jars,
        )
        environment = {"AUTHORIZER_LOG_LEVEL": self.settings.authorizer_log_level}
        self.server = Server(f"kafka node {self.node_id}", line, self.output, environment)

    def wait_ready(self, brokers: frozenset[int] | None = None) -> None:
        """Return when a Metadata response names all of `brokers` (by default this one), else `ChildError`."""
        wanted = brokers or frozenset({self.node_id})
        if self.server is None:
            raise ValueError(f"node {self.node_id} was not launched")
        self.server.wait_ready(
            lambda: wanted <= probe.broker_ids(self.internal_port, sasl=self.internal_sasl),
            timeout_s=START_TIMEOUT_S,
        )

    def start(self) -> Self:
        """Start the broker and return when it is ready; after a `stop()` or `kill()` it keeps its data."""
        self.launch()
        self.wait_ready()
        return self

    def kill(self) -> None:
        """Kill the broker like a power cut; its data stays."""
        if self.server is not None:
            self.server.kill()
            self.server = None

    def stop(self) -> None:
        """Stop the broker by a controlled shutdown; its data stays. Does nothing if it is not running."""
        if self.server is not None:
            self.server.terminate(timeout_s=STOP_TIMEOUT_S)
            self.server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def _internal_sasl() -> dict[str, str]:
    keys = {
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
    }
    for name in ("internal", "controller"):
        keys[f"listener.name.{name}.sasl.enabled.mechanisms"] = "PLAIN"
        keys[f"listener.name.{name}.plain.sasl.jaas.config"] = plain_jaas({})
    return keys


NodeFactory = Callable[[NodeSettings], KafkaNode]
"""Starts a broker with these settings."""
