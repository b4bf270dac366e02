"""Logs and snapshots that a real Kafka wrote, read by us; and a directory of ours, read by its tools."""

from collections.abc import Callable, Iterator
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

from kustos.acl import AccessControlEntry, ResourcePattern
from kustos.acl import AclBinding as Binding
from kustos.acl import AclOperation as Operation
from kustos.acl import AclPermissionType as Permission
from kustos.acl import PatternType as Pattern
from kustos.acl import ResourceType as Resource
from kustos.metadata.directory.format import InitialScramUser, format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.image import MetadataImage
from kustos.metadata.log import LogReader
from kustos.metadata.records import OpaqueRecord, decode_record, encode_record
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.metadata.store.store import MetadataStore
from kustos.runtime import FileSystemStorage
from kustos.wire.record_batch import RecordBatch, read_batch
from testkit import versions
from testkit.kafka import (
    SASL_PLAINTEXT,
    SNAPSHOTS_OFTEN,
    STANDARD_AUTHORIZER,
    KafkaNode,
    KafkaTools,
    NodeSettings,
)
from testkit.waiting import wait_until

USERS = {"admin": "admin-secret", "alice": "alice-secret"}
SETTINGS = NodeSettings(
    listeners=(SASL_PLAINTEXT,),
    users=USERS,
    authorizer=STANDARD_AUTHORIZER,
    super_users=("User:admin",),
    properties={
        # the log goes on after a snapshot
        **SNAPSHOTS_OFTEN,
        # and it is in several files
        "internal.metadata.log.segment.bytes": "9000",
    },
    release_version=versions.WHOLE,  # what the metadata shell reads
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path_factory.mktemp("kafka"), SETTINGS) as node:
        yield node


@pytest.fixture(scope="module")
def admin(broker: KafkaNode) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": USERS["admin"],
        }
    )


def acl_filter(
    resource: ResourceType, name: str | None, pattern: ResourcePatternType, permission: AclPermissionType
) -> AclBindingFilter:
    """A filter by pattern and permission; the stubs do not know that null asks for any."""
    anything: Any = None
    wanted: Any = name
    return AclBindingFilter(resource, wanted, pattern, anything, anything, AclOperation.ANY, permission)


def listed(admin: AdminClient) -> set[tuple[str, ...]]:
    """The ACLs that Kafka's own admin API lists."""
    everything = acl_filter(ResourceType.ANY, None, ResourcePatternType.ANY, AclPermissionType.ANY)
    return {
        (a.restype.name, a.name, a.resource_pattern_type.name, a.principal, a.host, a.operation.name,
         a.permission_type.name)
        for a in admin.describe_acls(everything).result(30)
    }  # fmt: skip


def listed_in_the_end(admin: AdminClient, count: int) -> set[tuple[str, ...]]:
    """The ACLs that Kafka lists once its authorizer has caught up with its controller."""
    return (
        wait_until(
            lambda: acls if len(acls := listed(admin)) == count else None,
            what=f"the broker lists {count} ACLs",
        )
        or set()
    )


def held(image: MetadataImage) -> set[tuple[str, ...]]:
    """The ACLs that we read, in the same form; librdkafka calls the cluster a broker."""
    return {
        ("BROKER" if b.pattern.resource_type is Resource.CLUSTER else b.pattern.resource_type.name,
         b.pattern.name, b.pattern.pattern_type.name, b.entry.principal, b.entry.host,
         b.entry.operation.name, b.entry.permission_type.name)
        for b in image.acls.values()
    }  # fmt: skip


def change_much(admin: AdminClient) -> None:
    """Leave records of many kinds: topics, configurations, ACLs made and deleted."""
    for future in admin.create_topics([NewTopic(f"t{n}", 3, 1) for n in range(5)]).values():
        future.result(30)
    for future in admin.delete_topics(["t0"]).values():
        future.result(30)
    acls = [
        AclBinding(ResourceType.TOPIC, f"näme-{n}", pattern, f"User:u{n}", "*", operation, permission)
        for n in range(20)
        for pattern in (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
        for operation, permission in (
            (AclOperation.READ, AclPermissionType.ALLOW),
            (AclOperation.WRITE, AclPermissionType.DENY),
        )
    ]
    for made in admin.create_acls(acls).values():
        made.result(30)
    gone = [
        acl_filter(ResourceType.TOPIC, f"näme-{n}", ResourcePatternType.LITERAL, AclPermissionType.DENY)
        for n in range(5)
    ]
    for deleted in admin.delete_acls(gone).values():
        deleted.result(30)


def test_a_log_of_kafka_says_to_us_what_it_says_to_kafka(broker: KafkaNode, admin: AdminClient) -> None:
    change_much(admin)
    expected = listed_in_the_end(admin, 75)
    wait_until(lambda: held(read_image(broker.log_dir)) == expected, what="the log holds the ACLs")
    image = read_image(broker.log_dir)
    assert {(user, mechanism) for user, mechanism in image.scram_credentials} >= {
        (user, mechanism) for user in USERS for mechanism in (1, 2)
    }
    for user, password in USERS.items():
        for mechanism in ScramMechanism:
            theirs = image.scram_credentials[user, mechanism.value]
            ours = scram_credential(mechanism, password, theirs.salt, theirs.iterations)
            assert (ours.stored_key, ours.server_key) == (theirs.stored_key, theirs.server_key)


def test_a_snapshot_of_kafka_and_the_log_after_it_are_read(broker: KafkaNode, admin: AdminClient) -> None:
    change_much_more = [
        AclBinding(ResourceType.GROUP, f"g{n}", ResourcePatternType.LITERAL, "User:g", "10.0.0.1",
                   AclOperation.READ, AclPermissionType.ALLOW)
        for n in range(40)
    ]  # fmt: skip
    for made in admin.create_acls(change_much_more).values():
        made.result(30)
    partition = broker.log_dir / "__cluster_metadata-0"
    wait_until(
        lambda: [p for p in partition.glob("*.checkpoint") if not p.name.startswith("0" * 20)],
        what="the broker wrote a snapshot",
    )
    expected = listed_in_the_end(admin, 75 + 40)
    wait_until(lambda: held(read_image(broker.log_dir)) == expected, what="snapshot and log agree")
    reader = LogReader(broker.log_dir, FileSystemStorage())
    assert reader.snapshot_id is not None
    assert list(reader.snapshot())


def batches_of(path: Path) -> Iterator[tuple[RecordBatch, bytes]]:
    data, position = path.read_bytes(), 0
    while position < len(data) and any(data[position : position + 61]):
        batch, end = read_batch(data, position)
        yield batch, data[position:end]
        position = end


def test_every_batch_and_record_of_a_real_log_round_trips_byte_for_byte(
    broker: KafkaNode, admin: AdminClient
) -> None:
    assert listed(admin)
    partition = broker.log_dir / "__cluster_metadata-0"
    kinds: set[int] = set()
    count = 0
    for path in [*partition.glob("*.log"), *partition.glob("*.checkpoint")]:
        for batch, data in batches_of(path):
            assert batch.encode() == data
            for record in () if batch.is_control else batch.records:
                assert record.value is not None
                decoded = decode_record(record.value)
                assert encode_record(decoded) == record.value
                kinds.add(decoded.api_key)
                count += 1
    assert {2, 3, 11, 12, 18, 19} <= kinds, "topics, partitions, users, features, ACLs made and deleted"
    assert count > 150
    assert len(list(partition.glob("*.log"))) > 1
    assert any(isinstance(decode_record(v), OpaqueRecord) for v in (b"\x01\x02\x00rest",))


def our_directory(directory: Path) -> Path:
    """A directory of ours with users and ACLs from the format and from the store."""
    credential = scram_credential(ScramMechanism.SCRAM_SHA_256, "secret", b"0123456789abcdef", 4096)
    users = [InitialScramUser("alice", ScramMechanism.SCRAM_SHA_256, credential)]
    acls = [binding(f"formatted-{n}") for n in range(3)]
    format_directory(directory, scram_users=users, acls=acls)
    store = MetadataStore.open(directory)
    store.create_acls([binding(f"created-{n}") for n in range(3)])
    store.delete_acls([])
    store.close()
    return directory


def binding(name: str) -> Binding:
    pattern = ResourcePattern(Resource.TOPIC, name, Pattern.PREFIXED)
    return Binding(pattern, AccessControlEntry("User:alice", "*", Operation.READ, Permission.ALLOW))


def test_kafkas_dump_reads_our_log_and_our_snapshot(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    partition = our_directory(tmp_path / "ours") / "__cluster_metadata-0"
    files = sorted([*partition.glob("*.log"), *partition.glob("*.checkpoint")])
    assert len(files) == 2
    arguments = ("--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
    text = kafka_tools.run("DumpLogSegments", *arguments).require()
    for name in [f"formatted-{n}" for n in range(3)] + [f"created-{n}" for n in range(3)]:
        assert f'"resourceName":"{name}"' in text
    assert '"name":"alice"' in text
    assert "SnapshotHeader" in text
    assert "SnapshotFooter" in text
    assert "LeaderChange" in text
    assert "Found 0 invalid" not in text
    assert "isvalid: false" not in text


def test_kafkas_metadata_shell_reads_our_snapshot(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    partition = our_directory(tmp_path / "ours") / "__cluster_metadata-0"
    (checkpoint,) = partition.glob("*.checkpoint")
    found_by_shell(kafka_tools, checkpoint, "/image/acls", lambda listing: listing.count("/byId/") >= 3)
    found_by_shell(kafka_tools, checkpoint, "/image/scram", lambda listing: "alice" in listing)


def found_by_shell(
    kafka_tools: KafkaTools, checkpoint: Path, node: str, expected: Callable[[str], bool]
) -> None:
    """Return when Kafka's shell finds below `node` what is expected there.

    The shell answers when its reader has handed the snapshot over, which may be before its loader has
    published it: it then shows an image that is still empty, so it is asked again.
    """

    def found() -> bool:
        return expected(kafka_tools.read_snapshot(checkpoint, "find", node))

    wait_until(found, what=f"Kafka's shell shows `{node}` of our snapshot")
