"""A worker's side of the channel: large batches of the log are worked through beside all else, in order."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from uuid import UUID

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.gateway.workers import service as service_module
from kustos.gateway.workers.encoding import ChannelError, WorkerStartError
from kustos.gateway.workers.messages import (
    FROM_WORKER,
    FROM_WRITER,
    Applied,
    ChangeRequest,
    ChangeResults,
    Delta,
    Fence,
    Fenced,
    Look,
    OpenListeners,
    Progress,
    Stop,
    WorkerStatus,
    decode,
    encode,
)
from kustos.gateway.workers.service import Service
from kustos.gateway.workers.store import PreparedBatch, WorkerStore
from kustos.metadata.control import TokenRules
from kustos.metadata.image import acl_record
from kustos.metadata.log import MetaProperties
from kustos.metadata.records import encode_record
from kustos.metadata.store import CreateAcls
from kustos.wire import FrameReader
from testkit.protocol.random_requests import allow

WAIT_S = 60.0


class Writer(asyncio.Transport):
    """The writer's end: reads what the worker says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[object] = []
        self._reader = FrameReader(1 << 26)
        self.news = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.said += [decode(FROM_WORKER, frame) for frame in self._reader.feed(bytes(data))]
        self.news.set()

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        """It is gone."""

    async def heard(self, *messages: object) -> None:
        """Return when the worker has said all of these."""
        async with asyncio.timeout(WAIT_S):
            while not all(each in self.said for each in messages):
                self.news.clear()
                await self.news.wait()


class HeldStore(WorkerStore):
    """Works a batch with many records through when the test says so."""

    def __init__(self) -> None:
        super().__init__(MetaProperties("cluster", 1), TokenRules())
        self.begun, self.go_on = threading.Event(), threading.Event()

    def prepared(self, offset: int, epoch: int, values: Iterable[bytes]) -> PreparedBatch:
        batch = super().prepared(offset, epoch, values)
        if len(batch.delta.changes) > 1:
            self.begun.set()
            assert self.go_on.wait(WAIT_S)
        return batch


class Worker:
    """A worker that follows the log, with nothing behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(service_module, "LARGE_ITEMS_MIN", 2)
        monkeypatch.setattr(service_module, "PROGRESS_EVERY_S", 0.001)
        monkeypatch.setattr("kustos.gateway.store.large_work.LARGE_ITEMS_MIN", 2)
        self.store, self.writer, self.denied = HeldStore(), Writer(), 0
        self.service = Service(1, lambda _: self.store)
        self.service.store = self.store
        self.service.applied = lambda: self.store.last_offset
        self.service.on_deny = self._deny
        self.service._channel.connection_made(self.writer)
        self.service.begin_reporting()

    def _deny(self) -> None:
        self.denied += 1

    def told(self, *messages: object) -> None:
        self.service._channel.data_received(b"".join(encode(FROM_WRITER, each) for each in messages))

    async def preparing(self) -> None:
        assert await asyncio.to_thread(self.store.begun.wait, WAIT_S)

    async def idle(self) -> None:
        """Return when nothing is worked on any more."""
        while (work := self.service._channel._working) is not None:
            await asyncio.wait([work])


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    made = Worker(monkeypatch)
    yield made
    made.store.go_on.set()
    await made.idle()


def batch(offset: int, *numbers: int) -> Delta:
    """Make ACLs of these numbers."""
    bindings = [allow(ResourceType.TOPIC, f"topic-{number}", AclOperation.READ) for number in numbers]
    return Delta(
        offset,
        1,
        tuple(
            encode_record(acl_record(UUID(int=number), binding))
            for number, binding in zip(numbers, bindings, strict=True)
        ),
    )


async def test_a_worker_says_how_it_is_and_how_far_while_it_works_a_large_batch_through(
    worker: Worker,
) -> None:
    worker.told(batch(2, 1, 2), batch(3, 3))
    await worker.preparing()
    worker.told(Look(7, wants_metrics=False))
    await worker.writer.heard(WorkerStatus(7, {}, b""), Progress(2))
    # not one of it is in force, nor what came behind it
    assert worker.store.last_offset == -1
    worker.store.go_on.set()
    await worker.writer.heard(Applied(2), Applied(3))
    assert [each for each in worker.writer.said if isinstance(each, Applied)] == [Applied(2), Applied(3)]
    assert sorted(worker.store.image.acls) == [UUID(int=number) for number in (1, 2, 3)]


async def test_a_worker_that_is_fenced_meanwhile_says_so_at_once_and_puts_nothing_in_force(
    worker: Worker,
) -> None:
    worker.told(batch(2, 1, 2))
    await worker.preparing()
    worker.told(Fence("late"))
    assert (worker.denied, worker.writer.said[-1]) == (1, Fenced())
    worker.store.go_on.set()
    await worker.idle()
    assert worker.store.last_offset == -1
    assert not any(isinstance(each, Applied) for each in worker.writer.said)


async def test_a_worker_opens_its_listeners_once_a_large_batch_before_the_order_is_in_force(
    worker: Worker,
) -> None:
    worker.told(batch(2, 1, 2), OpenListeners(), batch(3, 3))
    await worker.preparing()
    worker.told(Look(7, wants_metrics=False))
    await worker.writer.heard(WorkerStatus(7, {}, b""))
    assert not worker.service.serve.done()
    worker.store.go_on.set()
    await worker.service.serve
    assert worker.store.last_offset >= 2


async def test_a_worker_that_is_fenced_before_the_order_never_opens_its_listeners(worker: Worker) -> None:
    worker.told(batch(2, 1, 2), OpenListeners(), Fence("late"))
    worker.store.go_on.set()
    await worker.idle()
    with pytest.raises(WorkerStartError, match="late"):
        await worker.service.serve
    assert worker.denied == 1
    assert [each for each in worker.writer.said if isinstance(each, Fenced)] == [Fenced()]


async def test_a_large_batch_that_cannot_be_ends_the_worker(worker: Worker) -> None:
    worker.store.go_on.set()
    worker.told(batch(2, 1, 1), batch(3, 3))
    await worker.writer.heard(Fenced())
    await worker.idle()
    assert worker.denied == 1
    assert worker.service.ended_badly
    assert worker.store.last_offset == -1


async def test_a_batch_without_an_image_ends_the_worker(worker: Worker) -> None:
    worker.service.store = None
    worker.told(batch(2, 1, 2))
    await worker.writer.heard(Fenced())
    with pytest.raises(ChannelError):
        worker.service._followed()


async def test_a_worker_that_stops_follows_the_log_until_its_clients_have_their_answers(
    worker: Worker,
) -> None:
    # systemd may signal all processes of a node, which is no second word
    worker.service.ended.set()
    worker.told(Stop(), batch(1, 1))
    await worker.writer.heard(Applied(1))
    assert not worker.service.hurried.is_set()
    change = asyncio.ensure_future(worker.service.submit(CreateAcls(())))
    await worker.writer.heard(ChangeRequest(0, CreateAcls(())))
    worker.told(ChangeResults(0, ()))
    assert await change == ()
    worker.told(Stop())
    assert worker.service.hurried.is_set()
    assert worker.denied == 0


@pytest.mark.parametrize("closes", [False, True])
async def test_a_worker_that_loses_its_writer_while_it_stops_denies_the_rest(
    worker: Worker, closes: bool
) -> None:
    worker.told(Stop())
    if closes:
        worker.service.close()
    worker.service._channel.connection_lost(None)
    assert (worker.denied, worker.service.ended_badly) == ((0, False) if closes else (1, True))
