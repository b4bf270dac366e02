"""Unfinished ACL changes of an authorizer, as in Kafka's purgatory for delayed futures.

A change that completes at once is not added. If the client disconnects, the change continues until it is done
or times out, because an incomplete change would be worse. Names, timeout and texts are Kafka's
(`DelayedFuture` and its purgatory; the timeout is `connections.max.idle.ms`, after which the client has
disconnected anyway).
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, Final

from kustos.authorizer import KafkaApiError
from kustos.wire import ErrorCode

ALTER_ACLS: Final = "AlterAcls"
"""The name of this purgatory in Kafka's metrics."""

ACL_UPDATE: Final = "acl-update"
"""Its name in KIP-504; the metrics have both names."""

DELAYED_OPERATIONS_MAX: Final = 10_000
"""The maximum number of waiting changes; each connection has at most one in flight, unless clients
reconnect."""


class DelayedFuturePurgatory:
    """Waits for futures, for a limited time. Use it in one event loop only."""

    def __init__(self, name: str, timeout_ms: int) -> None:
        self.name: Final = name
        self.timeout_ms: Final = timeout_ms
        self._operations: set[asyncio.Task[Any]] = set()

    @property
    def num_delayed_operations(self) -> int:
        """The number of waiting operations."""
        return len(self._operations)

    @property
    def purgatory_size(self) -> int:
        """The number of watched operations: the same, because finished ones are removed at once."""
        return len(self._operations)

    async def outcomes(self, awaitables: Sequence[Awaitable[Any]]) -> list[Any]:
        """Return the result or exception of each operation, in order, when all are done or the time is over.

        The result of a late operation is a `KafkaApiError` (REQUEST_TIMED_OUT). If too many operations wait,
        all results are this error. Cancelling this coroutine does not cancel the operations.
        """
        futures = [asyncio.ensure_future(each) for each in awaitables]
        if not all(future.done() for future in futures):
            if len(self._operations) >= DELAYED_OPERATIONS_MAX:
                for future in futures:
                    future.cancel()
                return [_late(f"More than {DELAYED_OPERATIONS_MAX} changes of ACLs wait")] * len(futures)
            await asyncio.shield(self._operation(self._watched(futures)))
        return [_outcome(future, self.timeout_ms) for future in futures]

    def _operation(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._operations.add(task)
        task.add_done_callback(self._operations.discard)
        return task

    async def _watched(self, futures: Sequence[asyncio.Future[Any]]) -> None:
        for future in futures:
            future.add_done_callback(_retrieved)
        try:
            await asyncio.wait(futures, timeout=self.timeout_ms / 1000)
        finally:
            for future in futures:
                future.cancel()

    async def close(self) -> None:
        """Cancel all operations; waiting callers get the cancellation."""
        operations = list(self._operations)
        for operation in operations:
            operation.cancel()
        await asyncio.gather(*operations, return_exceptions=True)


def _retrieved(future: asyncio.Future[Any]) -> None:
    """Retrieve an exception, so that asyncio does not report it."""
    if not future.cancelled():
        future.exception()


def _outcome(future: asyncio.Future[Any], timeout_ms: int) -> Any:
    if not future.done() or future.cancelled():
        return _late(f"Request has been timed out after {timeout_ms} ms")
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, Exception) else KafkaApiError(ErrorCode.unknown_server_error)


def _late(message: str) -> KafkaApiError:
    return KafkaApiError(ErrorCode.request_timed_out, message)
