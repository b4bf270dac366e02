"""A standalone Spark cluster on the loopback, and programs submitted to it by spark-submit."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import pyspark

from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server, unshared
from testkit.spark_quick import quick_environment

HOME: Final = Path(pyspark.__file__).parent
START_S: Final = 240
"""For JVMs on a machine that starts many others too."""

SUBMIT_S: Final = 900
MEMORY: Final = "640m"
"""Memory of an executor: little more than Spark's minimum of 471 MB."""

NOTHING_MORE: Final[Mapping[str, str]] = {}

APART: Final = """work=$1
shift
while [ "$1" != -- ]; do
    mount -t tmpfs tmpfs "$1"
    shift
done
shift
mkdir -p "$work/local"
cd "$work"
exec setpriv --pdeathsig KILL env SPARK_LOCAL_DIRS="$work/local" "$@"
"""
"""Runs a program where these folders are empty ones of its own, in a working folder below one of them."""


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """A worker; `folder` is where it keeps its work and what its executors say, as it sees it."""

    server: Server
    folder: Path

    def outputs(self) -> str:
        """Return what its executors have written to their outputs, seen through the worker's eyes."""
        seen = Path(f"/proc/{self.server.pid}/root{self.folder}")
        return "".join(path.read_text(errors="replace") for path in seen.glob("app-*/*/std*"))


@dataclass(frozen=True, slots=True)
class StandaloneCluster:
    """A running cluster."""

    url: str
    workers: tuple[WorkerNode, ...]


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without leftovers of a Spark session, plus what a cluster needs."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    ours = {
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_HOME": str(HOME),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        **quick_environment(),
    }
    return {**kept, **ours, **extra}


@contextmanager
def standalone_cluster(
    folder: Path,
    workers: int,
    *,
    environment: Mapping[str, str] = NOTHING_MORE,
    hidden: Sequence[Path] = (),
) -> Iterator[StandaloneCluster]:
    """Yield a master with `workers` workers of one core each; all are gone at the end.

    `environment` overrides the settings that make JVMs of tests quick. Each worker, with all that it starts,
    finds empty folders of its own in place of those that are `hidden`, of which one must hold `folder`: it is
    a mount namespace, which takes root, or a kernel that lets every user have one.
    """
    port, page = free_port(), free_port()
    url = f"spark://{LOOPBACK}:{port}"
    environment = clean_environment(environment)
    spark_class = str(HOME / "bin" / "spark-class")
    with ExitStack() as servers:

        def start(name: str, *words: str) -> Server:
            server = Server(name, words, folder / f"{name}.log", environment)
            servers.callback(server.kill)
            return server

        master = start(
            "master",
            *(spark_class, "org.apache.spark.deploy.master.Master"),
            *("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page)),
        )
        master.wait_ready(lambda: _alive(page) is not None, timeout_s=START_S)
        started = []
        for number in range(workers):
            work = folder / f"work-{number}"
            command = [spark_class, "org.apache.spark.deploy.worker.Worker"]
            command += ["--host", LOOPBACK, "--cores", "1", "--memory", "1g"]
            command += ["--webui-port", str(free_port()), "--work-dir", str(work), url]
            words = [*_apart(work, hidden), *command] if hidden else command
            started.append(WorkerNode(start(f"worker-{number}", *words), work))
        for worker in started:
            worker.server.wait_ready(lambda: _alive(page) == workers, timeout_s=START_S)
        yield StandaloneCluster(url, tuple(started))


def _apart(work: Path, hidden: Sequence[Path]) -> list[str]:
    """Return the beginning of a command whose process sees empty folders in place of the hidden ones."""
    return [*unshared("mount"), "sh", "-euc", APART, "sh", str(work), *map(str, hidden), "--"]


def _alive(page: int) -> int | None:
    try:
        with urlopen(f"http://{LOOPBACK}:{page}/json/", timeout=5) as answer:
            return int(json.loads(answer.read())["aliveworkers"])
    except (URLError, OSError, ValueError):
        return None


def submit(
    master: str,
    program: Path,
    arguments: Sequence[str],
    *,
    options: Sequence[str] = (),
    environment: Mapping[str, str] = NOTHING_MORE,
    cwd: Path,
) -> str:
    """Run a program by spark-submit and return its output; raise with its errors if it fails."""
    done = subprocess.run(
        [*_submission(master, options), str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=SUBMIT_S,
        env=clean_environment(environment),
        cwd=cwd,
        check=False,
    )
    if done.returncode:
        frames = re.compile(r"(?m)^\s+at .*\n")  # of Java, which hide what they are of
        told = "\n".join(frames.sub("", text)[-6000:] for text in (done.stderr, done.stdout))
        raise AssertionError(f"spark-submit ended with {done.returncode}\n{told}")
    return re.sub(r"(?m)^WARNING: Using incubator modules.*\n", "", done.stdout)


@contextmanager
def submitted(
    master: str,
    program: Path,
    arguments: Sequence[str],
    *,
    options: Sequence[str] = (),
    environment: Mapping[str, str] = NOTHING_MORE,
    cwd: Path,
    output: Path,
) -> Iterator[Server]:
    """Start a program by spark-submit, to be killed: the server is its JVM, in a group with its Python.

    At the end the group is killed, as when the driver's machine fails.
    """
    wanted = clean_environment(environment)
    left_out = [f"--unset={key}" for key in os.environ if key not in wanted]
    command = ["setsid", "env", f"--chdir={cwd}", *left_out, *_submission(master, options)]
    driver = Server(program.stem, [*command, str(program), *arguments], output, wanted)
    try:
        yield driver
    finally:
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(driver.pid, signal.SIGKILL)
        driver.kill()


def _submission(master: str, options: Sequence[str]) -> list[str]:
    settings = {
        "spark.executor.memory": MEMORY,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
    }
    command = [str(HOME / "bin" / "spark-submit"), "--master", master]
    return [*command, *(f"--conf={key}={value}" for key, value in settings.items()), *options]
