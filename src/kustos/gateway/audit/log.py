"""The audit log: accepts each decision at once, writes it soon, and loses no event in mode `block`.

Theory of operation. `record` runs on the event loop within each request. It formats the decisions and puts
them into the ring (`AuditRing`), which outlives the process in the modes that fail closed. One task for each
sink writes the events of the ring (`SinkWriter`). In the modes `block` and `deny` (fail closed) the log is
full when `queue_max_events` wait for a sink, a sink fails, or half of the ring is in use. Until the log has
space again, the gateway decides no more requests (`block`), or refuses every new request (`deny`). In mode
`drop` the log drops the oldest events of a sink that is too slow or fails, and counts them. Delivery is at
least once: after a failure a sink may get events again, with the same ids.

Each principal has budgets of events (`DecisionBudgets`). Beyond them, equal decisions become one event a
minute.

After a process was killed, the next process of the same name continues with its ring. Rings of processes that
will not return are copied into the ring, a piece at a time.

`hold` is for changes of ACLs: their event waits for the offset of the change in the metadata log. The event
is written in any case: when the offset is reported, after `HELD_MAX_S`, or when the log is closed. `security`
takes security events, in the same order.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final

from kustos.authorizer import AuthorizableRequestContext, SecurityEvent
from kustos.client import supervised
from kustos.gateway.audit.budget import Account, AuditBudget
from kustos.gateway.audit.errors import AuditLogClosedError, AuditSinkError, EventsLostError
from kustos.gateway.audit.events import AuditEvents, RepeatedRequest, RequestEvents
from kustos.gateway.audit.ring import AuditRingError, RingCursor
from kustos.gateway.audit.rings import AuditRings
from kustos.gateway.audit.security import FULL_RETRY_S, OutcomeReport, SecurityLog
from kustos.gateway.audit.sink_writer import BATCH_MAX_EVENTS, MANY_EVENTS, AuditSink, OnFull, SinkWriter
from kustos.gateway.audit.summaries import DecisionBudgets, Summary
from kustos.protocol import Decided
from kustos.runtime import Clock, SystemClock

CLOSE_TIMEOUT_S: Final = 15.0
"""How long `close` waits for sinks: longer than one failed attempt, shorter than supervisors wait."""

HELD_MAX_S: Final = 5.0
"""How long an event waits for its change: a disk that hangs must not keep a request out of the log."""

HELD_MAX: Final = 10_000
"""Requests whose events may wait, as many as changes may wait; further events are written at once."""

SUMMARIES_PER_TURN: Final = 256
"""Summaries that one turn of the event loop writes, in about 3 ms."""


@dataclass(slots=True)
class RepeatedDecisions:
    """The decisions of a request, to be recorded again for the requests that repeat it."""

    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    request: RepeatedRequest
    size_bytes: int
    """The size of the events, which counts against the budget of the principal."""
    account: Account
    """The account of the principal, with the lease of repeated requests."""


class AuditLog:
    """The audit log of one event loop, created inside it. Without sinks it keeps no events."""

    def __init__(
        self,
        events: AuditEvents,
        sinks: Sequence[AuditSink],
        *,
        queue_max_events: int = 65_536,
        on_full: OnFull = OnFull.BLOCK,
        denied_bytes_per_hour: int = 104_857_600,
        allowed_bytes_per_hour: int = 2**30,
        clock: Clock | None = None,
        rings: AuditRings | None = None,
    ) -> None:
        self._rings: Final = rings or AuditRings()
        self._ring: Final = self._rings.own
        self._progress: Final = asyncio.Event()
        """Set when a sink has written a batch."""
        self.writers: Final = tuple(
            SinkWriter(sink, self._ring, on_full, queue_max_events, self._progress.set) for sink in sinks
        )
        self.refused_requests = 0
        """Requests refused because the log was full, since the start; only in mode `deny`."""
        self.denies: Final = on_full is OnFull.DENY
        """Whether requests are refused while the log is full."""
        self._can_be_full: Final = bool(sinks) and on_full is not OnFull.DROP
        """Whether the log fails closed and so can be full."""
        self._limit: Final = queue_max_events
        self._put: Final[Callable[[bytes, int], object]] = (
            self._put_or_drop if on_full is OnFull.DROP else self._ring.put
        )
        """Takes JSON lines and their number; raises `AuditRingError`."""
        clock = clock or SystemClock()
        self.budgets: Final = DecisionBudgets(
            denied_bytes_per_hour, allowed_bytes_per_hour, clock.monotonic_ms
        )
        self._summaries: asyncio.TimerHandle | None = None
        self._wall_ms: Final = clock.wall_ms
        self._events: Final = events
        self._number = 0
        self._is_open = True
        self._held: dict[int, tuple[RequestEvents, asyncio.TimerHandle, Callable[[bytes, int], object]]] = {}
        self._loop: Final = asyncio.get_running_loop()
        self.security: Final = SecurityLog(
            self._put_security,
            lambda: self.is_full,
            self._hold_security,
            AuditBudget(denied_bytes_per_hour, clock.monotonic_ms),
        )
        self._tasks: Final = [supervised("audit-sink", each.run) for each in self.writers]
        self._recovering: asyncio.Task[None] | None = None
        if self.writers and self._rings.left:
            self._recovering = supervised("audit-recovery", self._recover)

    @property
    def is_full(self) -> bool:
        """Whether decisions must wait now; always False in mode `drop`."""
        if not self._can_be_full:
            return False
        ring = self._ring
        for each in self.writers:
            if each.is_failing or ring.events - each.cursor.events >= self._limit:
                return True
        return ring.head >= ring.full_from

    @property
    def is_ready(self) -> bool:
        """Whether every sink writes."""
        return self._is_open and not any(each.is_failing for each in self.writers)

    def record(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        acl_offset: int,
        latency_us: int | None = None,
    ) -> None:
        """Take the decisions of a request, made on the ACLs at this offset; never wait.

        In the modes that fail closed the log takes them even if it is full, because every decision must be
        written. Callers check `is_full` before they decide, which keeps the excess small. Raise
        `AuditLogClosedError` after `close`, and `AuditRingError` if the ring has no space; the decisions then
        must not take effect.
        """
        if not self._is_open:
            raise _closed()
        if not (self.writers and decided):
            return
        now_ms = self._wall_ms()
        admitted = self.budgets.admit(context, decided, now_ms, acl_offset)
        if admitted:
            self._put_request(now_ms, context, admitted, acl_offset, latency_us)
        if len(self.budgets.summaries):
            self._await_summaries()

    def recorder(
        self, context: AuthorizableRequestContext, decided: Sequence[Decided]
    ) -> Callable[[int, int, int], None]:
        """Return a callback that takes the same decisions again, as `record` does.

        Its arguments are the correlation id of the request, the offset of the ACLs, and the latency in
        microseconds.
        """
        decided = tuple(decided)
        size_bytes = self.budgets.repeated_bytes(context, decided)
        if size_bytes is None or not self.writers:
            return partial(self._record_by_decision, context, decided)
        account, request = self.budgets.use.lent(context.principal), self._events.repeated(context, decided)
        return partial(self._record_again, RepeatedDecisions(context, decided, request, size_bytes, account))

    def _record_by_decision(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        correlation_id: int,
        acl_offset: int,
        latency_us: int,
    ) -> None:
        self.record(replace(context, correlation_id=correlation_id), decided, acl_offset, latency_us)

    def _record_again(
        self, again: RepeatedDecisions, correlation_id: int, acl_offset: int, latency_us: int
    ) -> None:
        """Record the events of a repeated request from the principal's lease, or by decision without one."""
        if again.account.lease_bytes < again.size_bytes:
            again.account = self.budgets.use.lent(again.context.principal)
            if again.account.lease_bytes < again.size_bytes:
                self._record_by_decision(again.context, again.decided, correlation_id, acl_offset, latency_us)
                return
        if not self._is_open:
            raise _closed()
        again.account.lease_bytes -= again.size_bytes
        request, number = again.request, self._number
        self._number = number + request.events
        lines = request.lines(number, self._wall_ms(), correlation_id, acl_offset, latency_us)
        self._put(lines, request.events)

    def hold(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        acl_offset: int,
        latency_us: int | None = None,
    ) -> Callable[[int | None], None]:
        """Take the decisions of a request as `record` does; return the callback for the offset of its change.

        The events are written on the first call, with the offset or None, at the latest after `HELD_MAX_S`.
        Raise `AuditLogClosedError` after `close`.
        """
        if not self._is_open:
            raise _closed()
        if not self.writers or not decided or len(self._held) >= HELD_MAX:
            self.record(context, decided, acl_offset, latency_us)
            return _ignore_outcome
        number = self._take_numbers(len(decided))
        request = RequestEvents(
            number, self._wall_ms(), context, tuple(decided), acl_offset, latency_us=latency_us
        )
        settle = self._hold(self._events.lines(request))
        release = partial(self._release, number)
        self._held[number] = (request, self._loop.call_later(HELD_MAX_S, release, None), settle)
        return release

    def _release(self, number: int, change_offset: int | None) -> None:
        if (held := self._held.pop(number, None)) is not None:
            request, timer, settle = held
            timer.cancel()
            settle(self._events.lines(request._replace(change_offset=change_offset)), len(request.decided))

    def _hold(self, lines: bytes) -> Callable[[bytes, int], object]:
        """Keep lines that wait for their outcome in a ring that outlives the process.

        Return the callback that puts the lines with the outcome, and their number.
        """
        if self._ring.is_durable and lines:
            return partial(self._ring.settle, self._ring.hold(lines))
        return self._put

    def _hold_security(self, events: Sequence[SecurityEvent]) -> OutcomeReport:
        """Keep the events of a change that begins, in the form to write if no outcome is reported."""
        if not self.writers:
            return _ignore_outcome
        settle = self._hold(self._security_lines(events))

        def report_outcome(outcomes: Sequence[SecurityEvent]) -> None:
            settle(self._security_lines(outcomes), len(outcomes))

        return report_outcome

    def _security_lines(self, events: Sequence[SecurityEvent]) -> bytes:
        first = self._take_numbers(len(events))
        return b"".join(map(self._events.security_line, count(first), events))

    def _put_security(self, event: SecurityEvent) -> None:
        if not self._is_open:
            raise _closed()
        if self.writers:
            self._put(self._security_lines([event]), 1)

    def _await_summaries(self) -> None:
        if self._summaries is None and self._is_open:
            delay_s = FULL_RETRY_S if self.is_full else self.budgets.summaries.due_ms / 1000
            self._summaries = self._loop.call_later(delay_s, self._write_due_summaries)

    def _write_due_summaries(self) -> None:
        """Write some summaries; the others wait for a later turn and for space in the log."""
        self._summaries = None
        try:
            if not self.is_full:
                self._put_summaries(self.budgets.summaries.take(SUMMARIES_PER_TURN))
        finally:
            if len(self.budgets.summaries):
                self._await_summaries()

    def _put_summaries(self, summaries: Sequence[Summary]) -> None:
        for each in summaries:
            self._put_request(each.time_ms, each.context, (each.decided,), each.acl_offset)

    def _put_request(
        self,
        time_ms: int,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        acl_offset: int,
        latency_us: int | None = None,
    ) -> None:
        count = len(decided)
        request = RequestEvents(
            self._take_numbers(count), time_ms, context, decided, acl_offset, latency_us=latency_us
        )
        self._put(self._events.lines(request), count)

    def _take_numbers(self, count: int) -> int:
        """Reserve this many event numbers; return the first one."""
        number = self._number
        self._number += count
        return number

    @property
    def now_ms(self) -> int:
        """The wall time by which events are stamped."""
        return self._wall_ms()

    def _put_or_drop(self, lines: bytes, events: int) -> None:
        """Put lines in mode `drop`: if the ring is full, drop the oldest events of the slowest sinks."""
        for each in self.writers:
            excess = self._ring.events - each.cursor.events + events - self._limit
            if excess > 0:
                each.drop_oldest(excess)
        while not self._ring.has_room(len(lines)):
            slowest = min(self.writers, key=lambda each: each.cursor.events)
            if not slowest.drop_oldest(1):
                for each in self.writers:
                    each.dropped += events
                return
        self._ring.put(lines, events)

    async def _recover(self) -> None:
        """Copy the rings of earlier processes into the ring of this one, a piece at a time, and remove them.

        A piece is freed when every sink has written it. After an exception the copy continues with the first
        piece that is not freed.
        """
        while self._rings.left:
            ring = self._rings.left[0]
            while not ring.is_empty:
                cursor = RingCursor(ring.tail)
                piece = ring.read(cursor, BATCH_MAX_EVENTS)
                for at, line in enumerate(piece.lines.splitlines(keepends=True)):
                    if at % MANY_EVENTS == 0:
                        # the record of a large request has tens of thousands of events: let other tasks run
                        await asyncio.sleep(0)
                    await self._wait_for(partial(self._may_copy, len(line)))
                    self._ring.put(line, 1)
                await self._wait_for(partial(self._has_freed, self._ring.head))
                ring.advance(cursor, piece)
            self._rings.remove(ring)

    def _may_copy(self, size_bytes: int) -> bool:
        # the rest of the ring is for requests that have begun
        return not self._ring.is_full and self._ring.has_room(size_bytes)

    def _has_freed(self, end: int) -> bool:
        return self._ring.tail >= end

    async def _wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds that depends on the progress of a sink."""
        while not condition():
            self._progress.clear()
            await self._progress.wait()

    async def close(self) -> None:
        """Return when all events are written and the sinks are closed.

        Raise `EventsLostError` if a sink did not take all events in time, or does not close.
        """
        if not self._is_open:
            return
        lost: list[str] = []
        try:
            self.security.close()
        except AuditRingError as error:
            lost.append(str(error))
        self._is_open = False
        if self._summaries is not None:
            self._summaries.cancel()
        for number in list(self._held):
            self._release(number, None)
        end_s = self._loop.time() + CLOSE_TIMEOUT_S
        await self._finish_within(CLOSE_TIMEOUT_S / 2)
        for each in self.writers:
            each.end()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=max(0, end_s - self._loop.time()))
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        lost += [reason for each in self.writers if (reason := await _closed_with(each))]
        if left := len(self.budgets.summaries):
            lost.append(f"the journal had no room for {left} sums of decisions")
        self._rings.close()
        if lost:
            raise EventsLostError("; ".join(lost))

    async def _finish_within(self, timeout_s: float) -> None:
        """Put the last summaries, and recover the rings of earlier processes as time permits.

        The next start recovers the rest: the sinks need time for the other events.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._put_last_summaries()
                if self._recovering is not None:
                    await asyncio.wait([self._recovering])
        if self._recovering is not None:
            self._recovering.cancel()

    async def _put_last_summaries(self) -> None:
        while len(self.budgets.summaries):
            if self._can_be_full:
                await self._wait_for(lambda: not self._ring.is_full)
            self._put_summaries(self.budgets.summaries.take(1, is_end=True))


async def _closed_with(writer: SinkWriter) -> str | None:
    """Close a sink; return the reason if events may be lost."""
    if writer.depth:
        # its file or connection may still be in use, so the end of the process closes it
        return f"`{writer.sink.name}` did not take {writer.depth} events"
    try:
        await writer.sink.close()
    except AuditSinkError as error:
        return f"`{writer.sink.name}` did not close: {error}"
    return None


def _closed() -> AuditLogClosedError:
    return AuditLogClosedError("the audit log is closed, so nothing more can be decided")


def _ignore_outcome(_outcome: object) -> None:
    """Ignore the outcome of a change whose event does not wait for it."""
