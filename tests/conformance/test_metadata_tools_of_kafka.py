"""What `kustos metadata` tells of a real broker's log, beside what Kafka's own tools tell of it."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.acl_files import read_acl_files
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.inspection.shown import REDACTED
from testkit import versions
from testkit.kafka import SNAPSHOTS_OFTEN, STANDARD_AUTHORIZER, KafkaNode, KafkaTools, NodeSettings
from testkit.kafka.dumps import read_dump
from testkit.waiting import wait_until

SETTINGS = NodeSettings(
    users={"alice": "alice-secret"},
    authorizer=STANDARD_AUTHORIZER,
    super_users=("User:ANONYMOUS",),
    properties=SNAPSHOTS_OFTEN,
    release_version=versions.WHOLE,  # what the metadata shell reads
)
SECRET_FIELDS = frozenset({"salt", "storedKey", "serverKey"})

SNAPSHOT_ACLS_MIN = 5

BROKER_CONFIG = 4
"""Settings of brokers may be secrets; ACLs have no field `value`."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a broker that made and took away much, and was stopped."""
    with KafkaNode(tmp_path_factory.mktemp("kafka"), SETTINGS) as node:
        change_much(AdminClient({"bootstrap.servers": node.bootstrap}))
        wait_until(lambda: has_snapshot_of_acls(node), what="the broker wrote a snapshot of some ACLs")
        node.stop()
        yield node.log_dir


def has_snapshot_of_acls(node: KafkaNode) -> bool:
    """Return whether a snapshot has enough in it; the first may be from before most changes."""
    written = sorted((node.log_dir / "__cluster_metadata-0").glob("*[1-9]*-*.checkpoint"))
    return bool(written) and len(read_acl_files(written[-1])) >= SNAPSHOT_ACLS_MIN


def change_much(admin: AdminClient) -> None:
    for made in admin.create_topics([NewTopic(f"t{n}", 2, 1) for n in range(2)]).values():
        made.result(30)
    anything: Any = None
    for number in range(30):
        acl = AclBinding(
            ResourceType.TOPIC, f"näme-{number}", ResourcePatternType.LITERAL, f"User:u{number}", "*",
            AclOperation.READ, AclPermissionType.ALLOW,
        )  # fmt: skip
        for future in admin.create_acls([acl]).values():
            future.result(30)
        if number % 3 == 0:
            asked = AclBindingFilter(
                ResourceType.TOPIC, f"näme-{number}", ResourcePatternType.LITERAL, anything, anything,
                AclOperation.ANY, AclPermissionType.ANY,
            )  # fmt: skip
            for gone in admin.delete_acls([asked]).values():
                gone.result(30)


def files(directory: Path) -> list[Path]:
    partition = directory / "__cluster_metadata-0"
    return sorted(path for path in partition.iterdir() if path.suffix in {".log", ".checkpoint"})


def ours(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[Any]:
    capsys.readouterr()
    assert run(["metadata", *arguments]) == ExitCode.OK
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


CONTROLS = {
    "LEADER_CHANGE": "LeaderChange",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}


def test_the_dump_says_what_kafkas_dump_says_but_for_secrets(
    directory: Path, kafka_tools: KafkaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = set()
    for file in files(directory):
        arguments = ("--cluster-metadata-decoder", "--files", str(file))
        expected = list(read_dump(kafka_tools.run("DumpLogSegments", *arguments).require()))
        found = ours(capsys, "dump", str(file), "-o", "json-lines")
        assert len(found) == len(expected) > 0
        for record, (offset, epoch, size, kind, version, fields) in zip(found, expected, strict=True):
            assert (record["offset"], record["epoch"], record["size_bytes"]) == (offset, epoch, size)
            assert CONTROLS.get(record["type"], record["type"]) == kind
            assert version is None or record["version"] == version
            kinds.add(kind)
            if record["value"] is not None:
                secrets = SECRET_FIELDS | (
                    {"value"} if fields.get("resourceType") == BROKER_CONFIG else set()
                )
                hidden = dict.fromkeys(fields.keys() & secrets, REDACTED)
                assert without_directories(record["value"]) == without_directories({**fields, **hidden})
    assert {
        "FEATURE_LEVEL_RECORD",
        "USER_SCRAM_CREDENTIAL_RECORD",
        "ACCESS_CONTROL_ENTRY_RECORD",
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "REGISTER_BROKER_RECORD",
        "LeaderChange",
        "SnapshotHeader",
        "SnapshotFooter",
    } <= kinds


def without_directories(fields: dict[str, Any]) -> dict[str, Any]:
    """Of the voters in a leader's change only the ids are kept here."""
    voters = {"voters", "grantingVoters"}
    if "leaderId" not in fields:
        return fields
    return {
        name: [each["voterId"] for each in value] if name in voters else value
        for name, value in fields.items()
    }


def test_a_directory_of_kafka_is_whole_and_its_snapshots_say_what_its_log_says(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["metadata", "verify", str(directory), "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["whole"] is True
    assert document["compared_snapshots"] >= 1


STANDARD_ACL = re.compile(
    r"StandardAcl\[resourceType=(\w+), resourceName=(.*), patternType=(\w+), principal=(.*), host=(.*), "
    r"operation=(\w+), permissionType=(\w+)\]"
)


def test_the_shell_knows_what_kafkas_shell_knows(
    directory: Path, kafka_tools: KafkaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = [path for path in files(directory) if path.suffix == ".checkpoint"][-1]

    def tree_of_kafka() -> list[str] | None:
        # it may answer before its loader has published what it read
        said = kafka_tools.read_snapshot(snapshot, "tree", "/image")
        lines = [line.strip() for line in said.splitlines()]
        return lines if any(map(STANDARD_ACL.match, lines)) else None

    lines = wait_until(tree_of_kafka, what="Kafka's shell shows the snapshot") or []
    fields = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation")
    theirs = {
        line.rstrip(":"): dict(zip((*fields, "permission_type"), acl.groups(), strict=True))
        for line, following in itertools.pairwise(lines)
        if (acl := STANDARD_ACL.match(following))
    }
    found = shown(capsys, snapshot, "grep", ".", "/acl/id")
    ours = {
        path.removeprefix("/acl/id/"): json.loads(document)
        for path, _, document in (line.partition(": ") for line in found)
    }
    assert ours == theirs
    assert len(ours) >= SNAPSHOT_ACLS_MIN
    for mechanism in shown(capsys, snapshot, "ls", "/scram"):
        assert mechanism.rstrip("/") + ":" in lines
        users = shown(capsys, snapshot, "ls", f"/scram/{mechanism}")
        at = lines.index(mechanism.rstrip("/") + ":")
        assert users == [line.rstrip(":") for line in lines[at + 1 : at + 1 + 2 * len(users) : 2]]
    version = json.loads("\n".join(shown(capsys, snapshot, "cat", "/features/metadata.version")))
    assert f"Optional[{version['metadata_version']}]" in lines


def shown(capsys: pytest.CaptureFixture[str], snapshot: Path, *words: str) -> list[str]:
    capsys.readouterr()
    assert run(["metadata", "shell", "--snapshot", str(snapshot), *words]) == ExitCode.OK
    return capsys.readouterr().out.splitlines()


def test_the_history_of_kafkas_log_is_what_was_done(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["metadata", "history", str(directory), "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["since"]["first"] is True
    done = [(each["change"], each["resource_name"]) for each in document["changes"]]
    expected = []
    for number in range(30):
        expected.append(("CREATED", f"näme-{number}"))
        if number % 3 == 0:
            expected.append(("DELETED", f"näme-{number}"))
    assert done == expected
    for at in (0, 1, 15, 39):
        when = document["changes"][at]
        same_ms = max(
            n for n, each in enumerate(document["changes"]) if each["timestamp"] == when["timestamp"]
        )
        for moment, last in ((str(when["offset"]), at), (when["timestamp"], same_ms)):
            there = sum(1 if change == "CREATED" else -1 for change, _ in expected[: last + 1])
            arguments = ["acls", "list", "--metadata-dir", str(directory), "--at", moment, "-o", "json"]
            assert run(arguments) == ExitCode.OK
            assert len(json.loads(capsys.readouterr().out)["acls"]) == there


def test_what_kafka_holds_is_carried_into_a_directory_of_ours(
    directory: Path, tmp_path: Path, kafka_tools: KafkaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    file, ours_now = tmp_path / "all.jsonl", tmp_path / "meta"
    assert (
        run(["metadata", "export", str(directory), "--out", str(file), "--with-credentials"]) == ExitCode.OK
    )
    format_directory(ours_now)
    assert run(["metadata", "import", str(file), str(ours_now)]) == ExitCode.OK
    carried = read_image(ours_now)
    assert carried.same_state(read_image(directory))
    assert ("alice", 1) in carried.scram_credentials
    assert len(carried.acls) == 20
    snapshot = files(ours_now)[0]
    arguments = ("--cluster-metadata-decoder", "--files", str(snapshot))
    text = kafka_tools.run("DumpLogSegments", *arguments).require()
    assert text.count('"type":"ACCESS_CONTROL_ENTRY_RECORD"') == 20
    assert "isvalid: false" not in text
