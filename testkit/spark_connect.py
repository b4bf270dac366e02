"""A Spark Connect server on the loopback, as in a cluster: its clients share nothing with it but its port."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_connection
from typing import Final

import pyspark

from testkit.paths import ROOT
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server
from testkit.spark_quick import SETTINGS

MAIN: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_S: Final = 240
"""For a JVM and its session on a machine that starts many others too."""

SERVER_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.connect.grpc.binding.address": LOOPBACK,
    "spark.log.level": "WARN",  # else it writes a megabyte for each file of tests, for nobody
}
"""No SQL settings: those that the pipeline needs are set by its clients."""


@contextmanager
def connect_server(folder: Path, settings: Mapping[str, str] = SETTINGS) -> Iterator[str]:
    """Yield the URL of a new server, with its output in `folder`; it is gone at the end."""
    port = free_port()
    home = Path(pyspark.__file__).parent
    options = [f"--conf={key}={value}" for key, value in {**SERVER_SETTINGS, **settings}.items()]
    command = [
        str(home / "bin" / "spark-submit"),
        "--master=local[2]",
        f"--class={MAIN}",
        f"--conf=spark.connect.grpc.binding.port={port}",
        *options,
        "spark-internal",
    ]
    environment = {
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}",  # workers unpickle by name
    }
    server = Server("Spark Connect", command, folder / "connect.log", environment)
    try:
        server.wait_ready(lambda: _listens(port), timeout_s=START_S)
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        server.kill()


def _listens(port: int) -> bool:
    try:
        with closing(create_connection((LOOPBACK, port), timeout=1)):
            return True
    except OSError:
        return False
