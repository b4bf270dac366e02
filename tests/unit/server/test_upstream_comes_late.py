"""A node without a reachable broker, as after a power cut, waits, logs this, and then serves."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from testkit.gateway.gateways import Caller
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat
from testkit.ports import LOOPBACK, free_port
from tests.unit.gateway.test_metrics import get
from tests.unit.server.test_start_and_end import PATIENCE_S, Settings, at, started

pytestmark = pytest.mark.slow

WAITING = "upstream is not reachable, waiting for it"


async def waiting_node(settings: Settings) -> asyncio.subprocess.Process:
    """Return a node that has said that it waits."""
    process = await started("-m", "kustos", "serve", str(settings.write()))
    line = await said(process, WAITING)
    assert line["level"] == "warning"
    assert str(settings.broker.port) in line["reason"]
    assert "kustos.upstream.bootstrap.servers" in line["hint"]
    return process


async def said(process: asyncio.subprocess.Process, event: str) -> dict[str, Any]:
    """Return the line of the log with this event."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        while True:
            line: dict[str, Any] = json.loads(await process.stderr.readline())
            if line["event"] == event:
                return line


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_node_waits_for_upstream_and_then_serves(tmp_path: Path, workers: int) -> None:
    broker, http = ScriptedBroker(1, port=free_port()), free_port()
    settings = at(tmp_path, broker)
    settings.values |= {"kustos.workers": str(workers), "kustos.http.listener": f"{LOOPBACK}:{http}"}
    process = await waiting_node(settings)
    status, _, text = await asyncio.to_thread(get, http, "/ready")
    parts = json.loads(text)["parts"]
    assert (status, parts["upstream"], parts["listeners"]) == (503, False, False)
    assert (await asyncio.to_thread(get, http, "/health"))[0] == 200
    await broker.start()
    try:
        await said(process, "the workers serve" if workers > 1 else "kustos is up")
        assert (await asyncio.to_thread(get, http, "/ready"))[0] == 200
        caller = await Caller.at(settings.port)
        caller.send(heartbeat(1))
        assert await caller.correlation_ids(1) == [1]
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        broker.stop()


async def test_a_node_that_waits_ends_at_once_when_told(tmp_path: Path) -> None:
    process = await waiting_node(at(tmp_path, ScriptedBroker(1, port=free_port())))
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        assert await process.wait() == 0
