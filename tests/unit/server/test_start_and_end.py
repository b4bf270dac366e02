"""A node that cannot start reports one line and its exit code; a stopped one shuts down cleanly."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kustos.metadata.directory.format import format_directory
from kustos.metadata.store.store import MetadataStore
from testkit.gateway.gateways import Caller
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat
from testkit.ports import LOOPBACK, free_port, free_port_range
from tests.unit.gateway.test_drain import HoldingBroker, until
from tests.unit.gateway.test_metrics import get

pytestmark = pytest.mark.slow

PATIENCE_S = 300
"""A dozen nodes start one after the other, each in a second of an idle machine."""


@dataclass
class Settings:
    """The settings of a node before one scripted broker."""

    directory: Path
    broker: ScriptedBroker

    def __post_init__(self) -> None:
        self.port = free_port()
        self.values = {
            "node.id": "1",
            "metadata.log.dir": str(self.directory / "metadata"),
            "listeners": f"PLAINTEXT://{LOOPBACK}:{self.port}",
            "kustos.upstream.bootstrap.servers": f"{LOOPBACK}:{self.broker.port}",
            "kustos.gateway.broker.port.count": "4",
            "listener.name.plaintext.kustos.broker.port.start": str(free_port_range(4)),
            "kustos.audit.sinks": "json",
            "kustos.audit.json.dir": str(self.directory / "audit"),
        }

    def write(self) -> Path:
        path = self.directory / "kustos.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.values.items()))
        return path


async def started(*arguments: str) -> asyncio.subprocess.Process:
    """Start Python; the child does not outlive this process."""
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, *arguments]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    made = ScriptedBroker(1)
    await made.start()
    yield made
    made.stop()


def at(directory: Path, broker: ScriptedBroker) -> Settings:
    """Return the settings of a node in a formatted directory of its own."""
    format_directory(directory / "metadata")
    return Settings(directory, broker)


def not_formatted(settings: Settings, _stack: ExitStack) -> None:
    settings.values["metadata.log.dir"] = str(settings.directory / "elsewhere")


def locked(settings: Settings, stack: ExitStack) -> None:
    stack.callback(MetadataStore.open(settings.directory / "metadata").close)


def another_node(settings: Settings, _stack: ExitStack) -> None:
    settings.values["node.id"] = "2"


def port_taken(settings: Settings, stack: ExitStack) -> None:
    stack.enter_context(socket.create_server((LOOPBACK, settings.port)))


def no_audit_directory(settings: Settings, _stack: ExitStack) -> None:
    (settings.directory / "audit").write_text("a file")


def upstream_hangs_up(settings: Settings, stack: ExitStack) -> None:
    server = stack.enter_context(socket.create_server((LOOPBACK, 0)))
    stack.callback(server.shutdown, socket.SHUT_RDWR)

    def hang_up() -> None:
        with suppress(OSError):
            while True:
                server.accept()[0].close()

    Thread(target=hang_up, daemon=True).start()
    settings.values["kustos.upstream.bootstrap.servers"] = f"{LOOPBACK}:{server.getsockname()[1]}"


def too_few_ports(settings: Settings, _stack: ExitStack) -> None:
    settings.values["kustos.gateway.broker.port.count"] = "1"


def nonsense(settings: Settings, _stack: ExitStack) -> None:
    settings.values["listeners"] = "NONSENSE"


def authorizer(name: str) -> Callable[[Settings, ExitStack], None]:
    def prepare(settings: Settings, _stack: ExitStack) -> None:
        settings.values["authorizer.class.name"] = name

    prepare.__name__ = name
    return prepare


OURS = "tests.unit.server.authorizers."
CASES: list[tuple[Callable[[Settings, ExitStack], None], int, tuple[str, ...]]] = [
    (not_formatted, 1, ("there is no directory", "kustos storage format")),
    (locked, 1, ("metadata",)),
    (another_node, 1, ("belongs to node 1", "`node.id` is 2")),
    (port_taken, 1, ("in use",)),
    (no_audit_directory, 1, ("audit",)),
    (too_few_ports, 1, ("broker `1` has no port", "kustos.gateway.broker.port.count")),
    (upstream_hangs_up, 3, ("upstream is not reachable", "kustos.upstream.bootstrap.servers")),
    (nonsense, 2, ("settings", "listeners")),
    (authorizer(OURS + "Failing"), 1, ("`Failing` does not start, OSError: the store is down",)),
    (authorizer(OURS + "FailingLater"), 1, ("`FailingLater` does not start, OSError: the store is down",)),
    (authorizer(OURS + "Unconfigurable"), 1, ("does not take its settings", "`store.url` is not set")),
    (authorizer(OURS + "Missing"), 2, ("authorizer.class.name", "has no attribute 'Missing'")),
]
ONE_AFTER_THE_OTHER = """
import json, os, sys
from pathlib import Path
from kustos.server.main import serve
for path in [sys.argv[1], *sys.argv[1:]]:
    code = serve(Path(path))
    end = {"level": "end", "code": code, "open": len(os.listdir("/proc/self/fd"))}
    print(json.dumps(end), file=sys.stderr, flush=True)
"""
"""The first is run twice: what the process keeps open for itself is open then."""


async def test_what_keeps_a_node_from_starting_is_told_in_one_line_and_leaves_nothing_open(
    tmp_path: Path, broker: ScriptedBroker
) -> None:
    with ExitStack() as stack:
        paths = []
        for prepare, _, _ in CASES:
            directory = tmp_path / prepare.__name__
            directory.mkdir()
            settings = at(directory, broker)
            prepare(settings, stack)
            paths.append(settings.write())
        child = await started("-c", ONE_AFTER_THE_OTHER, *map(str, paths))
        async with asyncio.timeout(PATIENCE_S):
            _, errors = await child.communicate()
    runs: list[list[dict[str, Any]]] = [[]]
    for line in map(json.loads, errors.decode().splitlines()):
        runs[-1].append(line)
        if line["level"] == "end":
            runs.append([])
    del runs[0]
    for (prepare, code, words), run in zip(CASES, runs, strict=False):
        *expected, end = run
        (error,) = [line for line in expected if line["level"] in {"error", "critical"}]
        assert end["code"] == code, prepare
        assert "exception" not in error
        assert all(word in json.dumps(error) for word in words), error
    assert len({run[-1]["open"] for run in runs[:-1]}) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_node_with_everything_written(
    tmp_path: Path, broker: ScriptedBroker, number: int
) -> None:
    settings = at(tmp_path, broker)
    process = await started("-m", "kustos", "serve", str(settings.write()))
    assert process.stderr is not None
    expected: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        while not expected or expected[-1]["event"] != "kustos is up":
            expected.append(json.loads(await process.stderr.readline()))
        caller = await Caller.at(settings.port)
        caller.send(*map(heartbeat, range(2000)))
        assert await caller.correlation_ids(2000) == list(range(2000))
        process.send_signal(number)
        assert await caller.is_closed()
        rest = await process.stderr.read()
        assert await process.wait() == 0
    assert not [line for line in rest.splitlines() if json.loads(line)["level"] == "error"]
    (events,) = (settings.directory / "audit").glob("*.jsonl*")
    assert len(events.read_text().splitlines()) == 2000
    MetadataStore.open(settings.directory / "metadata").close()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("is_told_again", [False, True])
async def test_a_signal_leaves_time_for_answers_and_a_second_one_does_not(
    tmp_path: Path, workers: int, is_told_again: bool
) -> None:
    broker = HoldingBroker(1)
    await broker.start()
    settings = at(tmp_path, broker)
    http_port = free_port()
    settings.values |= {
        "super.users": "User:ANONYMOUS",
        "kustos.workers": str(workers),
        "kustos.http.listener": f"{LOOPBACK}:{http_port}",
        "kustos.shutdown.drain.timeout.ms": "600000",
    }
    process = await started("-m", "kustos", "serve", str(settings.write()))
    assert process.stderr is not None
    reading = asyncio.ensure_future(process.stderr.read())

    def is_ready() -> bool:
        with suppress(OSError):
            return get(http_port, "/ready")[0] == 200
        return False

    await until(is_ready, "the node is ready")
    caller = await Caller.at(settings.port)
    caller.send(heartbeat(1), heartbeat(2))
    await until(lambda: broker.held, "the first is with the broker")
    process.send_signal(signal.SIGTERM)
    await until(lambda: get(http_port, "/ready")[0] == 503, "the node says that it stops")
    if is_told_again:
        process.send_signal(signal.SIGTERM)
    else:
        broker.release()
        assert await caller.correlation_ids(1) == [1]
    assert await caller.is_closed()
    async with asyncio.timeout(PATIENCE_S):
        expected = list(map(json.loads, (await reading).splitlines()))
        assert await process.wait() == 0
    assert not [line for line in expected if line["level"] in {"error", "critical"}]
    assert is_told_again == any(line["event"].startswith("a second signal to stop") for line in expected)
    broker.stop()
