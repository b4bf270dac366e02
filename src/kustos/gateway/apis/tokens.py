"""Removes expired delegation tokens from the metadata log of this node."""

import asyncio
from typing import Final

import structlog

from kustos.client import supervised
from kustos.gateway.store.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata import MetadataError
from kustos.metadata.store import SweepTokens

LOG: Final = structlog.get_logger("kustos.gateway")


class TokenSweeper:
    """Sweeps every `interval_ms`, in passes of a bounded size, until it is stopped.

    No decision depends on it: an expired token is refused even if it has not been removed.
    """

    def __init__(self, writer: MetadataWriter, interval_ms: int) -> None:
        self._writer: Final = writer
        self._interval_ms: Final = interval_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start, with the first sweep after one interval."""
        self._task = supervised("token-sweeper", self._run)

    async def stop(self) -> None:
        """Stop sweeping; the writer finishes a pass that has started."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> None:
        """Remove expired tokens; raise what the writer raises."""
        while (await self._writer.submit(SweepTokens()))[0]:
            continue

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            try:
                await self.sweep()
            except WriterClosedError:
                return
            except (MetadataError, WriterBusyError) as error:
                LOG.error("expired delegation tokens were not removed", reason=str(error))
