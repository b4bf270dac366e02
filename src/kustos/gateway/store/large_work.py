"""Runs work that would block the event loop on another thread, one piece at a time.

The interpreter runs one thread at a time, so another thread makes nothing faster. It divides the time into
slices so short that clients of the event loop do not notice. The data of the work must not change meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from kustos.runtime import garbage_collection_paused, short_switch_interval

LARGE_ITEMS_MIN: Final = 512
"""The number of items of a request (ACLs to create, list or put in force) from which it runs on the other
thread; fewer take the event loop some milliseconds at most."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkInterruptedError(Exception):
    """The work was interrupted, because no caller waits for it any more."""


class LargeWork:
    """Runs work in the order of its callers, so that the event loop keeps half of the time."""

    def __init__(self) -> None:
        self._turn: Final = asyncio.Lock()

    async def run(self, work: Callable[["Interruption"], Result], items: int) -> Result:
        """Return the result of the work; work with few items runs at once. Raise the errors of the work.

        If the caller is cancelled, the work ends when it next checks its `Interruption`, and the caller ends
        only then: clients that connect and disconnect cannot run several pieces at once.
        """
        interruption = Interruption()
        if items < LARGE_ITEMS_MIN:
            return work(interruption)
        async with self._turn:
            with short_switch_interval(), garbage_collection_paused():
                under_way = asyncio.ensure_future(asyncio.to_thread(work, interruption))
                try:
                    return await asyncio.shield(under_way)
                finally:
                    interruption.has_come = True
                    await asyncio.wait([under_way])
                    if not under_way.cancelled():
                        # no other code retrieves it after a cancellation
                        under_way.exception()


class Interruption:
    """Interrupts work on another thread when no caller waits for it any more."""

    def __init__(self) -> None:
        self.has_come = False

    def until_it_comes(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; raise `WorkInterruptedError` after the interruption."""
        for item in items:
            if self.has_come:
                raise WorkInterruptedError("no caller waits for it any more")
            yield item
