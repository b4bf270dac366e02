"""From the log to every worker: how long a change takes that is on the disk already.

The clock starts on the writer's thread when the fsync is done and the batch is handed to the workers; it
stops when the last of them has said that it decides by it. A real writer process with real workers before a
real broker, one change at a time; `theirs` is the limit that we set ourselves at the 99th percentile. The
fsync itself is shown beside it.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.figures import QUICK, Figure, emit, progress
from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.client import read_properties
from kustos.gateway.workers import WorkerFollowers
from kustos.metadata.image import MetadataDelta
from kustos.metadata.store import CreateAcls, DeleteAcls
from kustos.server.settings import load_settings
from kustos.server.workers import WorkerPoolNode
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings

WORKERS = (2, 4)
CHANGES = 300 if QUICK else 3_000
WARM_UP = 50
LIMIT_MS = 5.0
ACLS = 10_000
"""ACLs that are there already."""


def binding(number: int, permission: AclPermissionType = AclPermissionType.ALLOW) -> AclBinding:
    """Return one of many ACLs."""
    pattern = ResourcePattern(ResourceType.TOPIC, f"topic-{number}", PatternType.LITERAL)
    return AclBinding(pattern, AccessControlEntry(f"User:u{number}", "*", AclOperation.READ, permission))


def exactly(one: AclBinding) -> AclBindingFilter:
    """Return the filter that matches this ACL only."""
    pattern, entry = one.pattern, one.entry
    return AclBindingFilter(
        ResourcePatternFilter(pattern.resource_type, pattern.name, pattern.pattern_type),
        AccessControlEntryFilter(entry.principal, entry.host, entry.operation, entry.permission_type),
    )


class Stopwatch:
    """Notes when the workers are handed each batch."""

    def __init__(self, followers: WorkerFollowers) -> None:
        self.handed_s = 0.0
        self._publish = followers.publish_delta
        followers.publish_delta = self.publish_delta  # type: ignore[method-assign]

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Note it, and go on."""
        self.handed_s = time.perf_counter()
        self._publish(delta)


async def measured(node: WorkerPoolNode) -> tuple[list[float], list[float]]:
    """Return the milliseconds from the disk to every worker, and those of the whole change."""
    watch = Stopwatch(node.followers)
    spread, whole = [], []
    writer = node.node.writer
    assert writer is not None
    for number in range(WARM_UP + CHANGES):
        change = CreateAcls((binding(number // 2, AclPermissionType.DENY),))
        request = change if number % 2 == 0 else DeleteAcls((exactly(change.bindings[0]),))
        begun_s = time.perf_counter()
        await writer.submit(request)
        ended_s = time.perf_counter()
        if number >= WARM_UP:
            spread.append((ended_s - watch.handed_s) * 1000)
            whole.append((ended_s - begun_s) * 1000)
    return spread, whole


async def run(properties: Path) -> tuple[list[float], list[float]]:
    """Return what was measured with a node of these properties."""
    node = await WorkerPoolNode.open(load_settings(properties), read_properties(properties))
    try:
        await node.start()
        return await measured(node)
    finally:
        await node.stop()


def percentiles(milliseconds: list[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    cuts = statistics.quantiles(milliseconds, n=100)
    return cuts[49], cuts[98]


def main() -> None:
    """Measure, and print the figures."""
    figures = []
    with tempfile.TemporaryDirectory() as folder, KafkaNode(Path(folder) / "kafka") as broker:
        for workers in WORKERS:
            settings = KustosSettings(
                acls=[binding(number) for number in range(ACLS)],
                audit=False,
                protocol="PLAINTEXT",
                properties={"kustos.workers": str(workers)},
            )
            kustos = KustosNode(Path(folder) / f"workers-{workers}", broker.bootstrap, settings)
            kustos.directory.mkdir()
            kustos.format()
            kustos.write_properties()
            spread, whole = asyncio.run(run(kustos.properties_file))
            (median, last), (whole_median, whole_last) = percentiles(spread), percentiles(whole)
            progress(
                f"  {workers} workers: p50 {median:.2f} ms, p99 {last:.2f} ms beyond the fsync; "
                f"whole changes p50 {whole_median:.2f} ms, p99 {whole_last:.2f} ms"
            )
            suffix = "" if workers == WORKERS[0] else f"-of-{workers}"
            for name, value in (("p50", median), ("p99", last)):
                figures.append(
                    Figure(
                        name=f"propagate-workers-{name}{suffix}",
                        unit="ms",
                        ours=value,
                        theirs=LIMIT_MS,
                        size=CHANGES,
                        floor=1.0 if name == "p99" and not suffix else None,
                    )
                )
    emit(figures)


if __name__ == "__main__":
    main()
