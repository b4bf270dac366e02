"""`loop-pause-load-1m`: how late a timer of one millisecond is in a node that serves and loads 1 M ACLs.

A real node in front of a real Kafka, with a metadata directory of a million ACLs. Its early start listener
is open and a client asks through it without a break while the ACLs are loaded: first at the start, then
once more in the place of those in force. The timer runs on the node's own event loop, from before it
starts. Figures are in milliseconds of the clock.
"""

import asyncio
import json
import random
import shutil
import sys
import tempfile
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.authorizing.loads import mixed_acls
from benchmarks.figures import QUICK, progress, rounded
from kustos.acl import AclBinding
from kustos.metadata import DEFAULT_LEVEL, METADATA_VERSION_FEATURE
from kustos.metadata.directory import format_directory
from kustos.metadata.image import acl_record
from kustos.metadata.log import METADATA_PARTITION, encode_snapshot
from kustos.metadata.records import FeatureLevelRecord, MetadataRecord
from kustos.runtime import SystemEntropy
from kustos.server import Node, run_until
from kustos.server.authorization import StandardAuthorization
from kustos.server.settings import load_settings
from kustos.wire import new_uuid
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.processes import Server

ACLS = 100_000 if QUICK else 1_000_000
TICK_S = 0.001
FLOOR_MS = 50.0
"""No tick may be later."""


def distinct_acls(count: int) -> Iterator[AclBinding]:
    known: set[AclBinding] = set()
    made = mixed_acls(random.Random(count), count)
    while len(known) < count:
        binding = next(made)
        if binding not in known:
            known.add(binding)
            yield binding


def write_metadata(directory: Path) -> None:
    """Make a metadata directory whose snapshot holds the ACLs: more than one request may make."""
    format_directory(directory)
    entropy = SystemEntropy()

    def records() -> Iterator[MetadataRecord]:
        yield FeatureLevelRecord(METADATA_VERSION_FEATURE, DEFAULT_LEVEL)
        for binding in distinct_acls(ACLS):
            yield acl_record(new_uuid(entropy), binding)

    [snapshot] = (directory / METADATA_PARTITION).glob("*.checkpoint")
    snapshot.write_bytes(encode_snapshot(records(), epoch=0, timestamp_ms=0))


class Timer:
    """Rings every millisecond and notes by how much it is late."""

    def __init__(self) -> None:
        self.lateness_ms = array("d")
        self.late: list[tuple[float, float]] = []
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._due = self._loop.time() + TICK_S
        self._loop.call_at(self._due, self._ring)

    def _ring(self) -> None:
        now = self._loop.time()
        lateness_ms = (now - self._due) * 1000
        self.lateness_ms.append(lateness_ms)
        if lateness_ms > FLOOR_MS:
            self.late.append((rounded(now - self._start), rounded(lateness_ms)))
        self._due = now + TICK_S
        self._loop.call_at(self._due, self._ring)

    def take(self) -> dict[str, object]:
        """Return what was noted since the last time; `late` tells when (in seconds) a tick was too late."""
        late, self.late = self.late, []
        noted, self.lateness_ms = sorted(self.lateness_ms), array("d")
        worst, rare = noted[-1], noted[int(len(noted) * 0.999)]
        return {"max_ms": rounded(worst), "p99_9_ms": rounded(rare), "ticks": len(noted), "late": late}


async def serve(properties: Path, result: Path) -> None:
    """Be the node; write down how late the timer was in each phase, then end."""
    settings, stopped = load_settings(properties), asyncio.Event()
    measured: list[asyncio.Task[None]] = []

    async def measure(node: Node, timer: Timer) -> None:
        authorization = node.authorization
        assert isinstance(authorization, StandardAuthorization)
        loop = asyncio.get_running_loop()
        phases: dict[str, dict[str, object]] = {}
        for phase in ("start", "replace"):
            begin = loop.time()
            if phase == "replace":
                authorization.publisher.publish_snapshot(node.store.image)
            while not (authorization.is_ready and authorization.publisher.is_idle):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            phases[phase] = timer.take() | {"seconds": rounded(loop.time() - begin)}
        await asyncio.sleep(2)
        phases["idle"] = timer.take()
        await asyncio.to_thread(result.write_text, json.dumps(phases), encoding="utf-8")
        stopped.set()

    def prepare(node: Node) -> None:
        measured.append(asyncio.ensure_future(measure(node, Timer())))

    await run_until(settings, stopped, prepare)


class Client(threading.Thread):
    """Asks for the topics, again and again, as somebody who may see them even before the ACLs are there."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.answers = 0
        self.ends = False

    def run(self) -> None:
        while not self.ends:
            try:
                self._admin.list_topics(timeout=5)
                self.answers += 1
            except KafkaException:
                continue


def main() -> None:
    if len(sys.argv) == 3:
        import uvloop

        uvloop.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
        return
    directory = Path(tempfile.mkdtemp(prefix="kustos-bench-"))
    try:
        progress(f"writing a metadata directory with {ACLS} ACLs")
        early = {"early.start.listeners": "PLAINTEXT"}
        settings = KustosSettings(
            super_users=["ANONYMOUS"], protocol="PLAINTEXT", audit=False, properties=early
        )
        with KafkaNode(directory / "kafka") as kafka:
            kustos = KustosNode(directory / "kustos", kafka.address("PLAINTEXT"), settings)
            kustos.directory.mkdir()
            write_metadata(kustos.metadata_directory)
            kustos.write_properties()
            result = directory / "result.json"
            command = [
                sys.executable,
                "-m",
                "benchmarks.loop_pause",
                str(kustos.properties_file),
                str(result),
            ]
            progress("a node serves and loads them")
            client = Client(kustos.bootstrap)
            client.start()
            server = Server("kustos", command, directory / "kustos.log")
            code = server.wait(timeout_s=900)
            client.ends = True
        if code != 0:
            raise SystemExit((directory / "kustos.log").read_text()[-3000:])
        phases = json.loads(result.read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    worst = max(phase["max_ms"] for phase in phases.values())
    figure: dict[str, object] = {"name": "loop-pause-load-1m", "unit": "ms", "ours": worst, "size": ACLS}
    figure |= {"floor": FLOOR_MS, "holds": worst <= FLOOR_MS, "phases": phases, "answers": client.answers}
    print(json.dumps(figure | ({"quick": True} if QUICK else {})), flush=True)


if __name__ == "__main__":
    main()
