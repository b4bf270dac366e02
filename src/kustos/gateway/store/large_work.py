"""Runs work that would hold up the event loop on another thread, one piece at a time.

The interpreter runs one thread at a time, so this makes nothing faster: it divides the time into turns so
short that clients of the event loop do not notice. The data worked on must not change meanwhile.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from kustos.runtime import garbage_collection_paused, short_switch_interval

LARGE_ITEMS_MIN: Final = 512
"""Items of a request (ACLs to create, list or put in force) from which it runs on the other thread; fewer
take the event loop some milliseconds at most."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkInterruptedError(Exception):
    """The work was interrupted, as nobody waits for it any more."""


class LargeWork:
    """Runs work in the order of its callers, so that the event loop keeps half of the time."""

    def __init__(self) -> None:
        self._turn: Final = asyncio.Lock()

    async def run(self, work: Callable[["Interruption"], Result], items: int) -> Result:
        """Return what the work returns, run here at once if it has few items; raise what it raises.

        If the caller is cancelled, the work ends when it next checks its `Interruption`, and only then the
        caller: clients that come and go cannot run several pieces at once.
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
                        # nobody else retrieves it from a cancelled one
                        under_way.exception()


class Interruption:
    """Interrupts work on another thread when nobody waits for it any more."""

    def __init__(self) -> None:
        self.has_come = False

    def until_it_comes(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; raise `WorkInterruptedError` once it has come."""
        for item in items:
            if self.has_come:
                raise WorkInterruptedError("nobody waits for it any more")
            yield item
