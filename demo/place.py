"""Where the demo happens: the folder, Kafka, the kustos node before it, everybody's files."""

import fcntl
import json
import secrets
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from demo.cast import ADMIN, NOBODY, USERS
from demo.clients import MECHANISM, Login
from testkit.kafka import KafkaNode
from testkit.kafka.tools import write_properties
from testkit.paths import ROOT
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.processes import Server

BROKER_PORTS: Final = 2
"""Upstream has one broker, whose id is 1; ids begin at 0."""

START_TIMEOUT_S: Final = 180.0
STOP_TIMEOUT_S: Final = 30.0
HTTP_TIMEOUT_S: Final = 5.0

SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class DemoError(Exception):
    """The demo cannot go on; the text says why."""


class Place:
    """All that runs and all that lies in the output folder. `close` ends what runs; the folder stays."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._lock: Final = _lock(folder)
        for former in folder.iterdir():
            if former.is_dir():
                shutil.rmtree(former)
        self.clients: Final = folder / "clients"
        self.kustos_folder: Final = folder / "kustos"
        self.clients.mkdir(mode=0o700)
        self.kustos_folder.mkdir(mode=0o700)
        self.kafka: Final = KafkaNode(folder / "kafka")
        self.port: Final = free_port()
        self.first_broker_port: Final = free_port_range(BROKER_PORTS)
        self.http_port: Final = free_port()
        self.kustos: Server | None = None
        self._passwords: Final = {name: secrets.token_urlsafe(12) for name in (ADMIN, *USERS)}
        for name, password in self._passwords.items():
            self._write_client(self.client_file(name), name, password)
        self._write_client(self.clients / "alice-wrong.properties", "alice", secrets.token_urlsafe(12))
        self._write_client(self.client_file(NOBODY), NOBODY, secrets.token_urlsafe(12))

    @property
    def bootstrap(self) -> str:
        """`host:port` of kustos."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def shown_folder(self) -> str:
        """The output folder as a person at the checkout's top would write it."""
        return str(self.folder.relative_to(ROOT) if self.folder.is_relative_to(ROOT) else self.folder)

    @property
    def report_page(self) -> Path:
        """The page that Spark's job makes."""
        return self.report_folder / "report.html"

    @property
    def http(self) -> str:
        """Where metrics and readiness are."""
        return f"http://{LOOPBACK}:{self.http_port}"

    @property
    def properties_file(self) -> Path:
        """The node's settings."""
        return self.kustos_folder / "kustos.properties"

    @property
    def audit_folder(self) -> Path:
        """Where the audit events are."""
        return self.kustos_folder / "audit"

    @property
    def report_folder(self) -> Path:
        """Where the access report is put."""
        return self.folder / "report"

    @property
    def kustos_log(self) -> Path:
        """What kustos printed."""
        return self.kustos_folder / "kustos.log"

    def client_file(self, user: str) -> Path:
        """Return the properties file with which Kafka's tools and `kustos` log in."""
        return self.clients / f"{user}.properties"

    def password_file(self, user: str) -> Path:
        """Return the file that holds a user's password and nothing else."""
        return self.clients / f"{user}.password"

    def login(self, user: str) -> Login:
        """Return how a Python client logs in."""
        return Login(bootstrap=self.bootstrap, user=user, password=self._passwords[user])

    def _write_client(self, file: Path, user: str, password: str) -> None:
        jaas = f'{SCRAM_MODULE} required username="{user}" password="{password}";'
        keys = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM, "sasl.jaas.config": jaas}
        write_properties(file, keys)
        only = file.with_suffix(".password")
        only.touch(mode=0o600)
        only.write_text(password)

    def write_properties(self) -> list[str]:
        """Write the node's settings; return them as lines."""
        values = {
            "node.id": "1",
            "metadata.log.dir": str(self.kustos_folder / "metadata"),
            "listeners": f"SASL_PLAINTEXT://{self.bootstrap}",
            "sasl.enabled.mechanisms": MECHANISM,
            "super.users": f"User:{ADMIN}",
            "kustos.upstream.bootstrap.servers": self.kafka.bootstrap,
            "kustos.gateway.broker.port.start": str(self.first_broker_port),
            "kustos.gateway.broker.port.count": str(BROKER_PORTS),
            "kustos.http.listener": f"{LOOPBACK}:{self.http_port}",
            "kustos.audit.sinks": "json",
            "kustos.audit.json.dir": str(self.audit_folder),
        }
        write_properties(self.properties_file, values)
        return [f"{key}={value}" for key, value in values.items()]

    def start_kustos(self) -> str:
        """Run `kustos serve` and return what `/ready` answers once it does."""
        line = [sys.executable, "-m", "kustos", "serve", str(self.properties_file)]
        self.kustos = Server("kustos", line, self.kustos_log)
        self.kustos.wait_ready(lambda: self._ready() == "200", timeout_s=START_TIMEOUT_S)
        return f"/ready answers {self._ready()}"

    def stop_kustos(self) -> str:
        """Tell the node to end, and return its exit code in words."""
        if self.kustos is None:
            return "kustos did not run"
        server, self.kustos = self.kustos, None
        code = server.terminate(timeout_s=STOP_TIMEOUT_S) if server.running else server.wait(timeout_s=1)
        return f"exit code {code}"

    def _ready(self) -> str:
        try:
            with urllib.request.urlopen(f"{self.http}/ready", timeout=HTTP_TIMEOUT_S) as answer:  # noqa: S310
                return str(answer.status)
        except urllib.error.HTTPError as error:
            return str(error.code)
        except OSError:
            return "nothing"

    def metric(self, name: str) -> str:
        """Return the line of the metrics page that begins with `name`; empty if there is none."""
        with urllib.request.urlopen(f"{self.http}/metrics", timeout=HTTP_TIMEOUT_S) as answer:  # noqa: S310
            lines = answer.read().decode().splitlines()
        return next((line for line in lines if line.startswith(name)), "")

    def closed_audit_events(self) -> list[dict[str, Any]]:
        """Return the decisions in the files that are finished, which are those that a report reads."""
        files = sorted(self.audit_folder.glob("audit-*.jsonl"))
        events = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [event for event in events if "event_type" not in event]

    def audit_lines(self) -> Iterator[str]:
        """Yield every line that kustos wrote, the file it is still writing included."""
        for file in sorted(self.audit_folder.glob("*.jsonl"), key=lambda each: each.name.lstrip("_")):
            yield from file.read_text().splitlines()

    def audit_events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return every decision, as its line and what that says."""
        events = [(line, json.loads(line)) for line in self.audit_lines()]
        return [(line, event) for line, event in events if "event_type" not in event]

    @property
    def fallen(self) -> str | None:
        """The name of a server that ended by itself, if one did."""
        servers = {"kafka": self.kafka.server, "kustos": self.kustos}
        return next((name for name, each in servers.items() if each is None or not each.running), None)

    def close(self) -> None:
        """End kustos, then Kafka, both in good order."""
        try:
            self.stop_kustos()
        finally:
            self.kafka.stop()
            self._lock.close()


def _lock(folder: Path) -> IO[bytes]:
    """Hold the folder alone, so that a second demo does not take the first one's files away."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / ".lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise DemoError(f"another demo runs in `{folder}`, end it first") from error
    return lock
