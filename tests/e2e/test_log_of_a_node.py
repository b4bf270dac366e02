"""The log of a running node: snapshots are taken while it serves, old files go, a kill loses nothing."""

import socket
from pathlib import Path

from benchmarks.metadata import create_acl, require_success
from kustos.metadata.directory.loader import load, read_image
from kustos.runtime import FileSystemStorage
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

SETTINGS = KustosSettings(
    protocol="PLAINTEXT",
    super_users=("ANONYMOUS",),
    audit=False,
    properties={"metadata.log.max.record.bytes.between.snapshots": "1", "metadata.max.retention.bytes": "0"},
)


def create(node: KustosNode, *numbers: int) -> None:
    """Create ACLs over the wire; return when each is acknowledged."""
    with socket.create_connection((LOOPBACK, node.port), timeout=30) as connection:
        stream = connection.makefile("rb")
        for number in numbers:
            connection.sendall(create_acl(number))
            require_success(stream.read(int.from_bytes(stream.read(4))))


def snapshots(node: KustosNode) -> list[int]:
    """The offsets below which they contain everything."""
    names = (node.metadata_directory / "__cluster_metadata-0").glob("*.checkpoint")
    return sorted(int(name.name.split("-")[0]) for name in names)


def test_a_node_takes_snapshots_and_a_kill_loses_nothing(kafka: KafkaNode, tmp_path: Path) -> None:
    node = KustosNode(tmp_path / "node", kafka.bootstrap, SETTINGS).start()
    try:
        create(node, *range(10))
        wait_until(lambda: snapshots(node)[-1] > 10, what="a snapshot holds all ten")
        create(node, *range(10, 15))
        node.kill()
        assert len(read_image(node.metadata_directory).acls) == 15
        node.start()
        create(node, 15)
        # a snapshot whose file is there is read back before it replaces others, unless the node ends
        wait_until(
            lambda: snapshots(node),
            holds=lambda found: len(found) == 1 and found[0] > 17,
            what="the node goes on after the kill, and a snapshot has replaced the others",
        )
        assert node.stop() == 0
    finally:
        node.kill()
    reader, builder = load(node.metadata_directory, FileSystemStorage())
    assert len(reader.snapshots) == 1, "what it replaced is gone"
    assert len(builder.view().acls) == 16
