"""Writes the events of the ring to one sink.

One task for each sink reads the ring with a cursor and has the sink write, off the event loop. If the sink
fails, the task retries until the batch is written. In mode `drop` the ring gives the space of the batch to
new events meanwhile, and a log that ends does not wait for a sink that fails.
"""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext, suppress
from enum import Enum, unique
from typing import Final, Protocol

import structlog

from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.ring import AuditRing, Batch
from kustos.runtime import short_switch_interval

BATCH_MAX_EVENTS: Final = 1000
"""Events handed to a sink at once, some 0.6 MB of JSON: bounds what a repeated write costs."""

MANY_EVENTS: Final = 100
"""Beyond this many events formatting takes long enough for the event loop to notice."""

LINGER_S: Final = 0.05
"""How long events gather before they are written: one hop between threads then serves many requests. A full
batch, or a full log, is written at once: else only twenty of these could be written in a second."""

FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 5.0
"""How long a failed sink is left alone; doubles from the first to the last."""

LOG: Final = structlog.get_logger("kustos.audit")


@unique
class OnFull(Enum):
    """What happens while the log is full or a sink fails (`kustos.audit.on.full`)."""

    BLOCK = "block"
    """No request is decided: clients wait."""
    DENY = "deny"
    """Each new request is refused."""
    DROP = "drop"
    """Requests go on, and the oldest events are lost."""


_CONSEQUENCES: Final = {
    OnFull.BLOCK: "no request is served",
    OnFull.DENY: "every request is refused",
    OnFull.DROP: "once the queue is full, the oldest events are lost",
}


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

    async def write(self, lines: bytes) -> None:
        """Return when all events are durable, as far as the sink can tell; raise `AuditSinkError`.

        `lines`: the events as JSON lines in UTF-8, each with a line feed. Opens the sink if it is not open.
        The ring forgets the events afterwards.
        """

    async def close(self) -> None:
        """Close the sink; raise `AuditSinkError`."""


class SinkWriter:
    """One sink, and how far it has come in the ring.

    `on_written` is called after each batch that left the ring.
    """

    def __init__(
        self,
        sink: AuditSink,
        ring: AuditRing,
        on_full: OnFull,
        queue_max_events: int,
        on_written: Callable[[], None],
    ) -> None:
        self.sink: Final = sink
        self.written = 0
        self.dropped = 0
        self.failures = 0
        self.is_failing = False
        self._ring: Final = ring
        self._cursor: Final = ring.cursor()
        self._on_full: Final = on_full
        self._drops: Final = on_full is OnFull.DROP
        self._limit: Final = queue_max_events
        self._enough_events: Final = min(BATCH_MAX_EVENTS, queue_max_events)
        self._on_written: Final = on_written
        self._wake: Final = asyncio.Event()
        self._has_enough: Final = asyncio.Event()
        self._closing: Final = asyncio.Event()
        self._taken: Batch | None = None
        """In mode `drop`: the batch that has left the ring and is being written."""
        self.notify()

    @property
    def waiting(self) -> int:
        """Events that are in the ring for it."""
        return self._ring.events - self._cursor.events

    @property
    def depth(self) -> int:
        """Events that wait or are being written."""
        return self.waiting + (0 if self._taken is None else self._taken.events)

    @property
    def is_full(self) -> bool:
        """Whether it has as many events to write as it may, or its sink fails."""
        return self.is_failing or self.depth >= self._limit

    def notify(self) -> None:
        """Note that there may be events to write."""
        depth = self.depth
        if depth:
            self._wake.set()
            if depth >= self._enough_events:
                self._has_enough.set()

    def make_room(self, events: int) -> None:
        """Drop the oldest events that wait, as far as so many more exceed the queue. For mode `drop`."""
        excess = self.waiting + events - self._limit
        if excess > 0:
            self.drop_oldest(excess)

    def drop_oldest(self, events: int) -> bool:
        """Drop so many events that wait, or those of one record more; return False if there were none.

        For mode `drop`.
        """
        batch = self._ring.read(self._cursor, events)
        self._ring.advance(self._cursor, batch)
        self.dropped += batch.events
        return batch.events > 0

    def end(self) -> None:
        """Have `run` return once everything is written."""
        self._closing.set()
        self._wake.set()
        self._has_enough.set()

    async def run(self) -> None:
        """Write what comes until `end` was called and nothing waits; after an exception it can run again."""
        while True:
            await self._wake.wait()
            if not self.depth:
                if self._closing.is_set():
                    return
                self._wake.clear()
                continue
            await self._gather()
            await self._write()
            self._on_written()

    async def _gather(self) -> None:
        """Let events gather until there are enough, or for a while."""
        if not self._closing.is_set() and self.depth < self._enough_events:
            self._has_enough.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._has_enough.wait()
        # also where nothing is waited for, others have their turn between two batches
        await asyncio.sleep(0)

    async def _write(self) -> None:
        """Write a batch; after an exception the next call writes the same one."""
        batch = self._taken or self._ring.read(self._cursor, BATCH_MAX_EVENTS)
        if self._drops and self._taken is None:
            self._taken = batch
            self._ring.advance(self._cursor, batch)
        delay_s = FIRST_RETRY_S
        while not await self._is_done_with(batch):
            await self._pause(delay_s)
            delay_s = min(2 * delay_s, LAST_RETRY_S)
        if self._taken is None:
            self._ring.advance(self._cursor, batch)
        self._taken = None

    async def _pause(self, delay_s: float) -> None:
        """Leave a failed sink alone for a while; in mode `drop` the end of the log comes first."""
        if not self._drops:
            await asyncio.sleep(delay_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._closing.wait()

    async def _is_done_with(self, batch: Batch) -> bool:
        """Return whether a batch is written, or dropped."""
        may_drop = self._drops and self._closing.is_set()
        try:
            # a sink formats events on another thread, for which the loop would wait at each system call
            with short_switch_interval() if batch.events > MANY_EVENTS else nullcontext():
                await self.sink.write(batch.lines)
        except AuditSinkError as error:
            self._failed(str(error))
        except Exception:
            # the boundary where a bug in a sink must stop the traffic rather than the writing
            LOG.exception("an audit sink broke", sink=self.sink.name)
            self._failed("an internal error, see the log above")
            # in mode `drop` no event may keep out all those behind it
            may_drop = self._drops
        else:
            self.written += batch.events
            if self.is_failing:
                self.is_failing = False
                LOG.info("the audit sink works again", sink=self.sink.name)
            return True
        self.dropped += batch.events if may_drop else 0
        return may_drop

    def _failed(self, reason: str) -> None:
        self.failures += 1
        self.is_failing = True
        LOG.error(
            "an audit sink does not write",
            sink=self.sink.name,
            reason=reason,
            consequence=_CONSEQUENCES[self._on_full],
        )
