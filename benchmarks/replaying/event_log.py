"""What Spark wrote down of a run: spilled bytes, and the memory of its processes at their highest."""

import json
from pathlib import Path
from typing import TypedDict


class Used(TypedDict):
    """In bytes; `memory_spilled` is what was in memory, `disk_spilled` what that took on disk."""

    memory_spilled: int
    disk_spilled: int
    execution_memory: int
    jvm_heap: int
    python_resident: int


def used(folder: Path) -> Used:
    """Return sums of spills and maxima of memory over all tasks in the event logs of a folder."""
    found = Used(memory_spilled=0, disk_spilled=0, execution_memory=0, jvm_heap=0, python_resident=0)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(("appstatus", ".")):
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    _add(found, json.loads(line))
    return found


def _add(found: Used, event: dict[str, object]) -> None:
    metrics = event.get("Task Metrics")
    if isinstance(metrics, dict):
        found["memory_spilled"] += metrics["Memory Bytes Spilled"]
        found["disk_spilled"] += metrics["Disk Bytes Spilled"]
        found["execution_memory"] = max(found["execution_memory"], metrics["Peak Execution Memory"])
    for name in ("Task Executor Metrics", "Executor Metrics"):
        peaks = event.get(name)
        if isinstance(peaks, dict):
            found["jvm_heap"] = max(found["jvm_heap"], peaks.get("JVMHeapMemory", 0))
            resident = peaks.get("ProcessTreePythonRSSMemory", 0)
            found["python_resident"] = max(found["python_resident"], resident)
