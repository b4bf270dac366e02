"""A plug-in of pytest: which files of tests take most processor time, their child processes included.

`pytest -p testkit.processor_time` prints it, `make test` for each side. The time on a clock says how busy the
machine was; this says what the tests themselves cost, and hardly depends on what else runs.
"""

import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from os import getpid, sysconf
from pathlib import Path
from typing import Final

import pytest

TICKS_PER_S: Final = sysconf("SC_CLK_TCK")
SHOWN: Final = 12
"""Files in the table: what is worth a look."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processor, and on a clock."""

    processor_s: float
    clock_s: float


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    used_ticks: int
    """By itself and by those of its children that it has waited for."""


def processor_s() -> float:
    """Return the processor time of this process and of all below it, in seconds.

    A process that outlives its parent is counted no more, since it has moved to another place in the tree.
    """
    processes = dict(_processes())
    below = defaultdict(list)
    for pid, process in processes.items():
        below[process.parent].append(pid)
    ticks, found = 0, [getpid()]
    while found:
        pid = found.pop()
        ticks += processes[pid].used_ticks
        found += below[pid]
    return ticks / TICKS_PER_S


def _processes() -> Iterator[tuple[int, _Process]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # fields after the name, which is in brackets and may hold any bytes; see proc_pid_stat(5)
        fields = stat.rpartition(b") ")[2].split()
        yield int(folder.name), _Process(int(fields[1]), sum(map(int, fields[11:15])))


class _Files:
    """The cost of each file so far: at the end of its last test, when what its tests share is gone."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}
        self._processor_s, self._clock_s = processor_s(), time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        result = yield
        if nextitem is None or nextitem.path != item.path:
            used_s, now_s = processor_s(), time.monotonic()
            name = item.nodeid.partition("::")[0]
            # it falls where a process ends and leaves children behind, such as a Spark and its workers
            self.costs[name] = Cost(max(0.0, used_s - self._processor_s), now_s - self._clock_s)
            self._processor_s, self._clock_s = used_s, now_s
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        costly = sorted(self.costs.items(), key=lambda each: -each[1].processor_s)[:SHOWN]
        terminalreporter.section("processor time of files, with their child processes")
        total = Cost(
            sum(each.processor_s for each in self.costs.values()),
            sum(each.clock_s for each in self.costs.values()),
        )
        for name, cost in [*costly, ("all", total)]:
            terminalreporter.write_line(f"{cost.processor_s:8.1f} s of {cost.clock_s:7.1f} s  {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Files(), "processor-time-of-files")
