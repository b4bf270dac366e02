"""A kustos node on this machine in front of a real Kafka: formatted, started, checked for readiness."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kustos.acl import AclBinding
from kustos.metadata import ScramMechanism, scram_credential
from kustos.metadata.directory import InitialScramUser, format_directory
from kustos.metadata.features import DEFAULT_LEVEL
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.processes import Server
from testkit.waiting import whole_lines

START_TIMEOUT_S = 120.0
"""A start takes a second on an idle machine."""

STOP_TIMEOUT_S = 60.0
ANSWER_TIMEOUT_S = 60.0
"""A node that runs answers in milliseconds, unless it waits for a core."""

SCRAM_ITERATIONS = 4096
BROKER_PORTS = 8
"""Ports reserved for upstream brokers: more than any test has."""

WORKERS_APPLY_TIMEOUT_MS = 30_000
"""Ten times kustos's own: a worker that waits for a core on a busy machine is not one that hangs."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True, kw_only=True)
class KustosSettings:
    """The settings of a node that a test chooses.

    `users` can log in by PLAIN and by both SCRAM mechanisms. `properties` are added last.
    """

    users: Mapping[str, str] = field(default_factory=dict)
    acls: Sequence[AclBinding] = ()
    super_users: Sequence[str] = ("admin",)
    protocol: str = "SASL_PLAINTEXT"
    audit: bool = True
    metadata_version: int = DEFAULT_LEVEL
    properties: Mapping[str, str] = field(default_factory=dict)


class KustosNode:
    """A node, ready when `start()` returns; as a context manager it is stopped at the end."""

    def __init__(self, directory: Path, upstream: str, settings: KustosSettings) -> None:
        self.directory = directory
        self.upstream = upstream
        self.settings = settings
        self.port = free_port()
        self.first_broker_port = free_port_range(BROKER_PORTS)
        self.http_port = free_port()
        self.before_command: tuple[str, ...] = ()
        """What the node is started by, such as `prlimit`."""
        self.server: Server | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port` of the listener."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def metadata_directory(self) -> Path:
        """The directory of the metadata log."""
        return self.directory / "metadata"

    @property
    def audit_directory(self) -> Path:
        """The directory of the audit events."""
        return self.directory / "audit"

    @property
    def properties_file(self) -> Path:
        """The node's properties file."""
        return self.directory / "kustos.properties"

    def format(self) -> None:
        """Create the metadata directory, with the users and ACLs of the settings."""
        users = []
        for name, password in self.settings.users.items():
            for mechanism in ScramMechanism:
                salt = f"{name}-{mechanism.value}".encode().ljust(16, b"-")
                credential = scram_credential(mechanism, password, salt, SCRAM_ITERATIONS)
                users.append(InitialScramUser(name, mechanism, credential))
        format_directory(
            self.metadata_directory,
            scram_users=users,
            acls=self.settings.acls,
            metadata_version=self.settings.metadata_version,
        )

    def write_properties(self) -> None:
        """Write the properties file."""
        settings = self.settings
        users = " ".join(f'user_{name}="{password}"' for name, password in settings.users.items())
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        values = {
            "node.id": "1",
            "metadata.log.dir": str(self.metadata_directory),
            "listeners": f"{settings.protocol}://{self.bootstrap}",
            "kustos.upstream.bootstrap.servers": self.upstream,
            "kustos.gateway.broker.port.count": str(BROKER_PORTS),
            "kustos.http.listener": f"{LOOPBACK}:{self.http_port}",
            "super.users": ";".join(f"User:{name}" for name in settings.super_users),
        }
        listener = f"listener.name.{settings.protocol.lower()}"
        if f"{listener}.kustos.broker.host.pattern" not in settings.properties:
            values[f"{listener}.kustos.broker.port.start"] = str(self.first_broker_port)
        if settings.protocol.startswith("SASL"):
            values["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            values[f"{listener}.plain.sasl.jaas.config"] = f"{module} required {users};"
        if "kustos.workers" in settings.properties:
            values["kustos.workers.apply.timeout.ms"] = str(WORKERS_APPLY_TIMEOUT_MS)
        if settings.audit:
            values["kustos.audit.sinks"] = "json"
            values["kustos.audit.json.dir"] = str(self.audit_directory)
        text = "".join(f"{key}={value}\n" for key, value in (values | dict(settings.properties)).items())
        self.properties_file.write_text(text)

    def start(self) -> Self:
        """Start, and return when the node reports that it is ready; format first if necessary."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self.metadata_directory.exists():
            self.format()
        self.write_properties()
        command = [*self.before_command, sys.executable, "-m", "kustos", "serve", str(self.properties_file)]
        self.server = Server("kustos", command, self.directory / "kustos.log")
        self.server.wait_ready(self.is_ready, timeout_s=START_TIMEOUT_S)
        return self

    def is_ready(self) -> bool:
        """Return whether the node reports that it is ready."""
        try:
            with urllib.request.urlopen(
                f"http://{LOOPBACK}:{self.http_port}/ready", timeout=ANSWER_TIMEOUT_S
            ) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def metrics(self) -> str:
        """Return the metrics page."""
        with urllib.request.urlopen(
            f"http://{LOOPBACK}:{self.http_port}/metrics", timeout=ANSWER_TIMEOUT_S
        ) as answer:
            text: str = answer.read().decode()
            return text

    def audit_events(self) -> Iterator[dict[str, Any]]:
        """Yield the decisions on disk."""
        return (event for event in self._audited() if "event_type" not in event)

    def security_events(self) -> Iterator[dict[str, Any]]:
        """Yield the logins and changes on disk."""
        return (event for event in self._audited() if "event_type" in event)

    def _audited(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.audit_directory.rglob("*.jsonl")):
            for line in whole_lines(path):
                yield json.loads(line)

    def client_properties(self, user: str, mechanism: str = "SCRAM-SHA-256") -> str:
        """Return the text of a Java client's properties file for this user."""
        kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        module = f"org.apache.kafka.common.security.{kind}LoginModule"
        password = self.settings.users[user]
        return (
            f"security.protocol={self.settings.protocol}\nsasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
        )

    def stop(self) -> int:
        """Stop gracefully; return the exit code."""
        if self.server is None:
            return 0
        server, self.server = self.server, None
        return server.terminate(timeout_s=STOP_TIMEOUT_S) if server.running else server.wait(timeout_s=1)

    def kill(self) -> None:
        """Kill the node at once, like a power cut."""
        if self.server is not None:
            self.server.kill()
            self.server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
