"""Kafka's own command-line tools: those that end by themselves share a JVM, others have one of their own."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testkit.jars import KAFKA, KAFKA_SHELL, WHOLE_KAFKA
from testkit.kafka.java import command
from testkit.kafka.tool_server import ToolServer, ToolTimeoutError
from testkit.processes import ChildError, spawn

TOOL_TIMEOUT_S = 60.0
"""A tool takes 1 to 2 s; after a minute it waits for a broker that will never answer."""

SHELL_TIMEOUT_S = 30.0
"""The metadata shell takes 2 s, and asks nobody."""

SHELL_ATTEMPTS = 3
"""How often the metadata shell is started until it ends."""

SHORT_NAMES = {
    "StorageTool": "kafka.tools.StorageTool",
    "ConsoleConsumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "ConsoleShareConsumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "ReassignPartitionsCommand": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "ShareGroupCommand": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "MetadataShell": "org.apache.kafka.shell.MetadataShell",
}
"""Tools that are not in `org.apache.kafka.tools`."""

MOVED = {
    "AclCommand": ((4, 0), "kafka.admin.AclCommand"),
    "ConfigCommand": ((4, 4), "kafka.admin.ConfigCommand"),
}
"""The release since which a tool has its name, and its name before."""

SERVED = frozenset(
    {
        "AclCommand",
        "BrokerApiVersionsCommand",
        "ClientMetricsCommand",
        "ClusterTool",
        "ConfigCommand",
        "ConsoleConsumer",
        "ConsoleProducer",
        "ConsoleShareConsumer",
        "ConsumerGroupCommand",
        "ConsumerPerformance",
        "DelegationTokenCommand",
        "DeleteRecordsCommand",
        "DumpLogSegments",
        "FeatureCommand",
        "GetOffsetShell",
        "GroupsCommand",
        "LeaderElectionCommand",
        "LogDirsCommand",
        "MetadataQuorumCommand",
        "ProducerPerformance",
        "ReassignPartitionsCommand",
        "ShareGroupCommand",
        "StorageTool",
        "TopicCommand",
        "TransactionsCommand",
        "VerifiableConsumer",
        "VerifiableShareConsumer",
    }
)
"""Tools that do one thing and end, which share a JVM: a start of one costs ten times what they do.

Each makes its own clients and closes them, so what passes between them and kustos is the same.
"""

READ_BY_JVMS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "KRB5_CONFIG", "KRB5CCNAME")
"""Variables that a JVM reads once, such as for Kerberos's realm: tests set them for a while."""

PATIENT = {
    "ConsoleProducer": ("--request-timeout-ms", "60000"),
    "ConsumerPerformance": ("--timeout", "60000"),
}
"""What some tools are told besides. Untold, the first waits 1.5 s for an answer and gives up a record after
four attempts, and the second ends after ten seconds without a record."""

_servers: dict[tuple[tuple[str, str], ...], ToolServer] = {}
"""By what is added to their environment."""


def _server(environment: Mapping[str, str]) -> ToolServer:
    """Return the JVM for tools with this environment; one for another ends, unless that adds nothing."""
    ours = {name: os.environ[name] for name in READ_BY_JVMS if name in os.environ}
    key = tuple(sorted({**ours, **environment}.items()))
    if key not in _servers:
        for other in [each for each in _servers if each]:
            _servers.pop(other).stop()
        _servers[key] = ToolServer(environment)
    return _servers[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The output of a tool, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str

    def require(self) -> str:
        """Return the standard output of a successful tool; raise `ChildError` with all output if not."""
        if self.exit_code:
            raise ChildError(f"the tool ended with {self.exit_code}\n{self.stdout}{self.stderr}")
        return self.stdout


class KafkaTools:
    """Runs tools by class name; a name without a package is one of Kafka's own."""

    def run(
        self,
        main_class: str,
        *arguments: str,
        stdin: str | None = None,
        timeout_s: float = TOOL_TIMEOUT_S,
        client_properties: Mapping[str, str] | None = None,
        properties_flag: str = "--command-config",
        archiving: bool = False,
        environment: Mapping[str, str] | None = None,
        own_jvm: bool = False,
    ) -> ToolResult:
        """Run a tool to its end; `ChildError` if it takes longer than `timeout_s`.

        `client_properties` are written to a file that `properties_flag` passes to the tool
        (`--producer.config` and `--consumer.config` in some tools). `environment` is added to our own. With
        `own_jvm` it does not share one, as at its users'.
        """
        main = main_class if "." in main_class else full_name(main_class)
        arguments = (*PATIENT.get(main_class, ()), *arguments)
        with tempfile.TemporaryDirectory(prefix="kafka-tool-") as scratch:
            if client_properties is not None:
                file = Path(scratch) / "client.properties"
                write_properties(file, client_properties)
                arguments = (*arguments, properties_flag, str(file))
            if main in _SERVED_CLASSES and not (archiving or own_jvm):
                served = _server(environment or {}).run(main, arguments, timeout_s, (stdin or "").encode())
                if served is not None:
                    return _result(*served)
            if main_class == "MetadataShell":
                jars = sorted(KAFKA_SHELL.resolve().glob("*.jar"))
                line = command(main, *arguments, heap="256m", kafka=WHOLE_KAFKA, jars=jars)
            else:
                line = command(main, *arguments, heap="256m", archive_name="tools", archiving=archiving)
            return _run(main, line, stdin, timeout_s, environment)

    def read_snapshot(self, snapshot: Path, *command: str) -> str:
        """Return what Kafka's MetadataShell says of a snapshot.

        Once in hundreds of runs it never ends, though it has read the file. Then it is started again.
        """
        for attempt in range(SHELL_ATTEMPTS):
            try:
                shell = self.run(
                    "MetadataShell", "--snapshot", str(snapshot), *command, timeout_s=SHELL_TIMEOUT_S
                )
                return shell.require()
            except ToolTimeoutError:
                if attempt == SHELL_ATTEMPTS - 1:
                    raise
        raise AssertionError("there is at least one attempt")


def full_name(tool: str) -> str:
    """Return the full class name of the tool with the simple name `tool`."""
    since, before = MOVED.get(tool, ((), ""))
    if KAFKA.release < since:
        return before
    return SHORT_NAMES.get(tool, f"org.apache.kafka.tools.{tool}")


_SERVED_CLASSES = frozenset(map(full_name, SERVED))


def write_properties(file: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file, readable by its owner only, since it may hold passwords."""
    lines = [f"{key}={value.replace(chr(92), chr(92) * 2)}\n" for key, value in properties.items()]
    file.touch(mode=0o600)
    file.write_text("".join(lines))


def _run(
    name: str,
    line: list[str],
    stdin: str | None,
    timeout_s: float,
    environment: Mapping[str, str] | None,
) -> ToolResult:
    process = spawn(
        line,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        environment=environment,
    )
    try:
        out, err = process.communicate(None if stdin is None else stdin.encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        process.kill()
        out, err = process.communicate()
        said = (out + err).decode(errors="replace")
        raise ToolTimeoutError(f"{name} did not end within {timeout_s:g} s\n{said}") from error
    return _result(process.returncode, out, err)


def _result(exit_code: int, out: bytes, err: bytes) -> ToolResult:
    return ToolResult(
        exit_code=exit_code, stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace")
    )
