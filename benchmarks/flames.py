"""Where a node's time goes: flame graphs of a producer's load, and of many connections that ask for little.

`python -m benchmarks.flames [produce] [connections]` starts a broker and a node, and draws what the sampling
profiler `py-spy` finds in the node into `docs/assets`. `py-spy` is no requirement of the project: install it,
and run this as root or with the right to trace processes. It slows the node down a little, so nothing is
measured here.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from benchmarks.figures import progress
from benchmarks.guarding.crowds import CONNECTIONS, crowd
from benchmarks.guarding.flame_graph import drawing, flame_of
from benchmarks.guarding.load import Route
from benchmarks.guarding.routes import started
from testkit.paths import ROOT
from testkit.waiting import wait_until

RECORDS: Final = 2_000_000
RECORDED_S: Final = 10
SAMPLES_A_SECOND: Final = 500
WARM_AFTER_S: Final = 2.0
"""Processor time that a node takes until what it does is what it goes on to do."""


def produce(route: Route) -> object:
    """Write records of 1 kB."""
    return route.produce(RECORDS, "1")


def is_producing(route: Route) -> Callable[[], bool]:
    """Return what tells that a producer has been at work for a while."""
    before_s = route.cpu_so_far_s()
    return lambda: route.cpu_so_far_s() - before_s > WARM_AFTER_S


def has_crowd(route: Route) -> Callable[[], bool]:
    """Return what tells that each client has a connection to the broker, made for its first request."""
    return lambda: sum(1 for _ in Path(f"/proc/{route.pid}/fd").iterdir()) > 2 * CONNECTIONS


LOADS: Final[dict[str, tuple[Callable[[Route], object], Callable[[Route], Callable[[], bool]]]]] = {
    "produce": (produce, is_producing),
    "connections": (crowd, has_crowd),
}
"""What can be drawn: the load, and what tells that it is there."""


def stacks(route: Route, load: Callable[[Route], object], is_there: Callable[[], bool]) -> list[str]:
    """Return the stacks of the node under a load, as `flame_graph` reads them."""
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(1) as pool:
        running = pool.submit(load, route)
        wait_until(is_there, what="the load is there")
        file = Path(directory) / "stacks"
        line = ["py-spy", "record", "--native", "--format", "raw", "--output", str(file)]
        line += ["--rate", str(SAMPLES_A_SECOND), "--duration", str(RECORDED_S), "--pid", str(route.pid)]
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        running.result()
        return file.read_text().splitlines()


def main(wanted: Sequence[str]) -> None:
    """Draw what is wanted, all if nothing is named; exit with 1 for a load that is none, or no profiler."""
    if unknown := [name for name in wanted if name not in LOADS]:
        sys.exit(f"there is no load `{unknown[0]}`; choose of {', '.join(LOADS)}")
    if shutil.which("py-spy") is None:
        sys.exit("`py-spy` is not on the path; install it, for example by `pip install py-spy`")
    with tempfile.TemporaryDirectory() as directory, started(Path(directory)) as (plain, _):
        plain.direct.create_topic()
        for name in wanted or LOADS:
            load, told_by = LOADS[name]
            progress(f"  {name}: for {RECORDED_S} s")
            found = flame_of(stacks(plain.kustos, load, told_by(plain.kustos)))
            (ROOT / "docs" / "assets" / f"flame-{name}.svg").write_text(drawing(found))


if __name__ == "__main__":
    main(sys.argv[1:])
