"""A worker's side of the channel: follows the writer, sends it changes, and stops on its request.

A worker whose writer is gone, or that is fenced, may not decide anything any more: `on_deny` is called first,
before anything else is read.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import structlog

from kustos.client import one_shot, supervised
from kustos.gateway.store.large_work import LARGE_ITEMS_MIN, LargeWork
from kustos.gateway.store.writer import (
    QUEUED_REQUESTS_MAX,
    MetadataWriter,
    WriterBusyError,
    WriterClosedError,
)
from kustos.gateway.upstream.in_flight import RequestsInFlightError, nothing_in_flight
from kustos.gateway.workers.changes import REQUESTABLE_CHANGES, items_of
from kustos.gateway.workers.channel import Channel, peer_of, socket_path
from kustos.gateway.workers.encoding import ChannelError, WorkerStartError
from kustos.gateway.workers.messages import (
    FROM_WORKER,
    FROM_WRITER,
    LARGE_FRAME_BYTES,
    Applied,
    Arrived,
    ChangeRequest,
    ChangeResults,
    Delta,
    Drain,
    Drained,
    Failed,
    FailureKind,
    Fence,
    Fenced,
    Left,
    Levels,
    Loaded,
    LoginFailed,
    Look,
    OpenListeners,
    Progress,
    Records,
    Reload,
    Serving,
    Stop,
    TurnAway,
    Welcome,
    WorkerStatus,
)
from kustos.gateway.workers.store import PreparedBatch, WorkerStore
from kustos.metadata import MetadataError
from kustos.metadata.store import MetadataStore, StoreRequest
from kustos.runtime import freeze_objects, garbage_collection_paused

LOG: Final = structlog.get_logger("kustos.gateway")

_FAILURES: Final[dict[FailureKind, Callable[[str], Exception]]] = {
    FailureKind.METADATA: MetadataError,
    FailureKind.BUSY: WriterBusyError,
    FailureKind.CLOSED: WriterClosedError,
    FailureKind.IN_FLIGHT: lambda _: RequestsInFlightError(),
}


PROGRESS_EVERY_S: Final = 0.1
"""How often a worker reports progress on a large batch: several times within the shortest time-out."""


class Service:
    """Exchanges messages with the writer. `make_store` makes the store for the image."""

    def __init__(self, writer_pid: int, make_store: Callable[[Welcome], WorkerStore]) -> None:
        loop = asyncio.get_running_loop()
        self._loop: Final = loop
        self._writer_pid: Final = writer_pid
        self._make_store: Final = make_store
        self._channel: Final = Channel(FROM_WORKER, FROM_WRITER, self._received, self._lost)
        self._large: Final = LargeWork()
        self.welcome: Final[asyncio.Future[Welcome]] = loop.create_future()
        self.loaded: Final[asyncio.Future[None]] = loop.create_future()
        self.serve: Final[asyncio.Future[None]] = loop.create_future()
        self.ended: Final = asyncio.Event()
        self.hurried: Final = asyncio.Event()
        """Whether the writer said `Stop` again."""
        self.ended_badly = False
        self.store: WorkerStore | None = None
        self.on_deny: Callable[[], object] = lambda: None
        self.on_reload: Callable[[Mapping[str, str]], object] = lambda _: None
        self.on_levels: Callable[[Mapping[str, str]], object] = lambda _: None
        self.reloaded: Mapping[str, str] | None = None
        """The properties since the file was last reloaded; None if it never was."""
        self.on_turn_away: Callable[[int, str], object] = lambda _number, _reason: None
        self.on_login_failed: Callable[[str], object] = lambda _: None
        self.applied: Callable[[], int] = lambda: -1
        """Returns the offset up to which decisions follow the log."""
        self.seen: Callable[[bool], tuple[Mapping[str, bool], bytes]] = lambda _: ({}, b"")
        self.drain: Callable[[], Awaitable[None]] = nothing_in_flight
        """Returns when no broker has a request that would be denied now; raises `RequestsInFlightError`."""
        self._reported = -1
        self._draining: Final[set[asyncio.Task[None]]] = set()
        self._is_loaded = self._is_stopping = self._is_closed = False
        self._numbers: Final = count()
        self._requested: Final[dict[int, asyncio.Future[tuple[Any, ...]]]] = {}

    async def connect(self, directory: Path) -> None:
        """Connect to the writer; raise `WorkerStartError` or OSError."""
        with socket_path(directory) as path:
            transport, _ = await self._loop.create_unix_connection(lambda: self._channel, path)
        process_id, user_id = peer_of(transport)
        if (process_id, user_id) != (self._writer_pid, os.getuid()):
            raise WorkerStartError(f"process {process_id} is at the writer's socket, not {self._writer_pid}")

    def _received(self, message: object) -> Awaitable[None] | None:
        try:
            if self.ended_badly and isinstance(message, Delta | OpenListeners):
                return None
            if isinstance(message, Delta):
                return self._follow(message)
            self._perform(message)
        except Exception as error:  # noqa: BLE001 - logged in there
            self._fail(error)
        return None

    def _fail(self, error: Exception) -> None:
        """Deny everything: the boundary for a message of the writer that cannot be carried out."""
        LOG.critical(
            "a worker could not carry out a message of the writer", reason=str(error), exc_info=error
        )
        self._end(str(error))

    def _follow(self, delta: Delta) -> Awaitable[None] | None:
        """Put a batch of the log in force, a large one later."""
        size_bytes = sum(map(len, delta.values))
        if len(delta.values) >= LARGE_ITEMS_MIN or size_bytes >= LARGE_FRAME_BYTES:
            return self._follow_large(delta)
        store = self._followed()
        self._put_in_force(store, store.prepared(delta.offset, delta.epoch, delta.values))
        return None

    async def _follow_large(self, delta: Delta) -> None:
        reporting = supervised("worker-progress", self._report_progress)
        try:
            store = self._followed()
            with garbage_collection_paused():
                batch = await self._large.run(
                    lambda _: store.prepared(delta.offset, delta.epoch, delta.values), LARGE_ITEMS_MIN
                )
                if not self.ended_badly:
                    self._put_in_force(store, batch)
                    # wait until the authorizer has it, too
                    await asyncio.sleep(0)
                    freeze_objects()
        except Exception as error:  # noqa: BLE001 - logged in there
            self._fail(error)
        finally:
            reporting.cancel()

    async def _report_progress(self) -> None:
        """Report the progress on a large batch to the writer again and again."""
        while True:
            await asyncio.sleep(PROGRESS_EVERY_S)
            self._channel.send(Progress(self._followed().steps))

    def _put_in_force(self, store: WorkerStore, batch: PreparedBatch) -> None:
        store.put_in_force(batch)
        # the publishers scheduled their work on the loop: this runs after it
        self._loop.call_soon(self.report_applied)

    def _perform(self, message: object) -> None:
        match message:
            case ChangeResults(number, results):
                self._answered(number, results, None)
            case Failed(number, kind, text):
                self._answered(number, (), _FAILURES[kind](text))
            case Look(number, wants_metrics):
                self._channel.send(WorkerStatus(number, *self.seen(wants_metrics)))
            case Drain(number):
                task = one_shot("worker-drain", self._drain(number))
                self._draining.add(task)
                task.add_done_callback(self._draining.discard)
            case TurnAway(number, reason):
                self.on_turn_away(number, reason)
            case LoginFailed(host):
                self.on_login_failed(host)
            case Fence(reason):
                LOG.error("the writer fences this worker", reason=reason)
                self._end(reason)
            case Stop():
                # a signal that all processes get has ended it maybe, and is not the second
                (self.hurried if self._is_stopping else self.ended).set()
                self._is_stopping = True
            case Levels(levels):
                self.on_levels(levels)
            case Reload(properties):
                self.reloaded = properties
                self.on_reload(properties)
            case _:
                self._begin(message)

    def _begin(self, message: object) -> None:
        match message:
            case Welcome():
                self.store = self._make_store(message)
                self.welcome.set_result(message)
            case Records(batch):
                self._followed().take_records(batch)
            case Loaded(offset, epoch):
                self._followed().loaded(offset, epoch)
                self.loaded.set_result(None)
            case OpenListeners():
                self.serve.set_result(None)

    def _followed(self) -> WorkerStore:
        if self.store is None:
            raise ChannelError("records came before `Welcome`")
        return self.store

    def begin_reporting(self) -> None:
        """Report from now on how far decisions follow the log."""
        self._is_loaded = True
        self.report_applied()

    def report_applied(self) -> None:
        """Report how far decisions follow the log, if that has changed."""
        # while clients get their answers, changes wait for this worker as before
        if self._is_loaded and not self.ended_badly and (offset := self.applied()) > self._reported:
            self._reported = offset
            self._channel.send(Applied(offset))

    async def _drain(self, number: int) -> None:
        """Report when brokers are done with what would be denied now."""
        is_drained = False
        try:
            await self.drain()
            is_drained = True
        except RequestsInFlightError:
            pass
        finally:
            # also after a bug of ours: the client of the change must not wait for ever
            self._channel.send(Drained(number, is_drained))

    def report_serving(self) -> None:
        """Report that the listeners are open."""
        self._channel.send(Serving())

    def arrived(self, number: int, host: str) -> None:
        """Report a new connection to the writer."""
        self._channel.send(Arrived(number, host))

    def left(self, number: int) -> None:
        """Report a closed connection to the writer."""
        self._channel.send(Left(number))

    def login_failed(self, host: str) -> None:
        """Report a failed login to the writer."""
        self._channel.send(LoginFailed(host))

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a change that is in force in every worker; raise what the writer raises."""
        if not isinstance(request, REQUESTABLE_CHANGES):
            raise MetadataError("only the writer process makes such a change")
        if self.ended_badly or not self._channel.is_open:
            raise WriterClosedError("the metadata writer has ended")
        if len(self._requested) >= QUEUED_REQUESTS_MAX:
            raise WriterBusyError("too many changes of the metadata wait")
        number = next(self._numbers)
        answer: asyncio.Future[tuple[Any, ...]] = self._loop.create_future()
        self._requested[number] = answer
        try:
            await self._channel.send_large(ChangeRequest(number, request), items_of(request))
            return await answer
        except ChannelError as error:
            raise MetadataError(str(error)) from error
        finally:
            del self._requested[number]

    def _answered(self, number: int, results: tuple[Any, ...], failure: Exception | None) -> None:
        answer = self._requested.get(number)
        if answer is None or answer.done():
            return  # its caller is gone
        if failure is None:
            answer.set_result(results)
        else:
            answer.set_exception(failure)

    def _lost(self, reason: str) -> None:
        if not (self._is_closed or self.ended_badly):
            LOG.critical("the writer process is gone, this worker ends", reason=reason)
            self._end(reason)

    def _end(self, reason: str) -> None:
        """Deny everything, report that, and end."""
        self.ended_badly = True
        try:
            self.on_deny()
            self._channel.send(Fenced())
        finally:
            # without `Fenced` the writer kills this process; it must end without a writer, too
            self.ended.set()
        for waiting in (self.welcome, self.loaded, self.serve):
            if not waiting.done():
                waiting.set_exception(WorkerStartError(reason))
                # nobody else may retrieve it
                waiting.exception()
        for answer in self._requested.values():
            if not answer.done():
                answer.set_exception(WriterClosedError("the metadata writer has ended"))

    def close(self) -> None:
        """Close the channel."""
        self._is_closed = True
        self.ended.set()
        self._channel.close("the worker ends")


class WorkerWriter(MetadataWriter):
    """Stands in for the writer of the log in a worker: it sends changes to the writer process."""

    def __init__(self, service: Service, store: WorkerStore) -> None:
        # both stores are read alike: image, offset, properties, publishers
        super().__init__(cast("MetadataStore", store))
        self._service: Final = service

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a request, once it is in force everywhere."""
        return await self._service.submit(request)

    async def run(self, _work: Callable[[], Any]) -> NoReturn:
        """Raise `WriterClosedError`: there is no log here."""
        raise WriterClosedError("the writer process owns the metadata log")
