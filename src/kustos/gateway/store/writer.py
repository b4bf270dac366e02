"""The one writer of the metadata log, on a thread of its own: the disk never stops the event loop.

Requests that come while an fsync runs share the next one (group commit).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from kustos.client import supervised
from kustos.gateway.store.large_work import LARGE_ITEMS_MIN
from kustos.metadata.store import MetadataStore, StoreRequest
from kustos.runtime import freeze_objects, garbage_collection_paused, short_switch_interval

Result = TypeVar("Result")

BATCH_REQUESTS_MAX: Final = 256
"""Requests that share one fsync; others wait for the next, so that none waits for ever."""

QUEUED_REQUESTS_MAX: Final = 10_000
"""Requests that wait; each client connection has at most one, so this bounds clients, not work."""


class WriterBusyError(Exception):
    """Too many requests wait."""


class WriterClosedError(Exception):
    """The writer has ended; nothing is changed any more."""


class MetadataWriter:
    """Carries out changes batch by batch. Results come once the changes are durable and in force."""

    def __init__(self, store: MetadataStore) -> None:
        self.store: Final = store
        self._thread: Final = ThreadPoolExecutor(1, "kustos-metadata-writer")
        self._queue: deque[tuple[StoreRequest, asyncio.Future[tuple[Any, ...]]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a request.

        Raise what the store raises, `WriterBusyError`, or `WriterClosedError`. Cancelling the wait does not
        stop the change.
        """
        if self._closed:
            raise WriterClosedError("the metadata writer has ended")
        if len(self._queue) >= QUEUED_REQUESTS_MAX:
            raise WriterBusyError("too many changes of the metadata wait")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[Any, ...]] = loop.create_future()
        self._queue.append((request, answer))
        if self._task is None or self._task.done():
            self._task = supervised("metadata-writer", self._drain)
        return await answer

    async def followed(self) -> None:
        """Return when all processes of the node have carried out what this one told them."""

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return what `work` returns, done on the writer's thread between two writes.

        Raise what it raises, or `WriterClosedError`.
        """
        if self._closed:
            raise WriterClosedError("the metadata writer has ended")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._queue:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_REQUESTS_MAX))]
            try:
                # thousands of ACLs take long: the event loop must not wait for them
                with short_switch_interval(), garbage_collection_paused():
                    before = self.store.last_offset
                    results = await loop.run_in_executor(
                        self._thread, self.store.append_many, [request for request, _ in batch]
                    )
                    if self.store.last_offset - before >= LARGE_ITEMS_MIN:
                        freeze_objects()
                for (_, answer), result in zip(batch, results, strict=True):
                    if not answer.done():
                        answer.set_result(result)
            except Exception as error:  # noqa: BLE001 - any error must reach the waiting callers
                # none of them is acknowledged; each caller learns why, and closes its client
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                        # a caller cancelled meanwhile never retrieves it: no error is lost
                        answer.exception()

    async def close(self) -> None:
        """Finish waiting requests, then release the thread and the store; twice is harmless."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._task is not None:
                await self._task
        finally:
            self._thread.shutdown()
            self.store.close()
