"""Kafka's own perf tools against one address, and what the process behind it takes meanwhile."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from testkit.kafka.java import command

TOOLS = "org.apache.kafka.tools"
TOOL_TIMEOUT_S = 600
RECORD_BYTES = 1000
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run of a tool: its rate (records or megabytes a second), and processor time for each record."""

    rate: float
    cpu_us: float = 0.0


@dataclass(slots=True, kw_only=True)
class Route:
    """A way to the broker. `pid` is the process in between, None where there is none."""

    name: str
    bootstrap: str
    topic: str
    properties: Path
    pid: int | None = None
    groups: int = field(default=0)

    def produce(self, records: int, acks: str) -> Round:
        """Write to the topic; the rate is in records per second."""
        text, cpu_s = self._measured(
            f"{TOOLS}.ProducerPerformance", "--topic", self.topic, "--num-records", str(records),
            "--record-size", str(RECORD_BYTES), "--throughput", "-1",
            "--command-config", str(self.properties), "--command-property", f"acks={acks}",
        )  # fmt: skip
        rate = float(re.findall(r"([\d.]+) records/sec", text)[-1])
        return Round(rate=rate, cpu_us=cpu_s * 1e6 / records)

    def consume(self, records: int) -> Round:
        """Read the topic from its beginning; the rate is in MB per second."""
        self.groups += 1
        text, cpu_s = self._measured(
            f"{TOOLS}.ConsumerPerformance", "--bootstrap-server", self.bootstrap, "--topic", self.topic,
            "--num-records", str(records), "--group", f"{self.topic}-{self.name}-{self.groups}",
            "--command-config", str(self.properties),
        )  # fmt: skip
        fields = text.strip().splitlines()[-1].split(",")
        return Round(rate=float(fields[3]), cpu_us=cpu_s * 1e6 / float(fields[4]))

    def latency_us(self, warm_up: int, sends: int) -> float:
        """Return the median microseconds from a send to its acknowledgement, one record at a time."""
        source = Path(__file__).parent.parent / "java" / "SendLatency.java"
        text, _ = self._measured(str(source), str(self.properties), self.topic, str(warm_up), str(sends))
        return float(text.strip().splitlines()[-1])

    def create_topic(self) -> None:
        """Create the topic, through whatever is at the address."""
        common = ("--bootstrap-server", self.bootstrap, "--command-config", str(self.properties))
        self._measured(
            f"{TOOLS}.TopicCommand", *common, "--create", "--topic", self.topic, "--partitions", "1"
        )

    def resident_mb(self) -> float:
        """Return the most memory that the process in between has had so far."""
        if self.pid is None:
            raise ValueError(f"there is no process on the route `{self.name}`")
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024

    def _measured(self, main: str, *arguments: str) -> tuple[str, float]:
        """Return what a tool printed, and the processor seconds of the process in between.

        The tool's JVM optimizes as it does in real life.
        """
        line = command(main, *arguments, heap="512m", peak=True)
        before_s = self.cpu_so_far_s()
        done = subprocess.run(line, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{main} failed\n{done.stdout}\n{done.stderr}")
        return done.stdout, self.cpu_so_far_s() - before_s

    def cpu_so_far_s(self) -> float:
        """Return the processor seconds of the processes in between."""
        return 0.0 if self.pid is None else sum(map(cpu_s, processes(self.pid)))


def processes(pid: int) -> list[int]:
    """Return a process and those that it started: the workers of a node."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def resident_mb(pid: int) -> float:
    """Return the memory of a process and those that it started; pages that they share count for each."""
    found = (
        re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{each}/status").read_text()) for each in processes(pid)
    )
    return sum(int(size) for [size] in found) / 1024


def cpu_s(pid: int) -> float:
    """Return the processor seconds of a process so far, of all its threads, in steps of 10 ms."""
    # the command's name, which may hold spaces, ends with the last bracket (proc(5))
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
