"""The writer's side of the worker pool: starts workers, sends them the log, and knows when a change is in
force.

The rule behind everything here: a change is answered when every worker that serves clients decides by it, or
decides nothing any more. A worker that does not confirm that in time is fenced, and the answer waits until
the fence is certain.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from kustos.client import one_shot, supervised
from kustos.gateway.listener.admission import ConnectionCount
from kustos.gateway.listener.plans import GatewayLimits
from kustos.gateway.store.writer import WriterBusyError, WriterClosedError
from kustos.gateway.upstream.in_flight import RequestsInFlightError
from kustos.gateway.workers.changes import items_of_results, record_chunks, record_values
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.encoding import ChannelError, WorkerStartError
from kustos.gateway.workers.handle import (
    WAITED_FOR,
    WorkerHandle,
    WorkerPhase,
    WorkerProcess,
    all_in_force,
    is_spare,
)
from kustos.gateway.workers.listener import WorkerListener
from kustos.gateway.workers.messages import (
    FROM_WRITER,
    Applied,
    Arrived,
    ChangeRequest,
    ChangeResults,
    Delta,
    Drained,
    Failed,
    FailureKind,
    Fenced,
    Left,
    Levels,
    Loaded,
    LoginFailed,
    OpenListeners,
    Progress,
    Records,
    Reload,
    Serving,
    Stop,
    TurnAway,
    Welcome,
    WorkerStatus,
    encode,
)
from kustos.metadata import MetadataError
from kustos.metadata.image import MetadataDelta, MetadataImage
from kustos.metadata.store import MetadataStore, StoreRequest
from kustos.runtime import words_of

LOG: Final = structlog.get_logger("kustos.gateway")

LOOK_EVERY_S: Final = 1.0
"""How often each worker is queried for its state, so that a hanging one is found even without a change."""

CHANGES_MAX: Final = 10_000
"""Changes of one worker in flight; as many as may wait for the log."""

FIRST_RESTART_S: Final = 0.1
LAST_RESTART_S: Final = 10.0
"""How long to wait before a worker is restarted; doubles from the first to the last."""

STEADY_S: Final = 60.0
"""A worker that lived this long is restarted without delay."""

STOP_TIMEOUT_S: Final = 15.0
"""How long the workers may take to stop cleanly, with their audit log, before they are killed; the time in
which clients get their answers comes before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPoolSettings:
    """The settings of the pool. `command` makes the command line of a worker."""

    size: int
    directory: Path
    apply_timeout_ms: int
    limits: GatewayLimits
    properties: Mapping[str, str] = field(repr=False)
    command: Callable[[int], Sequence[str]]


class WorkerPool:
    """All workers of a node; a `MetadataPublisher`. Made inside the event loop."""

    def __init__(self, settings: WorkerPoolSettings, store: MetadataStore) -> None:
        self.settings: Final = settings
        self.workers: Final[dict[int, WorkerHandle]] = {}
        self.on_gone: Callable[[WorkerHandle], object] = lambda _: None
        self.on_died: Callable[[], object] = lambda: None
        self.on_login_failed: Callable[[str], object] = lambda _: None
        """Called when a worker ended that may have had requests in flight, before anything else happens."""
        self._store: Final = store
        self._loop: Final = asyncio.get_running_loop()
        self._submit: Callable[[StoreRequest], Awaitable[tuple[Any, ...]]] | None = None
        self.connections: Final = ConnectionCount(
            settings.limits.max_connections, settings.limits.max_connections_per_ip
        )
        self._listener: Final = WorkerListener(settings.directory, self._welcome, self._received, self._lost)
        self._tasks: Final[set[asyncio.Task[Any]]] = set()
        self._changes: Final[dict[int, int]] = {}
        self._delays_s: Final[dict[int, float]] = {}
        self._standing: Final[dict[type[Reload | Levels], bytes]] = {}
        self._failure: Final[asyncio.Future[None]] = self._loop.create_future()
        self._has_started = False
        self._stopping = False
        self._ended_count = self._fenced_count = 0

    @property
    def is_complete(self) -> bool:
        """Whether all workers serve, and go on to."""
        return not self._stopping and self.states()[0] == self.settings.size

    def states(self) -> tuple[int, int, int]:
        """Return how many workers serve, how many ended so far, and how many were fenced."""
        serving = sum(worker.phase is WorkerPhase.SERVING for worker in self.workers.values())
        return serving, self._ended_count, self._fenced_count

    async def start(self, submit: Callable[[StoreRequest], Awaitable[tuple[Any, ...]]]) -> None:
        """Start the workers, and return when all of them serve; `submit` carries out their changes.

        Raise `WorkerStartError` or OSError.
        """
        self._submit = submit
        await self._listener.open()
        for index in range(1, self.settings.size + 1):
            self._start_worker(index)
            self._keep(supervised("worker-restart", partial(self._restart, index)))
        serving = [worker.serving for worker in self.workers.values()]
        all_serve = asyncio.ensure_future(asyncio.wait(serving))
        try:
            await asyncio.wait((all_serve, self._failure), return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
        finally:
            all_serve.cancel()
        self._has_started = True
        self._keep(supervised("worker-watch", self._watch))
        LOG.info("the workers serve", count=len(self.workers))

    def _start_worker(self, index: int) -> None:
        if self._stopping:
            return
        self.workers[index] = WorkerHandle(index, WorkerProcess(self.settings.command(index)))

    async def _restart(self, index: int) -> None:
        """Start a worker again whenever its process ends, until the pool stops.

        After an exception it can run again: a worker is GONE once everything that follows from its end is
        done, and until then the changes that wait for it are not answered.
        """
        while not self._stopping:
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
        self.on_died()
        self.connections.gone(worker)
        self.on_gone(worker)
        worker.gone()
        if self._stopping:
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
                image = self._store.image
                worker.joined(channel, image.offset)
                for frame in self._standing.values():
                    worker.send_in_turn(frame)
                self._spawn(
                    "worker-image",
                    self._send_image(worker, channel, image),
                    partial(_lacks_image, worker),
                )
                return worker
        return None

    async def _send_image(self, worker: WorkerHandle, channel: Channel, image: MetadataImage) -> None:
        """Send a new worker its settings and the image, then the deltas that came meanwhile."""
        meta = self._store.properties
        settings = self.settings.properties
        channel.send(Welcome(worker.index, meta.cluster_id, meta.node_id, meta.directory_id, settings))
        chunks = record_chunks(image)
        while (batch := await asyncio.to_thread(next, chunks, None)) is not None:
            channel.send(Records(batch))
            await channel.room()
        channel.send(Loaded(image.offset, image.epoch))
        worker.loaded()

    def _received(self, worker: WorkerHandle, message: object) -> None:
        channel = worker.channel
        if channel is None:
            return
        match message:
            case Applied(offset):
                was_loading = worker.phase is WorkerPhase.LOADING
                worker.reached(offset)
                if was_loading:
                    channel.send(OpenListeners())
            case Progress(steps):
                worker.stepped(steps)
            case Serving():
                worker.serves()
            case ChangeRequest(number, request):
                self._spawn("worker-change", self._change(worker, channel, number, request))
            case Arrived() | Left() | LoginFailed():
                self._take_count(worker, channel, message)
            case WorkerStatus():
                worker.seen(message)
            case Drained():
                worker.drained(message)
            case Fenced():
                self.on_died()
                worker.became_harmless()
                # a worker that fenced itself must end, too
                worker.fence("it decides nothing any more")

    def _take_count(self, worker: WorkerHandle, channel: Channel, message: object) -> None:
        match message:
            case Arrived(number, host):
                refusal = self.connections.arrived(worker, number, host)
                if refusal is not None:
                    channel.send(TurnAway(number, refusal))
            case Left(number):
                self.connections.left(worker, number)
            case LoginFailed(host):
                self.on_login_failed(host)
                self.tell_login_failed(host, worker)

    def _lost(self, worker: WorkerHandle, reason: str) -> None:
        if not self._stopping:
            worker.fence(f"its channel ended: {reason}")

    async def _change(
        self, worker: WorkerHandle, channel: Channel, number: int, request: StoreRequest
    ) -> None:
        """Carry out a worker's change and send it the results, or the failure."""
        under_way = self._changes.get(worker.index, 0)
        self._changes[worker.index] = under_way + 1
        try:
            if self._submit is None or under_way >= CHANGES_MAX:
                channel.send(Failed(number, FailureKind.BUSY, "too many changes of the metadata wait"))
            else:
                results = await self._submit(request)
                await channel.send_large(ChangeResults(number, results), items_of_results(results))
        except WriterBusyError as error:
            channel.send(Failed(number, FailureKind.BUSY, str(error)))
        except WriterClosedError as error:
            channel.send(Failed(number, FailureKind.CLOSED, str(error)))
        except RequestsInFlightError as error:
            channel.send(Failed(number, FailureKind.IN_FLIGHT, str(error)))
        except (MetadataError, ChannelError) as error:
            channel.send(Failed(number, FailureKind.METADATA, str(error)))
        except Exception as error:
            # the boundary where a bug of ours must not leave a worker waiting for ever
            LOG.exception("a change failed")
            channel.send(Failed(number, FailureKind.METADATA, f"it failed ({type(error).__name__})"))
        finally:
            self._changes[worker.index] -= 1

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Do nothing: each worker gets the image when it connects."""

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Send every worker a batch of the log; called on the writer's thread."""
        message = Delta(delta.last_offset, delta.epoch, record_values(delta.changes))
        frame = encode(FROM_WRITER, message)
        self._loop.call_soon_threadsafe(self._send_delta, delta.last_offset, frame)

    def _send_delta(self, offset: int, frame: bytes) -> None:
        for worker in self.workers.values():
            worker.take_delta(offset, frame)

    async def in_force(self, offset: int) -> None:
        """Return when every worker that serves decides by the log up to this offset, or is harmless.

        Brokers then have none of their requests that would be denied now; raise `RequestsInFlightError` if
        that is not sure in time.
        """
        owed: dict[asyncio.Future[None], WorkerHandle] = {}
        for worker in self.workers.values():
            future = worker.in_force(offset)
            if future is not None:
                owed[future] = worker
        if owed:
            timeout_s = self.settings.apply_timeout_ms / 1000
            reason = f"it makes no progress towards offset {offset}"
            await all_in_force(owed, self.workers.values, timeout_s, reason)
        if not all(await asyncio.gather(*(worker.drain() for worker in self.workers.values()))):
            raise RequestsInFlightError

    async def looks(self, *, wants_metrics: bool) -> list[tuple[WorkerHandle, WorkerStatus | None]]:
        """Return the state of each worker; None for one that does not serve or does not reply."""
        workers = list(self.workers.values())
        timeout_s = self.settings.apply_timeout_ms / 1000
        seen = await asyncio.gather(
            *(each.look(wants_metrics=wants_metrics, timeout_s=timeout_s) for each in workers)
        )
        return list(zip(workers, seen, strict=True))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            queried = {worker for worker in self.workers.values() if worker.phase in WAITED_FOR}
            queried_s = self._loop.time()
            for worker, seen in await self.looks(wants_metrics=False):
                silent = seen is None and worker.progressed_s < queried_s
                if silent and worker in queried and worker.phase in WAITED_FOR and self._is_spare(worker):
                    worker.fence("it does not answer")

    def _is_spare(self, worker: WorkerHandle) -> bool:
        return is_spare(worker, self.workers.values())

    def broadcast(self, message: Reload | Levels) -> None:
        """Send this to every worker, including later ones."""
        frame = self._standing[type(message)] = encode(FROM_WRITER, message)
        for worker in self.workers.values():
            worker.send_in_turn(frame)

    def tell_login_failed(self, host: str, told_by: WorkerHandle | None = None) -> None:
        """Let the other workers that serve count a failed login; one that loads must not be held up."""
        frame = encode(FROM_WRITER, LoginFailed(host))
        for worker in self.workers.values():
            if worker is not told_by and worker.phase is WorkerPhase.SERVING and worker.channel is not None:
                worker.channel.send_frame(frame)

    async def stop(self) -> None:
        """Stop all workers cleanly, and kill those that do not stop in time; twice is harmless."""
        self._stopping = True
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
        self._listener.close()

    def hurry(self) -> None:
        """Let the workers that stop wait for no more answers to clients."""
        for worker in self.workers.values():
            if worker.channel is not None:
                worker.channel.send(Stop())

    def _spawn(
        self,
        name: str,
        work: Coroutine[Any, Any, None],
        on_failure: Callable[[BaseException], object] = lambda _: None,
    ) -> None:
        self._keep(one_shot(name, work, on_failure))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _lacks_image(worker: WorkerHandle, _: BaseException) -> None:
    """End a worker that would wait for the rest of its image for ever."""
    worker.fence("it did not get the metadata")
