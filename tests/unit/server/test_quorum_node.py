"""A node in cluster mode: when its listeners open, and what happens when following ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.metadata.directory.format import format_directory
from kustos.metadata.quorum import WrongClusterError
from kustos.runtime import StorageLockedError
from kustos.server.lifecycle import run_until
from kustos.server.node import Node
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.wire import response_codec
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK, free_port, free_port_range
from testkit.quorum.fake_controller import FakeController
from testkit.quorum.model import CLUSTER_ID, Cluster
from tests.unit.server.test_early_start import PATIENCE_S, answers, once

WRONG_CLUSTER = 104


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    made = ScriptedBroker(1)
    await made.start()
    yield made
    made.stop()


@pytest.fixture
def cluster() -> Cluster:
    """A leader that has not committed anything yet, so that nobody can catch up with it."""
    return Cluster()


@pytest.fixture
async def controller(cluster: Cluster) -> AsyncIterator[FakeController]:
    leader = cluster.nodes[0]
    async with FakeController(leader.fetch) as made:
        address = made.address

        def fetch(asked: object) -> object:
            answer = leader.fetch(asked)  # type: ignore[arg-type]
            endpoints = [each.replace(host=address.host, port=address.port) for each in answer.node_endpoints]
            return answer.replace(node_endpoints=endpoints)

        made.fetch = fetch  # type: ignore[assignment]
        yield made


def settings(
    directory: Path, broker: ScriptedBroker, controller: FakeController, **more: str
) -> KustosSettings:
    format_directory(directory / "metadata", node_id=7, cluster_id=CLUSTER_ID)
    start = free_port_range(8)
    keys = {
        "node.id": "7",
        "metadata.log.dir": str(directory / "metadata"),
        "kustos.metadata.store": "kraft",
        "controller.quorum.bootstrap.servers": str(controller.address),
        "listeners": f"EARLY://{LOOPBACK}:{free_port()},LATE://{LOOPBACK}:{free_port()}",
        "listener.security.protocol.map": "EARLY:PLAINTEXT,LATE:PLAINTEXT",
        "listener.name.early.kustos.broker.port.start": str(start),
        "listener.name.late.kustos.broker.port.start": str(start + 4),
        "kustos.gateway.broker.port.count": "4",
        "kustos.upstream.bootstrap.servers": f"{LOOPBACK}:{broker.port}",
        "early.start.listeners": "EARLY",
    }
    return settings_from(keys | more, {})


@pytest.mark.parametrize("more", [{}, {"kustos.authorization.mode": "off"}])
async def test_listeners_open_at_the_high_watermark(
    tmp_path: Path,
    broker: ScriptedBroker,
    controller: FakeController,
    cluster: Cluster,
    more: dict[str, str],
) -> None:
    made = settings(tmp_path, broker, controller, **more)
    early, late = (listener.bind.port for listener in made.listeners)
    node = await Node.open(made)
    starting = asyncio.ensure_future(node.start())
    await once(early)
    assert not await answers(late)
    assert not node.readiness()["quorum"]
    cluster.copy(cluster.nodes[1])
    async with asyncio.timeout(PATIENCE_S):
        await starting
    assert await answers(late)
    assert node.readiness()["quorum"]
    assert node.quorum is not None
    assert node.quorum.figures().high_watermark == 1
    assert node.quorum.details()["quorum_leader"] == str(controller.address)
    await node.stop()


async def test_a_node_that_waits_for_its_quorum_can_be_ended(
    tmp_path: Path, broker: ScriptedBroker, controller: FakeController
) -> None:
    made = settings(tmp_path, broker, controller)
    stopped = asyncio.Event()
    running = asyncio.ensure_future(run_until(made, stopped))
    await once(made.listeners[0].bind.port)
    stopped.set()
    async with asyncio.timeout(PATIENCE_S):
        await running


async def test_a_node_that_has_stopped_leaves_its_directory_to_the_next(
    tmp_path: Path, broker: ScriptedBroker, controller: FakeController
) -> None:
    made = settings(tmp_path, broker, controller)
    node = await Node.open(made)
    with pytest.raises(StorageLockedError):
        await Node.open(made)
    await node.stop()
    following = await Node.open(made)
    await following.stop()


async def test_another_cluster_keeps_the_node_from_starting(
    tmp_path: Path, broker: ScriptedBroker, controller: FakeController
) -> None:
    controller.fetch = lambda _: response_codec(1, 18).new(error_code=WRONG_CLUSTER)
    made = settings(tmp_path, broker, controller)
    with pytest.raises(WrongClusterError, match=CLUSTER_ID):
        await run_until(made, asyncio.Event())


async def test_when_following_ends_everything_is_denied(
    tmp_path: Path, broker: ScriptedBroker, controller: FakeController, cluster: Cluster
) -> None:
    cluster.copy(cluster.nodes[1])
    node = await Node.open(settings(tmp_path, broker, controller))
    await node.start()
    assert node.readiness()["quorum"]
    controller.fetch = lambda _: response_codec(1, 18).new(error_code=WRONG_CLUSTER)
    with capture_logs() as logs:
        async with asyncio.timeout(PATIENCE_S):
            while node.readiness()["quorum"]:
                assert node.quorum is not None
                assert node.quorum._task is not None
                await asyncio.wait((node.quorum._task,), timeout=1)
    assert not node.readiness()["metadata"]
    assert node.image().offset == -1
    [expected] = [each for each in logs if each["log_level"] == "critical"]
    assert "everything but super users is denied" in expected["event"]
    await node.stop()


async def test_a_node_in_cluster_mode_has_no_log_of_its_own_to_write(
    tmp_path: Path, broker: ScriptedBroker, controller: FakeController
) -> None:
    node = await Node.open(settings(tmp_path, broker, controller))
    assert node.writer is None
    await node.stop()
    await node.stop()
