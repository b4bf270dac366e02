"""The metadata writer: one batch at a time on a real store; every failure reaches the waiting callers."""

import asyncio
import gc
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.gateway.store import writer as writer_module
from kustos.gateway.store.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata.directory.format import format_directory
from kustos.metadata.errors import LogFailedError, MetadataError
from kustos.metadata.image import MetadataDelta, MetadataImage
from kustos.metadata.store.store import CreateAcls, DeleteAcls, MetadataStore, PublishFailedError
from testkit.protocol.random_requests import allow


class GatedStore:
    """A real store behind a gate: a batch waits until the gate opens."""

    last_offset = -1

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.failure: Exception | None = None

    def append_many(self, requests: Sequence[Any]) -> list[tuple[Any, ...]]:
        self.batches.append(len(requests))
        assert self.gate.wait(30)
        if self.failure is not None:
            raise self.failure
        return self.store.append_many(requests)

    def close(self) -> None:
        self.store.close()


def create(number: int) -> CreateAcls:
    return CreateAcls((allow(ResourceType.TOPIC, f"topic-{number}", AclOperation.READ),))


@pytest.fixture
def store(tmp_path: Path) -> MetadataStore:
    format_directory(tmp_path / "log")
    return MetadataStore.open(tmp_path / "log")


def started(writer: MetadataWriter, count: int) -> list[asyncio.Task[Any]]:
    return [asyncio.get_running_loop().create_task(writer.submit(create(i))) for i in range(count)]


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_changes_during_a_batch_share_the_next_batch_in_order(
    store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "BATCH_REQUESTS_MAX", 4)
    gated = GatedStore(store)
    writer = MetadataWriter(gated)  # type: ignore[arg-type]
    first = started(writer, 1)
    await turn()
    rest = [asyncio.get_running_loop().create_task(writer.submit(create(i))) for i in range(1, 10)]
    undo = asyncio.get_running_loop().create_task(writer.submit(DeleteAcls(())))
    await turn()
    gated.gate.set()
    await asyncio.gather(*first, *rest, undo)
    assert gated.batches == [1, 4, 4, 2]
    names = [binding.pattern.name for _, binding in sorted_by_offset(store)]
    assert sorted(names) == sorted(f"topic-{i}" for i in range(10))
    await writer.close()


def sorted_by_offset(store: MetadataStore) -> list[Any]:
    return list(store.image.acls.items())


async def test_a_failed_batch_fails_each_waiter_and_the_next_batch_continues(store: MetadataStore) -> None:
    gated = GatedStore(store)
    writer = MetadataWriter(gated)  # type: ignore[arg-type]
    gated.failure = LogFailedError("the disk is full")
    waiting = started(writer, 3)
    await turn()
    gated.gate.set()
    failures = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(failure) for failure in failures] == ["the disk is full"] * 3
    gated.failure = None
    assert len(await writer.submit(create(9))) == 1
    await writer.close()


class BrokenPublisher:
    """A publisher that cannot take changes."""

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Take it."""

    def publish_delta(self, delta: MetadataDelta) -> None:
        raise RuntimeError("a bug")


async def test_no_change_is_acknowledged_after_a_publisher_fails(store: MetadataStore) -> None:
    store.add_publisher(BrokenPublisher())
    writer = MetadataWriter(store)
    for number in range(2):
        with pytest.raises(PublishFailedError):
            await writer.submit(create(number))
    await writer.close()


async def test_a_canceled_wait_keeps_the_change_and_logs_no_warning(
    store: MetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    gated = GatedStore(store)
    writer = MetadataWriter(gated)  # type: ignore[arg-type]
    waiting = started(writer, 3)
    await turn()
    waiting[0].cancel()
    gated.gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert len(store.image.acls) == 3
    gated.failure = MetadataError("no")
    late = started(writer, 1)
    await turn()
    late[0].cancel()
    await asyncio.gather(*late, return_exceptions=True)
    await writer.close()
    del late, waiting, results
    gc.collect()
    assert [record.message for record in caplog.records if "never" in record.message] == []


async def test_the_number_of_waiting_changes_is_limited(
    store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "QUEUED_REQUESTS_MAX", 2)
    gated = GatedStore(store)
    writer = MetadataWriter(gated)  # type: ignore[arg-type]
    waiting = started(writer, 1)
    await turn()
    waiting += started(writer, 2)
    await turn()
    with pytest.raises(WriterBusyError):
        await writer.submit(create(7))
    gated.gate.set()
    await asyncio.gather(*waiting)
    await writer.close()


async def test_close_finishes_waiting_changes_and_rejects_new_ones(store: MetadataStore) -> None:
    gated = GatedStore(store)
    writer = MetadataWriter(gated)  # type: ignore[arg-type]
    waiting = started(writer, 300)
    await turn()
    closing = asyncio.get_running_loop().create_task(writer.close())
    await turn()
    with pytest.raises(WriterClosedError):
        await writer.submit(create(301))
    gated.gate.set()
    await closing
    assert all(len(task.result()) == 1 for task in waiting)
    assert len(store.image.acls) == 300
    await writer.close()
