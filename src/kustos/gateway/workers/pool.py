"""The worker processes of a node: starts them, restarts them, makes their changes, and stops them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import structlog

from kustos.authorizer import KafkaApiError
from kustos.client import one_shot, supervised
from kustos.gateway.listener.admission import ConnectionCount
from kustos.gateway.listener.plans import GatewayLimits
from kustos.gateway.store.large_work import LargeWork
from kustos.gateway.store.source import MetadataSource
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.errors import WorkerStartError
from kustos.gateway.workers.followers import WorkerFollowers
from kustos.gateway.workers.handle import (
    READ_UP_S,
    STARTS,
    WAITED_FOR,
    WorkerHandle,
    WorkerPhase,
    WorkerProcess,
    is_spare,
)
from kustos.gateway.workers.listener import WorkerListener
from kustos.gateway.workers.messages import (
    Applied,
    Arrived,
    CloseConnection,
    Drained,
    Fenced,
    Left,
    LoginFailed,
    OpenListeners,
    Progress,
    Serving,
    Stop,
    Submit,
    Welcome,
    WorkerStatus,
)
from kustos.gateway.workers.requests import ITEM_BYTES, answer_of, failure_of, items_of, request_of
from kustos.protocol import TABLE
from kustos.runtime import words_of
from kustos.wire import ErrorCode

LOG: Final = structlog.get_logger("kustos.gateway")

LOOK_EVERY_S: Final = 1.0
"""How often each worker is queried for its state, so that a hanging one is found even without a change."""

START_TIMEOUT_S: Final = 120.0
"""The time without a report after which a worker that starts is ended: it needs some seconds until its first
report, a minute on a busy machine, and then reports ten times a second."""

CHANGES_MAX: Final = 10_000
"""The maximum number of changes in flight per worker; as many as may wait for the log."""

FIRST_RESTART_S: Final = 0.1
LAST_RESTART_S: Final = 10.0
"""The delay before a worker is restarted; it doubles from the first value to the last."""

STEADY_S: Final = 60.0
"""A worker that lived this long is restarted without delay."""

STOP_TIMEOUT_S: Final = 15.0
"""How long the workers may take to stop cleanly, with their audit log, before they are killed. The time in
which clients get their answers precedes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPoolSettings:
    """The settings of the pool. `command` makes the command line of a worker."""

    size: int
    directory: Path
    limits: GatewayLimits
    properties: Mapping[str, str] = field(repr=False)
    command: Callable[[int], Sequence[str]]


class PoolOwner(Protocol):
    """The writer process, as the pool sees it."""

    def worker_died(self) -> None:
        """Record that brokers may have requests of a worker that ended, before any other step."""

    def worker_gone(self, worker: WorkerHandle) -> None:
        """Record that the process of a worker has ended."""

    def login_failed(self, host: str) -> None:
        """Count a failed login in a worker."""

    async def drain(self) -> None:
        """Return when no broker has a request of a worker that died; raise `RequestsInFlightError`."""


class WorkerPool:
    """All worker processes of a node. Create it inside the event loop."""

    def __init__(
        self,
        settings: WorkerPoolSettings,
        source: MetadataSource,
        followers: WorkerFollowers,
        owner: PoolOwner,
    ) -> None:
        self.settings: Final = settings
        self.followers: Final = followers
        self.workers: Final = followers.workers
        self._source: Final = source
        self._owner: Final = owner
        self._loop: Final = asyncio.get_running_loop()
        self.connections: Final = ConnectionCount(
            settings.limits.max_connections, settings.limits.max_connections_per_ip
        )
        self._listener: Final = WorkerListener(settings.directory, self._welcome, self._received, self._lost)
        self._large: Final = LargeWork()
        self._tasks: Final[set[asyncio.Task[Any]]] = set()
        self._changes: Final[dict[int, int]] = {}
        self._delays_s: Final[dict[int, float]] = {}
        self._failure: Final[asyncio.Future[None]] = self._loop.create_future()
        self._has_started = False
        self._ended_count = self._fenced_count = 0

    def states(self) -> tuple[int, int, int]:
        """Return how many workers serve, how many have ended, and how many were fenced."""
        return self.followers.serving, self._ended_count, self._fenced_count

    async def start(self) -> None:
        """Start the workers, and return when all of them serve; raise `WorkerStartError` or OSError."""
        await self._listener.open()
        for index in range(1, self.settings.size + 1):
            self._start_worker(index)
            self._keep(supervised("worker-restart", partial(self._restart, index)))
        self._keep(supervised("worker-watch", self._watch))
        serving = [worker.serving for worker in self.workers.values()]
        all_serve = asyncio.ensure_future(asyncio.wait(serving))
        try:
            await asyncio.wait((all_serve, self._failure), return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
        finally:
            all_serve.cancel()
        self._has_started = True
        LOG.info("the workers serve", count=len(self.workers))

    def _start_worker(self, index: int) -> None:
        if self.followers.is_stopping:
            return
        self.workers[index] = WorkerHandle(index, WorkerProcess(self.settings.command(index)))

    async def _restart(self, index: int) -> None:
        """Restart a worker whenever its process ends, until the pool stops.

        The method can run again after an exception: a worker is GONE only when all consequences of its end
        are handled, and until then the changes that wait for it are not answered.
        """
        while not self.followers.is_stopping:
            worker = self.workers[index]
            if worker.phase is not WorkerPhase.GONE:
                await asyncio.wait((worker.process.exited,))
                self._ended(worker, worker.process.exited.result())
            if not self._has_started:
                return
            await asyncio.sleep(self._delays_s.get(index, FIRST_RESTART_S))
            try:
                self._start_worker(index)
            except OSError as error:
                LOG.error("a worker cannot be started", worker=index, reason=words_of(error))
                await asyncio.sleep(LAST_RESTART_S)

    def _ended(self, worker: WorkerHandle, code: int) -> None:
        self._owner.worker_died()
        self.connections.gone(worker)
        self._owner.worker_gone(worker)
        worker.gone()
        if self.followers.is_stopping:
            return
        self._ended_count += 1
        self._fenced_count += worker.was_fenced
        LOG.error("a worker ended", worker=worker.index, pid=worker.process.pid, exit_code=code)
        if not self._has_started:
            if not self._failure.done():
                text = f"worker {worker.index} ended with {code} before it served, its last lines say why"
                self._failure.set_exception(WorkerStartError(text, code))
            return
        lived_s = self._loop.time() - worker.started_s
        former_s = 0.0 if lived_s >= STEADY_S else self._delays_s.get(worker.index, 0.0)
        self._delays_s[worker.index] = min(2 * former_s, LAST_RESTART_S) or FIRST_RESTART_S

    def _welcome(self, process_id: int, channel: Channel) -> WorkerHandle | None:
        """Return the worker of this channel, None if there is none."""
        for worker in self.workers.values():
            if worker.process.pid == process_id and worker.phase is WorkerPhase.STARTING:
                meta = self._source.store.properties
                directory_id = meta.directory_id
                channel.send(
                    Welcome(
                        worker.index,
                        meta.cluster_id,
                        meta.node_id,
                        None if directory_id is None else str(directory_id),
                        self.settings.properties,
                    )
                )
                self.followers.welcome(worker, channel, self._source.store.image)
                return worker
        return None

    def _received(self, worker: WorkerHandle, message: object) -> None:
        channel = worker.channel
        if channel is None:
            return
        match message:
            case Applied(offset):
                was_loading = worker.phase is WorkerPhase.LOADING
                worker.reached(offset)
                if was_loading:
                    channel.send(OpenListeners(self.followers.position))
            case Progress(steps):
                worker.stepped(steps)
            case Serving():
                worker.serves()
            case Submit():
                self._keep(one_shot("worker-change", self._change(worker, channel, message)))
            case Arrived() | Left() | LoginFailed():
                self._take_count(worker, channel, message)
            case WorkerStatus():
                worker.seen(message)
            case Drained():
                worker.drained(message)
            case Fenced():
                self._owner.worker_died()
                worker.became_harmless()
                # a worker that fenced itself must end, too
                worker.fence("it decides nothing any more")

    def _take_count(self, worker: WorkerHandle, channel: Channel, message: object) -> None:
        match message:
            case Arrived(number, host):
                refusal = self.connections.arrived(worker, number, host)
                if refusal is not None:
                    channel.send(CloseConnection(number, refusal))
            case Left(number):
                self.connections.left(worker, number)
            case LoginFailed(host):
                self._owner.login_failed(host)
                self.followers.broadcast_failed_login(host, worker)

    def _lost(self, worker: WorkerHandle, reason: str) -> None:
        if not self.followers.is_stopping:
            worker.fence(f"its channel ended: {reason}")

    async def _change(self, worker: WorkerHandle, channel: Channel, message: Submit) -> None:
        """Make a worker's change, and send the worker the answer when the change is in force everywhere."""
        number = message.id
        under_way = self._changes.get(worker.index, 0)
        if under_way >= CHANGES_MAX:
            LOG.error("the metadata was not changed", reason="too many changes of a worker wait")
            channel.send(failure_of(number, KafkaApiError(ErrorCode.unknown_server_error)))
            return
        self._changes[worker.index] = under_way + 1
        try:
            request = await self._large.run(lambda _: request_of(message), len(message.payload) // ITEM_BYTES)
            done = await self._source.submit(request)
            if TABLE[request.api_key].revokes:
                await self.followers.drain(but=worker)
                await self._owner.drain()
            answer = await self._large.run(lambda _: answer_of(number, request, done), items_of(done.answer))
            channel.send(answer)
        except KafkaApiError as error:
            channel.send(failure_of(number, error))
        except Exception as error:
            # At this boundary, a bug of the gateway must not leave a worker waiting forever. An answer that
            # is longer than a frame ends here as well.
            LOG.exception("a change failed", reason=type(error).__name__)
            channel.send(failure_of(number, KafkaApiError(ErrorCode.unknown_server_error)))
        finally:
            self._changes[worker.index] -= 1

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if any(map(self._starts_late, self.workers.values())):
                # this process may have been delayed: it first reads the messages that arrived meanwhile
                await asyncio.sleep(READ_UP_S)
                for worker in filter(self._starts_late, self.workers.values()):
                    worker.fence("it does not start")
            queried = {worker for worker in self.workers.values() if worker.phase in WAITED_FOR}
            queried_s = self._loop.time()
            for worker, seen in await self.followers.looks(wants_metrics=False):
                silent = seen is None and worker.progressed_s < queried_s
                if silent and worker in queried and worker.phase in WAITED_FOR and self._is_spare(worker):
                    worker.fence("it does not answer")

    def _starts_late(self, worker: WorkerHandle) -> bool:
        return worker.phase in STARTS and self._loop.time() - worker.progressed_s > START_TIMEOUT_S

    def _is_spare(self, worker: WorkerHandle) -> bool:
        return is_spare(worker, self.workers.values())

    async def stop(self) -> None:
        """Stop all workers cleanly, and kill any that do not stop in time; further calls have no effect."""
        self.followers.is_stopping = True
        living = [each for each in self.workers.values() if not each.process.exited.done()]
        for worker in living:
            if worker.channel is None:
                worker.process.kill()
            else:
                worker.channel.send(Stop())
        if living:
            exits = [worker.process.exited for worker in living]
            timeout_s = self.settings.limits.drain_timeout_ms / 1000 + STOP_TIMEOUT_S
            _, late = await asyncio.wait(exits, timeout=timeout_s)
            for worker in living:
                if worker.process.exited in late:
                    LOG.error("a worker does not end and is killed", worker=worker.index)
                    worker.process.kill()
            await asyncio.wait(exits)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in living:
            if worker.phase is not WorkerPhase.GONE:
                self._ended(worker, worker.process.exited.result())
        await self.followers.close()
        self._listener.close()

    def hurry(self) -> None:
        """Make stopping workers wait for no more answers to clients."""
        for worker in self.workers.values():
            if worker.channel is not None:
                worker.channel.send(Stop())

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
