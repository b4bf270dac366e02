"""What a node takes: anonymous memory and descriptors of each process, tasks of all event loops."""

import re
import time
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final

from testkit.guarded.workers import CONNECTION_COUNT, figure, worker_pids, writer_pid
from testkit.kustos import KustosNode

RESIDENT: Final = re.compile(r"^RssAnon:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one process takes."""

    pid: int
    memory_mb: float
    descriptors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a node takes at some moment; `workers` in order of their process ids."""

    at_s: float
    writer: Taken
    workers: tuple[Taken, ...]
    tasks: int
    connections: int

    @property
    def memory_mb(self) -> float:
        """All processes together."""
        return self.writer.memory_mb + sum(each.memory_mb for each in self.workers)


def taken_by(pid: int) -> Taken:
    """Return what a process takes; raise `FileNotFoundError` or `ProcessLookupError` if it is gone."""
    found = RESIDENT.search(Path(f"/proc/{pid}/status").read_text())
    if found is None:
        raise ProcessLookupError(f"process {pid} has ended")
    descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    return Taken(pid=pid, memory_mb=int(found[1]) / 1024, descriptors=descriptors)


def sample(node: KustosNode) -> Sample | None:
    """Return what the node takes now, None while a process of it comes or goes."""
    try:
        return Sample(
            at_s=time.monotonic(),
            writer=taken_by(writer_pid(node)),
            workers=tuple(map(taken_by, worker_pids(node))),
            tasks=int(figure(node, "kustos_tasks")),
            connections=int(figure(node, CONNECTION_COUNT)),
        )
    except (AssertionError, OSError, HTTPException):
        return None
