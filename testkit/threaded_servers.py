"""TCP servers on an event loop in a thread of its own, for tests that block."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

T = TypeVar("T")

CALL_TIMEOUT_S: Final = 60.0
"""Longer than a call takes on a machine with much to do; a call that takes longer is a hang."""

Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ThreadedServers:
    """Servers that run from the beginning of the context to its end, which ends their connections, too."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._servers: dict[int, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)

    async def _serve(self, accept: Accept, host: str, port: int, limit: int) -> None:
        """Listen; `accept` gets each connection, and readers hold some `limit` bytes."""

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            if task is not None:
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            await accept(reader, writer)

        self._servers[port] = await asyncio.start_server(accepted, host, port, limit=limit)

    async def _stop(self) -> None:
        for server in self._servers.values():
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
