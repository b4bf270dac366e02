"""Each background task of a node is broken once, and works again; one-shot tasks report their failure.

`test_background_tasks.py` compares `SCENARIOS` with the tasks in the code.
"""

import asyncio
import math
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizableRequestContext, SharedRules, StandardAuthorizerPlugin
from kustos.client import FAILURES, NodeAddress, Refreshed, supervised, supervision
from kustos.client import refreshed as refreshed_module
from kustos.client.oauth import JwksSettings, ProviderEndpoint, RefreshingKeys
from kustos.client.quorum import Forwarded
from kustos.gateway.apis.tokens import TokenSweeper
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.audit.ring import SIZE_BYTES, AuditRing
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.sink_writer import OnFull, SinkWriter
from kustos.gateway.listener import gateway as gateway_module
from kustos.gateway.listener.plans import ConnectionSettings, GatewayLimits
from kustos.gateway.listener.routes import BrokerRoute
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.store import publisher as publisher_module
from kustos.gateway.store import snapshots as snapshots_module
from kustos.gateway.store.local import LocalLog
from kustos.gateway.store.publisher import AuthorizerPublisher
from kustos.gateway.store.snapshots import SnapshotTaker
from kustos.gateway.store.writer import MetadataWriter
from kustos.gateway.upstream.topic_ids import TopicIds
from kustos.gateway.workers import WorkerFollowers
from kustos.gateway.workers import followers as followers_module
from kustos.gateway.workers import handle as handle_module
from kustos.gateway.workers import link as link_module
from kustos.gateway.workers import pool as pool_module
from kustos.gateway.workers.channel import Channel
from kustos.gateway.workers.handle import WorkerHandle, WorkerPhase, WorkerProcess
from kustos.gateway.workers.link import WriterLink
from kustos.gateway.workers.messages import ChangeAnswer, Drain, Drained, Progress
from kustos.gateway.workers.pool import WorkerPool, WorkerPoolSettings
from kustos.gateway.workers.requests import failure_of, submit_of
from kustos.metadata.directory.format import format_directory
from kustos.metadata.image import MetadataImage
from kustos.metadata.log import LogPolicy
from kustos.metadata.store import CreateAcls, MetadataStore
from kustos.protocol import NamedBroker
from kustos.runtime import SystemClock, SystemEntropy
from kustos.server import candidate as candidate_module
from kustos.server.candidate import CandidateSide
from kustos.server.http import HttpEndpoint
from kustos.server.lifecycle import run_node
from kustos.wire import ApiKey, request_codec
from testkit.acls.one_line import acl
from testkit.bearer_tokens import jwks, public
from testkit.gateway.audit import EVENTS, lines_of, request, willing
from testkit.gateway.gateways import Caller, running_gateway
from testkit.gateway.renewing_broker import RenewingBroker
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat
from testkit.ports import LOOPBACK
from testkit.protocol.random_requests import allow
from testkit.waiting import wait_until

PATIENCE_S = 60.0
SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


class InjectedError(Exception):
    """What the tests raise; nothing in kustos knows it."""


class Faults:
    """Breaks functions, each at its next call, and keeps what they were called with afterwards."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
        self.monkeypatch = monkeypatch
        self.directory = directory
        self.raised = 0

    def once(self, owner: Any, name: str, instead: Callable[..., Any] | None = None) -> list[tuple[Any, ...]]:
        """Break an attribute once; return the list of its later calls."""
        original = getattr(owner, name) if instead is None else instead
        calls: list[tuple[Any, ...]] = []
        is_broken = True

        def called(*arguments: Any, **named: Any) -> Any:
            nonlocal is_broken
            if is_broken:
                is_broken = False
                self.raised += 1
                raise InjectedError(name)
            calls.append(arguments)
            return original(*arguments, **named)

        self.monkeypatch.setattr(owner, name, called)
        return calls


Scenario = Callable[[Faults], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


def breaks(name: str) -> Callable[[Scenario], Scenario]:
    """Register the test of a task; it returns once the task has done its work again, or has reported."""

    def register(scenario: Scenario) -> Scenario:
        assert name not in SCENARIOS
        SCENARIOS[name] = scenario
        return scenario

    return register


async def happens(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(wait_until, condition, what="the task works again")


def writer_in(directory: Path) -> MetadataWriter:
    format_directory(directory)
    policy = LogPolicy(snapshot_record_bytes=1)
    return MetadataWriter(MetadataStore.open(directory, policy=policy))


@breaks("audit-sink")
async def _(faults: Faults) -> None:
    sink = willing()
    ring = AuditRing(SIZE_BYTES)
    progress = asyncio.Event()
    writer = SinkWriter(sink, ring, OnFull.BLOCK, 100, progress.set)
    calls = faults.once(ring, "read")
    running = supervised("audit-sink", writer.run)
    for each in (request(0, "a", "b"), request(2, "c"), request(3, "d")):
        ring.put(EVENTS.lines(each), len(each.decided))
    await happens(lambda: writer.depth == 0)
    assert progress.is_set()
    ring.put(lines_of(request(4, "e")), 1)
    writer.end()
    await running
    assert sink.names == ["a", "b", "c", "d", "e"], "each is written once"
    assert ring.is_empty
    assert writer.written == 5
    assert calls


@breaks("audit-recovery")
async def _(faults: Faults) -> None:
    directory = faults.directory / "journals"
    left = AuditRings.open(directory, "worker-1", None, EVENTS)
    left.own.put(lines_of(request(0, "a", "b")), 2)
    left.close()
    sink = willing()
    log = AuditLog(EVENTS, [sink], rings=AuditRings.open(directory, "node", (), EVENTS))
    calls = faults.once(log, "_wait_for")
    await happens(lambda: len(sink.names) == 2)
    await log.close()
    assert calls
    assert [each.name for each in directory.iterdir()] == ["node"]


@breaks("audit-file-roller")
async def _(faults: Faults) -> None:
    directory = faults.directory / "audit"
    sink = JsonFilesSink(directory, max_bytes=1 << 20, max_files=10, roll_ms=1)
    faults.once(sink, "_finish_if_old")
    await sink.open()
    await sink.write(lines_of(request(0, "a")))
    await happens(lambda: list(directory.glob("audit-*.jsonl")))
    await sink.close()


@breaks("token-sweeper")
async def _(faults: Faults) -> None:
    writer = writer_in(faults.directory / "log")
    sweeper = TokenSweeper(writer, 1)
    calls = faults.once(sweeper, "sweep")
    sweeper.start()
    await happens(lambda: calls)
    await sweeper.stop()
    await writer.close()


@breaks("snapshot-taker")
async def _(faults: Faults) -> None:
    writer = writer_in(faults.directory / "log")
    await writer.submit(CreateAcls((acl("ALLOW READ User:a TOPIC t"),)))
    taker = SnapshotTaker(writer, look_every_ms=1)
    # also the handler of its errors breaks
    taken = faults.once(taker, "take")
    faults.once(snapshots_module, "words_of")
    taker.start()
    await happens(lambda: taken)
    await taker.stop()
    await writer.close()


@breaks("metadata-writer")
async def _(faults: Faults) -> None:
    writer = writer_in(faults.directory / "log")
    waiting = deque[Any]()

    class Queue:
        """The writer's queue, whose methods can be broken."""

        popleft, append = waiting.popleft, waiting.append

        def __len__(self) -> int:
            return len(waiting)

    writer._queue = cast("Any", Queue())
    faults.once(writer._queue, "popleft")
    (result,) = await asyncio.wait_for(
        writer.submit(CreateAcls((acl("ALLOW READ User:a TOPIC t"),))), PATIENCE_S
    )
    assert result.error is None
    await writer.close()


@breaks("acl-replacement")
async def _(faults: Faults) -> None:
    loop = asyncio.get_running_loop()
    faults.monkeypatch.setattr(publisher_module, "LOADED_AT_ONCE_MAX", 0)
    plugin = StandardAuthorizerPlugin(loop.create_future)
    plugin.configure({})
    publisher = AuthorizerPublisher(plugin, loop)
    faults.once(publisher_module, "dismantle")
    for offset in (7, 8):
        acls = {UUID(int=offset): allow(ResourceType.TOPIC, "t", AclOperation.READ)}
        publisher.publish_snapshot(MetadataImage(offset=offset, acls=acls))
        await happens(lambda: publisher.is_idle)
        assert publisher.offset == offset
    assert plugin.standard.is_ready


@breaks("key-set")
async def _(faults: Faults) -> None:
    path = faults.directory / "keys.json"
    path.write_bytes(jwks(public("rsa-1")))
    keys = RefreshingKeys(JwksSettings(ProviderEndpoint(path.as_uri(), 1000, 1000)), SystemClock())
    faults.once(keys, "_refresh")
    keys.start()
    await happens(lambda: keys.is_loaded)
    await keys.stop()


@breaks("credential")
async def _(faults: Faults) -> None:
    faults.monkeypatch.setattr(refreshed_module, "RETRY_MS", 1)
    held = SimpleNamespace(expires_at_ms=1 << 62)

    async def fetch() -> Any:
        return held

    source = SimpleNamespace(fetch=fetch)
    refreshed = Refreshed(lambda: source.fetch(), lambda *_: 0, SystemClock(), SystemEntropy())
    assert await refreshed.get() is held
    calls = faults.once(source, "fetch")
    await happens(lambda: calls)
    refreshed.stop()


@breaks("candidate-acls")
async def _(faults: Faults) -> None:
    path = faults.directory / "acls.yaml"
    path.write_text("")
    side = CandidateSide(lambda: SharedRules(frozenset(), False), lambda _: None, lambda: 0)
    faults.once(candidate_module, "words_of")
    for _ in range(2):
        side.load(path)
        await happens(lambda: side._loading is not None and side._loading.done())
    assert "YAML" in str(side.details())
    await side.stop()


@breaks("http-answer")
async def _(faults: Faults) -> None:
    endpoint = HttpEndpoint(NodeAddress(LOOPBACK, 0), GatewayMetrics(), dict)
    calls = faults.once(endpoint, "_respond", endpoint._respond)
    await endpoint.start()
    reader, writer = await asyncio.open_connection(LOOPBACK, endpoint.port)
    for status in (b"500", b"200"):
        writer.write(b"GET /health HTTP/1.1\r\nHost: here\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).split()[1] == status
        await reader.readexactly(len(b"Internal Server Error" if status == b"500" else b'{"alive":true}'))
    assert calls
    writer.close()
    await endpoint.stop()


@breaks("hurry")
async def _(faults: Faults) -> None:
    hurried, stopped = asyncio.Event(), asyncio.Event()
    ended = asyncio.Event()

    class Node:
        async def start(self) -> None: ...

        async def stop(self) -> None:
            await ended.wait()

        def hurry(self) -> None:
            ended.set()
            faults.raised += 1
            raise InjectedError

    for each in (stopped, hurried):
        each.set()
    await run_node(Node(), stopped, hurried)
    await asyncio.sleep(0)


async def scripted_broker() -> ScriptedBroker:
    broker = ScriptedBroker(0)
    await broker.start()
    return broker


@breaks("idle-connections")
async def _(faults: Faults) -> None:
    settings = ConnectionSettings(connections_max_idle_ms=20)
    async with running_gateway([await scripted_broker()], settings=settings) as running:
        faults.once(gateway_module, "end_each")
        caller = await Caller.at(running.port)
        assert await caller.is_closed()


@breaks("tls-files")
async def _(faults: Faults) -> None:
    calls: list[Any] = []

    async def follow(*arguments: Any) -> None:
        calls.append(arguments)

    faults.once(gateway_module, "follow_files", follow)
    async with running_gateway([await scripted_broker()]):
        await happens(lambda: calls)


@breaks("broker-refresh")
async def _(faults: Faults) -> None:
    async with running_gateway([await scripted_broker()], refresh_s=0.001) as running:
        calls = faults.once(running.cluster, "refresh")
        await happens(lambda: calls)


@breaks("broker-ports")
async def _(faults: Faults) -> None:
    async with running_gateway([await scripted_broker()]) as running:
        faults.once(running.gateway, "_bind_brokers")
        for node_id in (1, 2):
            running.gateway.learn_brokers([NamedBroker(node_id, LOOPBACK, 9092)])
            await asyncio.sleep(0)
        await happens(lambda: ("CLIENTS", 1) in running.gateway._ports)


@breaks("broker-learning")
async def _(faults: Faults) -> None:
    async with running_gateway([await scripted_broker()]) as running:
        calls = faults.once(running.cluster, "_query_brokers")
        for _ in range(2):
            running.cluster._learned_s = -math.inf
            learning = running.cluster.begin_learning()
            assert learning is not None
            await asyncio.wait((learning,), timeout=PATIENCE_S)
        await happens(lambda: calls)


@breaks("upstream-connect")
async def _(faults: Faults) -> None:
    async with running_gateway([await scripted_broker()]) as running:
        faults.once(BrokerRoute, "link")
        first, second = await Caller.at(running.port), await Caller.at(running.port)
        first.send(heartbeat(1))
        assert await first.is_closed(), "a client that cannot be served must not wait"
        second.send(heartbeat(2))
        assert await second.correlation_ids(1) == [2]


@breaks("upstream-renewal")
async def _(faults: Faults) -> None:
    broker = RenewingBroker()
    faults.once(broker.session, "begin")
    await broker.fall_due()
    broker.send(1)
    await broker.settle()
    assert broker.lost == [
        "the session with upstream could not be prolonged: an internal error, see the log above"
    ]


@breaks("topic-ids")
async def _(faults: Faults) -> None:
    one = bytes(15) + b"\1"

    async def query(ids: Any) -> dict[bytes, str]:
        return dict.fromkeys(ids, "t")

    ids = TopicIds(query)
    faults.once(ids, "learn")
    with pytest.raises(InjectedError):
        await asyncio.wait_for(ids.resolve([one]), PATIENCE_S)
    assert await asyncio.wait_for(ids.resolve([one]), PATIENCE_S) == {one: "t"}


class Owner:
    """What the writer process would do about its workers."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def worker_died(self) -> None:
        self.order.append("died")

    def worker_gone(self, worker: WorkerHandle) -> None:
        self.order.append("gone")

    def login_failed(self, host: str) -> None: ...

    async def drain(self) -> None: ...


def pool_in(faults: Faults, owner: Owner | None = None) -> WorkerPool:
    """Return a pool whose workers are processes that do nothing."""
    directory = faults.directory / "log"
    format_directory(directory)
    settings = WorkerPoolSettings(
        size=1,
        directory=faults.directory / "workers",
        limits=GatewayLimits(max_connections=10, max_connections_per_ip=10, drain_timeout_ms=0),
        properties={},
        command=lambda _: SLEEPER,
    )
    source = LocalLog(MetadataWriter(MetadataStore.open(directory)))
    return WorkerPool(settings, source, WorkerFollowers(1, 1_000), owner or Owner())


async def started(faults: Faults, owner: Owner | None = None) -> WorkerPool:
    """Return a pool whose only worker counts as one that serves."""
    pool = pool_in(faults, owner)
    starting = asyncio.ensure_future(pool.start())
    await happens(lambda: pool.workers)
    pool.workers[1].phase = WorkerPhase.LIVE
    pool.workers[1].serves()
    await starting
    return pool


@breaks("worker-restart")
async def _(faults: Faults) -> None:
    watching = Owner()
    order = watching.order
    pool = await started(faults, watching)
    for owner, name in (
        (watching, "worker_died"),
        (pool.connections, "gone"),
        (watching, "worker_gone"),
        (pool, "_start_worker"),
    ):
        faults.once(owner, name)
    first = pool.workers[1]
    waiting = first.in_force(10)
    assert waiting is not None
    waiting.add_done_callback(lambda _: order.append("answered"))
    first.process.kill()
    await happens(lambda: pool.workers[1] is not first)
    # evidence first: nothing that waited is answered before the brokers are in doubt
    assert order.index("died") < order.index("answered")
    assert pool.states()[1] == 1
    second = pool.workers[1]
    second.process.kill()
    await happens(lambda: pool.workers[1] is not second)
    assert faults.raised == 4
    await pool.stop()


@breaks("worker-watch")
async def _(faults: Faults) -> None:
    faults.monkeypatch.setattr(pool_module, "LOOK_EVERY_S", 0.001)
    pool = pool_in(faults)
    calls = faults.once(pool.followers, "looks")
    watching = supervised("worker-watch", pool._watch)
    await happens(lambda: calls)
    watching.cancel()


@breaks("worker-image")
async def _(faults: Faults) -> None:
    faults.monkeypatch.setattr(handle_module, "FENCE_GRACE_S", 0)
    faults.monkeypatch.setattr(handle_module, "EXIT_GRACE_S", 0)
    pool = await started(faults)
    worker = pool.workers[1]
    worker.phase = WorkerPhase.STARTING
    faults.once(followers_module, "snapshot_pieces")
    channel = SimpleNamespace(send=lambda _: None, close=lambda _: None, send_frame=lambda _: None)
    assert pool._welcome(worker.process.pid, cast("Channel", channel)) is worker
    await happens(lambda: pool.workers[1] is not worker)
    assert worker.was_fenced
    await pool.stop()


@breaks("worker-change")
async def _(faults: Faults) -> None:
    pool = await started(faults)
    said: list[object] = []
    channel = SimpleNamespace(send=said.append, close=lambda _: None)
    worker = pool.workers[1]
    worker.channel = cast("Channel", channel)

    async def submit(_: Any) -> Any:
        raise InjectedError

    faults.monkeypatch.setattr(pool._source, "submit", submit)
    faults.once(pool_module, "failure_of", failure_of)
    message = request_codec(ApiKey.CREATE_ACLS, 3).new(creations=[])
    context = AuthorizableRequestContext(KafkaPrincipal("User", "a"), "127.0.0.1")
    request = Forwarded(ApiKey.CREATE_ACLS, 3, message, context)
    pool._received(worker, submit_of(1, request))
    await happens(lambda: faults.raised == 1)
    pool._received(worker, submit_of(2, request))
    await happens(lambda: said)
    assert isinstance(said[0], ChangeAnswer)
    assert pool._changes[1] == 0
    worker.channel = None
    await pool.stop()


@breaks("worker-fence")
async def _(faults: Faults) -> None:
    process = WorkerProcess(SLEEPER)
    worker = WorkerHandle(1, process)
    channel = SimpleNamespace(send=lambda _: None, close=lambda _: None)
    faults.once(channel, "send")
    faults.once(process, "kill")
    worker.joined(cast("Channel", channel))
    worker.fence("late")
    assert await asyncio.wait_for(process.exited, PATIENCE_S) == -9


def linked(faults: Faults, node: Any) -> tuple[WriterLink, list[object]]:
    said: list[object] = []
    link = WriterLink(os.getppid(), node)
    faults.monkeypatch.setattr(link._channel, "send", said.append)
    return link, said


@breaks("worker-progress")
async def _(faults: Faults) -> None:
    faults.monkeypatch.setattr(link_module, "PROGRESS_EVERY_S", 0.001)
    link, said = linked(faults, None)
    link._store = cast("Any", SimpleNamespace(steps=4))
    faults.once(link_module, "Progress", Progress)
    reporting = supervised("worker-progress", link._report_progress)
    await happens(lambda: Progress(4) in said)
    reporting.cancel()


@breaks("worker-drain")
async def _(faults: Faults) -> None:
    async def drain() -> None: ...

    node = SimpleNamespace(drain=drain)
    link, said = linked(faults, node)
    faults.once(node, "drain", drain)
    for number in (1, 2):
        link._perform(Drain(number))
        await happens(lambda number=number: len(said) == number)  # type: ignore[misc]
    # what is not known to be over is not over
    assert said == [Drained(1, False), Drained(2, True)]


@pytest.mark.parametrize("name", sorted(SCENARIOS))
async def test_a_task_that_broke_works_again_or_reports_it(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(supervision, "FIRST_RESTART_S", 0.001)
    faults, before = Faults(monkeypatch, tmp_path), FAILURES[name]
    await asyncio.wait_for(SCENARIOS[name](faults), PATIENCE_S)
    assert faults.raised
    assert FAILURES[name] > before, "each failure is counted"
