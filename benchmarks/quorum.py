"""Changes in cluster mode: how long they take, and how soon they are in force everywhere.

Three controllers of Kafka with linger 0, one broker, three kustos nodes that follow, all on this
machine. ACLs are created one by one over the wire, at a kustos node and at the broker in turn; both hand them
to the active controller. `propagate-quorum-*` counts from the answer until all three nodes decide by the ACL
(Metadata by whom it concerns), and for Kafka until the broker's own authorizer has it (DescribeAcls): a
broker answers before it has applied a change, the node that answers has it in force already.
"""

import asyncio
import itertools
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from benchmarks.figures import QUICK, Figure, emit, progress
from kustos.acl import AclBinding
from kustos.client import ClientSettings, KafkaConnection, connect, parse_address
from testkit.kustos import KustosNode
from testkit.quorum.controllers import Quorum
from testkit.quorum.nodes import DENIED, acls_of, allow, create_acls, kraft_node, logged_in, topic_error
from testkit.quorum.storm import quantile

CREATIONS: Final = 60 if QUICK else 500
WARMING: Final = 20 if QUICK else 100
NODES: Final = 3

NAMES: Final = itertools.count()


async def measured(
    admin: KafkaConnection, in_force: Callable[[AclBinding], Awaitable[object]], count: int
) -> tuple[list[float], list[float]]:
    """Return how long creations took, and how long after that they were in force, in seconds."""
    took, until = [], []
    for _ in range(count):
        binding = allow(f"topic-{next(NAMES)}")
        begun_s = time.perf_counter()
        answer = await create_acls(admin, binding)
        answered_s = time.perf_counter()
        if answer.results[0].error_code:
            raise RuntimeError(f"a creation was refused: {answer}")
        await in_force(binding)
        took.append(answered_s - begun_s)
        until.append(time.perf_counter() - answered_s)
    return took, until


async def both(quorum: Quorum, nodes: list[KustosNode]) -> dict[str, tuple[list[float], list[float]]]:
    """Return what was measured at a kustos node and at the broker, in turn."""
    watchers = [await logged_in(node, "ann") for node in nodes]
    at_node = await logged_in(nodes[0], "admin")
    broker = quorum.broker
    if broker is None:
        raise RuntimeError("a broker is needed")
    at_broker = await connect(
        parse_address(broker.bootstrap), ClientSettings.from_properties(broker.bootstrap, {})
    )

    async def on_all_nodes(binding: AclBinding) -> None:
        for watcher in watchers:
            while await topic_error(watcher, binding.pattern.name) == DENIED:
                continue

    async def on_the_broker(binding: AclBinding) -> None:
        while binding not in await acls_of(at_broker, binding.pattern.name):
            continue

    sides = {"ours": (at_node, on_all_nodes), "theirs": (at_broker, on_the_broker)}
    found: dict[str, tuple[list[float], list[float]]] = {side: ([], []) for side in sides}
    for side, (admin, in_force) in sides.items():
        await measured(admin, in_force, WARMING)
        progress(f"  warmed: {side}")
    rounds = 5
    for _ in range(rounds):
        for side, (admin, in_force) in sides.items():
            took, until = await measured(admin, in_force, CREATIONS // rounds)
            found[side][0].extend(took)
            found[side][1].extend(until)
    for each in (*watchers, at_node, at_broker):
        each.close()
    return found


def main() -> None:
    """Run the benchmark and print its figures."""
    with tempfile.TemporaryDirectory() as scratch, Quorum(Path(scratch)) as quorum:
        nodes = [kraft_node(Path(scratch) / f"kustos-{number}", quorum) for number in range(NODES)]
        try:
            for node in nodes:
                node.start()
            found = asyncio.run(both(quorum, nodes))
        finally:
            for node in nodes:
                node.kill()
    figures = [
        Figure(
            name=f"{name}-{percent}",
            unit="ms",
            ours=quantile(found["ours"][part], share),
            theirs=quantile(found["theirs"][part], share),
            size=CREATIONS,
        )
        for part, name in enumerate(("create-acl-quorum", "propagate-quorum"))
        for percent, share in (("p50", 0.5), ("p99", 0.99))
    ]
    for figure in figures:
        progress(figure.sentence())
    emit(figures)


if __name__ == "__main__":
    main()
