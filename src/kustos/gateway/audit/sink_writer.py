"""Writes the events of the ring to one sink.

For each sink one task reads the ring with a cursor and calls the sink, which writes off the event loop. If
the sink fails, the task retries until the batch is written. In mode `drop` the space of the batch is free for
new events before it is written, and closing the log does not wait for a failing sink.
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
"""Events passed to a sink at once, about 0.6 MB of JSON: bounds the cost of a retry."""

MANY_EVENTS: Final = 100
"""Larger batches take so long to format that the event loop must share the interpreter's lock."""

LINGER_S: Final = 0.05
"""How long events are collected before a write, so that one switch between threads serves many requests. A
full batch and a full log are written at once: otherwise a sink would write only twenty batches a second."""

FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 5.0
"""The longest delay before a failed sink is retried; the delay doubles from the first to this one."""

LOG: Final = structlog.get_logger("kustos.audit")


@unique
class OnFull(Enum):
    """What happens while the log is full or a sink fails (`kustos.audit.on.full`)."""

    BLOCK = "block"
    """No request is decided: clients wait."""
    DENY = "deny"
    """Each new request is refused."""
    DROP = "drop"
    """Requests are served, and the oldest events are lost."""


_CONSEQUENCES: Final = {
    OnFull.BLOCK: "no request is served",
    OnFull.DENY: "every request is refused",
    OnFull.DROP: "once the queue is full, the oldest events are lost",
}


class AuditSink(Protocol):
    """A destination of events. One task calls it, one call at a time."""

    @property
    def name(self) -> str:
        """The sink's name in settings, metrics and logs."""

    @property
    def shortened_events(self) -> int:
        """Events written with their long texts cut, because they were too large."""

    async def open(self) -> None:
        """Return when the sink can write; do nothing if it is open. Raise `AuditSinkError`."""

    async def write(self, lines: bytes) -> None:
        """Return when all events are durable, as far as the sink can tell; raise `AuditSinkError`.

        `lines`: the events as JSON lines in UTF-8, each with a line feed. Opens the sink if it is not open.
        The ring forgets the events afterwards.
        """

    async def close(self) -> None:
        """Close the sink; raise `AuditSinkError`."""


class SinkWriter:
    """One sink, and its progress in the ring. `on_written` is called after each batch that left the ring."""

    def __init__(
        self,
        sink: AuditSink,
        ring: AuditRing,
        on_full: OnFull,
        queue_max_events: int,
        on_written: Callable[[], None],
    ) -> None:
        self.sink: Final = sink
        self.cursor: Final = ring.cursor()
        self.written = 0
        self.dropped = 0
        self.failures = 0
        self.is_failing = False
        self._ring: Final = ring
        self._on_full: Final = on_full
        self._drops: Final = on_full is OnFull.DROP
        self._enough_events: Final = min(BATCH_MAX_EVENTS, queue_max_events)
        self._on_written: Final = on_written
        self._closing: Final = asyncio.Event()
        self._retry_s = FIRST_RETRY_S
        self._taken: Batch | None = None
        """In mode `drop`: the batch that has left the ring and is being written."""

    @property
    def depth(self) -> int:
        """The number of events that wait or are being written."""
        waiting = self._ring.events - self.cursor.events
        return waiting + (0 if self._taken is None else self._taken.events)

    def drop_oldest(self, events: int) -> bool:
        """Drop this many waiting events, or more if the last record has more; return False if none waited.

        For mode `drop`.
        """
        batch = self._ring.read(self.cursor, events)
        self._ring.advance(self.cursor, batch)
        self.dropped += batch.events
        return batch.events > 0

    def end(self) -> None:
        """Let `run` return once everything is written."""
        self._closing.set()
        self.cursor.wake.set()

    async def run(self) -> None:
        """Write events until `end` was called and no event waits.

        After an exception it may be called again, and then starts with the batch that was not written.
        """
        ring, cursor = self._ring, self.cursor
        while True:
            waiting = ring.events - cursor.events
            if self._taken is None and waiting < self._enough_events and not self._closing.is_set():
                cursor.wake.clear()
                cursor.wake_at = cursor.events + (self._enough_events if waiting else 1)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LINGER_S if waiting else None):
                        await cursor.wake.wait()
                if not waiting:
                    continue
            elif not (waiting or self._taken):
                return
            # let other tasks run between two batches
            await asyncio.sleep(0)
            batch = self._taken or ring.read(cursor, BATCH_MAX_EVENTS)
            if self._drops and self._taken is None:
                self._taken = batch
                ring.advance(cursor, batch)
            may_drop = self._drops and self._closing.is_set()
            try:
                # a sink formats events on another thread, for which the loop would wait at each system call
                with short_switch_interval() if batch.events > MANY_EVENTS else nullcontext():
                    await self.sink.write(batch.lines)
            except AuditSinkError as error:
                is_done = self._failed(batch, str(error), may_drop=may_drop)
            except Exception:
                # a bug in a sink must stop the traffic rather than the writing
                LOG.exception("an audit sink broke", sink=self.sink.name)
                # in mode `drop` no event may block the events behind it
                is_done = self._failed(batch, "an internal error, see the log above", may_drop=self._drops)
            else:
                is_done = True
                self.written += batch.events
                if self.is_failing:
                    self.is_failing = False
                    LOG.info("the audit sink works again", sink=self.sink.name)
            if not is_done:
                await self._pause()
                continue
            self._retry_s = FIRST_RETRY_S
            if self._taken is None:
                ring.advance(cursor, batch)
            self._taken = None
            self._on_written()

    def _failed(self, batch: Batch, reason: str, *, may_drop: bool) -> bool:
        """Report a failure, and drop the batch if that is allowed; return whether it was dropped."""
        self.failures += 1
        self.is_failing = True
        LOG.error(
            "an audit sink does not write",
            sink=self.sink.name,
            reason=reason,
            consequence=_CONSEQUENCES[self._on_full],
        )
        if may_drop:
            self.dropped += batch.events
        return may_drop

    async def _pause(self) -> None:
        """Wait before the next attempt; in mode `drop` at most until the log ends."""
        delay_s, self._retry_s = self._retry_s, min(2 * self._retry_s, LAST_RETRY_S)
        if not self._drops:
            await asyncio.sleep(delay_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._closing.wait()
