"""When a worker of a node in cluster mode takes its metadata for current."""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import StandardAuthorizerPlugin
from kustos.gateway.quorum import StalenessGate
from kustos.gateway.store import AuthorizerPublisher
from kustos.gateway.workers.messages import Current, LogBatch, SnapshotBatch, encode
from kustos.gateway.workers.store import WorkerStore
from kustos.metadata.control import TokenRules
from kustos.metadata.image import acl_record
from kustos.metadata.log import MetaProperties, snapshot_pieces
from kustos.metadata.records import encode_record
from kustos.runtime import SystemClock
from kustos.server.workers.process import WorkerNode, _waits_for_writer
from kustos.wire import encoded_batch_of
from testkit.protocol.random_requests import allow


def batch(offset: int) -> LogBatch:
    """Return the batch of one ACL."""
    binding = allow(ResourceType.TOPIC, f"topic-{offset}", AclOperation.READ)
    record = encode_record(acl_record(UUID(int=offset + 1), binding))
    return LogBatch(encoded_batch_of(offset, 1, 0, [record]))


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
