"""A worker's link to its writer: large batches are applied in order, without blocking other work."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizableRequestContext, KafkaApiError
from kustos.client.quorum import Forwarded
from kustos.gateway.store.source import Submitted
from kustos.gateway.workers import channel as channel_module
from kustos.gateway.workers import link as link_module
from kustos.gateway.workers.errors import ChannelError, WorkerStartError
from kustos.gateway.workers.link import WriterLink
from kustos.gateway.workers.messages import (
    FROM_WORKER,
    Applied,
    Current,
    Fence,
    Fenced,
    LogBatch,
    Look,
    OpenListeners,
    Progress,
    SnapshotBatch,
    Stop,
    Submit,
    Welcome,
    WorkerStatus,
    decode,
    encode,
)
from kustos.gateway.workers.requests import answer_of, request_of
from kustos.gateway.workers.store import WorkerStore
from kustos.metadata.control import TokenRules
from kustos.metadata.image import MetadataDelta, MetadataImage, acl_record
from kustos.metadata.log import MetaProperties, snapshot_pieces
from kustos.metadata.records import encode_record
from kustos.wire import ApiKey, FrameReader, encoded_batch_of, request_codec, response_codec
from testkit.protocol.random_requests import allow

WAIT_S = 20.0
LARGE_BYTES = 150
"""A batch of two ACLs has more bytes, a batch of one has fewer."""


class Writer(asyncio.Transport):
    """The writer's end: reads the worker's messages."""

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
        """Abort the connection."""

    async def heard(self, *messages: object) -> None:
        """Return when the worker has sent all of these messages."""
        async with asyncio.timeout(WAIT_S):
            while not all(each in self.said for each in messages):
                self.news.clear()
                await self.news.wait()


class HeldStore(WorkerStore):
    """Applies a large batch when the test allows it."""

    def __init__(self) -> None:
        super().__init__(MetaProperties("cluster", 1), TokenRules())
        self.begun, self.go_on = threading.Event(), threading.Event()

    def take_batch(self, batch: LogBatch) -> None:
        if len(batch.payload) >= LARGE_BYTES:
            self.begun.set()
            assert self.go_on.wait(WAIT_S)
        super().take_batch(batch)


class Worker:
    """A worker that follows the log, without listeners."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(link_module, "LARGE_BATCH_BYTES", LARGE_BYTES)
        monkeypatch.setattr(link_module, "PROGRESS_EVERY_S", 0.001)
        self.store, self.writer, self.denied = HeldStore(), Writer(), 0
        self.currents: list[tuple[int, int]] = []
        self.link = WriterLink(1, self)
        self.link._channel.connection_made(self.writer)

    def begin(self) -> None:
        """Take the settings and an empty snapshot."""
        pieces = snapshot_pieces((), epoch=1, timestamp_ms=0)
        self.receive(Welcome(1, "cluster", 1, None, {}), *(SnapshotBatch(0, 1, each) for each in pieces))
        self.link.begin_reporting()

    def welcomed(self, _: Welcome) -> WorkerStore:
        return self.store

    def applied(self) -> int:
        return self.store.last_offset

    def deny(self) -> None:
        self.denied += 1

    async def drain(self) -> None: ...

    def status(self, *, wants_metrics: bool) -> tuple[Mapping[str, bool], bytes]:
        return {}, b"page" if wants_metrics else b""

    def reload(self, properties: Mapping[str, str]) -> None: ...

    def take_levels(self, levels: Mapping[str, str]) -> None: ...

    def close_connection(self, number: int, reason: str) -> None: ...

    def login_failed(self, host: str) -> None: ...

    def current(self, as_of_ms: int) -> None:
        self.currents.append((as_of_ms, self.store.last_offset))

    def quorum_lost(self) -> None: ...

    def receive(self, *messages: object) -> None:
        self.link._channel.data_received(b"".join(map(encode, messages)))

    async def preparing(self) -> None:
        assert await asyncio.to_thread(self.store.begun.wait, WAIT_S)

    async def idle(self) -> None:
        """Return when the worker is idle."""
        while (work := self.link._channel._working) is not None:
            await asyncio.wait([work])


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    made = Worker(monkeypatch)
    made.begin()
    yield made
    made.store.go_on.set()
    await made.idle()
    await made.link.close()


def batch(offset: int, *numbers: int) -> LogBatch:
    """Make ACLs of these numbers; the last record has this offset."""
    values = [
        encode_record(
            acl_record(UUID(int=number), allow(ResourceType.TOPIC, f"topic-{number}", AclOperation.READ))
        )
        for number in numbers
    ]
    return LogBatch(encoded_batch_of(offset - len(values) + 1, 1, 0, values))


async def test_a_worker_reports_its_status_and_its_progress_while_it_applies_a_large_batch(
    worker: Worker,
) -> None:
    worker.receive(batch(1, 1, 2), batch(2, 3))
    await worker.preparing()
    worker.receive(Look(7, wants_metrics=True))
    await worker.writer.heard(WorkerStatus(7, {}, b"page"), Progress(worker.store.steps))
    # neither it nor a later batch is in force
    assert worker.store.last_offset == -1
    worker.store.go_on.set()
    await worker.writer.heard(Applied(1), Applied(2))
    assert [each for each in worker.writer.said if isinstance(each, Applied)] == [Applied(1), Applied(2)]
    assert sorted(worker.store.image.acls) == [UUID(int=number) for number in (1, 2, 3)]


async def test_a_worker_reports_its_progress_from_its_settings_until_it_serves(worker: Worker) -> None:
    steps = worker.store.steps
    await worker.writer.heard(Progress(steps))
    worker.link.report_serving()
    worker.writer.said.clear()
    worker.receive(batch(1, 1))
    await worker.writer.heard(Applied(1))
    assert not [each for each in worker.writer.said if isinstance(each, Progress)]


async def test_a_worker_fenced_during_a_batch_denies_immediately_and_reports_nothing(
    worker: Worker,
) -> None:
    worker.receive(batch(1, 1, 2))
    await worker.preparing()
    worker.receive(Fence("late"), batch(2, 3))
    assert (worker.denied, worker.writer.said[-1]) == (1, Fenced())
    worker.store.go_on.set()
    await worker.idle()
    # later batches are not applied
    assert worker.store.last_offset < 2
    assert not any(isinstance(each, Applied) for each in worker.writer.said)


class HeldPublisher:
    """Takes a batch when the test allows it, after the authorizer."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def publish_snapshot(self, image: MetadataImage) -> None: ...

    def publish_delta(self, delta: MetadataDelta) -> None:
        self.begun.set()
        assert self.go_on.wait(WAIT_S)


async def test_a_large_batch_is_not_reported_before_every_publisher_has_it(worker: Worker) -> None:
    settings = HeldPublisher()
    worker.link.store.add_publisher(settings)
    worker.store.go_on.set()
    worker.receive(batch(1, 1, 2))
    assert await asyncio.to_thread(settings.begun.wait, WAIT_S)
    # the authorizer has the batch and reports it immediately
    worker.link._report_applied()
    assert Applied(1) not in worker.writer.said
    settings.go_on.set()
    await worker.writer.heard(Applied(1))


async def test_clients_are_served_between_batches_after_a_large_one(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_module, "TURN_S", 0.0)
    loop, turn, seen = asyncio.get_running_loop(), 0, list[int]()

    def next_turn() -> None:
        nonlocal turn
        turn += 1
        if worker.store.last_offset < 9:
            loop.call_soon(next_turn)

    class Watching:
        def publish_snapshot(self, image: MetadataImage) -> None: ...

        def publish_delta(self, delta: MetadataDelta) -> None:
            seen.append(turn)

    worker.link.store.add_publisher(Watching())
    worker.receive(batch(1, 1, 2), *(batch(offset, offset + 1) for offset in range(2, 10)))
    await worker.preparing()
    next_turn()
    worker.store.go_on.set()
    await worker.writer.heard(Applied(9))
    # the first is the large one
    assert len(seen) == 9
    assert len(set(seen[1:])) == 8


async def test_the_listeners_open_at_the_requested_log_position(worker: Worker) -> None:
    worker.receive(OpenListeners(2), batch(1, 1, 2), batch(2, 3))
    await worker.preparing()
    assert not worker.link.serve.done()
    worker.store.go_on.set()
    await worker.link.serve
    assert worker.store.last_offset >= 2


async def test_the_listeners_open_at_once_if_the_position_is_reached(worker: Worker) -> None:
    worker.receive(batch(0, 1))
    await worker.writer.heard(Applied(0))
    worker.receive(OpenListeners(1))
    assert not worker.link.serve.done()
    worker.receive(OpenListeners(0))
    await worker.link.serve


async def test_a_worker_that_is_fenced_before_the_position_never_opens_its_listeners(worker: Worker) -> None:
    worker.receive(batch(1, 1, 2), OpenListeners(1), Fence("late"))
    worker.store.go_on.set()
    await worker.idle()
    with pytest.raises(WorkerStartError, match="late"):
        await worker.link.serve
    assert worker.denied == 1
    assert [each for each in worker.writer.said if isinstance(each, Fenced)] == [Fenced()]


async def test_the_metadata_is_current_only_after_earlier_batches_are_applied(worker: Worker) -> None:
    worker.receive(batch(1, 1, 2), Current(77))
    await worker.preparing()
    assert worker.currents == []
    worker.store.go_on.set()
    await worker.idle()
    assert worker.currents == [(77, 1)]


async def test_a_large_batch_that_cannot_be_applied_ends_the_worker(worker: Worker) -> None:
    worker.store.go_on.set()
    worker.receive(batch(1, 1, 1), batch(2, 3))
    await worker.writer.heard(Fenced())
    await worker.idle()
    assert worker.denied == 1
    assert worker.link.ended_badly
    assert worker.store.last_offset == -1


async def test_a_batch_with_a_wrong_checksum_ends_the_worker(worker: Worker) -> None:
    data = batch(0, 1).payload
    worker.receive(LogBatch(data[:-1] + bytes([data[-1] ^ 1])))
    await worker.writer.heard(Fenced())
    assert worker.link.ended_badly


async def test_a_batch_without_an_image_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(monkeypatch)
    worker.receive(batch(0, 1))
    await worker.writer.heard(Fenced())
    with pytest.raises(ChannelError):
        _ = worker.link.store


def creation() -> Forwarded:
    message = request_codec(ApiKey.CREATE_ACLS, 3).new(creations=[])
    context = AuthorizableRequestContext(KafkaPrincipal("User", "a"), "127.0.0.1", request_type=30)
    return Forwarded(ApiKey.CREATE_ACLS, 3, message, context)


async def test_a_stopping_worker_follows_the_log_until_its_clients_are_answered(
    worker: Worker,
) -> None:
    # systemd may signal all processes of a node, which is not the second `Stop`
    worker.link.ended.set()
    worker.receive(Stop(), batch(0, 1))
    await worker.writer.heard(Applied(0))
    assert not worker.link.hurried.is_set()
    change = asyncio.ensure_future(worker.link.submit(creation()))
    await asyncio.sleep(0)
    sent = worker.writer.said[-1]
    assert isinstance(sent, Submit)
    done = Submitted(response_codec(ApiKey.CREATE_ACLS, 3).new(results=[]), 5)
    worker.receive(answer_of(sent.id, request_of(sent), done))
    assert await change == done
    worker.receive(Stop())
    assert worker.link.hurried.is_set()
    assert worker.denied == 0


async def test_a_change_is_not_acknowledged_if_the_writer_is_gone(worker: Worker) -> None:
    change = asyncio.ensure_future(worker.link.submit(creation()))
    await asyncio.sleep(0)
    worker.link._channel.connection_lost(None)
    with pytest.raises(KafkaApiError):
        await change
    with pytest.raises(KafkaApiError):
        await worker.link.submit(creation())


@pytest.mark.parametrize("closes", [False, True])
async def test_a_stopping_worker_that_loses_its_writer_denies_the_remaining_requests(
    worker: Worker, closes: bool
) -> None:
    worker.receive(Stop())
    if closes:
        worker.link.disconnect()
    worker.link._channel.connection_lost(None)
    assert (worker.denied, worker.link.ended_badly) == ((0, False) if closes else (1, True))
