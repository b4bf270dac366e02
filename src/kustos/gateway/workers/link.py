"""A worker's link to its writer process: follows the log, sends changes, and stops on the writer's order.

A worker that is fenced, or has lost its writer, must not decide anything: the link calls `deny` first, before
it reads anything else.
"""

import asyncio
import os
from collections.abc import Awaitable, Mapping
from itertools import count
from pathlib import Path
from typing import Final, Protocol

import structlog

from kustos.authorizer import KafkaApiError
from kustos.client import one_shot, supervised
from kustos.client.quorum import Forwarded
from kustos.gateway.store.forwarding import ForwardingMutator
from kustos.gateway.store.large_work import LARGE_ITEMS_MIN, LargeWork
from kustos.gateway.store.source import Submitted
from kustos.gateway.store.writer import QUEUED_REQUESTS_MAX
from kustos.gateway.upstream.in_flight import RequestsInFlightError
from kustos.gateway.workers.channel import Channel, peer_of, socket_path
from kustos.gateway.workers.errors import ChannelError, WorkerStartError
from kustos.gateway.workers.messages import (
    FROM_WRITER,
    Applied,
    Arrived,
    ChangeAnswer,
    CloseConnection,
    Current,
    Drain,
    Drained,
    Fence,
    Fenced,
    Left,
    Levels,
    LogBatch,
    LoginFailed,
    Look,
    OpenListeners,
    Progress,
    QuorumLost,
    Reload,
    Serving,
    SnapshotBatch,
    Stop,
    Welcome,
    WorkerStatus,
)
from kustos.gateway.workers.requests import ITEM_BYTES, items_of, submit_of, submitted_of
from kustos.gateway.workers.store import WorkerStore
from kustos.runtime import freeze_objects, garbage_collection_paused
from kustos.wire import ErrorCode

LOG: Final = structlog.get_logger("kustos.gateway")

LARGE_BATCH_BYTES: Final = 32 * 1024
"""A batch of the log of this size takes some milliseconds to apply, so another thread prepares it."""

PROGRESS_EVERY_S: Final = 0.1
"""How often a worker reports progress while it starts, or applies a large batch: several times within the
shortest time-out."""


class LinkedNode(Protocol):
    """The worker as its link sees it, from before it has its settings until its end."""

    def welcomed(self, welcome: Welcome) -> WorkerStore:
        """Return the store for the writer's metadata."""

    def applied(self) -> int:
        """Return the offset up to which decisions follow the log, -1 before anything can be decided."""

    def deny(self) -> None:
        """Stop deciding, and close all connections."""

    async def drain(self) -> None:
        """Return when no broker has a request that the ACLs would deny now; raise `RequestsInFlightError`."""

    def status(self, *, wants_metrics: bool) -> tuple[Mapping[str, bool], bytes]:
        """Return the readiness conditions with their states, and the metrics if they are wanted."""

    def reload(self, properties: Mapping[str, str]) -> None:
        """Apply the settings of the file."""

    def take_levels(self, levels: Mapping[str, str]) -> None:
        """Apply the log levels of the node."""

    def close_connection(self, number: int, reason: str) -> None:
        """Close a connection beyond the node's limit."""

    def login_failed(self, host: str) -> None:
        """Count a failed login in another process."""

    def current(self, as_of_ms: int) -> None:
        """Record that everything committed by this time of the monotonic clock has been received."""

    def quorum_lost(self) -> None:
        """Record that the metadata can never become current again."""


class WriterLink:
    """Exchanges messages with the writer, on behalf of a node. A `MetadataSource` once it is `loaded`."""

    def __init__(self, writer_pid: int, node: LinkedNode) -> None:
        loop = asyncio.get_running_loop()
        self._loop: Final = loop
        self._writer_pid: Final = writer_pid
        self._node: Final = node
        self._channel: Final = Channel(FROM_WRITER, self._received, self._lost)
        self._large: Final = LargeWork()
        self.mutator: Final = ForwardingMutator(self.submit)
        self.welcome: Final[asyncio.Future[Welcome]] = loop.create_future()
        self.loaded: Final[asyncio.Future[None]] = loop.create_future()
        self.serve: Final[asyncio.Future[None]] = loop.create_future()
        """Done when the listeners may open."""
        self.ended: Final = asyncio.Event()
        self.hurried: Final = asyncio.Event()
        """Whether the writer sent `Stop` a second time."""
        self.ended_badly = False
        self._store: WorkerStore | None = None
        self._open_at: int | None = None
        self._published = -1
        """The offset up to which every publisher has the log."""
        self._reported = -1
        self._starting: asyncio.Task[None] | None = None
        """Reports to the writer, from `Welcome` until the worker serves."""
        self._draining: Final[set[asyncio.Task[None]]] = set()
        self._is_reporting = self._is_stopping = self._is_closed = False
        self._numbers: Final = count()
        self._requested: Final[dict[int, asyncio.Future[ChangeAnswer]]] = {}

    async def connect(self, directory: Path) -> None:
        """Connect to the writer; raise `WorkerStartError` or OSError."""
        with socket_path(directory) as path:
            transport, _ = await self._loop.create_unix_connection(lambda: self._channel, path)
        process_id, user_id = peer_of(transport)
        if (process_id, user_id) != (self._writer_pid, os.getuid()):
            raise WorkerStartError(f"process {process_id} is at the writer's socket, not {self._writer_pid}")

    @property
    def store(self) -> WorkerStore:
        """The metadata; raise `ChannelError` before `Welcome`."""
        if self._store is None:
            raise ChannelError("metadata came before `Welcome`")
        return self._store

    def _received(self, message: object) -> Awaitable[None] | None:
        try:
            match message:
                case SnapshotBatch() | LogBatch() | Current() if self.ended_badly:
                    return None
                case SnapshotBatch() if self.loaded.done():
                    # the event loop serves clients meanwhile
                    return self._take_on_thread(message)
                case LogBatch(data) if len(data) >= LARGE_BATCH_BYTES:
                    return self._take_on_thread(message)
                case SnapshotBatch() | LogBatch():
                    self._take(message)
                    self._follow_store()
                case Welcome() | OpenListeners() | ChangeAnswer() | Look() | Drain() | Fence() | Stop():
                    self._perform(message)
                case _:
                    self._inform_node(message)
        except Exception as error:  # noqa: BLE001 - logged in there
            self._fail(error)
        return None

    def _fail(self, error: Exception) -> None:
        """Deny everything: the boundary for a message of the writer that cannot be handled."""
        LOG.critical(
            "a worker could not carry out a message of the writer", reason=str(error), exc_info=error
        )
        self._end(str(error))

    def _take(self, message: SnapshotBatch | LogBatch) -> None:
        if isinstance(message, LogBatch):
            self.store.take_batch(message)
        elif self.store.take_snapshot(message) and not self.loaded.done():
            self.loaded.set_result(None)

    async def _take_on_thread(self, message: SnapshotBatch | LogBatch) -> None:
        reporting = supervised("worker-progress", self._report_progress)
        try:
            with garbage_collection_paused():
                await self._large.run(lambda _: self._take(message), LARGE_ITEMS_MIN)
                self._follow_store()
                # wait until the authorizer has it, too
                await asyncio.sleep(0)
                freeze_objects()
        except Exception as error:  # noqa: BLE001 - logged in there
            self._fail(error)
        finally:
            reporting.cancel()

    async def _report_progress(self) -> None:
        """Report to the writer periodically how far this worker is."""
        while True:
            await asyncio.sleep(PROGRESS_EVERY_S)
            self._channel.send(Progress(self.store.steps))

    def follow(self) -> None:
        """Schedule a report of the offset that decisions follow; from any thread."""
        self._loop.call_soon_threadsafe(self._report_applied)

    def _follow_store(self) -> None:
        # the publishers scheduled their work on the loop: this runs after it
        self._loop.call_soon(self._follow_to, self.store.last_offset)

    def _follow_to(self, offset: int) -> None:
        self._published = offset
        self._report_applied()

    def _perform(self, message: object) -> None:
        match message:
            case Welcome():
                self._store = self._node.welcomed(message)
                self.welcome.set_result(message)
                self._starting = supervised("worker-progress", self._report_progress)
            case OpenListeners(offset):
                self._open_at = offset
                self._open_listeners()
            case ChangeAnswer(number):
                if (answer := self._requested.get(number)) is not None and not answer.done():
                    answer.set_result(message)
            case Look(number, wants_metrics):
                parts, metrics = self._node.status(wants_metrics=wants_metrics)
                self._channel.send(WorkerStatus(number, parts, metrics))
            case Drain(number):
                task = one_shot("worker-drain", self._drain(number))
                self._draining.add(task)
                task.add_done_callback(self._draining.discard)
            case Fence(reason):
                LOG.error("the writer fences this worker", reason=reason)
                self._end(reason)
            case Stop():
                # a signal to all processes may have ended the worker already; then this is not the second
                # `Stop`
                (self.hurried if self._is_stopping else self.ended).set()
                self._is_stopping = True

    def _inform_node(self, message: object) -> None:
        match message:
            case Current(as_of_ms):
                self._node.current(as_of_ms)
            case CloseConnection(number, reason):
                self._node.close_connection(number, reason)
            case LoginFailed(host):
                self._node.login_failed(host)
            case Levels(levels):
                self._node.take_levels(levels)
            case Reload(properties):
                self._node.reload(properties)
            case QuorumLost():
                self._node.quorum_lost()

    def begin_reporting(self) -> None:
        """Start reporting the offset that decisions follow."""
        self._is_reporting = True
        self._report_applied()

    def _report_applied(self) -> None:
        """Report the offset that decisions follow, if it has changed."""
        # while clients get their answers, changes wait for this worker as before
        if not self._is_reporting or self.ended_badly:
            return
        # the authorizer may have a large batch before the publishers of settings do
        offset = min(self._node.applied(), self._published)
        if offset > self._reported:
            self._reported = offset
            self._channel.send(Applied(offset))
            self._open_listeners()

    def _open_listeners(self) -> None:
        """Open the listeners if decisions follow the log up to the position that the writer named."""
        is_due = self._open_at is not None and self._reported >= self._open_at
        if is_due and not self.serve.done():
            self.serve.set_result(None)

    async def _drain(self, number: int) -> None:
        """Report when brokers are done with requests that the ACLs would deny now."""
        is_drained = False
        try:
            await self._node.drain()
            is_drained = True
        except RequestsInFlightError:
            pass
        finally:
            # also after a bug in the gateway: the client of the change must not wait forever
            self._channel.send(Drained(number, is_drained))

    def report_serving(self) -> None:
        """Report that the listeners are open."""
        self._end_progress()
        self._channel.send(Serving())

    def _end_progress(self) -> None:
        if self._starting is not None:
            self._starting.cancel()

    def arrived(self, number: int, host: str) -> None:
        """Report a new connection to the writer."""
        self._channel.send(Arrived(number, host))

    def left(self, number: int) -> None:
        """Report a closed connection to the writer."""
        self._channel.send(Left(number))

    def login_failed(self, host: str) -> None:
        """Report a failed login to the writer."""
        self._channel.send(LoginFailed(host))

    async def submit(self, request: Forwarded) -> Submitted:
        """Return the writer's answer to a change that is in force in every worker; raise `KafkaApiError`."""
        if self.ended_badly or not self._channel.is_open:
            raise _failed("the metadata writer has ended")
        if len(self._requested) >= QUEUED_REQUESTS_MAX:
            raise _failed("too many changes of the metadata wait")
        number = next(self._numbers)
        waiting: asyncio.Future[ChangeAnswer] = self._loop.create_future()
        self._requested[number] = waiting
        try:
            submit = await self._large.run(lambda _: submit_of(number, request), items_of(request.message))
            self._channel.send(submit)
            answer = await waiting
            size = len(answer.payload) // ITEM_BYTES
            return await self._large.run(lambda _: submitted_of(answer, request), size)
        except (ChannelError, ValueError) as error:
            # ValueError: the host is not an address
            raise _failed(str(error)) from error
        finally:
            del self._requested[number]

    def _lost(self, reason: str) -> None:
        if not (self._is_closed or self.ended_badly):
            LOG.critical("the writer process is gone, this worker ends", reason=reason)
            self._end(reason)

    def _end(self, reason: str) -> None:
        """Deny everything, report the fence, and end."""
        self.ended_badly = True
        try:
            self._node.deny()
            self._channel.send(Fenced())
        finally:
            # without `Fenced` the writer kills this process; it must end without a writer, too
            self.ended.set()
        for waiting in (self.welcome, self.loaded, self.serve):
            if not waiting.done():
                waiting.set_exception(WorkerStartError(reason))
                # no other code may retrieve it
                waiting.exception()
        for answer in self._requested.values():
            if not answer.done():
                answer.set_exception(_failed("the metadata writer has ended"))

    async def close(self) -> None:
        """Resume garbage collection; the channel stays open until the audit events are written."""
        if self._store is not None:
            self._store.close()

    def disconnect(self) -> None:
        """Close the channel."""
        self._end_progress()
        self._is_closed = True
        self.ended.set()
        self._channel.close("the worker ends")


def _failed(reason: str) -> KafkaApiError:
    """Return the error of an unacknowledged change; the log has the reason, clients get only the code."""
    LOG.error("the metadata was not changed", reason=reason)
    return KafkaApiError(ErrorCode.unknown_server_error)
