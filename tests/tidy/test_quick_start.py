"""The commands of the README and the tutorials work as documented, with a real Kafka where they need one."""

import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testkit.kafka import KafkaNode
from testkit.kafka.java import command
from testkit.kafka.tools import full_name
from testkit.kustos import BROKER_PORTS
from testkit.paths import ROOT
from testkit.ports import free_port, free_port_range
from testkit.spark_quick import quick_driver_environment
from testkit.waiting import wait_until

PAGES = ("README.md", "docs/tutorial/first-guard.md")
PIPELINE = "docs/tutorial/pipeline.md"
FILE = re.compile(r'```[a-z]+ title="(?P<name>[^"]+)"\n(?P<text>.*?)```', re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
SCRIPTS = {"kafka-topics.sh": "TopicCommand", "kafka-console-producer.sh": "ConsoleProducer"}
COMMAND_TIMEOUT_S = 600.0
"""Spark answers in seconds, on a crowded machine in minutes."""


@dataclass(frozen=True, slots=True)
class Line:
    """A command of a page, and what the page shows of its output."""

    command: str
    shown: tuple[str, ...]


def lines_of(text: str) -> Iterator[Line]:
    for block in CONSOLE.findall(text.replace("\\\n", " ")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *shown = part.strip().splitlines()
            yield Line(first, tuple(shown))


def with_own_ports(text: str, upstream: str) -> str:
    """Return a page in whose text ports are free ones and the broker is that of the test."""
    node, http, brokers = free_port(), free_port(), free_port_range(BROKER_PORTS)
    text = text.replace("127.0.0.1:9092", upstream)
    text = text.replace("127.0.0.1:9192", f"127.0.0.1:{node}").replace("127.0.0.1:9404", f"127.0.0.1:{http}")
    ports = f"kustos.gateway.broker.port.start={brokers}\nkustos.gateway.broker.port.count={BROKER_PORTS}\n"
    return text.replace("node.id=1\n", f"node.id=1\n{ports}")


def path_with_scripts(folder: Path) -> str:
    """Return a PATH on which are kustos and scripts like those of Kafka's distribution."""
    folder.mkdir()
    for name, tool in SCRIPTS.items():
        script = folder / name
        line = shlex.join(command(full_name(tool), heap="256m", archive_name="tools"))
        script.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        script.chmod(0o755)
    return os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])


def is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def written(page: str, work: Path) -> list[Line]:
    """Write the files that a page shows; return its commands."""
    work.mkdir()
    for found in FILE.finditer(page):
        (work / found["name"]).write_text(found["text"])
    return [line for line in lines_of(page) if not line.command.startswith("make ")]


def words(line: str) -> str:
    """Return a line with single spaces: the width of a column depends on the folder."""
    return " ".join(line.split())


def run_line(line: Line, work: Path, environment: dict[str, str]) -> None:
    """Run a command of a page; raise AssertionError unless it does what the page shows."""
    done = subprocess.run(
        ["sh", "-c", line.command],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    said = [words(each) for each in (done.stdout + done.stderr).splitlines()]
    assert [shown for shown in line.shown if words(shown) not in said] == [], (line, said)
    assert (done.returncode == 0) is not any("failed" in shown for shown in line.shown), said


def test_the_tutorial_of_the_pipeline_needs_no_broker(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    lines = written((ROOT / PIPELINE).read_text(), tmp_path / "work")
    assert [line.command.split()[2] for line in lines if line.command.startswith("kustos pipeline")] == [
        "run",
        "review",
        "replay",
        "report",
    ]
    for line in lines:
        run_line(line, tmp_path / "work", {**os.environ, **quick_driver_environment(), "PATH": path})
    assert (tmp_path / "work" / "report.html").stat().st_size > 1000


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_the_page_do_what_it_says(name: str, tmp_path: Path) -> None:
    with KafkaNode(tmp_path / "kafka") as broker:
        page = with_own_ports((ROOT / name).read_text(), broker.bootstrap)
        work = tmp_path / "work"
        lines = written(page, work)
        environment = {
            **os.environ,
            **quick_driver_environment(),
            "PATH": path_with_scripts(tmp_path / "bin"),
        }
        assert len(lines) >= 6
        node: subprocess.Popen[bytes] | None = None
        try:
            for line in lines:
                if line.command.startswith("kustos serve"):
                    with (tmp_path / "kustos.log").open("wb") as log:
                        node = subprocess.Popen(
                            shlex.split(line.command), cwd=work, env=environment, stdout=log
                        )
                    settings = (work / "kustos.properties").read_text()
                    http = re.search(r"^kustos.http.listener=(.*)$", settings, re.MULTILINE)
                    assert http is not None
                    address = http[1]
                    wait_until(lambda: is_ready(address), what="the node is ready")  # noqa: B023
                    continue
                if "pipeline" in line.command and node is not None:
                    node.terminate()
                    assert node.wait(timeout=60) == 0
                    node = None
                run_line(line, work, environment)
        finally:
            if node is not None:
                node.kill()
                node.wait()
        assert (work / "report" / "report.html").stat().st_size > 1000
