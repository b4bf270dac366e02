"""Our segments and running snapshots, read by Kafka's tools and by the classes of its newest release."""

import subprocess
from pathlib import Path

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.control import ScramUpsertion
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import load, read_image
from kustos.metadata.features import DEFAULT_LEVEL, LATEST_LEVEL
from kustos.metadata.image import acl_record
from kustos.metadata.log import LogPolicy, LogWriter
from kustos.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
)
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage, SystemClock, SystemEntropy
from kustos.wire import uuid_of_text
from testkit.differential.oracle import build
from testkit.kafka import KafkaTools
from testkit.waiting import wait_until

POLICY = LogPolicy(segment_bytes=4000, snapshot_record_bytes=9000, retention_bytes=-1)
ORACLE_TIMEOUT_S = 120


def acl(name: str, host: str = "*") -> AclBinding:
    entry = AccessControlEntry("User:alice", host, AclOperation.READ, AclPermissionType.ALLOW)
    return AclBinding(ResourcePattern(ResourceType.TOPIC, name, PatternType.PREFIXED), entry)


def our_directory(directory: Path, *hosts: str) -> Path:
    """Several segments and two snapshots, the second one amid the log; ACLs made and deleted, a user."""
    level = LATEST_LEVEL if hosts else DEFAULT_LEVEL
    format_directory(directory, acls=[acl("formatted")], metadata_version=level)
    store = MetadataStore.open(directory, policy=POLICY)
    for number in range(40):
        store.create_acls([acl(f"made-{number}-{part}", *hosts) for part in range(4)])
        if (job := store.begin_snapshot()) is not None and number < 30:
            job.write()
            store.end_snapshot(job)
        gone = ResourcePatternFilter(ResourceType.TOPIC, f"made-{number}-0", PatternType.PREFIXED)
        store.delete_acls([AclBindingFilter(gone)])
    store.alter_scram(upsertions=[ScramUpsertion("bob", 1, 4096, b"0123456789abcdef", b"k" * 32)])
    store.close()
    partition = directory / "__cluster_metadata-0"
    assert len(list(partition.glob("*.log"))) > 3
    assert len(list(partition.glob("*.checkpoint"))) > 1
    return partition


def lines_of_ours(directory: Path) -> list[str]:
    """The image as the oracle prints one, ids and names only."""
    image = read_image(directory)
    lines = [
        f"acl {acl_id} {binding.pattern.name} {binding.entry.host}" for acl_id, binding in image.acls.items()
    ]
    lines += [f"scram {user}" for user, _ in image.scram_credentials]
    return sorted([*lines, f"metadata.version {image.metadata_version}"])


def lines_of_kafkas(*files: Path | str) -> list[str]:
    """The image that Kafka 4.4.0's own classes make of a snapshot and segments."""
    command = [
        "java",
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        build(),
        "kustos.oracle.LogFiles",
        "image",
    ]
    done = subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, timeout=ORACLE_TIMEOUT_S, check=True
    )
    return sorted(short(line) for line in done.stdout.splitlines() if not line.startswith("feature"))


def short(line: str) -> str:
    kind, rest = line.split(" ", 1)
    if kind == "acl":
        acl_id, text = rest.split(" ", 1)
        name = text.split("name=")[1].split(",")[0]
        host = text.split("host=")[1].split(",")[0]
        return f"acl {uuid_of_text(acl_id)} {name} {host}"
    return f"scram {rest.split(' ')[1]}" if kind == "scram" else line


@pytest.mark.parametrize("hosts", [(), ("10.0.0.0/8",)], ids=["4.3", "4.4-IV2"])
def test_kafkas_newest_classes_make_the_same_of_our_files(tmp_path: Path, hosts: tuple[str, ...]) -> None:
    directory = tmp_path / "log"
    partition = our_directory(directory, *hosts)
    bootstrap = min(partition.glob("*.checkpoint"))
    assert bootstrap.name.startswith("0" * 20)
    theirs = lines_of_kafkas(bootstrap, *sorted(partition.glob("*.log")))
    assert theirs == lines_of_ours(directory)
    assert len(theirs) == 2 + 1 + 40 * 3
    assert f"metadata.version {LATEST_LEVEL if hosts else 30}" in theirs


def test_kafkas_newest_classes_read_a_running_snapshot_whole(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    format_directory(directory, acls=[acl("formatted")], metadata_version=LATEST_LEVEL)
    store = MetadataStore.open(directory, policy=LogPolicy(snapshot_record_bytes=1))
    store.create_acls([acl(f"made-{number}", "10.0.0.0/8") for number in range(2500)])
    job = store.begin_snapshot()
    assert job is not None
    job.write()
    store.end_snapshot(job)
    store.close()
    assert lines_of_kafkas(job.path) == lines_of_ours(directory)


def test_a_transaction_is_one_change_to_kafka_and_to_us(tmp_path: Path) -> None:
    directory, entropy = tmp_path / "log", SystemEntropy()
    format_directory(directory)

    def made(name: str) -> MetadataRecord:
        return acl_record(entropy.uuid(), acl(name))

    reader, _ = load(directory, FileSystemStorage())
    writer = LogWriter(directory, FileSystemStorage(), SystemClock(), reader)
    writer.begin_epoch(1)
    writer.append([[made("before"), BeginTransactionRecord("first"), made("kept-1")], [made("kept-2")]])
    writer.append([[EndTransactionRecord()], [BeginTransactionRecord(None), made("dropped")]])
    writer.append([[made("dropped-too"), AbortTransactionRecord("why not")], [made("after")]])
    writer.append([[BeginTransactionRecord("unfinished"), made("never")]])
    writer.close()
    partition = directory / "__cluster_metadata-0"
    files = (*partition.glob("*.checkpoint"), *partition.glob("*.log"))
    names = ["after", "before", "kept-1", "kept-2"]
    assert sorted(binding.pattern.name for binding in read_image(directory).acls.values()) == names
    assert lines_of_kafkas(*files) == lines_of_ours(directory)
    # whoever began the last one is gone: the next writer aborts it, for Kafka's readers too
    store = MetadataStore.open(directory)
    store.create_acls([acl("next")])
    store.close()
    assert len(read_image(directory).acls) == 5
    assert lines_of_kafkas(*files) == lines_of_ours(directory)


def test_kafkas_tools_read_all_our_segments_and_a_running_snapshot(
    tmp_path: Path, kafka_tools: KafkaTools
) -> None:
    partition = our_directory(tmp_path / "log")
    files = sorted([*partition.glob("*.log"), *partition.glob("*.checkpoint")])
    arguments = ("--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
    text = kafka_tools.run("DumpLogSegments", *arguments).require()
    for number in range(40):
        assert f'"resourceName":"made-{number}-3"' in text
    for path in partition.glob("*.log"):
        assert f"Dumping {path}" in text
    assert "isvalid: false" not in text
    newest = max(partition.glob("*.checkpoint"))
    held = newest.read_bytes().count(b"made-")
    assert held > 10

    def found() -> bool:
        # the shell may answer before its loader has published what it read: then it is asked again
        result = kafka_tools.read_snapshot(newest, "find", "/image/acls")
        return result.count("/byId/") == held + 1

    wait_until(found, what="Kafka's shell shows the ACLs of our snapshot")
