"""The single writer of the metadata log, on its own thread: the disk never blocks the event loop.

Requests that arrive during an fsync share the next one (group commit).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar

import structlog

from kustos.authorizer import KafkaApiError
from kustos.client import supervised
from kustos.gateway.store.large_work import LARGE_ITEMS_MIN
from kustos.metadata import MetadataError
from kustos.metadata.store import MetadataStore, StoreRequest
from kustos.runtime import freeze_objects, garbage_collection_paused, short_switch_interval
from kustos.wire import ErrorCode

LOG: Final = structlog.get_logger("kustos.gateway")

Result = TypeVar("Result")

BATCH_REQUESTS_MAX: Final = 256
"""The maximum number of requests that share one fsync; others wait for the next one, so that no request waits
forever."""

QUEUED_REQUESTS_MAX: Final = 10_000
"""The maximum number of waiting requests; each client connection has at most one, so this limits clients, not
work."""


class WriterBusyError(Exception):
    """Too many requests wait."""


class WriterClosedError(Exception):
    """The writer has ended; it makes no more changes."""


class Followers(Protocol):
    """The other processes of a node, which decide by the same log."""

    async def in_force(self, offset: int) -> None:
        """Return when each process decides by the log up to this offset, or no longer decides anything."""

    def current(self, as_of_ms: int) -> None:
        """Notify the processes that everything committed by this monotonic time was published."""

    def quorum_lost(self) -> None:
        """Notify the processes that the metadata can never become current again."""


class _NoFollowers:
    async def in_force(self, _offset: int) -> None:
        """Return at once."""

    def current(self, _as_of_ms: int) -> None:
        """Do nothing."""

    def quorum_lost(self) -> None:
        """Do nothing."""


ALONE: Final = _NoFollowers()
"""The followers of a node in one process."""


class MetadataWriter:
    """Makes changes batch by batch. Results come once the changes are durable and in force."""

    def __init__(self, store: MetadataStore, followers: Followers = ALONE) -> None:
        self.store: Final = store
        self._followers: Final = followers
        self._thread: Final = ThreadPoolExecutor(1, "kustos-metadata-writer")
        self._queue: deque[tuple[StoreRequest, asyncio.Future[tuple[Any, ...]]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def submit(self, request: StoreRequest) -> tuple[Any, ...]:
        """Return the results of a request.

        Raise the errors of the store, `WriterBusyError`, or `WriterClosedError`. Cancelling the wait does not
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
        results = await answer
        # even if nothing was changed: the current state may not have reached a follower yet
        await self.followed()
        return results

    async def followed(self) -> None:
        """Return when the other processes of the node follow the log, and have handled earlier orders."""
        await self._followers.in_force(self.store.last_offset)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Return the result of `work`, which runs on the writer's thread between two writes.

        Raise the errors of `work`, or `WriterClosedError`.
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
                # no request of the batch is acknowledged; each caller gets the reason, and closes its client
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(error)
                        # a cancelled caller never retrieves it: no error is lost
                        answer.exception()

    async def close(self) -> None:
        """Finish waiting requests, then release the thread and the store; further calls have no effect."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._task is not None:
                await self._task
        finally:
            self._thread.shutdown()
            self.store.close()


async def changed(writer: MetadataWriter, request: StoreRequest) -> tuple[Any, ...]:
    """Return the results of a change when it is durable and in force; raise `KafkaApiError`.

    The log has the reason; clients get only the code.
    """
    try:
        return await writer.submit(request)
    except (MetadataError, WriterBusyError, WriterClosedError) as error:
        LOG.error("the metadata was not changed", reason=str(error))
        raise KafkaApiError(ErrorCode.unknown_server_error) from error
