"""Asking a cluster from a command: settings, event loop, and a sign of life when it takes long."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from kustos.client.admin import AdminClient
from kustos.client.settings import ClientSettings

T = TypeVar("T")

PATIENCE_SECONDS = 1.0
"""Shorter work needs no progress display; it would only flicker."""


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
            return await _with_progress(question(admin), f"{doing} at {bootstrap_server}")

    return asyncio.run(ask())


async def _with_progress(work: Awaitable[T], doing: str) -> T:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task}, timeout=PATIENCE_SECONDS)
    if done or not sys.stderr.isatty():
        return await task
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(doing, total=None)
        return await task
