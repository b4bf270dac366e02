"""Memory of executors as the kernel counts it: each with the Python workers that it started."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

EXECUTOR: Final = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
LOOK_EVERY_S: Final = 0.2
"""Often enough to see a task's worker grow, seldom enough to cost nothing beside it."""

KILOBYTE: Final = 1024


@dataclass(slots=True)
class Resident:
    """The most bytes that one executor had: its JVM, its Python workers, and both at the same time.

    Pages that several processes share count once (the kernel's PSS).
    """

    jvm: int = 0
    python: int = 0
    both: int = 0

    def look(self) -> None:
        """Look at all executors that this process and its children started."""
        parents = _parents()
        for pid in _below(os.getpid(), parents):
            if EXECUTOR not in _read(pid, "cmdline"):
                continue
            jvm = _proportional(pid)
            python = sum(map(_proportional, _below(pid, parents)))
            self.jvm = max(self.jvm, jvm)
            self.python = max(self.python, python)
            self.both = max(self.both, jvm + python)


@contextmanager
def watched() -> Iterator[Resident]:
    """Watch the executors of a block."""
    found, is_over = Resident(), threading.Event()

    def watch() -> None:
        while not is_over.wait(LOOK_EVERY_S):
            found.look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield found
    finally:
        is_over.set()
        watcher.join()


def _parents() -> dict[int, int]:
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        stat = _read(int(folder.name), "stat")
        if stat:
            # the name of a program stands in brackets and may hold anything
            found[int(folder.name)] = int(stat.rpartition(b")")[2].split()[1])
    return found


def _below(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    own = {pid}
    while own:
        own = {child for child, parent in parents.items() if parent in own}
        found |= own
    return found


def _proportional(pid: int) -> int:
    for line in _read(pid, "smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * KILOBYTE
    return 0


def _read(pid: int, name: str) -> bytes:
    """Return a file of a process, nothing where it ended meanwhile."""
    try:
        return Path("/proc", str(pid), name).read_bytes()
    except OSError:
        return b""
