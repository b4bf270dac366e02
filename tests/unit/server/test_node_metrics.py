"""Metrics of a serving node: the lag of its event loop and the savings of its caches."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kustos.server.node import Node
from kustos.server.settings.plugins import STANDARD_AUTHORIZER
from testkit.gateway.scripted_brokers import ScriptedBroker
from testkit.ports import LOOPBACK, free_port
from testkit.waiting import wait_until
from tests.unit.gateway.test_metrics import get, samples, value
from tests.unit.server.test_early_start import settings


@pytest.fixture
async def http_port(tmp_path: Path) -> AsyncIterator[int]:
    """The HTTP port of a node that serves."""
    broker, port = ScriptedBroker(1), free_port()
    await broker.start()
    made = settings(
        tmp_path,
        broker,
        authorizer_class_name=STANDARD_AUTHORIZER,
        kustos_http_listener=f"{LOOPBACK}:{port}",
    )
    node = await Node.open(made)
    await node.start()
    yield port
    await node.stop()
    broker.stop()


async def test_the_loop_of_a_node_is_sampled_while_it_serves(http_port: int) -> None:
    def sampled() -> float | None:
        return value(samples(get(http_port, "/metrics")[2]), "kustos_event_loop_lag_seconds_count")

    # in a thread, as the node serves in this one
    first = await asyncio.to_thread(wait_until, sampled, what="a sample of the event loop")
    assert first is not None
    await asyncio.to_thread(
        wait_until, sampled, what="another sample", holds=lambda count: (count or 0) > first
    )


async def test_what_caches_save_has_its_series_from_the_start(http_port: int) -> None:
    found = samples((await asyncio.to_thread(get, http_port, "/metrics"))[2])
    assert value(found, "kustos_repeated_requests_total") == 0
    assert value(found, "kustos_authorizer_searches_total") == 0
    assert value(found, "kustos_topic_ids_total", outcome="KNOWN") == 0
    assert value(found, "kustos_topic_ids_total", outcome="QUERIED") == 0
