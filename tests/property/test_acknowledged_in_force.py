"""Decision 12 as one theorem: a serving process decides by every acknowledged change.

The theorem is about a source of metadata and the process that follows it: at each moment, a process that
serves decides by the log up to the last acknowledged change at least. It has three instances: a process with
its own log, a worker whose writer has the log, and a worker whose writer follows a quorum.

The real pool and the real workers run in one event loop, without sockets, processes or threads. Each step
that takes time in a node is held until a schedule takes it: a message in either direction, work on another
thread, and each stage of a worker's start. Hypothesis draws the schedule.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import (
    AuthorizableRequestContext,
    AuthorizerServerInfo,
    ClusterResource,
    Endpoint,
    StandardAuthorizerPlugin,
)
from kustos.gateway.listener.plans import GatewayLimits
from kustos.gateway.store import AuthorizerPublisher, DecidedOffset, LocalLog, MetadataWriter
from kustos.gateway.store import publisher as publisher_module
from kustos.gateway.workers import (
    Welcome,
    WorkerFollowers,
    WorkerPool,
    WorkerPoolSettings,
    WorkerStore,
    WriterLink,
)
from kustos.gateway.workers import handle as handle_module
from kustos.gateway.workers import link as link_module
from kustos.gateway.workers import listener as listener_module
from kustos.gateway.workers import pool as pool_module
from kustos.gateway.workers.channel import Channel
from kustos.metadata.control import TokenRules
from kustos.metadata.directory import format_directory
from kustos.metadata.image import ImageBuilder, MetadataDelta, MetadataImage, acl_record, image_of
from kustos.metadata.log import MetaProperties
from kustos.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord, encode_record
from kustos.metadata.store import MetadataStore
from kustos.wire import encoded_batch_of
from testkit.protocol.random_requests import allow

WORKERS: Final = 2
PROPERTIES: Final = MetaProperties("cluster", 1)
LARGE_BYTES: Final = 100
"""Only the removal of one ACL has fewer bytes; another thread applies all other batches."""

FAULTS_PERCENT: Final = 4
"""How many of a hundred steps kill a worker or end its channel."""

TURNS_MAX: Final = 200
"""Turns of the event loop within which everything that does not wait for the schedule is done."""

CLIENTS: Final = Endpoint("CLIENTS", "PLAINTEXT", "127.0.0.1", 9092)
SERVER: Final = AuthorizerServerInfo(
    cluster_resource=ClusterResource("cluster"),
    broker_id=1,
    endpoints=(CLIENTS,),
    inter_broker_endpoint=CLIENTS,
)

NOBODY: Final = KafkaPrincipal("User", "nobody")

Step = Callable[[], object]


class Held:
    """Steps that wait until the schedule takes them, in any order."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def step(self) -> None:
        """Wait to be taken."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def steps(self) -> list[Step]:
        """Return the functions that take the steps."""
        self._waiting = [each for each in self._waiting if not each.done()]
        return [lambda each=each: each.set_result(None) for each in self._waiting]  # type: ignore[misc]

    async def to_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Stand in for `asyncio.to_thread`."""
        await self.step()
        return work(*arguments)


class Wire(asyncio.Transport):
    """One end of a socket pair whose bytes arrive at a step of the schedule."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.pid = pid
        self.peer: Channel | None = None
        self._sent = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._sent += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Keep reading: the limit is not relevant here."""

    def resume_reading(self) -> None:
        """Go on."""

    def abort(self) -> None:
        peer, self.peer = self.peer, None
        if peer is not None:
            asyncio.get_running_loop().call_soon(peer.connection_lost, None)

    def steps(self) -> list[Step]:
        return [self._deliver_one, self._deliver_all] if self._sent and self.peer is not None else []

    def _deliver_one(self) -> None:
        self._deliver(4 + int.from_bytes(self._sent[:4], "big"))

    def _deliver_all(self) -> None:
        self._deliver(len(self._sent))

    def _deliver(self, size: int) -> None:
        data = bytes(self._sent[:size])
        del self._sent[:size]
        assert self.peer is not None
        self.peer.data_received(data)


class Process:
    """A worker process, which exits when it is killed."""

    _pids: Final = count(1000)

    def __init__(self, world: "World") -> None:
        self.pid = next(self._pids)
        self.exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        world.workers.append(Worker(world, self))

    def kill(self) -> None:
        if not self.exited.done():
            self.exited.set_result(-9)


class Worker:
    """The parts of a worker process, joined as in `kustos.server.workers.process`."""

    def __init__(self, world: "World", process: Process) -> None:
        loop = asyncio.get_running_loop()
        self.process: Final = process
        self.held: Final = world.held
        self.is_open = self.denies = False
        self.link: Final = WriterLink(os.getpid(), self)
        self.plugin: Final = StandardAuthorizerPlugin(loop.create_future)
        decided = DecidedOffset(self.link.follow)
        self.publisher: Final = AuthorizerPublisher(self.plugin, loop, decided)
        self.wires: list[Wire] = []
        self._task: Final = loop.create_task(self._run(world))
        world.tasks.append(self._task)

    def welcomed(self, _: Welcome) -> WorkerStore:
        return WorkerStore(PROPERTIES, TokenRules())

    def deny(self) -> None:
        self.denies = True

    def applied(self) -> int:
        return self.publisher.offset

    async def drain(self) -> None:
        """Do nothing: no request is in flight."""

    def status(self, *, wants_metrics: bool) -> tuple[Mapping[str, bool], bytes]:
        return {}, b""

    def reload(self, properties: Mapping[str, str]) -> None:
        """Keep the settings."""

    def take_levels(self, levels: Mapping[str, str]) -> None:
        """Keep the levels."""

    def close_connection(self, number: int, reason: str) -> None:
        """Do nothing: there are no clients."""

    def login_failed(self, host: str) -> None:
        """Do nothing: there are no logins."""

    def current(self, as_of_ms: int) -> None:
        """Check that everything committed by this time, here an offset, was taken."""
        assert self.link.store.last_offset >= as_of_ms

    def quorum_lost(self) -> None:
        """Do nothing: there is no quorum."""

    @property
    def serves(self) -> bool:
        """Whether a client can get a decision now."""
        return self.is_open and not self.denies and not self.process.exited.done()

    async def _run(self, world: "World") -> None:
        await self.held.step()
        if self.process.exited.done():
            return
        mine, writers = self.link._channel, world.listener._incoming()
        to_writer, to_worker = Wire(self.process.pid), Wire(self.process.pid)
        to_writer.peer, to_worker.peer = writers, mine
        self.wires = [to_writer, to_worker]
        mine.connection_made(to_writer)
        writers.connection_made(to_worker)
        await self.link.loaded
        await self.held.step()
        self.plugin.configure({})
        [ready] = self.plugin.start(SERVER).values()
        self.link.store.add_publisher(self.publisher)
        await ready
        await self.held.step()
        self.link.store.complete()
        self.link.begin_reporting()
        await self.link.serve
        self.is_open = True
        self.link.report_serving()

    def steps(self) -> list[Step]:
        if self.process.exited.done():
            return []
        return [step for wire in self.wires for step in wire.steps()]


class World:
    """The writer process and its workers."""

    def __init__(self, directory: Path, held: Held) -> None:
        self.held: Final = held
        self.workers: Final[list[Worker]] = []
        self.tasks: Final[list[asyncio.Task[Any]]] = []
        self.image = MetadataImage(offset=0, epoch=1)
        self.properties: Final = PROPERTIES
        self.store: Final = self
        self.acknowledged = 0
        """The offset of the last change that was answered."""
        self.made = 0
        pool_settings = WorkerPoolSettings(
            size=WORKERS,
            directory=directory,
            limits=GatewayLimits(max_connections=10, max_connections_per_ip=10, drain_timeout_ms=0),
            properties={},
            command=lambda _: [],
        )
        self.followers: Final = WorkerFollowers(WORKERS, 600_000)
        self.followers.publish_snapshot(self.image)
        self.pool: Final = WorkerPool(pool_settings, cast("Any", self), self.followers, self)
        self.listener: Final = self.pool._listener
        self.started: Final = asyncio.ensure_future(self.pool.start())

    def worker_died(self) -> None:
        """Do nothing: there is no broker."""

    def worker_gone(self, worker: object) -> None:
        """Do nothing: there are no counters."""

    def login_failed(self, host: str) -> None:
        """Do nothing: there are no logins."""

    async def drain(self) -> None:
        """Nothing is in flight."""

    def change(self) -> None:
        """Create or delete ACLs: append, publish, and answer once they are in force."""
        self.made += 1
        records: list[MetadataRecord] = [RemoveAccessControlEntryRecord(each) for each in self.image.acls]
        if not records:
            records = [
                acl_record(
                    UUID(int=100 * self.made + number),
                    allow(ResourceType.TOPIC, f"topic-{number}", AclOperation.READ),
                )
                for number in range(1 + self.made % 3)
            ]
        builder = ImageBuilder(self.image)
        changes = builder.replay_all(records)
        base_offset, offset = self.image.offset + 1, self.image.offset + len(records)
        self.image = builder.build(offset, 1)
        batch = encoded_batch_of(base_offset, 1, 0, [encode_record(each) for each in records])
        self.followers.publish_delta(MetadataDelta(offset, 1, changes, (batch,)))
        self.tasks.append(asyncio.get_running_loop().create_task(self._answer(offset)))

    async def _answer(self, offset: int) -> None:
        # as in `MetadataWriter.submit` after the log
        await self.followers.in_force(offset)
        self.acknowledged = max(self.acknowledged, offset)

    def replace(self) -> None:
        """Replace the whole state, as a quorum does whose log begins after ours ends."""
        self.made += 1
        acl = acl_record(UUID(int=100 * self.made), allow(ResourceType.TOPIC, "replaced", AclOperation.READ))
        self.image = image_of([acl], self.image.offset + 1, 1)
        self.followers.publish_snapshot(self.image)
        self.tasks.append(asyncio.get_running_loop().create_task(self._answer(self.image.offset)))

    def current(self) -> None:
        """Tell the workers that their metadata is current; the offset replaces the time."""
        self.followers.current(self.followers.position)

    def kill(self) -> None:
        """Kill the oldest worker that lives; the pool starts another one."""
        self._oldest().process.kill()

    def cut(self) -> None:
        """End the channel of the oldest worker that lives; the pool fences it."""
        for wire in self._oldest().wires:
            wire.abort()

    def _oldest(self) -> Worker:
        return next(each for each in self.workers if not each.process.exited.done())

    def steps(self) -> list[Step]:
        """Return the possible next steps, except changes and kills."""
        return [*self.held.steps(), *(step for worker in self.workers for step in worker.steps())]

    async def turn(self) -> None:
        """Let the event loop take a turn, and check that no worker serves by an older log."""
        await asyncio.sleep(0)
        for worker in self.workers:
            assert not worker.serves or worker.publisher.offset >= self.acknowledged

    async def finish(self) -> None:
        """Take every remaining step; all workers then serve, and every change is answered."""
        for _ in range(TURNS_MAX):
            for step in self.steps():
                step()
            await self.turn()
            if self.started.done() and self.followers.is_complete and self.acknowledged == self.image.offset:
                return
        raise AssertionError("something waits for ever")

    async def close(self) -> None:
        """End everything that runs."""
        self.followers.is_stopping = True
        running = (*self.tasks, *self.pool._tasks, *self.followers._tasks, self.started)
        for task in running:
            task.cancel()
        for worker in self.workers:
            worker.link.disconnect()
            worker.process.kill()
        await asyncio.gather(*running, return_exceptions=True)
        while self.held.steps():
            for step in self.held.steps():
                step()
            await asyncio.sleep(0)


async def _no_socket(_: object) -> None:
    """Stand in for `WorkerListener.open`."""


@contextmanager
def held_up(loads_on_thread: bool) -> Iterator[Held]:
    """Replace processes, sockets and threads by steps of the schedule."""
    held = Held()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "to_thread", held.to_thread)
        patch.setattr(listener_module.WorkerListener, "open", _no_socket)
        patch.setattr(listener_module, "peer_of", lambda wire: (wire.pid, os.getuid()))
        patch.setattr(link_module, "LARGE_BATCH_BYTES", LARGE_BYTES)
        # reports by the clock would be steps that the schedule does not repeat
        patch.setattr(link_module, "PROGRESS_EVERY_S", 3_600.0)
        if loads_on_thread:
            patch.setattr(publisher_module, "LOADED_AT_ONCE_MAX", 0)
        patch.setattr(handle_module, "FENCE_GRACE_S", 0.0)
        patch.setattr(handle_module, "EXIT_GRACE_S", 0.0)
        patch.setattr(pool_module, "FIRST_RESTART_S", 0.0)
        patch.setattr(pool_module, "LAST_RESTART_S", 0.0)
        yield held


async def run(directory: Path, held: Held, data: st.DataObject, follows_quorum: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        worlds: list[World] = []
        patch.setattr(pool_module, "WorkerProcess", lambda _: Process(worlds[0]))
        worlds.append(world := World(directory, held))
        try:
            for choice in data.draw(st.lists(st.integers(0, 99), max_size=150)):
                possible = [world.change, *world.steps()]
                if follows_quorum:
                    possible = [world.replace, world.current, *possible]
                if choice < FAULTS_PERCENT and world.started.done():
                    possible = [world.kill, world.cut]
                possible[choice % len(possible)]()
                for _ in range(choice % 5):
                    await world.turn()
            await world.finish()
        finally:
            await world.close()


@given(data=st.data(), loads_on_thread=st.booleans(), follows_quorum=st.booleans())
@settings(max_examples=400)
def test_an_acknowledged_change_is_in_force_on_every_worker_that_serves(
    data: st.DataObject, loads_on_thread: bool, follows_quorum: bool
) -> None:
    with held_up(loads_on_thread) as held:
        asyncio.run(run(Path("/nonexistent"), held, data, follows_quorum))


async def run_local(directory: Path, sizes: list[int]) -> None:
    loop = asyncio.get_running_loop()
    format_directory(directory)
    source = LocalLog(MetadataWriter(MetadataStore.open(directory)))
    plugin = StandardAuthorizerPlugin(loop.create_future)
    plugin.configure({})
    [ready] = plugin.start(SERVER).values()
    publisher = AuthorizerPublisher(plugin, loop)
    source.store.add_publisher(publisher)
    await ready

    async def change(number: int, size: int) -> None:
        bindings = [
            allow(ResourceType.TOPIC, f"topic-{number}-{each}", AclOperation.READ) for each in range(size)
        ]
        results = await source.mutator.create_acls(AuthorizableRequestContext(NOBODY, "127.0.0.1"), bindings)
        assert all(publisher.offset >= (each.change_offset or 0) + size - 1 for each in results)

    await asyncio.gather(*(change(number, size) for number, size in enumerate(sizes)))
    assert publisher.offset == source.store.last_offset
    await source.close()


@given(sizes=st.lists(st.sampled_from([1, 3, 600]), min_size=1, max_size=6), loads_on_thread=st.booleans())
@settings(max_examples=15)
def test_an_acknowledged_change_is_in_force_where_the_log_is(sizes: list[int], loads_on_thread: bool) -> None:
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        if loads_on_thread:
            patch.setattr(publisher_module, "LOADED_AT_ONCE_MAX", 0)
        asyncio.run(run_local(Path(directory) / "log", sizes))
