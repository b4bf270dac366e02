"""The writer's side of all workers: hires them, tells them the log, and knows when a change is in force.

The rule that everything here serves: a change is answered when every worker that serves clients decides
by it, or decides nothing any more. A worker that does not say so in time is fenced, and the answer waits
until that is certain.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from kustos.gateway.workers.changes import record_values
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.counting import ConnectionCount
from kustos.gateway.workers.doorstep import Doorstep
from kustos.gateway.workers.errors import ChannelError, WorkerStartError
from kustos.gateway.workers.member import WAITED_FOR, Member, Phase, late_of
from kustos.gateway.workers.messages import (
    OF_THE_WRITER,
    Answer,
    Applied,
    Arrived,
    Change,
    Delta,
    Failed,
    FailureKind,
    Fenced,
    Left,
    Levels,
    Loaded,
    Records,
    Reload,
    Seen,
    Serve,
    Serving,
    Stop,
    TurnAway,
    Welcome,
    encode,
)
from kustos.gateway.workers.process import WorkerProcess
from kustos.gateway.writer import WriterBusyError, WriterClosedError
from kustos.metadata.errors import MetadataError
from kustos.metadata.image import MetadataDelta, MetadataImage
from kustos.metadata.records import encode_record
from kustos.metadata.requests import StoreRequest
from kustos.metadata.store import MetadataStore
from kustos.wire.record_batch import encoded_batch_of

LOG: Final = structlog.get_logger("kustos.gateway")

LOOK_EVERY_S: Final = 1.0
"""How often each worker is asked how it is, so that one that hangs is found without a change, too."""

CHUNK_MAX_BYTES: Final = 256 * 1024
CHUNK_MAX_RECORDS: Final = 1024
"""Records of the image that are sent at once: some milliseconds of work at either end, and as many as a
snapshot of Kafka's has in a batch, which are read in bulk."""

CHANGES_MAX: Final = 10_000
"""Changes of one worker under way; as many as may wait for the log."""

FIRST_RESTART_S: Final = 0.1
LAST_RESTART_S: Final = 10.0
"""How long a worker that ended is left ended; doubles from the first to the last."""

STEADY_S: Final = 60.0
"""A worker that lived so long is started again at once, as the first time."""

STOP_TIMEOUT_S: Final = 15.0
"""How long the workers may take to end in good order, audit log and all, before they are killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrewSettings:
    """What the crew needs to know. `command` makes the command line of a worker."""

    size: int
    directory: Path
    apply_timeout_ms: int
    max_connections: int
    max_connections_per_ip: int
    properties: Mapping[str, str] = field(repr=False)
    command: Callable[[int], Sequence[str]]


class Crew:
    """All workers of a node; a `MetadataPublisher`. Made inside the event loop."""

    def __init__(self, settings: CrewSettings, store: MetadataStore) -> None:
        self.settings: Final = settings
        self.members: Final[dict[int, Member]] = {}
        self.on_gone: Callable[[Member], object] = lambda _: None
        self._store: Final = store
        self._loop: Final = asyncio.get_running_loop()
        self._submit: Callable[[StoreRequest], Awaitable[tuple[Any, ...]]] | None = None
        self._connections: Final = ConnectionCount(settings.max_connections, settings.max_connections_per_ip)
        self._doorstep: Final = Doorstep(settings.directory, self._welcome, self._received, self._lost)
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
        """Whether as many workers serve as there should be."""
        return self.states()[0] == self.settings.size

    def states(self) -> tuple[int, int, int]:
        """Return how many workers serve, how many ended so far, and how many were fenced."""
        serving = sum(member.phase is Phase.SERVING for member in self.members.values())
        return serving, self._ended_count, self._fenced_count

    async def start(self, submit: Callable[[StoreRequest], Awaitable[tuple[Any, ...]]]) -> None:
        """Start the workers, and return when all of them serve; `submit` makes their changes.

        Raise `WorkerStartError` or OSError.
        """
        self._submit = submit
        await self._doorstep.open()
        for index in range(1, self.settings.size + 1):
            self._hire(index)
        serving = [member.serving for member in self.members.values()]
        all_serve = asyncio.ensure_future(asyncio.wait(serving))
        try:
            await asyncio.wait((all_serve, self._failure), return_when=asyncio.FIRST_COMPLETED)
            if not all_serve.done():
                self._failure.result()
        finally:
            all_serve.cancel()
        self._has_started = True
        self._spawn(self._watch())
        LOG.info("the workers serve", count=len(self.members))

    def _hire(self, index: int) -> None:
        if self._stopping:
            return
        try:
            member = Member(index, WorkerProcess(self.settings.command(index)))
        except OSError as error:
            if not self._has_started:
                raise
            LOG.error("a worker cannot be started", worker=index, reason=str(error))
            self._loop.call_later(LAST_RESTART_S, self._hire, index)
            return
        self.members[index] = member
        member.process.exited.add_done_callback(lambda exited: self._ended(member, exited.result()))

    def _ended(self, member: Member, code: int) -> None:
        member.gone()
        self._connections.gone(member)
        self.on_gone(member)
        if self._stopping:
            return
        self._ended_count += 1
        self._fenced_count += member.was_fenced
        LOG.error("a worker ended", worker=member.index, pid=member.process.pid, exit_code=code)
        if not self._has_started:
            if not self._failure.done():
                text = f"worker {member.index} ended with {code} before it served, its last lines say why"
                self._failure.set_exception(WorkerStartError(text, code))
            return
        lived_s = self._loop.time() - member.started_s
        delay_s = (
            FIRST_RESTART_S if lived_s >= STEADY_S else self._delays_s.get(member.index, FIRST_RESTART_S)
        )
        self._delays_s[member.index] = min(2 * delay_s, LAST_RESTART_S)
        self._loop.call_later(delay_s, self._hire, member.index)

    def _welcome(self, process_id: int, channel: Channel) -> Member | None:
        """Return whose channel this is, None if it is nobody's."""
        for member in self.members.values():
            if member.process.pid == process_id and member.phase is Phase.STARTING:
                image = self._store.image
                member.joined(channel, image.offset)
                for frame in self._standing.values():
                    member.send_in_turn(frame)
                self._spawn(self._bring(member, channel, image))
                return member
        return None

    async def _bring(self, member: Member, channel: Channel, image: MetadataImage) -> None:
        """Send a new worker its settings and the image, then what came meanwhile."""
        of = self._store.properties
        properties = self.settings.properties
        channel.send(Welcome(member.index, of.cluster_id, of.node_id, of.directory_id, properties))
        chunks = record_chunks(image)
        while (batch := await asyncio.to_thread(next, chunks, None)) is not None:
            channel.send(Records(batch))
            await channel.room()
        channel.send(Loaded(image.offset, image.epoch))
        member.loaded()

    def _received(self, member: Member, message: object) -> None:
        channel = member.channel
        if channel is None:
            return
        match message:
            case Applied(offset):
                was_loading = member.phase is Phase.LOADING
                member.reached(offset)
                if was_loading:
                    channel.send(Serve())
            case Serving():
                member.serves()
            case Change(number, request):
                self._spawn(self._change(member, channel, number, request))
            case Arrived(number, host):
                refusal = self._connections.arrived(member, number, host)
                if refusal is not None:
                    channel.send(TurnAway(number, refusal))
            case Left(number):
                self._connections.left(member, number)
            case Seen():
                member.seen(message)
            case Fenced():
                member.made_harmless()
                # also one that says so by itself has to end
                member.fence("it decides nothing any more")

    def _lost(self, member: Member, reason: str) -> None:
        if not self._stopping:
            member.fence(f"its channel ended: {reason}")

    async def _change(self, member: Member, channel: Channel, number: int, request: StoreRequest) -> None:
        """Make a worker's change and tell it the results, or why there are none."""
        under_way = self._changes.get(member.index, 0)
        self._changes[member.index] = under_way + 1
        try:
            if self._submit is None or under_way >= CHANGES_MAX:
                channel.send(Failed(number, FailureKind.BUSY, "too many changes of the metadata wait"))
            else:
                channel.send(Answer(number, await self._submit(request)))
        except WriterBusyError as error:
            channel.send(Failed(number, FailureKind.BUSY, str(error)))
        except WriterClosedError as error:
            channel.send(Failed(number, FailureKind.CLOSED, str(error)))
        except (MetadataError, ChannelError) as error:
            channel.send(Failed(number, FailureKind.METADATA, str(error)))
        except Exception as error:
            # the boundary where a bug of ours must not leave somebody waiting for ever
            LOG.exception("a change failed")
            channel.send(Failed(number, FailureKind.METADATA, f"it failed ({type(error).__name__})"))
        finally:
            self._changes[member.index] -= 1

    def publish_snapshot(self, image: MetadataImage) -> None:
        """Nothing is to be done: each worker gets the image when it comes."""

    def publish_delta(self, delta: MetadataDelta) -> None:
        """Send every worker a batch of the log; called on the writer's thread."""
        message = Delta(delta.last_offset, delta.epoch, record_values(delta.changes))
        frame = encode(OF_THE_WRITER, message)
        self._loop.call_soon_threadsafe(self._send_delta, delta.last_offset, frame)

    def _send_delta(self, offset: int, frame: bytes) -> None:
        for member in self.members.values():
            member.take_delta(offset, frame)

    async def in_force(self, offset: int) -> None:
        """Return when every worker that serves decides by the log up to this offset, or is harmless."""
        owed: dict[asyncio.Future[None], Member] = {}
        for member in self.members.values():
            future = member.in_force(offset)
            if future is not None:
                owed[future] = member
        if not owed:
            return
        late = await late_of(owed, self.settings.apply_timeout_ms / 1000)
        for future in late:
            owed[future].fence(f"it has not applied offset {offset} in time")
        if late:
            # however long it takes: an answer now would promise what is not so
            await asyncio.wait(late)

    async def looks(self, *, wants_metrics: bool) -> list[tuple[Member, Seen | None]]:
        """Return how each worker is; None for one that does not serve or does not say."""
        members = list(self.members.values())
        timeout_s = self.settings.apply_timeout_ms / 1000
        seen = await asyncio.gather(
            *(each.look(wants_metrics=wants_metrics, timeout_s=timeout_s) for each in members)
        )
        return list(zip(members, seen, strict=True))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            asked = {member for member in self.members.values() if member.phase in WAITED_FOR}
            for member, seen in await self.looks(wants_metrics=False):
                if seen is None and member in asked and member.phase in WAITED_FOR:
                    member.fence("it does not answer")

    def tell(self, message: Reload | Levels) -> None:
        """Let every worker take this over, also those that come later."""
        frame = self._standing[type(message)] = encode(OF_THE_WRITER, message)
        for member in self.members.values():
            member.send_in_turn(frame)

    async def stop(self) -> None:
        """End all workers in good order, those that do not end in time by force; twice is harmless."""
        self._stopping = True
        living = [each for each in self.members.values() if not each.process.exited.done()]
        for member in living:
            if member.channel is None:
                member.process.kill()
            else:
                member.channel.send(Stop())
        if living:
            exits = [member.process.exited for member in living]
            _, late = await asyncio.wait(exits, timeout=STOP_TIMEOUT_S)
            for member in living:
                if member.process.exited in late:
                    LOG.error("a worker does not end and is killed", worker=member.index)
                    member.process.kill()
            await asyncio.wait(exits)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._doorstep.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a task of the crew failed", reason=f"{type(error).__name__}: {error}", exc_info=error)


def record_chunks(image: MetadataImage) -> Iterator[bytes]:
    """Yield the records of an image, some at a time, as record batches."""
    values: list[bytes] = []
    size = 0
    for each in image.records():
        value = encode_record(each)
        if values and (len(values) == CHUNK_MAX_RECORDS or size + len(value) > CHUNK_MAX_BYTES):
            yield encoded_batch_of(0, image.epoch, 0, values)
            values, size = [], 0
        values.append(value)
        size += len(value)
    if values:
        yield encoded_batch_of(0, image.epoch, 0, values)
