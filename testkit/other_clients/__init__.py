"""Clients of other languages, built from their own registries: what they are told, and what they tell."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from testkit.go_modules import program
from testkit.npm import NODE, installed
from testkit.paths import ROOT
from testkit.processes import Server, spawn
from testkit.waiting import whole_lines

SOURCES: Final = ROOT / "testkit" / "other_clients"
ORDERS: Final = "KUSTOS_TEST_CLIENT"
"""The variable that holds a client's orders."""

ENDS_S: Final = 300.0
"""Each of its scenes has a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a client is told: where kustos is, as whom it does what, and with which names."""

    bootstrap: str
    users: Mapping[str, str] = field(repr=False)
    writer: str
    topic: str
    group: str
    admin: str = ""
    denied_topic: str = ""
    denied_group: str = ""
    transaction: str = ""
    made_topic: str = ""
    values: Sequence[str] = ()
    committed: Sequence[str] = ()
    aborted: Sequence[str] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Return the orders as the environment of a client."""
        return {ORDERS: json.dumps(asdict(self))}


@cache
def franz_go() -> tuple[str, ...]:
    """Return the command of the client in Go."""
    return (str(program(SOURCES / "franz_go")),)


@cache
def kafkajs() -> tuple[str, ...]:
    """Return the command of the client in JavaScript."""
    return (str(NODE), str(installed(SOURCES / "kafkajs") / "client.mjs"))


def scenes(command: Sequence[str], orders: Orders) -> dict[str, dict[str, Any]]:
    """Return what each scene came to: `failed` tells why it was not played to its end."""
    child = spawn(
        [*command, "scenes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, environment=orders.environment
    )
    said, complaints = child.communicate(timeout=ENDS_S)
    assert child.returncode == 0, complaints.decode(errors="replace")
    outcome: dict[str, dict[str, Any]] = json.loads(said)
    return outcome


def franz_go_member() -> tuple[str, ...]:
    """Return the command of a member of a group in Go."""
    return (*franz_go(), "member")


def librdkafka_member() -> tuple[str, ...]:
    """Return the command of a member of a group that uses librdkafka."""
    return (sys.executable, "-m", "testkit.other_clients.librdkafka_member")


class Member:
    """A running member of a group, which prints every record before it commits it."""

    def __init__(self, command: Sequence[str], orders: Orders, output: Path) -> None:
        self.server = Server(command[0], command, output, orders.environment)

    @property
    def read(self) -> set[tuple[int, int, str]]:
        """Return partition, offset and value of each record that it has read."""
        lines = [line.split("\t") for line in whole_lines(self.server.output)]
        return {(int(partition), int(offset), value) for _, partition, offset, value in lines}
