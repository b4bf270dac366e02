"""Queries to a cluster from a command: settings, event loop, and a progress display if it takes long."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from kustos.cli.progress import progress
from kustos.client import ClientSettings
from kustos.client.admin import AdminClient

T = TypeVar("T")


def query_cluster(
    bootstrap_server: str,
    command_config: Path | None,
    query: Callable[[AdminClient], Awaitable[T]],
    doing: str,
) -> T:
    """Return the result of `query` on an admin client for this cluster; errors propagate."""
    settings = ClientSettings.from_file(bootstrap_server, command_config)

    async def run() -> T:
        async with AdminClient(settings) as admin:
            return await query(admin)

    with progress(f"{doing} at {bootstrap_server}"):
        return asyncio.run(run())
