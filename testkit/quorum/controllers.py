"""A real quorum of Kafka's controllers with one broker, for those who follow it."""

import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from testkit.kafka import STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kafka.listeners import INTERNAL_PASSWORD, INTERNAL_USER, PLAIN_MODULE, SCRAM_MODULE
from testkit.kafka.node import GROWING, START_TIMEOUT_S, random_id
from testkit.ports import LOOPBACK
from testkit.processes import Server

CONTROLLER_HEAP = "256m"

BROKER_ID = 5
"""Within the ports that a kustos node keeps for brokers, and above those of the controllers."""

OWN_LOGIN = f'username="{INTERNAL_USER}" password="{INTERNAL_PASSWORD}"'

SCRAM_FOR_CONTROLLERS = {
    "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.controller.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
}
"""Properties by which followers may log in by SCRAM."""


class Controller(KafkaNode):
    """A node that is a controller and nothing else; `host` is where it listens."""

    host = LOOPBACK

    @property
    def controller_address(self) -> str:
        return f"{self.host}:{self.controller_port}"

    def configuration(self) -> dict[str, str]:
        keys = super().configuration()
        del keys["inter.broker.listener.name"]
        listener = f"CONTROLLER://{self.controller_address}"
        return keys | {"process.roles": "controller", "listeners": listener, "advertised.listeners": listener}

    def wait_ready(self, brokers: frozenset[int] | None = None) -> None:
        server: Server | None = self.server
        assert server is not None
        server.wait_ready(lambda: self._accepts() and self._knows_commits(), timeout_s=START_TIMEOUT_S)

    def _knows_commits(self) -> bool:
        """Return whether it has learned of records that a majority has: those are never truncated."""
        return b"High watermark set to" in self.output.read_bytes()

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((self.host, self.controller_port)) == 0


class Quorum:
    """`count` controllers and a broker, which speak this protocol with each other."""

    def __init__(
        self,
        directory: Path,
        *,
        count: int = 3,
        protocol: str = "SASL_PLAINTEXT",
        broker: bool = True,
        properties: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        host: str = LOOPBACK,
    ) -> None:
        settings = NodeSettings(
            authorizer=STANDARD_AUTHORIZER,
            internal_protocol=protocol,
            super_users=("User:admin", "User:ANONYMOUS"),
            users=users or {},
            heap=CONTROLLER_HEAP,
            properties={**GROWING, **(properties or {})},
        )
        self.cluster_id = random_id()
        self.protocol = protocol
        self.controllers = tuple(
            Controller(
                directory / f"controller-{number}", settings, node_id=number, cluster_id=self.cluster_id
            )
            for number in range(1, count + 1)
        )
        self.broker = (
            KafkaNode(
                directory / "broker",
                settings,
                node_id=BROKER_ID,
                cluster_id=self.cluster_id,
                controller=False,
            )
            if broker
            else None
        )
        self.nodes: tuple[KafkaNode, ...] = self.controllers + (() if self.broker is None else (self.broker,))
        for controller in self.controllers:
            controller.host = host
        for node in self.nodes:
            node.voters = self.controllers

    @property
    def bootstrap(self) -> str:
        """Where the controllers listen."""
        return ",".join(node.controller_address for node in self.controllers)

    def client_properties(self, mechanism: str = "PLAIN") -> dict[str, str]:
        """How an observer logs in."""
        if self.protocol == "PLAINTEXT":
            return {"security.protocol": "PLAINTEXT"}
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{module} required {OWN_LOGIN};",
        }

    def start(self) -> Self:
        for node in self.nodes:
            node.format()
        try:
            for node in self.controllers:
                node.launch()
            for node in self.controllers:
                node.wait_ready()
            # a broker of 4.3.1 that has to truncate its log to nothing forgets who votes, and finds no
            # controller after the first: its log is empty until the controllers agree
            if self.broker is not None:
                self.broker.start()
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
