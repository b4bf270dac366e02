"""A node of several processes that cannot start reports the reason and leaves no process behind."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kustos.server.workers.node import WorkerPoolNode
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.waiting import PATIENCE_S
from tests.unit.server.test_start_and_end import (
    Settings,
    at,
    locked,
    port_taken,
    started,
    too_few_ports,
    upstream_hangs_up,
)

pytestmark = pytest.mark.slow


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    made = ScriptedBroker(1)
    await made.start()
    yield made
    made.stop()


def no_audit_directory_of_a_worker(settings: Settings, _stack: ExitStack) -> None:
    (settings.directory / "audit").mkdir()
    (settings.directory / "audit" / "worker-1").write_text("a file")


@pytest.mark.parametrize(
    ("prepare", "code", "says"),
    [
        (locked, 1, "another process"),
        (port_taken, 1, "in use"),
        (upstream_hangs_up, 3, "upstream is not reachable"),
        (too_few_ports, 1, "before it served"),
        (no_audit_directory_of_a_worker, 1, "worker 1 ended with 1 before it served"),
    ],
)
async def test_what_keeps_a_crew_from_starting_ends_the_node(
    tmp_path: Path,
    broker: ScriptedBroker,
    prepare: Callable[[Settings, ExitStack], None],
    code: int,
    says: str,
) -> None:
    settings = at(tmp_path, broker)
    settings.values["kustos.workers"] = "2"
    with ExitStack() as stack:
        prepare(settings, stack)
        node = await started("-m", "kustos", "serve", str(settings.write()))
        _, errors = await node.communicate()
    assert node.returncode == code, errors.decode()
    assert says in errors.decode()
    assert "Traceback" not in errors.decode()
    assert "never retrieved" not in errors.decode()
    lock = tmp_path / "metadata" / "__cluster_metadata-0" / "workers" / "lock"
    if lock.exists():
        descriptor = os.open(lock, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)


async def test_the_writer_gives_its_own_clients_their_answers_while_the_workers_do() -> None:
    drains = asyncio.Event()
    order: list[str] = []

    async def drain() -> None:
        drains.set()

    async def stop_pool() -> None:
        await asyncio.wait_for(drains.wait(), PATIENCE_S)
        order.append("workers")

    async def stop_node() -> None:
        order.append("writer")

    made: Any = object.__new__(WorkerPoolNode)
    made.node = SimpleNamespace(gateway=SimpleNamespace(drain=drain), stop=stop_node)
    made.pool = SimpleNamespace(stop=stop_pool)
    await made.stop()
    assert order == ["workers", "writer"]
