"""Many creations while the active controller is killed: what was acknowledged must be there, everywhere.

`python -m testkit.quorum.storm 1000` is the full run, with its figures; a test does the same with fewer.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kustos.acl import AclBinding
from kustos.client import KafkaConnection
from kustos.metadata.directory.loader import read_image
from testkit.kustos import KustosNode
from testkit.metadata_logs import HALF_WRITTEN
from testkit.quorum.controllers import Controller, Quorum
from testkit.quorum.nodes import (
    DENIED,
    acls_of,
    acls_of_broker,
    allow,
    create_acls,
    kraft_node,
    leader_of,
    logged_in,
    topic_error,
)
from testkit.waiting import wait_until

AT_ONCE = 8
SETTLED_S = 60.0


@dataclass
class Storm:
    """What came of it."""

    acknowledged: set[AclBinding] = field(default_factory=set)
    refused: list[int] = field(default_factory=list)
    slowest_s: float = 0.0
    settled_s: float = 0.0
    killed_epoch: int = 0
    final_epoch: int = 0
    acls: int = 0


async def create_many(nodes: Sequence[KustosNode], prefix: str, count: int, storm: Storm) -> None:
    """Create ACLs through all nodes at once, and note what was acknowledged."""
    connections = [await logged_in(node, "admin") for node in nodes for _ in range(AT_ONCE)]
    waiting = iter(range(count))

    async def work(connection: KafkaConnection) -> None:
        for number in waiting:
            binding = allow(f"{prefix}-{number}")
            begun_s = time.monotonic()
            answer = await create_acls(connection, binding)
            storm.slowest_s = max(storm.slowest_s, time.monotonic() - begun_s)
            code = answer.results[0].error_code
            if code:
                storm.refused.append(code)
            else:
                storm.acknowledged.add(binding)

    await asyncio.gather(*(work(each) for each in connections))
    for each in connections:
        each.close()


def active(quorum: Quorum, node: KustosNode) -> Controller:
    """Return the controller that leads, as this node knows it."""
    leader = wait_until(lambda: leader_of(node)[0], what="the node knows a leader")
    port = int(str(leader).rpartition(":")[2])
    [found] = [each for each in quorum.controllers if each.controller_port == port]
    return found


def log_of(controller: Controller) -> set[AclBinding] | None:
    """Return the ACLs in a controller's own log; None while what it writes is not all there."""
    try:
        return set(read_image(controller.log_dir).acls.values())
    except HALF_WRITTEN:
        return None


async def everywhere(quorum: Quorum, nodes: Sequence[KustosNode]) -> bool:
    """Return whether nodes, broker and the logs of all living controllers hold the same ACLs."""
    assert quorum.broker is not None
    truth = await acls_of_broker(quorum.broker)
    for node in nodes:
        async with await logged_in(node, "admin") as connection:
            if await acls_of(connection) != truth:
                return False
    logs = [log_of(each) for each in quorum.controllers if each.server is not None]
    return all(each == truth for each in logs)


def kill_amid(quorum: Quorum, nodes: Sequence[KustosNode], prefix: str, count: int) -> Storm:
    """Kill the active controller when a third is done; return what came of it once all is settled."""
    storm = Storm()
    victim = active(quorum, nodes[0])
    storm.killed_epoch = leader_of(nodes[0])[1]

    async def run() -> None:
        creating = asyncio.ensure_future(create_many(nodes, prefix, count, storm))
        await asyncio.to_thread(
            wait_until,
            lambda: len(storm.acknowledged) >= count // 3,
            what="a third is done",
        )
        victim.kill()
        await creating

    asyncio.run(run())
    begun_s = time.monotonic()
    wait_until(lambda: asyncio.run(everywhere(quorum, nodes)), what="all hold the same ACLs")
    storm.settled_s = time.monotonic() - begun_s
    storm.final_epoch = leader_of(nodes[0])[1]
    assert quorum.broker is not None
    storm.acls = len(asyncio.run(acls_of_broker(quorum.broker)))
    victim.launch()
    victim.wait_ready()
    return storm


async def propagation(
    nodes: Sequence[KustosNode], prefix: str, count: int
) -> tuple[list[float], list[float]]:
    """Return how long creations took, and from then until every node enforced them, in seconds."""
    admin = await logged_in(nodes[0], "admin")
    watchers = [await logged_in(node, "ann") for node in nodes]
    took: list[float] = []
    until: list[float] = []
    for number in range(count):
        binding = allow(f"{prefix}-{number}")
        begun_s = time.monotonic()
        answer = await create_acls(admin, binding)
        answered_s = time.monotonic()
        assert answer.results[0].error_code == 0, answer
        took.append(answered_s - begun_s)
        # on the node that answered it is in force already
        assert await topic_error(watchers[0], binding.pattern.name) != DENIED
        for watcher in watchers[1:]:
            while await topic_error(watcher, binding.pattern.name) == DENIED:
                if time.monotonic() - answered_s > SETTLED_S:
                    raise AssertionError("an ACL never reached a node")
        until.append(time.monotonic() - answered_s)
    for each in (admin, *watchers):
        each.close()
    return took, until


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile in milliseconds."""
    return round(sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000, 1)


def main(count: int) -> None:
    """Run it whole and print the figures."""
    with tempfile.TemporaryDirectory() as scratch, Quorum(Path(scratch)) as quorum:
        nodes = [kraft_node(Path(scratch) / f"kustos-{number}", quorum) for number in range(3)]
        try:
            for node in nodes:
                node.start()
            took, until = asyncio.run(propagation(nodes, "spread", 200))
            storm = kill_amid(quorum, nodes, "storm", count)
        finally:
            for node in nodes:
                node.kill()
    figures = {
        "create_ms": {"p50": quantile(took, 0.5), "p99": quantile(took, 0.99)},
        "enforced_on_all_ms": {"p50": quantile(until, 0.5), "p99": quantile(until, 0.99)},
        "acknowledged": len(storm.acknowledged),
        "refused": len(storm.refused),
        "slowest_s": round(storm.slowest_s, 2),
        "settled_s": round(storm.settled_s, 2),
        "epochs": [storm.killed_epoch, storm.final_epoch],
        "acls": storm.acls,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]))
