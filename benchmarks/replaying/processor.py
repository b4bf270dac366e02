"""Processor time of this process and all that it started: what a run costs, however busy the machine is."""

import os
from pathlib import Path


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
