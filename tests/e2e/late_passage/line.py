"""Two brokers behind a tap, and kustos nodes before it, on which requests can wait at a broker."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from confluent_kafka.cimpl import NewTopic

from testkit.guarded.cluster import GuardedCluster
from testkit.guarded.common_settings import USERS
from testkit.kafka import NodeSettings, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.late_passage.stage import Stage
from testkit.late_passage.waiting_requests import (
    Head,
    deleting,
    fetching,
    joining,
    producing,
    sharing,
    syncing,
)
from testkit.ports import LOOPBACK

FOLLOWER: Final = 2
"""The broker that can stand still: the other is the controller, too."""

PATIENT: Final = {
    # a follower that stands still stays in sync for as long as a test takes
    "broker.session.timeout.ms": "600000",
    "replica.lag.time.max.ms": "600000",
}
REVOCATION_TIMEOUT: Final = "kustos.revocation.timeout.ms"
UNHURRIED: Final = {REVOCATION_TIMEOUT: "20000"}
"""Brokers that run are done long before, also on a busy machine."""

HURRIED: Final = {REVOCATION_TIMEOUT: "6000"}
"""For a node before brokers of both kinds."""

IMPATIENT: Final = {REVOCATION_TIMEOUT: "1500"}
"""For a node whose broker stands still: it is waited for in full, and no load makes that broker answer."""

HEADS: Final = ("JoinGroup", "SyncGroup", "Fetch", "ShareFetch", "Produce", "DeleteRecords")
USER: Final = "alice"

Staged = Callable[..., Stage]
"""Makes what a test has for itself: behind this broker, or at this node."""


class Line(GuardedCluster):
    """Topics and groups are at the first broker where a test says nothing else."""

    def __init__(self, directory: Path) -> None:
        kafka = NodeSettings(properties=PATIENT)
        super().__init__(
            directory,
            KustosSettings(users=USERS, properties=UNHURRIED),
            nodes=2,
            taps_clients=False,
            kafka=kafka,
        )

    def _make_topics(self) -> None:
        """Let the first broker lead all groups, and keep what share groups have read."""
        internal = ("__consumer_offsets", "__share_group_state")
        make_topics(self.cluster.nodes, *[NewTopic(name, 1, replica_assignment=[[1]]) for name in internal])

    def guard(self, name: str, **properties: str) -> KustosNode:
        """Return one more node before the same brokers, with settings of its own; not started."""
        settings = KustosSettings(users=USERS, properties=UNHURRIED | properties)
        return KustosNode(self.directory / name, self.kustos.upstream, settings)

    def stage(self, name: str, node: KustosNode, broker: int = 1) -> Stage:
        """Return a stage behind one broker, at one of the nodes."""
        return Stage(
            name,
            user=USER,
            passwords=USERS,
            guard=f"{LOOPBACK}:{node.first_broker_port + broker}",
            admin=node.bootstrap,
            direct=f"{LOOPBACK}:{self.node(broker).internal_port}",
            broker=broker,
            tap=self.upstream,
        )

    def head(self, api: str, stage: Stage) -> Head:
        """Return the request that will wait, its wait prepared."""
        if api in {"Produce", "DeleteRecords"}:
            waits = producing if api == "Produce" else deleting
            return waits(stage, FOLLOWER, self.node(FOLLOWER).pid)
        waits_alone = {"JoinGroup": joining, "SyncGroup": syncing, "Fetch": fetching, "ShareFetch": sharing}
        return waits_alone[api](stage)
