"""A worker's side of the channel: follows the writer, asks it for changes, and stops when it is told to.

A worker whose writer is gone, or who is fenced, may not decide anything any more: `on_deny` comes first,
before anything else is read.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import structlog

from kustos.gateway.workers.changes import ASKED_OF_THE_WRITER
from kustos.gateway.workers.channel import Channel, peer_of, socket_path
from kustos.gateway.workers.errors import ChannelError, WorkerStartError
from kustos.gateway.workers.messages import (
    OF_A_WORKER,
    OF_THE_WRITER,
    Answer,
    Applied,
    Arrived,
    Change,
    Delta,
    Failed,
    FailureKind,
    Fence,
    Fenced,
    Left,
    Levels,
    Loaded,
    Look,
    Records,
    Reload,
    Seen,
    Serve,
    Serving,
    Stop,
    TurnAway,
    Welcome,
)
from kustos.gateway.workers.store import WorkerStore
from kustos.gateway.writer import QUEUED_REQUESTS_MAX, MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata.errors import MetadataError
from kustos.metadata.store import MetadataStore, StoreRequest

LOG: Final = structlog.get_logger("kustos.gateway")

_FAILURES: Final[dict[FailureKind, type[Exception]]] = {
    FailureKind.METADATA: MetadataError,
    FailureKind.BUSY: WriterBusyError,
    FailureKind.CLOSED: WriterClosedError,
}


class Service:
    """What the writer says, and what is said to it. `make_store` makes what takes the image."""

    def __init__(self, writer_pid: int, make_store: Callable[[Welcome], WorkerStore]) -> None:
        loop = asyncio.get_running_loop()
        self._loop: Final = loop
        self._writer_pid: Final = writer_pid
        self._make_store: Final = make_store
        self._channel: Final = Channel(OF_A_WORKER, OF_THE_WRITER, self._received, self._lost)
        self.welcome: Final[asyncio.Future[Welcome]] = loop.create_future()
        self.loaded: Final[asyncio.Future[None]] = loop.create_future()
        self.serve: Final[asyncio.Future[None]] = loop.create_future()
        self.ended: Final = asyncio.Event()
        self.ended_badly = False
        self.store: WorkerStore | None = None
        self.on_deny: Callable[[], object] = lambda: None
        self.on_reload: Callable[[Mapping[str, str]], object] = lambda _: None
        self.on_levels: Callable[[Mapping[str, str]], object] = lambda _: None
        self.reloaded: Mapping[str, str] | None = None
        """What the properties file says since it was read again, if it was."""
        self.on_turn_away: Callable[[int, str], object] = lambda _number, _reason: None
        self.applied: Callable[[], int] = lambda: -1
        """Up to which offset decisions follow the log."""
        self.seen: Callable[[bool], tuple[Mapping[str, bool], bytes]] = lambda _: ({}, b"")
        self._told = -1
        self._is_loaded = False
        self._numbers: Final = count()
        self._asked: Final[dict[int, asyncio.Future[tuple[Any, ...]]]] = {}

    async def connect(self, directory: Path) -> None:
        """Come to the writer; raise `WorkerStartError` or OSError."""
        with socket_path(directory) as path:
            transport, _ = await self._loop.create_unix_connection(lambda: self._channel, path)
        process_id, user_id = peer_of(transport)
        if (process_id, user_id) != (self._writer_pid, os.getuid()):
            raise WorkerStartError(f"process {process_id} is at the writer's socket, not {self._writer_pid}")

    def _received(self, message: object) -> None:
        try:
            self._perform(message)
        except Exception as error:
            # the boundary where what the writer says cannot be carried out: nothing may be decided then
            LOG.critical("a worker lost step with the writer", reason=str(error), exc_info=error)
            self._end(str(error))

    def _perform(self, message: object) -> None:
        match message:
            case Delta(offset, epoch, values):
                self._followed().apply(offset, epoch, values)
                # the publishers left their work to the loop: this comes after it
                self._loop.call_soon(self.tell_applied)
            case Answer(number, results):
                self._answered(number, results, None)
            case Failed(number, kind, text):
                self._answered(number, (), _FAILURES[kind](text))
            case Look(number, wants_metrics):
                self._channel.send(Seen(number, *self.seen(wants_metrics)))
            case TurnAway(number, reason):
                self.on_turn_away(number, reason)
            case Fence(reason):
                LOG.error("the writer fences this worker", reason=reason)
                self._end(reason)
            case Stop():
                self.ended.set()
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
            case Serve():
                self.serve.set_result(None)

    def _followed(self) -> WorkerStore:
        if self.store is None:
            raise ChannelError("records came before the worker knew whose they are")
        return self.store

    def begin_telling(self) -> None:
        """Decisions follow the log from now on."""
        self._is_loaded = True
        self.tell_applied()

    def tell_applied(self) -> None:
        """Tell the writer how far decisions follow the log, if that is news."""
        if self._is_loaded and not self.ended.is_set() and (offset := self.applied()) > self._told:
            self._told = offset
            self._channel.send(Applied(offset))

    def tell_serving(self) -> None:
        """Tell the writer that the listeners are open."""
        self._channel.send(Serving())

    def arrived(self, number: int, host: str) -> None:
        """Tell the writer of a connection."""
        self._channel.send(Arrived(number, host))

    def left(self, number: int) -> None:
        """Tell the writer that a connection is gone."""
        self._channel.send(Left(number))

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a change that is in force in every worker; raise what the writer raises."""
        if not isinstance(request, ASKED_OF_THE_WRITER):
            raise MetadataError("only the writer process makes such a change")
        if self.ended.is_set() or not self._channel.is_open:
            raise WriterClosedError("the metadata writer has ended")
        if len(self._asked) >= QUEUED_REQUESTS_MAX:
            raise WriterBusyError("too many changes of the metadata wait")
        number = next(self._numbers)
        answer: asyncio.Future[tuple[Any, ...]] = self._loop.create_future()
        self._asked[number] = answer
        try:
            self._channel.send(Change(number, request))
            return await answer
        except ChannelError as error:
            raise MetadataError(str(error)) from error
        finally:
            del self._asked[number]

    def _answered(self, number: int, results: tuple[Any, ...], failure: Exception | None) -> None:
        answer = self._asked.get(number)
        if answer is None or answer.done():
            return  # who asked is gone
        if failure is None:
            answer.set_result(results)
        else:
            answer.set_exception(failure)

    def _lost(self, reason: str) -> None:
        if not self.ended.is_set():
            LOG.critical("the writer process is gone, this worker ends", reason=reason)
            self._end(reason)

    def _end(self, reason: str) -> None:
        """Decide nothing any more, say so, and end."""
        self.ended_badly = True
        self.on_deny()
        self._channel.send(Fenced())
        self.ended.set()
        for waiting in (self.welcome, self.loaded, self.serve):
            if not waiting.done():
                waiting.set_exception(WorkerStartError(reason))
                # perhaps nobody waits for it
                waiting.exception()
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(WriterClosedError("the metadata writer has ended"))

    def close(self) -> None:
        """Let go of the channel."""
        self.ended.set()
        self._channel.close("the worker ends")


class WorkerWriter(MetadataWriter):
    """Stands in a worker where the writer of the log stands: it asks the writer process."""

    def __init__(self, service: Service, store: WorkerStore) -> None:
        # the store is read alike in both: its image, its offset, whose it is, who follows it
        super().__init__(cast("MetadataStore", store))
        self._service: Final = service

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a request, when it is in force everywhere."""
        return await self._service.submit(request)

    async def run(self, _work: Callable[[], Any]) -> NoReturn:
        """Raise `WriterClosedError`: there is no log here."""
        raise WriterClosedError("the metadata log is the writer process's")
