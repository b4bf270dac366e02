"""Blocking work off the event loop: requests to identity providers, calls of Kerberos' library."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_a_thread(work: Callable[[], T]) -> T:
    """Return what the work returns, or raise what it raises, done in a thread of its own.

    If the loop or the process ends first, nothing waits for the thread.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(settled: Callable[[], None]) -> None:
        if not future.done():
            settled()

    def run() -> None:
        settled: Callable[[], None]
        try:
            settled = partial(future.set_result, work())
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            settled = partial(future.set_exception, error)
        with suppress(RuntimeError):
            # the loop may be closed
            loop.call_soon_threadsafe(settle, settled)

    threading.Thread(target=run, name="in-a-thread", daemon=True).start()
    return await future
