"""The audit log: takes each decision at once, writes it down soon, and loses none in mode `block`.

Theory of operation. `record` runs on the event loop within each request, so it only puts what was
decided into a queue for each sink: a lane. A task a lane takes what waits and has the sink write it,
off the event loop. In mode `block` (closed on failure) the log is full as soon as a lane holds
`queue_max_events`, or its sink fails: the gateway then decides nothing more until the sink has written
what it refused. In mode `drop` a full lane loses what comes, a failing sink loses what it was given, and
both are counted. A sink may see events again after a failure; their ids tell (at least once).

`hold` is for a change of ACLs: its event waits here, not yet in a lane, until it is known at which offset
of the metadata log the change is. Whatever becomes of the change, the event is written: when it is said,
after `HELD_MAX_S`, or when the log is closed.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

import structlog

from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.audit_entries import AuditEntry
from kustos.protocol.exchange import Decided
from kustos.runtime import Clock, SystemClock

BATCH_MAX_EVENTS: Final = 1000
"""Events handed to a sink at once, some 0.6 MB of JSON: bounds what a repeated write costs."""

LINGER_S: Final = 0.005
"""How long a lane gathers events before it writes: one hop between threads then serves many requests."""

FIRST_RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 5.0
"""How long a failed sink is left alone; doubles from the first to the last."""

CLOSE_TIMEOUT_S: Final = 15.0
"""How long closing waits for sinks: longer than one failed attempt, shorter than supervisors wait."""

HELD_MAX_S: Final = 5.0
"""How long an event waits for its change, so that a disk that hangs keeps nobody's request a secret."""

HELD_MAX: Final = 10_000
"""Requests whose events wait so, as many as changes may; those of more are written at once."""

LOG: Final = structlog.get_logger("kustos.audit")


class AuditError(Exception):
    """The root of what the audit log raises."""


class AuditSinkError(AuditError):
    """A sink could not write; none, some or all of the events may be there."""


class AuditLogClosedError(AuditError):
    """A decision came after the end of the log; it must not take effect."""


class EventsLostError(AuditError):
    """The log had to end before its sinks took everything."""


class AuditSink(Protocol):
    """Where events are written. One task calls it, one call at a time."""

    @property
    def name(self) -> str:
        """The sink's name in settings, metrics and logs."""

    async def open(self) -> None:
        """Return when it can be written to, harmless if it already is; raise `AuditSinkError`."""

    async def write(self, entries: Sequence[AuditEntry]) -> None:
        """Return when all events are with whoever keeps them; raise `AuditSinkError`.

        Opens the sink if that was not done.
        """

    async def close(self) -> None:
        """Make durable what was written and let go; raise `AuditSinkError`."""


class Lane:
    """One sink and what waits for it."""

    def __init__(self, sink: AuditSink, blocks_when_full: bool) -> None:
        self.sink: Final = sink
        self.depth = 0
        """Events that wait or are being written."""
        self.written = 0
        self.dropped = 0
        self.failures = 0
        self.is_failing = False
        self._blocks: Final = blocks_when_full
        self._queue: deque[AuditEntry] = deque()
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()

    def put(self, entry: AuditEntry) -> None:
        """Let an entry wait its turn."""
        if not self._queue:
            self._wake.set()
        self._queue.append(entry)
        self.depth += len(entry.decided)

    def end(self) -> None:
        """Have `run` return once everything is written."""
        self._closing.set()
        self._wake.set()

    async def run(self) -> None:
        """Write what comes until the lane is ended and empty."""
        while True:
            await self._wake.wait()
            if not self._queue:
                if self._closing.is_set():
                    return
                self._wake.clear()
                continue
            await asyncio.sleep(0 if self._closing.is_set() else LINGER_S)
            entries, count = self._take()
            await self._write(entries, count)
            self.depth -= count

    def _take(self) -> tuple[list[AuditEntry], int]:
        """Return the entries that have waited longest, and how many events they are."""
        entries: list[AuditEntry] = []
        count = 0
        while self._queue and count < BATCH_MAX_EVENTS:
            entry = self._queue.popleft()
            entries.append(entry)
            count += len(entry.decided)
        return entries, count

    async def _write(self, entries: list[AuditEntry], count: int) -> None:
        delay_s = FIRST_RETRY_S
        while not await self._is_written(entries):
            if not self._blocks:
                self.dropped += count
                return
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, LAST_RETRY_S)
        self.written += count

    async def _is_written(self, entries: list[AuditEntry]) -> bool:
        try:
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
            consequence="no request is served" if self._blocks else "events are lost",
        )


class AuditLog:
    """Made inside a running event loop, which alone may call it. Without sinks it keeps nothing."""

    def __init__(
        self,
        sinks: Sequence[AuditSink],
        *,
        queue_max_events: int = 65_536,
        blocks_when_full: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.lanes: Final = tuple(Lane(sink, blocks_when_full) for sink in sinks)
        self._limit: Final = queue_max_events
        self._blocks: Final = blocks_when_full
        self._wall_ms: Final = (clock or SystemClock()).wall_ms
        self._number = 0
        self._is_open = True
        self._held: dict[int, tuple[AuditEntry, asyncio.TimerHandle]] = {}
        self._loop: Final = asyncio.get_running_loop()
        self._tasks: Final = [self._loop.create_task(lane.run()) for lane in self.lanes]

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be decided now: only ever in mode `block`."""
        if self._blocks:
            for lane in self.lanes:
                if lane.is_failing or lane.depth >= self._limit:
                    return True
        return False

    @property
    def is_ready(self) -> bool:
        """Whether every sink writes."""
        return self._is_open and not any(lane.is_failing for lane in self.lanes)

    def record(
        self, context: AuthorizableRequestContext, decided: Sequence[Decided], acl_offset: int
    ) -> None:
        """Take the decisions of a request, made on the ACLs at this offset; never waits.

        In mode `block` it takes them even when full: what was decided must be written, and who asks
        `is_full` before deciding keeps the excess small. Raise `AuditLogClosedError` after `close`.
        """
        if self._is_open and self.lanes and decided:
            entry = AuditEntry(self._number, self._wall_ms(), context, tuple(decided), acl_offset)
            self._number += len(entry.decided)
            self._put(entry)
        elif not self._is_open:
            raise _closed()

    def hold(
        self, context: AuthorizableRequestContext, decided: Sequence[Decided], acl_offset: int
    ) -> Callable[[int | None], None]:
        """Take the decisions of a request as `record` does, and return how to say where its change is.

        They are written when that is said, with the offset or None, at the latest after `HELD_MAX_S`. The
        first word counts. Raise `AuditLogClosedError` after `close`.
        """
        if not self._is_open:
            raise _closed()
        if not self.lanes or not decided or len(self._held) >= HELD_MAX:
            self.record(context, decided, acl_offset)
            return _nobody_listens
        entry = AuditEntry(self._number, self._wall_ms(), context, tuple(decided), acl_offset)
        self._number += len(entry.decided)
        release = partial(self._release, entry.number)
        self._held[entry.number] = (entry, self._loop.call_later(HELD_MAX_S, release, None))
        return release

    def _release(self, number: int, change_offset: int | None) -> None:
        if (held := self._held.pop(number, None)) is not None:
            entry, timer = held
            timer.cancel()
            self._put(entry._replace(change_offset=change_offset))

    def _put(self, entry: AuditEntry) -> None:
        for lane in self.lanes:
            if self._blocks or lane.depth < self._limit:
                lane.put(entry)
            else:
                lane.dropped += len(entry.decided)

    async def close(self) -> None:
        """Return when everything is written and the sinks are closed.

        Raise `EventsLostError` where a sink did not take everything in time, or does not close.
        """
        if not self._is_open:
            return
        self._is_open = False
        for number in list(self._held):
            self._release(number, None)
        for lane in self.lanes:
            lane.end()
        lost: list[str] = []
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=CLOSE_TIMEOUT_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for lane in self.lanes:
            if lane.depth:
                # its file or connection may still be in use, so it is left to the end of the process
                lost.append(f"`{lane.sink.name}` did not take {lane.depth} events")
                continue
            try:
                await lane.sink.close()
            except AuditSinkError as error:
                lost.append(f"`{lane.sink.name}` did not close: {error}")
        if lost:
            raise EventsLostError("; ".join(lost))


def _closed() -> AuditLogClosedError:
    return AuditLogClosedError("the audit log is closed, nothing can be decided any more")


def _nobody_listens(_change_offset: int | None) -> None:
    """Take the word on a change whose event does not wait for it."""
