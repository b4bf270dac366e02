"""Theorem about the worker pool: an acknowledged change is in force on every worker that serves.

The real pool and the real workers run in one event loop, without sockets, processes or threads. Each step
that takes time in a node is held until a schedule takes it: a message in either direction, work on another
thread, and each stage of a worker's start. Hypothesis draws the schedule.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclOperation, ResourceType
from kustos.authorizer import AuthorizerServerInfo, ClusterResource, Endpoint, StandardAuthorizerPlugin
from kustos.gateway.listener.plans import GatewayLimits
from kustos.gateway.store import AuthorizerPublisher
from kustos.gateway.store import publisher as publisher_module
from kustos.gateway.workers import Service, Welcome, WorkerPool, WorkerPoolSettings, WorkerStore
from kustos.gateway.workers import handle as handle_module
from kustos.gateway.workers import listener as listener_module
from kustos.gateway.workers import messages as messages_module
from kustos.gateway.workers import pool as pool_module
from kustos.gateway.workers import service as service_module
from kustos.gateway.workers.channel import Channel
from kustos.metadata.control import TokenRules
from kustos.metadata.image import ImageBuilder, MetadataDelta, MetadataImage, acl_record
from kustos.metadata.log import MetaProperties
from kustos.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord
from testkit.protocol.random_requests import allow

WORKERS: Final = 2
PROPERTIES: Final = MetaProperties("cluster", 1)
LARGE_BYTES: Final = 60
"""Only the removal of one ACL has fewer bytes; another thread parses and prepares all other deltas."""

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

Step = Callable[[], object]


class Held:
    """Steps that wait until the schedule takes them, in no order."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def step(self) -> None:
        """Wait to be taken."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def steps(self) -> list[Step]:
        """Return what takes each of them."""
        self._waiting = [each for each in self._waiting if not each.done()]
        return [lambda each=each: each.set_result(None) for each in self._waiting]  # type: ignore[misc]

    async def to_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Stand in for `asyncio.to_thread`."""
        await self.step()
        return work(*arguments)


class Wire(asyncio.Transport):
    """One end of a socket pair whose bytes arrive when the schedule says so."""

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
        """Let the bytes come nevertheless: the limit is not of interest here."""

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
    """What runs in a worker process, joined as in `kustos.server.workers.process`."""

    def __init__(self, world: "World", process: Process) -> None:
        loop = asyncio.get_running_loop()
        self.process: Final = process
        self.held: Final = world.held
        self.is_open = self.denies = False
        self.service: Final = Service(os.getpid(), self._store_of)
        self.service.on_deny = self._deny
        self.plugin: Final = StandardAuthorizerPlugin(loop.create_future)
        self.publisher: Final = AuthorizerPublisher(self.plugin, loop)
        self.wires: list[Wire] = []
        self._task: Final = loop.create_task(self._run(world))
        world.tasks.append(self._task)

    def _store_of(self, _: Welcome) -> WorkerStore:
        return WorkerStore(PROPERTIES, TokenRules())

    def _deny(self) -> None:
        self.denies = True

    @property
    def serves(self) -> bool:
        """Whether a client may get a decision now."""
        return self.is_open and not self.denies and not self.process.exited.done()

    async def _run(self, world: "World") -> None:
        await self.held.step()
        if self.process.exited.done():
            return
        mine, writers = self.service._channel, world.listener._incoming()
        to_writer, to_worker = Wire(self.process.pid), Wire(self.process.pid)
        to_writer.peer, to_worker.peer = writers, mine
        self.wires = [to_writer, to_worker]
        mine.connection_made(to_writer)
        writers.connection_made(to_worker)
        await self.service.loaded
        await self.held.step()
        store = self.service.store
        assert store is not None
        self.plugin.configure({})
        [ready] = self.plugin.start(SERVER).values()
        self.service.applied = lambda: self.publisher.offset
        store.add_publisher(self.publisher)
        await ready
        await self.held.step()
        self.service.begin_reporting()
        await self.service.serve
        self.is_open = True
        self.service.report_serving()

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
        self.acknowledged = 0
        """The offset of the last change that was answered."""
        self.made = 0
        pool_settings = WorkerPoolSettings(
            size=WORKERS,
            directory=directory,
            apply_timeout_ms=600_000,
            limits=GatewayLimits(max_connections=10, max_connections_per_ip=10, drain_timeout_ms=0),
            properties={},
            command=lambda _: [],
        )
        self.pool: Final = WorkerPool(pool_settings, cast("Any", self))
        self.listener: Final = self.pool._listener
        self.started: Final = asyncio.ensure_future(self.pool.start(cast("Any", None)))

    def change(self) -> None:
        """Make or remove some ACLs: append, publish, and answer when that is in force."""
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
        offset = self.image.offset + len(records)
        self.image = builder.build(offset, 1)
        self.pool.publish_delta(MetadataDelta(offset, 1, changes))
        self.tasks.append(asyncio.get_running_loop().create_task(self._answer(offset)))

    async def _answer(self, offset: int) -> None:
        # `WorkerPoolWriter.submit` after the log
        await self.pool.in_force(offset)
        self.acknowledged = max(self.acknowledged, offset)

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
        """Return what can happen next without a change or a kill."""
        return [*self.held.steps(), *(step for worker in self.workers for step in worker.steps())]

    async def turn(self) -> None:
        """Let the event loop take a turn, and check that no worker serves by an older log."""
        await asyncio.sleep(0)
        for worker in self.workers:
            assert not worker.serves or worker.publisher.offset >= self.acknowledged

    async def finish(self) -> None:
        """Take every step that is left; all workers serve then, and every change is answered."""
        for _ in range(TURNS_MAX):
            for step in self.steps():
                step()
            await self.turn()
            if self.started.done() and self.pool.is_complete and self.acknowledged == self.image.offset:
                return
        raise AssertionError("something waits for ever")

    async def close(self) -> None:
        """End what still runs."""
        self.pool._stopping = True
        for task in (*self.tasks, *self.pool._tasks, self.started):
            task.cancel()
        for worker in self.workers:
            worker.service.close()
            worker.process.kill()
        await asyncio.gather(*self.tasks, *self.pool._tasks, self.started, return_exceptions=True)
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
        patch.setattr(messages_module, "LARGE_FRAME_BYTES", LARGE_BYTES)
        patch.setattr(service_module, "LARGE_FRAME_BYTES", LARGE_BYTES)
        if loads_on_thread:
            patch.setattr(publisher_module, "LOADED_AT_ONCE_MAX", 0)
        patch.setattr(handle_module, "FENCE_GRACE_S", 0.0)
        patch.setattr(handle_module, "EXIT_GRACE_S", 0.0)
        patch.setattr(pool_module, "FIRST_RESTART_S", 0.0)
        patch.setattr(pool_module, "LAST_RESTART_S", 0.0)
        yield held


async def run(directory: Path, held: Held, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        worlds: list[World] = []
        patch.setattr(pool_module, "WorkerProcess", lambda _: Process(worlds[0]))
        worlds.append(world := World(directory, held))
        try:
            for choice in data.draw(st.lists(st.integers(0, 99), max_size=150)):
                possible = [world.change, *world.steps()]
                if choice < FAULTS_PERCENT and world.started.done():
                    possible = [world.kill, world.cut]
                possible[choice % len(possible)]()
                for _ in range(choice % 5):
                    await world.turn()
            await world.finish()
        finally:
            await world.close()


@given(data=st.data(), loads_on_thread=st.booleans())
@settings(max_examples=200)
def test_an_acknowledged_change_is_in_force_on_every_worker_that_serves(
    data: st.DataObject, loads_on_thread: bool
) -> None:
    with held_up(loads_on_thread) as held:
        asyncio.run(run(Path("/nonexistent"), held, data))
