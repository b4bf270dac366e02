"""Workers of Kafka Connect, and MirrorMaker 2, as child processes."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testkit.jars import KAFKA_CONNECT, WHOLE_KAFKA
from testkit.kafka import java
from testkit.kafka.tools import write_properties
from testkit.ports import LOOPBACK, free_port
from testkit.processes import Server

START_TIMEOUT_S = 240.0
"""A worker takes some ten seconds on an idle machine: it makes its topics, and joins its group."""

REST_TIMEOUT_S = 60.0
"""Requests wait while workers rebalance."""


def jvm(name: str, main: str, directory: Path, properties: Mapping[str, str]) -> Server:
    """Start a program of Connect with a properties file."""
    file = directory / f"{name}.properties"
    write_properties(file, properties)
    jars = sorted(KAFKA_CONNECT.resolve().glob("*.jar"))
    logs = directory / f"{name}-logs"
    line = java.command(main, str(file), heap="384m", logs=logs, jars=jars, kafka=WHOLE_KAFKA)
    return Server(name, line, directory / f"{name}.log")


def prefixed(prefix: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with something before each name."""
    return {f"{prefix}{key}": value for key, value in properties.items()}


class RestError(Exception):
    """The worker refused a request, or cannot be reached."""


class ConnectWorker:
    """A worker of a distributed Connect cluster; ready when `start` returns."""

    def __init__(self, name: str, directory: Path, properties: Mapping[str, str]) -> None:
        self.name = name
        self.port = free_port()
        own = {"listeners": f"http://{LOOPBACK}:{self.port}"}
        self.server = jvm(
            name, "org.apache.kafka.connect.cli.ConnectDistributed", directory, {**properties, **own}
        )

    @property
    def id(self) -> str:
        """How other workers name it."""
        return f"{LOOPBACK}:{self.port}"

    def wait_ready(self) -> None:
        """Return once it answers."""
        self.server.wait_ready(self._answers, timeout_s=START_TIMEOUT_S)

    def _answers(self) -> bool:
        try:
            self.ask("GET", "/connectors")
        except RestError:
            return False
        return True

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer of its REST interface; raise `RestError`."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{self.id}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=REST_TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise RestError(f"{method} {path}: {error.code} {error.read().decode()}") from error
        except OSError as error:
            raise RestError(f"{method} {path}: {error}") from error
        return json.loads(text) if text else None

    def tasks_of(self, connector: str) -> dict[int, tuple[str, str]]:
        """Return state and worker of each task of a connector."""
        status = self.ask("GET", f"/connectors/{connector}/status")
        return {each["id"]: (each["state"], each["worker_id"]) for each in status["tasks"]}
