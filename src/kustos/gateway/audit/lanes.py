"""A lane: one sink of the audit log and its queue. Also the errors that the audit log raises.

One task per lane drains the queue and has the sink write, off the event loop. If the sink fails, a lane
retries until the batch is written; in mode `drop` it drops the batch.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from enum import Enum, unique
from typing import Final, Protocol

import structlog

from kustos.gateway.audit.entries import Entry
from kustos.runtime import short_switch_interval

BATCH_MAX_EVENTS: Final = 1000
"""Events handed to a sink at once, some 0.6 MB of JSON: bounds what a repeated write costs."""

MANY_EVENTS: Final = 100
"""Beyond this many events formatting takes long enough for the event loop to notice."""

LINGER_S: Final = 0.05
"""How long a lane gathers events before it writes: one hop between threads then serves many requests. Whoever
has a batch, or a full queue, writes at once: else it would write twenty of these a second at most."""

FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 5.0
"""How long a failed sink is left alone; doubles from the first to the last."""

LOG: Final = structlog.get_logger("kustos.audit")


@unique
class OnFull(Enum):
    """What happens while the queue is full or the sink fails (`kustos.audit.on.full`)."""

    BLOCK = "block"
    """No request is decided: clients wait."""
    DENY = "deny"
    """Each new request is refused."""
    DROP = "drop"
    """Requests go on, and events are lost."""


_CONSEQUENCES: Final = {
    OnFull.BLOCK: "no request is served",
    OnFull.DENY: "every request is refused",
    OnFull.DROP: "events are lost",
}


class AuditError(Exception):
    """The base class of the audit log's errors."""


class AuditSinkError(AuditError):
    """A sink could not write; none, some or all of the events may be there."""


class AuditLogClosedError(AuditError):
    """A decision came after the log was closed; it must not take effect."""


class EventsLostError(AuditError):
    """The log had to end before its sinks took everything."""


class AuditSink(Protocol):
    """Where events are written. One task calls it, one call at a time."""

    @property
    def name(self) -> str:
        """The sink's name in settings, metrics and logs."""

    @property
    def shortened_events(self) -> int:
        """Events that it wrote with their long texts cut, since they were too large."""

    async def open(self) -> None:
        """Return when it can be written to, harmless if it already is; raise `AuditSinkError`."""

    async def write(self, entries: Sequence[Entry]) -> None:
        """Return when all events are durable, as far as the sink can tell; raise `AuditSinkError`.

        Opens the sink if it is not open. The journal forgets the events afterwards.
        """

    async def close(self) -> None:
        """Close the sink; raise `AuditSinkError`."""


def nothing() -> None:
    """Do nothing: the callback of an entry that no journal keeps."""


class Lane:
    """One sink and its queue, which is full with `queue_max_events`."""

    def __init__(self, sink: AuditSink, on_full: OnFull, queue_max_events: int) -> None:
        self.sink: Final = sink
        self.depth = 0
        """Events that wait or are being written."""
        self.written = 0
        self.dropped = 0
        self.failures = 0
        self.is_failing = False
        self._on_full: Final = on_full
        self._queue: deque[tuple[Entry, int, Callable[[], object]]] = deque()
        """Entries, their sizes, and their callbacks."""
        self._enough_events: Final = min(BATCH_MAX_EVENTS, queue_max_events)
        self._wake = asyncio.Event()
        self._has_enough = asyncio.Event()
        self._closing = asyncio.Event()
        self._batch: tuple[list[Entry], list[Callable[[], object]], int] | None = None
        """The batch that is being written; it survives a failure of `run`."""
        self._done: list[Callable[[], object]] = []
        """The callbacks that are still to be called, the next one last."""

    def put(self, entry: Entry, on_done: Callable[[], object] = nothing) -> None:
        """Queue an entry; `on_done` is called once it is written or dropped."""
        if not self._queue:
            self._wake.set()
        size = entry.size
        self._queue.append((entry, size, on_done))
        self.depth += size
        if self.depth >= self._enough_events:
            self._has_enough.set()

    def end(self) -> None:
        """Have `run` return once everything is written."""
        self._closing.set()
        self._wake.set()
        self._has_enough.set()

    async def run(self) -> None:
        """Write what comes until the lane is ended and empty; after an exception it can run again."""
        while True:
            # a journal frees what is oldest, so all of it at once with the last of these calls
            while self._done:
                self._done.pop()()
            if self._batch is None:
                await self._wake.wait()
                if not self._queue:
                    if self._closing.is_set():
                        return
                    self._wake.clear()
                    continue
                await self._gather()
                self._batch = self._take()
            entries, callbacks, count = self._batch
            await self._write(entries, count)
            self._batch, self._done = None, callbacks
            self.depth -= count

    async def _gather(self) -> None:
        """Let events gather until there are enough, or for a while."""
        if not self._closing.is_set() and self.depth < self._enough_events:
            self._has_enough.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._has_enough.wait()
        # also where nothing is waited for, others have their turn between two batches
        await asyncio.sleep(0)

    def _take(self) -> tuple[list[Entry], list[Callable[[], object]], int]:
        """Return the entries that have waited longest, their callbacks, and the number of their events."""
        entries: list[Entry] = []
        callbacks: list[Callable[[], object]] = []
        count = 0
        while self._queue and count < BATCH_MAX_EVENTS:
            entry, size, on_done = self._queue.popleft()
            entries.append(entry)
            callbacks.append(on_done)
            count += size
        return entries, callbacks, count

    async def _write(self, entries: list[Entry], count: int) -> None:
        delay_s = FIRST_RETRY_S
        while not await self._is_written(entries, count):
            if self._on_full is OnFull.DROP:
                self.dropped += count
                return
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, LAST_RETRY_S)
        self.written += count

    async def _is_written(self, entries: list[Entry], count: int) -> bool:
        try:
            # a sink formats events on another thread, for which the loop would wait at each system call
            with short_switch_interval() if count > MANY_EVENTS else nullcontext():
                await self.sink.write(entries)
        except AuditSinkError as error:
            self._failed(str(error))
            return False
        except Exception:
            # the boundary where a bug in a sink must stop the traffic rather than the writing
            LOG.exception("an audit sink broke", sink=self.sink.name)
            self._failed("an internal error, see the log above")
            return False
        if self.is_failing:
            self.is_failing = False
            LOG.info("the audit sink works again", sink=self.sink.name)
        return True

    def _failed(self, reason: str) -> None:
        self.failures += 1
        self.is_failing = True
        LOG.error(
            "an audit sink does not write",
            sink=self.sink.name,
            reason=reason,
            consequence=_CONSEQUENCES[self._on_full],
        )
