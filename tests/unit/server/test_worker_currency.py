"""When a worker of a node in cluster mode takes its metadata for current."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizerNotReadyError, StandardAuthorizerPlugin
from kustos.gateway.quorum import StalenessGate
from kustos.gateway.store import AuthorizerPublisher, publisher
from kustos.gateway.workers.messages import Current, Fence, LogBatch, SnapshotBatch, encode
from kustos.gateway.workers.store import WorkerStore
from kustos.metadata.control import TokenRules
from kustos.metadata.image import acl_record
from kustos.metadata.log import MetaProperties, snapshot_pieces
from kustos.metadata.records import RemoveAccessControlEntryRecord, decode_record, encode_record
from kustos.runtime import SystemClock
from kustos.server.authorization.authorization import StandardAuthorization
from kustos.server.node import Node
from kustos.server.workers.process import WorkerNode, _waits_for_writer
from kustos.wire import encoded_batch_of
from testkit.protocol.random_requests import allow
from testkit.waiting import wait_until


def creation(number: int) -> bytes:
    """Return the record of an ACL."""
    binding = allow(ResourceType.TOPIC, f"topic-{number}", AclOperation.READ)
    return encode_record(acl_record(UUID(int=number + 1), binding))


def batch(offset: int, *values: bytes) -> LogBatch:
    """Return a batch whose last record has this offset, by default of one ACL."""
    records = list(values or (creation(offset),))
    return LogBatch(encoded_batch_of(offset - len(records) + 1, 1, 0, records))


class FollowingWorker(WorkerNode):
    """A worker that holds no ACLs beside its index, without listeners."""

    def __init__(self, *acls: int) -> None:
        super().__init__(1, 1)
        self.link._store = WorkerStore(MetaProperties("cluster", 1), TokenRules())
        self.authorization = StandardAuthorization(self.link, self._decided, None)
        gateway = SimpleNamespace(close=lambda: None)
        self.node = cast("Node", SimpleNamespace(authorization=self.authorization, gateway=gateway))
        records = [decode_record(creation(each)) for each in acls]
        self.told(*(SnapshotBatch(0, 1, each) for each in snapshot_pieces(records, epoch=1, timestamp_ms=0)))
        self.authorization.load()
        self.link.store.complete()
        self.link._is_reporting = True

    def told(self, *messages: object) -> None:
        """Take messages of the writer."""
        self.link._channel.data_received(b"".join(map(encode, messages)))

    def may_read(self, number: int) -> bool:
        """Return whether a user may read the topic of this number."""
        decider = self.authorization.decider(KafkaPrincipal("User", "alice"), "10.0.0.1")
        return decider.decide(AclOperation.READ, ResourceType.TOPIC, f"topic-{number}").allowed


@pytest.mark.parametrize(
    "records",
    [
        [creation(0)],
        [creation(7), creation(7)],
        [encode_record(RemoveAccessControlEntryRecord(UUID(int=99)))],
        [creation(7), encode_record(RemoveAccessControlEntryRecord(UUID(int=99)))],
    ],
    ids=["an id that is there", "an id twice", "an unknown id", "an unknown id after a new one"],
)
async def test_a_worker_denies_and_reports_nothing_more_after_a_change_that_cannot_be(
    records: list[bytes],
) -> None:
    worker = FollowingWorker(0)
    worker.told(batch(0, creation(1)))
    await asyncio.sleep(0)
    assert worker.may_read(0)
    assert worker.may_read(1)
    worker.told(batch(len(records), *records), batch(len(records) + 1, creation(2)))
    await asyncio.sleep(0)
    for number in range(3):
        with pytest.raises(AuthorizerNotReadyError):
            worker.may_read(number)
    # so the writer fences this worker and starts another one
    assert worker.applied() == worker.link._reported == 0


async def test_a_fenced_worker_denies_although_acls_are_still_being_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = FollowingWorker(0)
    assert worker.may_read(0)
    monkeypatch.setattr(publisher, "LOADED_AT_ONCE_MAX", 0)
    replacement = [decode_record(creation(each)) for each in (0, 1)]
    worker.told(*(SnapshotBatch(9, 2, e) for e in snapshot_pieces(replacement, epoch=2, timestamp_ms=0)))
    await asyncio.to_thread(wait_until, lambda: worker.link.store.last_offset == 8, what="the snapshot")
    worker.told(Fence("late"))
    await asyncio.to_thread(wait_until, lambda: not worker.authorization.publisher._tasks, what="the end")
    with pytest.raises(AuthorizerNotReadyError):
        worker.may_read(0)


async def test_metadata_is_current_although_each_read_brings_it_together_with_a_change() -> None:
    loop = asyncio.get_running_loop()
    worker = WorkerNode(1, 1)
    link = worker.link
    link._store = WorkerStore(MetaProperties("cluster", 1), TokenRules())
    worker._gate = gate = StalenessGate(60_000, loop)

    def told(*messages: object) -> None:
        link._channel.data_received(b"".join(map(encode, messages)))

    told(*(SnapshotBatch(0, 1, each) for each in snapshot_pieces((), epoch=1, timestamp_ms=0)))
    plugin = StandardAuthorizerPlugin(loop.create_future)
    link.store.add_publisher(AuthorizerPublisher(plugin, loop, worker._decided))
    now_ms = SystemClock().monotonic_ms()
    # a busy worker reads several messages at once, and more changes follow each time
    told(batch(0), Current(now_ms), batch(1))
    # until the authorizer has the change, the metadata is as old as before
    states = [gate.is_open]
    await asyncio.sleep(0)
    assert worker.applied() == 1
    assert [*states, gate.is_open] == [False, True]
    gate.stop()


async def test_a_worker_gives_its_acls_away_once_the_authorizer_has_them_and_before_it_serves() -> None:
    steps: list[str] = []
    serve, loaded = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()
    store = SimpleNamespace(complete=lambda: steps.append("the image is without ACLs"))
    link: Any = SimpleNamespace(
        store=store, begin_reporting=lambda: steps.append("changes wait"), serve=serve
    )
    waits = _waits_for_writer(link, ["CLIENTS"], {"CLIENTS": loaded})
    assert waits is not None
    await asyncio.sleep(0)
    assert steps == []
    loaded.set_result(None)
    serve.set_result(None)
    await waits["CLIENTS"]
    assert steps == ["the image is without ACLs", "changes wait"]


async def test_metadata_is_not_current_while_the_authorizer_lacks_a_change_before() -> None:
    loop = asyncio.get_running_loop()
    worker = WorkerNode(1, 1)
    link = worker.link
    link._store = WorkerStore(MetaProperties("cluster", 1), TokenRules())
    worker._gate = gate = StalenessGate(60_000, loop)
    worker._decided.reach(-1)
    empty = snapshot_pieces((), epoch=1, timestamp_ms=0)
    told = (*(SnapshotBatch(0, 1, each) for each in empty), batch(0), Current(SystemClock().monotonic_ms()))
    link._channel.data_received(b"".join(map(encode, told)))
    assert worker.link.store.last_offset == 0
    await asyncio.sleep(0)
    assert not gate.is_open
