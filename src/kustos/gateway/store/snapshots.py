"""Takes snapshots of the metadata while the node serves: off the event loop and off the writer's thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from kustos.client import supervised
from kustos.gateway.store.writer import MetadataWriter, WriterClosedError
from kustos.metadata.store import SnapshotJob
from kustos.runtime import short_switch_interval, words_of

LOG: Final = structlog.get_logger("kustos.gateway")

LOOK_EVERY_MS: Final = 1000
"""How often to check whether a snapshot is due. One second of writes is small compared with a due
snapshot."""

CLEAN_EVERY_MS: Final = 60_000
"""How often to check for old files while no snapshot is taken; Kafka's own period."""


class SnapshotTaker:
    """Checks periodically whether a snapshot is due, and writes it on a thread of its own."""

    def __init__(self, writer: MetadataWriter, look_every_ms: int = LOOK_EVERY_MS) -> None:
        self._writer: Final = writer
        self._look_every_ms: Final = look_every_ms
        self._thread: Final = ThreadPoolExecutor(1, "kustos-metadata-snapshot")
        self._task: asyncio.Task[None] | None = None
        self._job: SnapshotJob | None = None

    def start(self) -> None:
        """Start, with the first check after one interval."""
        self._task = supervised("snapshot-taker", self._run)

    async def stop(self) -> None:
        """Stop; abandon a snapshot being written, because the log has everything that it would contain."""
        if self._job is not None:
            self._job.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)

    async def take(self) -> bool:
        """Take a snapshot if one is due; return whether one was written."""
        if not self._writer.store.snapshot_is_due:
            return False
        store, loop = self._writer.store, asyncio.get_running_loop()
        self._job = job = await self._writer.run(store.begin_snapshot)
        if job is None:
            return False
        failure: BaseException | None = None
        try:
            with short_switch_interval():
                await loop.run_in_executor(self._thread, job.write)
        except Exception as error:  # noqa: BLE001 - on any error the log continues and the store is notified
            failure = error
        finally:
            self._job = None
        await self._writer.run(lambda: store.end_snapshot(job, failure))
        return failure is None

    async def _run(self) -> None:
        since_clean_ms = 0
        while True:
            await asyncio.sleep(self._look_every_ms / 1000)
            since_clean_ms += self._look_every_ms
            try:
                if not await self.take() and since_clean_ms >= CLEAN_EVERY_MS:
                    since_clean_ms = 0
                    await self._writer.run(self._writer.store.clean)
            except WriterClosedError:
                return
            except Exception as error:  # noqa: BLE001 - a log that is never cleaned fills the disk
                LOG.error("no snapshot was taken", reason=f"{type(error).__name__}: {words_of(error)}")
