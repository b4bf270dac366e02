"""Processor time of this process and all that it started: what a run costs, however busy the machine is."""

import ctypes
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

SET_CHILD_SUBREAPER: Final = 36
"""Of prctl(2): orphans among the descendants become children of this process."""


def command_seconds(command: Sequence[str]) -> tuple[float, float]:
    """Run a command to its end; return its seconds by the clock, and the processor time of all it started.

    The JVM of a Spark ends after the command, which does not wait for it. Raises `SystemExit` with what the
    command said if it fails.
    """
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, start = os.times(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.monotonic() - start
    if done.returncode:
        raise SystemExit(f"`{' '.join(command[1:])}` failed:\n{done.stderr[-3000:]}")
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = os.times()
    return took, (after.children_user - before.children_user + after.children_system - before.children_system)


def tree_seconds() -> float:
    """Return the seconds of processor time of this process and its descendants, also of those that ended."""
    stats: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name of a program stands in brackets and may hold anything
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile; its parent counts it
        stats[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    found, own = 0, {os.getpid()}
    while own:
        found += sum(stats[pid][1] for pid in own if pid in stats)
        own = {pid for pid, (parent, _) in stats.items() if parent in own}
    return found / os.sysconf("SC_CLK_TCK")
