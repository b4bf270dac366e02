"""Jobs run on a standalone cluster of two workers, and alone in one Spark that lacks no memory."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.figures import QUICK
from benchmarks.replaying.event_log import used
from benchmarks.replaying.events import CACHE
from benchmarks.replaying.processor import tree_seconds
from benchmarks.spilling import job
from benchmarks.spilling.resident import Resident, watched
from testkit.spark_cluster import clean_environment, standalone_cluster, submit

WORKERS: Final = 2
HEAP_MB: Final = 1024
RESERVED_MB: Final = 300
"""Of a heap, what Spark keeps for itself."""
MEMORY_FRACTION: Final = 0.01 if QUICK else 0.6
"""Of the rest, what tasks have for their states: Spark's own 0.6, and little for little data."""

ALONE: Final = "local[2]"

PROGRAM: Final = Path(job.__file__)
ROOT: Final = Path(__file__).parents[2]


def execution_bytes() -> float:
    """Return what an executor has for the states of its tasks and for what is kept."""
    return (HEAP_MB - RESERVED_MB) * MEMORY_FRACTION * (1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a job took; bytes. `spilled` is what was in memory, `spilled_on_disk` what that took there.

    `core_seconds` is processor time of all processes, that of their start included.
    """

    seconds: float
    core_seconds: float
    spilled: int
    spilled_on_disk: int
    execution_memory: int
    jvm_heap: int
    resident: Resident


@dataclass(frozen=True, slots=True)
class Cluster:
    """Two workers of one core, whose executors have one gigabyte of heap."""

    master: str
    folder: Path
    environment: dict[str, str]

    def run(self, case: str, source: Path, target: Path, acls: int) -> Spent:
        """Run a job and return what it took; raise `AssertionError` with what Spark says if it fails."""
        log = self.folder / f"log-{target.name}"
        log.mkdir()
        settings = {
            "spark.executor.memory": f"{HEAP_MB}m",
            "spark.memory.fraction": str(MEMORY_FRACTION),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": log.as_uri(),
        }
        start_of_cores = tree_seconds()
        with watched() as resident:
            said = submit(
                self.master,
                PROGRAM,
                [case, str(source), str(target), str(acls)],
                options=[f"--conf={key}={value}" for key, value in settings.items()],
                environment=self.environment,
                cwd=ROOT,
            )
        core_seconds = tree_seconds() - start_of_cores
        took = used(log)
        return Spent(
            seconds=json.loads(said)["seconds"],
            core_seconds=core_seconds,
            spilled=took["memory_spilled"],
            spilled_on_disk=took["disk_spilled"],
            execution_memory=took["execution_memory"],
            jvm_heap=took["jvm_heap"],
            resident=resident,
        )


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Lend a cluster; it and what it wrote are gone at the end."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="spilling-", dir=CACHE))
    environment = {
        "JDK_JAVA_OPTIONS": "",  # as a cluster has it, not as tests do
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
    }
    try:
        with standalone_cluster(folder, WORKERS, environment=environment) as started:
            yield Cluster(started.url, folder, environment)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_alone(case: str, source: Path, target: Path, acls: int) -> None:
    """Run a job in a process of its own that lacks no memory."""
    done = subprocess.run(
        [sys.executable, "-m", job.__name__, case, str(source), str(target), str(acls), ALONE],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=clean_environment({"JDK_JAVA_OPTIONS": ""}),
    )
    if done.returncode:
        raise SystemExit(f"{case} alone failed:\n{done.stderr[-3000:]}")
