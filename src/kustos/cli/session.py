"""Asking a cluster from a command: settings, event loop, and a sign of life when it takes long."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from kustos.cli.progress import progress
from kustos.client.admin import AdminClient
from kustos.client.settings import ClientSettings

T = TypeVar("T")


def ask_cluster(
    bootstrap_server: str,
    command_config: Path | None,
    question: Callable[[AdminClient], Awaitable[T]],
    doing: str,
) -> T:
    """Return what `question` returns of an admin client for this cluster; errors pass through."""
    settings = ClientSettings.from_file(bootstrap_server, command_config)

    async def ask() -> T:
        async with AdminClient(settings) as admin:
            return await question(admin)

    with progress(f"{doing} at {bootstrap_server}"):
        return asyncio.run(ask())
