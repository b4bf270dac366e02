"""No event is lost for any number of workers and any kill, and failed starts duplicate none."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from kustos.gateway.audit.events import AuditEvents
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.sink_writer import BATCH_MAX_EVENTS, AuditSink
from kustos.runtime import SystemEntropy
from testkit.gateway.audit import CONTEXT, ControlledSink, decided

NODE = "node"
STARTS = 6
WORKERS_MAX = 4
EVENTS_MAX = 2500
"""For each process: some pieces of a journal."""

DOUBLED_MAX = 3 * BATCH_MAX_EVENTS
"""By one kill during writes: a synced and unreleased batch, one before its fsync, a recovered one."""


@dataclass
class History:
    """A node's directory, the events that its processes reported as kept, and the number of kills."""

    directory: Path
    chance: Random
    kept: set[str] = field(default_factory=set)
    kills: int = 0
    life: int = 0

    def rings(self, name: str, workers: list[str]) -> AuditRings:
        living = {NODE, *workers} if name == NODE else None
        events = AuditEvents.of_node(1, SystemEntropy(), "cluster")
        return AuditRings.open(self.directory / "journals", name, living, events)

    def written(self) -> Counter[str]:
        """Return the names in the audit files' whole lines, each with its number."""
        found: Counter[str] = Counter()
        for path in (self.directory / "audit").rglob("*.jsonl"):
            *lines, _ = path.read_text().split("\n")
            found.update(json.loads(line)["resource_name"] for line in lines)
        return found

    def live(self) -> None:
        """Start with any number of workers; end each process in any way."""
        self.life += 1
        count = self.chance.randint(0, WORKERS_MAX)
        workers = [f"worker-{index}" for index in range(1, count + 1)]
        if self.chance.random() < 0.4:
            before = self.written()
            for _ in range(3):
                ended(forked(self.fail(workers)))
            assert self.written() == before
        running = []
        for name in (NODE, *workers):
            how = self.chance.choice(("orderly", "held", "amid"))
            events = self.chance.randint(0, EVENTS_MAX)
            end, said = os.pipe()
            child = forked(self.process(name, workers, how, events, said))
            os.close(said)
            assert os.read(end, 2) == b"0\n", "the process has its journals"
            running.append((name, how, events, end, child))
        for name, how, events, end, child in running:
            least = {"orderly": events, "held": events, "amid": self.chance.randint(0, events)}[how]
            output = b""
            while output.count(b"\n") < least:
                output += os.read(end, 1 << 16)
            if how != "orderly":
                os.kill(child, signal.SIGKILL)
                self.kills += how == "amid"
            status = ended(child)
            assert how != "orderly" or status == 0
            while more := os.read(end, 1 << 16):
                output += more
            os.close(end)
            self.kept |= {self.name_of(name, number) for number in range(output.count(b"\n"))}

    def name_of(self, process: str, number: int) -> str:
        return f"{self.life}-{process}-{number}"

    async def fail(self, workers: list[str]) -> None:
        """Start, and find that a sink cannot be used."""
        self.rings(NODE, workers).close()

    async def process(self, name: str, workers: list[str], how: str, events: int, said: int) -> None:
        rings = self.rings(name, workers)
        events_of = AuditEvents.of_node(1, SystemEntropy(), "cluster")
        directory = self.directory / "audit" / ("" if name == NODE else name)
        sink: AuditSink = ControlledSink()
        if how != "held":
            sink = JsonFilesSink(directory, max_bytes=300_000, max_files=10**6)
            await sink.open()
        log = AuditLog(events_of, [sink], rings=rings)
        os.write(said, b"0\n")
        for number in range(events):
            log.record(CONTEXT, [decided(self.name_of(name, number))], 7)
            os.write(said, b"\n")
            if number % 50 == 0:
                await asyncio.sleep(0)
        if how == "orderly":
            await log.close()
        else:
            await asyncio.Event().wait()


def forked(work: Coroutine[None, None, None]) -> int:
    """Return a child process that runs the function and exits even on an exception, before pytest's code."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            asyncio.run(work)
            status = 0
        finally:
            os._exit(status)
    work.close()
    return child


def ended(child: int) -> int:
    """Return the status of a child when it has ended."""
    return os.waitpid(child, 0)[1]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_no_event_is_lost_and_failed_starts_double_none(tmp_path: Path, seed: int, number: int) -> None:
    history = History(tmp_path, Random(seed))
    for _ in range(STARTS):
        history.live()
    end, said = os.pipe()
    assert ended(forked(history.process(NODE, [], "orderly", 0, said))) == 0
    os.close(said)
    os.close(end)
    found = history.written()
    assert history.kept - found.keys() == set()
    assert sum(found.values()) - len(found) <= DOUBLED_MAX * history.kills
    assert [path.name for path in (tmp_path / "journals").iterdir()] == [NODE]
    print(f"{len(history.kept)} kept, {sum(found.values()) - len(found)} doubled by {history.kills} kills")
