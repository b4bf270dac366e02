"""A node that is cut off from its quorum, in a network namespace of its own; prints what it saw as JSON.

`unshare --net python -m tests.quorum.cut_off DIRECTORY`: the loopback of the new namespace holds everything,
the controller at an address of its own. A route that swallows what is sent there is the cut: connections that
exist hear nothing more, new ones cannot be made. With the last process the namespace is gone.
"""

import asyncio
import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from kustos.client import ClientSettings, parse_address
from kustos.client.errors import AuthenticationFailedError, ConnectionClosedError
from kustos.client.sasl import connect
from kustos.metadata.directory.format import format_directory
from testkit.kustos import KustosNode
from testkit.ports import LOOPBACK
from testkit.quorum.controllers import Quorum
from testkit.quorum.nodes import (
    UNKNOWN_TOPIC,
    allow,
    create_acls,
    kraft_node,
    logged_in,
    readiness,
    topic_error,
)
from testkit.waiting import wait_until, whole_lines

CONTROLLER_HOST = "127.77.0.2"
STALENESS_MS = 5_000
OLD_ENOUGH_MS = STALENESS_MS * 6 // 10
CHANGE_TIMEOUT_MS = 1_500


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def cut() -> None:
    ip("route", "replace", "blackhole", CONTROLLER_HOST, "table", "local")


def mend() -> None:
    ip("route", "del", "blackhole", CONTROLLER_HOST, "table", "local")


def seen(node: KustosNode, topic: str, user: str = "ann") -> int:
    """Return what a user is told of a topic; the code of a closed connection is -1000."""

    async def run() -> int:
        try:
            async with await logged_in(node, user) as connection:
                return await topic_error(connection, topic)
        except ConnectionClosedError:
            return -1000

    return asyncio.run(run())


def created(node: KustosNode, topic: str) -> tuple[int, str | None]:
    async def run() -> tuple[int, str | None]:
        async with await logged_in(node, "admin") as connection:
            result = (await create_acls(connection, allow(topic))).results[0]
            return int(result.error_code), result.error_message

    return asyncio.run(run())


def can_log_in_by_scram(node: KustosNode) -> bool:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="dora" password="dora-secret";'
        ),
    }

    async def run() -> bool:
        settings = ClientSettings.from_properties(node.bootstrap, properties)
        try:
            async with await connect(parse_address(node.bootstrap), settings):
                return True
        except AuthenticationFailedError:
            return False

    return asyncio.run(run())


class EarlyNode(KustosNode):
    """A node that is up once it listens, whether it is ready or not."""

    def is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, self.port)) == 0


def early(quorum: Quorum, node: KustosNode) -> dict[str, Any]:
    """Start a node whose listener does not wait for the quorum, which is away; return what it does."""
    properties = dict(node.settings.properties) | {"early.start.listeners": "SASL_PLAINTEXT"}
    other = EarlyNode(
        node.directory.parent / "early", node.upstream, replace(node.settings, properties=properties)
    )
    format_directory(other.metadata_directory, cluster_id=quorum.cluster_id)
    with other:
        return {
            "ready": readiness(other)["parts"],
            "seen by admin": seen(other, "kept", "admin"),
            "seen by ann": seen(other, "kept"),
        }


def while_young(node: KustosNode) -> dict[str, Any] | None:
    """Cut, and return what a node does whose metadata is of a certain age; None if it was too old for that.

    Then the cut is mended: a machine may be too busy to ask in time.
    """
    cut()
    # late enough that the log has said so
    wait_until(lambda: age_ms(node) > OLD_ENOUGH_MS, what="its metadata is of an age")
    told = {
        "seen while young": seen(node, "kept"),
        "ready while young": readiness(node)["parts"]["quorum"],
    }
    if age_ms(node) < STALENESS_MS:
        return told
    mend()
    wait_until(lambda: readiness(node)["parts"]["quorum"], what="it is current again")
    return None


def age_ms(node: KustosNode) -> int:
    age: int = readiness(node)["metadata_staleness_ms"]
    return age


def story(quorum: Quorum, node: KustosNode) -> dict[str, Any]:
    """Cut and mend; return what was seen."""
    told: dict[str, Any] = {}
    # what the quorum did not carry out in time it may carry out yet
    told["created before"] = wait_until(
        lambda: created(node, "kept"), holds=lambda answer: not answer[0], what="the quorum takes a change"
    )
    told["scram before"] = wait_until(lambda: can_log_in_by_scram(node), what="dora logs in")
    young = wait_until(lambda: while_young(node), what="it is asked in time")
    assert young is not None
    told |= young
    told["created while cut"] = created(node, "lost")
    wait_until(lambda: not readiness(node)["parts"]["quorum"], what="it is too old")
    told["staleness at closing"] = age_ms(node)
    told["early"] = early(quorum, node)
    told["seen when old"] = seen(node, "kept")
    told["seen by super user when old"] = created(node, "lost")[0]
    told["scram when old"] = can_log_in_by_scram(node)
    told["metric"] = "kustos_metadata_stale 1.0" in node.metrics()
    mend()
    wait_until(lambda: readiness(node)["parts"]["quorum"], what="it is current again")
    # on a busy machine it may be too old once more, for a moment
    told["seen when mended"] = wait_until(
        lambda: seen(node, "kept"), holds=UNKNOWN_TOPIC.__eq__, what="it decides again"
    )
    told["scram when mended"] = wait_until(lambda: can_log_in_by_scram(node), what="dora logs in again")
    told["created when mended"] = wait_until(
        lambda: created(node, "new"),
        holds=lambda answer: not answer[0],
        what="it takes changes again",
    )
    told["seen of the new"] = wait_until(
        lambda: seen(node, "new") == UNKNOWN_TOPIC, what="the new change is in force"
    )
    told["log"] = [
        json.loads(line)["event"]
        for line in whole_lines(node.directory / "kustos.log")
        if "metadata" in line or "quorum" in line
    ]
    return told


def main(directory: Path) -> None:
    """Run it all."""
    ip("link", "set", "lo", "up")
    users = {"dora": "dora-secret"}
    quorum = Quorum(directory, count=1, protocol="PLAINTEXT", users=users, host=CONTROLLER_HOST)
    with quorum:
        old = {
            "kustos.metadata.max.staleness.ms": str(STALENESS_MS),
            "kustos.quorum.change.timeout.ms": str(CHANGE_TIMEOUT_MS),
            "controller.quorum.request.timeout.ms": "1000",
        }
        with kraft_node(directory / "kustos", quorum, old) as node:
            print(json.dumps(story(quorum, node)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
