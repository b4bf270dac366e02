"""Removes expired delegation tokens now and then, as Kafka's active controller does."""

import asyncio
from typing import Final

import structlog

from kustos.gateway.writer import MetadataWriter, WriterBusyError, WriterClosedError
from kustos.metadata.errors import MetadataError
from kustos.metadata.store import SweepTokens

LOG: Final = structlog.get_logger("kustos.gateway")


class TokenSweeper:
    """Sweeps every `interval_ms`, in passes of a bounded size, until it is stopped.

    No decision waits for it: an expired token is refused whether it is still there or not.
    """

    def __init__(self, writer: MetadataWriter, interval_ms: int) -> None:
        self._writer: Final = writer
        self._interval_ms: Final = interval_ms
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with the first sweep after one interval."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End it; a pass that has begun is left to the writer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def sweep(self) -> None:
        """Remove what has expired; raise what the writer raises."""
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
