"""Running the command line in-process or as a program, and reading what Kafka's own tool says."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kustos.cli.run import run
from kustos.metadata.directory.loader import read_image
from testkit.kafka import SASL_PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kafka.tools import write_properties
from testkit.metadata_logs import HALF_WRITTEN
from testkit.waiting import wait_until

USERS = {"admin": "admin-secret", "alice": "alice-secret"}

SETTINGS = NodeSettings(
    listeners=(SASL_PLAINTEXT,), users=USERS, authorizer=STANDARD_AUTHORIZER, super_users=("User:admin",)
)

_RESOURCE = re.compile(
    r"resource `ResourcePattern\(resourceType=(\w+), name=(.*), patternType=(\w+)\)`", re.DOTALL
)
_ENTRY = re.compile(r"\(principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)")

Acl = tuple[str, ...]


def login(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
    """The client properties of a user, as Kafka's tools and ours both take them."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        f'username="{user}" password="{password}";',
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        return json.loads(self.stdout)

    @property
    def error_code(self) -> str:
        code: str = json.loads(self.stderr)["error"]["code"]
        return code


class Cli:
    """`kustos` against one broker, as one user."""

    def __init__(self, node: KafkaNode, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.node = node
        self.directory = directory
        self._capsys = capsys

    def properties(self, properties: dict[str, str], name: str = "admin") -> Path:
        file = self.directory / f"{name}.properties"
        write_properties(file, properties)
        return file

    def arguments(self, *arguments: str, properties: dict[str, str] | None = None) -> list[str]:
        file = self.properties(properties or login("admin", USERS["admin"]))
        return [
            *arguments,
            "--bootstrap-server",
            self.node.bootstrap,
            "--command-config",
            str(file),
            "-o",
            "json",
        ]

    def __call__(self, *arguments: str, properties: dict[str, str] | None = None) -> Outcome:
        self._capsys.readouterr()
        exit_code = run(self.arguments(*arguments, properties=properties))
        said = self._capsys.readouterr()
        return Outcome(exit_code, said.out, said.err)

    def acls(self, *arguments: str) -> set[Acl]:
        outcome = self("acls", "list", *arguments)
        assert outcome.exit_code == 0, outcome
        return acls_of(outcome.document["acls"])

    def settled_acls(self) -> set[Acl]:
        """All ACLs, once the broker has read every change from the log; its controller answers before."""

        def in_log() -> set[Acl]:
            return {
                (
                    *(each.pattern.resource_type.name, each.pattern.name, each.pattern.pattern_type.name),
                    *(each.entry.principal, each.entry.host),
                    *(each.entry.operation.name, each.entry.permission_type.name),
                )
                for each in read_image(self.node.log_dir).acls.values()
            }

        return wait_until(
            self.acls,
            holds=lambda found: found == in_log(),
            what="the broker has read its log",
            not_yet=HALF_WRITTEN,
        )

    def clear(self) -> None:
        flags = {kind: flag for flag, kind in _KINDS.items()}
        for kind, name, pattern in {acl[:3] for acl in self.settled_acls() if acl[0] in flags}:
            resource = (flags[kind], name, "--resource-pattern-type", pattern.lower())
            assert self("acls", "remove", *resource, "--force").exit_code == 0
        assert self("acls", "remove", "--cluster", "--force").exit_code == 0
        assert self.settled_acls() == set()


_KINDS = {
    "--topic": "TOPIC",
    "--group": "GROUP",
    "--transactional-id": "TRANSACTIONAL_ID",
    "--delegation-token": "DELEGATION_TOKEN",
    "--user-principal": "USER",
}


def acls_of(documents: list[dict[str, str]]) -> set[Acl]:
    return {tuple(document.values()) for document in documents}


def kafka_acls_of(text: str) -> set[Acl]:
    """What `kafka-acls --list` printed."""
    found: set[Acl] = set()
    resource: Acl = ()
    for line in text.splitlines():
        if match := _RESOURCE.search(line):
            resource = match.groups()
        elif match := _ENTRY.search(line):
            found.add((*resource, *match.groups()))
    return found


def run_program(*arguments: str, environment: dict[str, str] | None = None) -> Outcome:
    """Run `kustos` as a program of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "kustos", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env=environment,
        check=False,
    )
    return Outcome(result.returncode, result.stdout, result.stderr)
