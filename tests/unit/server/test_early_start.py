"""A listener is bound when the authorizer can decide for it: early ones at once, others later."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kustos.authorizer import Endpoint
from kustos.metadata.directory.format import format_directory
from kustos.protocol.codes import GROUP_AUTHORIZATION_FAILED, UNKNOWN_SERVER_ERROR
from kustos.server.authorization.life import AuthorizerStartError
from kustos.server.lifecycle import run_until
from kustos.server.node import Node
from kustos.server.settings.node import KustosSettings
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.plugins import STANDARD_AUTHORIZER
from kustos.wire import response_codec
from kustos.wire.api_keys import ApiKey
from testkit.gateway.gateways import Caller
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.gateway.sessions import heartbeat, versions
from testkit.ports import LOOPBACK, free_port, free_port_range
from tests.unit.server.authorizers import Held

PATIENCE_S = 60.0


@pytest.fixture
async def broker() -> AsyncIterator[ScriptedBroker]:
    made = ScriptedBroker(1)
    await made.start()
    yield made
    made.stop()


def settings(directory: Path, broker: ScriptedBroker, **more: str) -> KustosSettings:
    format_directory(directory / "metadata", node_id=7)
    start = free_port_range(8)
    keys = {
        "node.id": "7",
        "metadata.log.dir": str(directory / "metadata"),
        "listeners": f"EARLY://{LOOPBACK}:{free_port()},LATE://{LOOPBACK}:{free_port()}",
        "listener.security.protocol.map": "EARLY:PLAINTEXT,LATE:PLAINTEXT",
        "listener.name.early.kustos.broker.port.start": str(start),
        "listener.name.late.kustos.broker.port.start": str(start + 4),
        "kustos.gateway.broker.port.count": "4",
        "kustos.upstream.bootstrap.servers": f"{LOOPBACK}:{broker.port}",
        "authorizer.class.name": "tests.unit.server.authorizers.Held",
        "early.start.listeners": "EARLY",
    }
    return settings_from(keys | {key.replace("_", "."): value for key, value in more.items()}, {})


async def answers(port: int) -> bool:
    """Return whether a listener is bound and serves."""
    try:
        caller = await Caller.at(port)
    except ConnectionRefusedError:
        return False
    caller.send(versions(1))
    answered = await caller.correlation_ids(1) == [1]
    caller.close()
    return answered


async def once(port: int) -> None:
    """Return when a listener serves."""
    async with asyncio.timeout(PATIENCE_S):
        while not await answers(port):
            pass


def held() -> Held:
    assert Held.latest is not None
    return Held.latest


async def test_an_early_listener_serves_while_the_others_wait(tmp_path: Path, broker: ScriptedBroker) -> None:
    made = settings(tmp_path, broker)
    early, late = (listener.bind.port for listener in made.listeners)
    node = await Node.open(made)
    starting = asyncio.ensure_future(node.start())
    await once(early)
    assert not await answers(late)
    assert not await answers(made.listeners[1].broker_port_start + 1)
    assert await answers(made.listeners[0].broker_port_start + 1)
    assert node.readiness()["listeners"] is False
    held().begin.set_result(None)
    await starting
    assert await answers(late)
    assert await answers(made.listeners[1].broker_port_start + 1)
    assert node.readiness()["listeners"] is True
    await node.stop()
    assert held().bindings == []


async def test_the_authorizer_is_told_of_its_server(tmp_path: Path, broker: ScriptedBroker) -> None:
    made = settings(tmp_path, broker)
    node = await Node.open(made)
    starting = asyncio.ensure_future(node.start())
    await once(made.listeners[0].bind.port)
    info = held().info
    assert info.broker_id == 7
    assert info.early_start_listeners == {"EARLY"}
    assert info.cluster_resource.cluster_id == node.store.properties.cluster_id
    early, late = made.listeners
    assert info.endpoints == (
        Endpoint("EARLY", "PLAINTEXT", LOOPBACK, early.bind.port),
        Endpoint("LATE", "PLAINTEXT", LOOPBACK, late.bind.port),
    )
    assert info.inter_broker_endpoint == info.endpoints[0]
    assert held().configs["node.id"] == "7"
    held().begin.set_result(None)
    await starting
    await node.stop()


async def test_a_start_that_fails_ends_the_node(tmp_path: Path, broker: ScriptedBroker) -> None:
    made = settings(tmp_path, broker)
    running = asyncio.ensure_future(run_until(made, asyncio.Event()))
    await once(made.listeners[0].bind.port)
    held().begin.set_exception(OSError("the store is down"))
    with pytest.raises(AuthorizerStartError, match="`Held` does not start, OSError: the store is down"):
        async with asyncio.timeout(PATIENCE_S):
            await running
    assert not await answers(made.listeners[0].bind.port)


async def test_a_node_that_still_waits_can_be_ended(tmp_path: Path, broker: ScriptedBroker) -> None:
    made = settings(tmp_path, broker)
    stopped = asyncio.Event()
    running = asyncio.ensure_future(run_until(made, stopped))
    await once(made.listeners[0].bind.port)
    stopped.set()
    async with asyncio.timeout(PATIENCE_S):
        await running
    assert not await answers(made.listeners[0].bind.port)


async def heartbeat_code(port: int) -> int:
    """Return the error code of a Heartbeat, which asks for a group."""
    caller = await Caller.at(port)
    caller.send(heartbeat(1))
    frame = await caller.frame()
    caller.close()
    assert frame is not None
    message, _ = response_codec(ApiKey.HEARTBEAT, 3).decode(frame, 4)
    code: int = message.error_code
    return code


@pytest.mark.behaviour("B022", "B025")
@pytest.mark.parametrize(
    ("super_users", "code"),
    [("", UNKNOWN_SERVER_ERROR), ("User:ANONYMOUS", 0)],
    ids=["others", "super users"],
)
async def test_before_the_acls_are_loaded_early_listeners_serve_super_users_only(
    tmp_path: Path, broker: ScriptedBroker, super_users: str, code: int
) -> None:
    made = settings(tmp_path, broker, authorizer_class_name=STANDARD_AUTHORIZER, super_users=super_users)
    early, late = (listener.bind.port for listener in made.listeners)
    node = await Node.open(made)
    load = node.authorization.load
    node.authorization.load = lambda: None  # type: ignore[method-assign]
    starting = asyncio.ensure_future(node.start())
    await once(early)
    assert await heartbeat_code(early) == code
    assert not await answers(late)
    assert node.readiness()["metadata"] is False
    load()
    async with asyncio.timeout(PATIENCE_S):
        await starting
    assert await answers(late)
    assert await heartbeat_code(early) == (code and GROUP_AUTHORIZATION_FAILED)
    await node.stop()


@pytest.mark.parametrize("early", ["", "EARLY", "EARLY,LATE"])
async def test_the_standard_authorizer_lets_all_listeners_begin_once_it_is_loaded(
    tmp_path: Path, broker: ScriptedBroker, early: str
) -> None:
    made = settings(tmp_path, broker, authorizer_class_name=STANDARD_AUTHORIZER, early_start_listeners=early)
    node = await Node.open(made)
    assert node.readiness()["metadata"] is False
    await node.start()
    assert node.readiness() == {"metadata": True, "upstream": True, "listeners": True, "audit": True}
    for listener in made.listeners:
        assert await answers(listener.bind.port)
    await node.stop()
