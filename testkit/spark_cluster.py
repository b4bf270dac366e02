"""A standalone Spark cluster on the loopback, and programs submitted to it by spark-submit."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import pyspark

from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server
from testkit.spark_quick import quick_environment

HOME: Final = Path(pyspark.__file__).parent
START_S: Final = 240
"""For JVMs on a machine that starts many others too."""

SUBMIT_S: Final = 900
MEMORY: Final = "640m"
"""Memory of an executor: little more than Spark's minimum of 471 MB."""

NOTHING_MORE: Final[Mapping[str, str]] = {}


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
    folder: Path, workers: int, *, environment: Mapping[str, str] = NOTHING_MORE
) -> Iterator[str]:
    """Yield the URL of a master with `workers` workers of one core each; all are gone at the end.

    `environment` overrides the settings that make JVMs of tests quick.
    """
    port, page = free_port(), free_port()
    url = f"spark://{LOOPBACK}:{port}"
    environment = clean_environment(environment)
    spark_class = str(HOME / "bin" / "spark-class")
    with ExitStack() as servers:

        def start(name: str, *words: str) -> Server:
            server = Server(name, [spark_class, *words], folder / f"{name}.log", environment)
            servers.callback(server.kill)
            return server

        master = start(
            "master",
            "org.apache.spark.deploy.master.Master",
            *("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page)),
        )
        master.wait_ready(lambda: _alive(page) is not None, timeout_s=START_S)
        for number in range(workers):
            start(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                *("--host", LOOPBACK, "--cores", "1", "--memory", "1g", "--webui-port", str(free_port())),
                *("--work-dir", str(folder / f"work-{number}"), url),
            )
        master.wait_ready(lambda: _alive(page) == workers, timeout_s=START_S)
        yield url


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
    settings = {
        "spark.executor.memory": MEMORY,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
    }
    command = [str(HOME / "bin" / "spark-submit"), "--master", master]
    command += [f"--conf={key}={value}" for key, value in settings.items()]
    done = subprocess.run(
        [*command, *options, str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=SUBMIT_S,
        env=clean_environment(environment),
        cwd=cwd,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"spark-submit ended with {done.returncode}\n{done.stderr[-6000:]}")
    return re.sub(r"(?m)^WARNING: Using incubator modules.*\n", "", done.stdout)
