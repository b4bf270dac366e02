"""A real Kafka starts on a directory of ours, and we on it again: one log, whoever writes it."""

from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.log import LogPolicy
from kustos.metadata.store.store import MetadataStore
from testkit.kafka import PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kafka.tools import write_properties
from testkit.metadata_logs import acl, segments, snapshots
from testkit.waiting import wait_until
from tests.conformance.test_metadata_of_kafka import held, listed

POLICY = LogPolicy(segment_bytes=2000, snapshot_record_bytes=2500)
SETTINGS = NodeSettings(
    listeners=(PLAINTEXT,), authorizer=STANDARD_AUTHORIZER, super_users=("User:ANONYMOUS",)
)


def our_log(directory: Path, cluster_id: str) -> None:
    """Several segments, snapshots among them, in two epochs."""
    format_directory(directory, cluster_id=cluster_id, acls=[acl("formatted")])
    for first in (0, 20):
        store = MetadataStore.open(directory, policy=POLICY)
        for number in range(first, first + 20):
            store.create_acls([acl(f"ours-{number}")])
            if (job := store.begin_snapshot()) is not None:
                job.write()
                store.end_snapshot(job)
        store.close()
    assert len(segments(directory)) > 1
    assert len(snapshots(directory)) > 1


def test_a_real_kafka_goes_on_with_our_log_and_we_with_its(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = KafkaNode(tmp_path / "kafka", SETTINGS)
    our_log(node.log_dir, node.cluster_id)
    configuration = node.configuration()
    # our quorum is one of fixed voters (kraft.version 0)
    del configuration["controller.quorum.bootstrap.servers"]
    configuration["controller.quorum.voters"] = f"1@{node.controller_address}"
    write_properties(node.configuration_file, configuration)
    ours = held(read_image(node.log_dir))
    with node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        wait_until(lambda: listed(admin) == ours, what="Kafka's authorizer has our ACLs")
        theirs = AclBinding(
            ResourceType.GROUP, "theirs", ResourcePatternType.LITERAL, "User:g", "*", AclOperation.READ,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        for made in admin.create_acls([theirs]).values():
            made.result(30)
        node.stop()
    both = held(read_image(node.log_dir))
    assert both - ours == {("GROUP", "theirs", "LITERAL", "User:g", "*", "READ", "ALLOW")}
    store = MetadataStore.open(node.log_dir, policy=LogPolicy(snapshot_record_bytes=1), node_id=1)
    store.create_acls([acl("again")])
    # a snapshot of ours would lose its topics and brokers, so there is none, and it is said
    assert not store.snapshot_is_due
    assert "no snapshots are taken" in capsys.readouterr().out
    store.close()
    assert len(held(read_image(node.log_dir))) == len(both) + 1
