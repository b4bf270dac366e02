"""A node whose disk is full does what its settings promise, and goes on without a restart once there is room.

The disk is real, and has no room for another block when a request needs two megabytes of the journal.
"""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.types import TopicName
from kio.static.primitive import i8

from kustos.gateway.audit.ring import SIZE_BYTES
from testkit.guarded.raw_client import RawClient
from testkit.guarded.workers import figure, is_alive, worker_pids, writer_pid
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.small_disk import Kind, SmallDisk, mounted_disk
from testkit.waiting import wait_until

METADATA, LIST_GROUPS, CREATE_ACLS = 3, 16, 30
UNKNOWN_SERVER_ERROR = -1
TOPICS = 3000
ROOM_BYTES = 24 * 1024 * 1024


class NodeOnDisk(KustosNode):
    """A node with its metadata, journals and audit files on one disk, and its output elsewhere."""

    disk: SmallDisk

    @property
    def metadata_directory(self) -> Path:
        return self.disk.path / "metadata"

    @property
    def audit_directory(self) -> Path:
        return self.disk.path / "audit"


@pytest.fixture(params=["tmpfs", "ext4"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture(params=[1, 2], ids=["one process", "workers"])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=["block", "deny", "drop"])
def on_full(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def node(tmp_path: Path, kafka: KafkaNode, kind: Kind, workers: int, on_full: str) -> Iterator[NodeOnDisk]:
    journals = 0 if on_full == "drop" else workers if workers == 1 else workers + 1
    # in mode `drop` a large request has more events than may wait
    properties = {"kustos.audit.on.full": on_full, "kustos.audit.queue.max.events": "1000"}
    if workers > 1:
        properties["kustos.workers"] = str(workers)
    settings = KustosSettings(protocol="PLAINTEXT", super_users=("ANONYMOUS",), properties=properties)
    with mounted_disk(tmp_path / "disk", kind, journals * SIZE_BYTES + ROOM_BYTES) as disk:
        made = NodeOnDisk(tmp_path / "kustos", kafka.bootstrap, settings)
        made.disk = disk
        try:
            yield made.start()
        finally:
            made.kill()


def many_topics(client: RawClient) -> bytes:
    """Return a request with some two megabytes of events."""
    topics = tuple(
        MetadataRequestTopic(topic_id=None, name=TopicName(f"topic-{number}")) for number in range(TOPICS)
    )
    return client.request(
        METADATA,
        12,
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def create_acls(client: RawClient, name: str) -> set[int]:
    """Create ACLs that need more than the block that the log may have left; return the error codes."""
    creations = tuple(
        AclCreation(
            resource_type=i8(2),
            resource_name=f"{name}-{number}-" + "x" * 200,
            resource_pattern_type=i8(3),
            principal="User:alice",
            host="*",
            operation=i8(3),
            permission_type=i8(3),
        )
        for number in range(40)
    )
    answer = client.ask(CREATE_ACLS, 3, creations=creations)
    return {int(result.error_code) for result in answer.results}


def is_refused(client: RawClient) -> bool:
    return int(client.ask(LIST_GROUPS, 4, states_filter=()).error_code) == UNKNOWN_SERVER_ERROR


def fill(node: NodeOnDisk) -> None:
    """Leave no room, but to no event that waits."""
    wait_until(lambda: figure(node, "kustos_audit_written_events_total") > 0, what="an event is written")
    wait_until(lambda: figure(node, "kustos_audit_queue_events") == 0, what="no event waits")
    node.disk.fill()


def failures(node: KustosNode) -> float:
    return figure(node, "kustos_audit_sink_failures_total")


@pytest.mark.slow
def test_a_full_disk_kills_no_process_and_heals(node: NodeOnDisk, workers: int, on_full: str) -> None:
    pids = [writer_pid(node), *(worker_pids(node) if workers > 1 else ())]
    with RawClient(node.bootstrap, "client") as client, RawClient(node.bootstrap, "first") as first:
        assert not is_refused(client)
        assert not is_refused(first)
        fill(node)
        # decided before anyone knows that the disk is full: the journal has room for it
        first.send(many_topics(first))
        wait_until(lambda: failures(node) > 0, what="the sink has found the disk full")
        if on_full == "block":
            before = failures(node)
            first.send(first.request(LIST_GROUPS, 4, states_filter=()))
            wait_until(lambda: failures(node) > before + 1, what="the sink has tried again")
            answered = 0
            while select.select([first.socket], [], [], 0)[0]:
                first.receive()
                answered += 1
            assert answered < 2, "the last request waits"
            node.disk.free()
            for _ in range(2 - answered):
                first.receive()
        elif on_full == "deny":
            wait_until(lambda: is_refused(client), what="requests are refused")
            node.disk.free()
            wait_until(lambda: not is_refused(client), what="requests are served again")
            # a large request is decided piece by piece, and goes on once it has begun
            first.receive()
        else:
            assert not is_refused(client)
            wait_until(lambda: figure(node, "kustos_audit_dropped_events_total") > 0, what="events are lost")
            assert create_acls(client, "full") == {UNKNOWN_SERVER_ERROR}
            node.disk.free()
            wait_until(lambda: create_acls(client, "free") == {0}, what="changes are made again")
            written = figure(node, "kustos_audit_written_events_total")
            assert not is_refused(client)
            first.receive()
            assert not is_refused(first)
            wait_until(
                lambda: figure(node, "kustos_audit_written_events_total") > written, what="events are written"
            )
        wait_until(node.is_ready, what="the node is ready again")
    assert pids == [writer_pid(node), *(worker_pids(node) if workers > 1 else ())]
    assert node.stop() == 0
    if on_full != "drop":
        events = list(node.audit_events())
        topics = [event["resource_name"] for event in events if event["resource_type"] == "TOPIC"]
        assert sorted(topics) == sorted(f"topic-{number}" for number in range(TOPICS))
        assert len({event["event_id"] for event in events}) == len(events)


@pytest.mark.slow
@pytest.mark.parametrize("on_full", ["block"], indirect=True)
def test_a_node_that_is_killed_on_a_full_disk_loses_nothing(
    node: NodeOnDisk, workers: int, on_full: str
) -> None:
    """The events are in the journal that the next start recovers."""
    with RawClient(node.bootstrap, "client") as client:
        assert not is_refused(client)
        fill(node)
        client.send(many_topics(client))
        wait_until(lambda: failures(node) > 0, what="the sink has found the disk full")
        # a large request is decided piece by piece, and the rest of it waits
        recorded = figure(node, "kustos_audit_queue_events")
        assert recorded > 100
        pids = worker_pids(node) if workers > 1 else []
        node.kill()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, pids)), what="its workers are gone")
    node.disk.free()
    node.start()
    assert node.stop() == 0
    events = [event for event in node.audit_events() if event["resource_type"] == "TOPIC"]
    assert len({event["event_id"] for event in events}) == recorded
