"""Runs a node until a signal stops it, and shuts it down cleanly."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from kustos.client import one_shot
from kustos.server.node import Node
from kustos.server.settings.node import KustosSettings

LOG: Final = structlog.get_logger("kustos.server")


async def run_until(
    settings: KustosSettings, stopped: asyncio.Event, prepare: Callable[[Node], object] | None = None
) -> None:
    """Run a node until the event is set, even during startup; raise the error that prevents the start.

    `prepare` is called with the node before it starts.
    """
    node = await Node.open(settings)
    if prepare is not None:
        prepare(node)
    await run_node(node, stopped)


class Runnable(Protocol):
    """A node, or a part of one."""

    async def start(self) -> None:
        """Serve."""

    async def stop(self) -> None:
        """Stop, even if it has not started, or only in part."""

    def hurry(self) -> None:
        """Let `stop` no longer wait for answers to clients."""


async def run_node(node: Runnable, stopped: asyncio.Event, hurried: asyncio.Event | None = None) -> None:
    """Run an open node until `stopped` is set, even during startup; raise the error that prevents the start.

    Clients get the answers to requests in progress, unless `hurried` is set.
    """
    try:
        starting, stopping = asyncio.ensure_future(node.start()), asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopping
        finally:
            for task in (starting, stopping):
                task.cancel()
            await asyncio.gather(starting, stopping, return_exceptions=True)
    finally:
        hurrying = one_shot("hurry", _hurry(node, hurried or asyncio.Event()))
        try:
            await node.stop()
        finally:
            hurrying.cancel()


async def _hurry(node: Runnable, hurried: asyncio.Event) -> None:
    await hurried.wait()
    LOG.warning("a second signal to stop: clients get no more answers")
    node.hurry()
