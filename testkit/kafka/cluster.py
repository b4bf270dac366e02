"""Several brokers that form one cluster."""

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from testkit.kafka.node import KafkaNode, NodeSettings, random_id


class KafkaCluster:
    """`nodes` brokers on loopback, the first `controllers` of them also the quorum's voters."""

    def __init__(
        self, directory: Path, settings: NodeSettings | None = None, *, nodes: int = 2, controllers: int = 1
    ) -> None:
        if not 1 <= controllers <= nodes:
            raise ValueError(
                f"`{controllers}` controllers among `{nodes}` nodes; name between 1 and all of them"
            )
        cluster_id = random_id()
        self.nodes = tuple(
            KafkaNode(
                directory / f"node-{number}",
                settings,
                node_id=number,
                cluster_id=cluster_id,
                controller=number <= controllers,
            )
            for number in range(1, nodes + 1)
        )
        for node in self.nodes:
            node.voters = self.nodes[:controllers]

    @property
    def bootstrap(self) -> str:
        """`host:port` of every broker's first listener, joined by commas."""
        return ",".join(node.bootstrap for node in self.nodes)

    def address(self, listener: str) -> str:
        """`host:port` of every broker's listener of that name, joined by commas."""
        return ",".join(node.address(listener) for node in self.nodes)

    def start(self) -> Self:
        """Start all brokers and return when each of them knows all others."""
        # one after the other: the tool's JVM does one thing at a time, and another takes longer to start
        for node in self.nodes:
            node.format()
        try:
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.wait_ready(frozenset(other.node_id for other in self.nodes))
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """Kill all brokers like a power cut."""
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


ClusterFactory = Callable[..., KafkaCluster]
"""Starts a cluster: `kafka_cluster(settings, nodes=2, controllers=1)`."""
