"""The forms of ACLs against Kafka's own tools: what they print we read, what we write they read."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.acl.forms import AclForm, AclFormatError, read_acls, write_acls
from kustos.client.admin.client import AdminClient
from kustos.client.settings import ClientSettings
from kustos.metadata.directory.acl_files import encode_acl_snapshot, read_acl_files
from testkit.cli import SETTINGS, USERS, Cli, login
from testkit.kafka import KafkaNode, KafkaTools, NodeFactory
from testkit.waiting import wait_until

HOSTILE = [
    "orders",
    "a`b",
    "a, b",
    "a, patternType=LITERAL)`:",
    "(principal=User:x, host=y",
    "tab\there",
    "return\r",
    " blanks ",
    "\x85\u2028\x0b\x1b[2J",
    "Zoë日\U0001d518",
    "'\"\\",
]
BROKEN_LINE = "two\nlines"
AMBIGUOUS = "x, host=y"


def acl(
    name: str, who: str = "alice", host: str = "*", kind: ResourceType = ResourceType.GROUP
) -> AclBinding:
    return AclBinding(
        ResourcePattern(kind, name, PatternType.PREFIXED if len(name) % 2 else PatternType.LITERAL),
        AccessControlEntry(f"User:{who}", host, AclOperation.READ, AclPermissionType.ALLOW),
    )


HELD = [
    *(acl(name) for name in HOSTILE),
    *(acl("orders", name) for name in HOSTILE if "host=" not in name),
    *(acl("orders", "bob", name) for name in HOSTILE if ", host=" not in name and name.strip()),
]


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(SETTINGS)


@pytest.fixture
def listing(node: KafkaNode, kafka_tools: KafkaTools) -> Callable[[], str]:
    def run() -> str:
        arguments = ("--list", "--bootstrap-server", node.bootstrap)
        properties = login("admin", USERS["admin"])
        return kafka_tools.run("AclCommand", *arguments, client_properties=properties).require()

    return run


def change(cli: Cli, add: Sequence[AclBinding] = (), remove: Sequence[AclBinding] = ()) -> None:
    """Change ACLs on the broker to the letter; the command line would trim their blanks."""
    settings = ClientSettings.from_file(cli.node.bootstrap, cli.properties(login("admin", USERS["admin"])))
    gone = [
        AclBindingFilter(
            ResourcePatternFilter(each.pattern.resource_type, each.pattern.name, each.pattern.pattern_type),
            AccessControlEntryFilter(each.entry.principal, each.entry.host),
        )
        for each in remove
    ]

    async def send() -> None:
        async with AdminClient(settings) as admin:
            assert not any(await admin.create_acls(add) if add else ())
            assert not any(each.error for each in (await admin.delete_acls(gone) if gone else ()))

    asyncio.run(send())


@pytest.fixture
def cli(node: KafkaNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(node, tmp_path, capsys)


def test_what_kafka_acls_prints_is_read_to_the_letter(cli: Cli, listing: Callable[[], str]) -> None:
    change(cli, add=HELD)
    wait_until(lambda: len(cli.acls()) == len(set(HELD)), what="the broker lists all ACLs")
    text = listing()
    found = [located.binding for located in read_acls(text, AclForm.KAFKA_ACLS, "x")]
    assert set(found) == set(HELD)
    assert len(found) == len(set(HELD))
    # found in Kafka's order, written again it is Kafka's text
    assert write_acls(found, AclForm.KAFKA_ACLS) == text
    unreadable = "a name with a line break needs another form"
    for name, who, rule in (
        (BROKEN_LINE, "alice", unreadable),
        ("orders", BROKEN_LINE, unreadable),
        ("orders", AMBIGUOUS, "has no unique start of the host"),
    ):
        change(cli, add=[acl(name, who)])
        wait_until(lambda: len(cli.acls()) > len(set(HELD)), what="the broker lists one more")
        with pytest.raises(AclFormatError, match=rule):
            read_acls(listing(), AclForm.KAFKA_ACLS, "x")
        change(cli, remove=[acl(name, who)])
        wait_until(lambda: len(cli.acls()) == len(set(HELD)), what="it is gone again")


def test_a_snapshot_that_we_write_is_read_by_kafka(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    file = tmp_path / f"{0:020d}-{0:010d}.checkpoint"
    file.write_bytes(encode_acl_snapshot([*HELD, *HELD]))
    assert set(read_acl_files(file)) == set(HELD)
    shell = kafka_tools.read_snapshot(file, "ls", "/image/acls/byId")
    assert "fault" not in shell
    dump = kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(file)).require()
    payloads = [
        json.loads(line.partition("payload: ")[2]) for line in dump.split("\n") if "payload: " in line
    ]
    records = [each["data"] for each in payloads if each["type"] == "ACCESS_CONTROL_ENTRY_RECORD"]
    assert {binding_of_record(record) for record in records} == set(HELD)
    assert {record["id"] for record in records} == set(re.findall(r"^\S{22}$", shell, re.MULTILINE))


def binding_of_record(record: dict[str, Any]) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            ResourceType(record["resourceType"]), record["resourceName"], PatternType(record["patternType"])
        ),
        AccessControlEntry(
            record["principal"],
            record["host"],
            AclOperation(record["operation"]),
            AclPermissionType(record["permissionType"]),
        ),
    )


def test_a_log_that_kafka_wrote_is_read(node: KafkaNode, cli: Cli) -> None:
    wait_until(
        lambda: {a.pattern.name for a in read_acl_files(node.log_dir)} >= set(HOSTILE),
        what="the log holds the ACLs",
    )
    partition = node.log_dir / "__cluster_metadata-0"
    assert set(read_acl_files(partition)) == set(read_acl_files(node.log_dir))
