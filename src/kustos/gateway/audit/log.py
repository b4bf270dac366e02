"""The audit log: takes each decision at once, writes it soon, and loses none in mode `block`.

Theory of operation. `record` runs on the event loop within each request, so it only queues the decisions for
each sink: in a lane. One task per lane drains the queue and has the sink write, off the event loop. In the
modes `block` and `deny` (fail closed) the log is full as soon as a lane holds `queue_max_events` or its sink
fails. That is its backpressure: until the sink has written what it refused, the gateway decides nothing more
(`block`), or refuses every new request (`deny`). In mode `drop` a full lane drops new events, a failing sink
drops its batch, and both are counted. Delivery is at least once: after a failure a sink may see events again,
with the same ids.

Each principal has budgets of events (`DecisionBudgets`); beyond them equal decisions become one event a
minute.

In the modes that fail closed events stay in memory that outlives the process until they are written
(`AuditKeeper`). A killed process leaves them to the next one, which recovers them beside its own, a piece at
a time.

`hold` is for changes of ACLs: their event waits here, not yet in a lane, until the offset of the change in
the metadata log is known. The event is written in any case: when the offset is reported, after `HELD_MAX_S`,
or when the log is closed. `security` takes security events, in the same order.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from kustos.authorizer import AuthorizableRequestContext, SecurityEvent
from kustos.client import supervised
from kustos.gateway.audit.budget import AuditBudget, PrincipalKey, key_of
from kustos.gateway.audit.entries import AuditEntry, Entry, RepeatedEntry, SecurityEntry, with_logged_names
from kustos.gateway.audit.journal import AuditKeeper, Piece
from kustos.gateway.audit.lanes import (
    AuditLogClosedError,
    AuditSink,
    AuditSinkError,
    EventsLostError,
    Lane,
    OnFull,
    nothing,
)
from kustos.gateway.audit.security import FULL_RETRY_S, SecurityLog
from kustos.gateway.audit.summaries import DecisionBudgets, Summary
from kustos.protocol import Decided
from kustos.runtime import Clock, SystemClock, short_switch_interval

CLOSE_TIMEOUT_S: Final = 15.0
"""How long closing waits for sinks: longer than one failed attempt, shorter than supervisors wait."""

HELD_MAX_S: Final = 5.0
"""How long an event waits for its change: a hanging disk must not keep a request out of the log."""

HELD_MAX: Final = 10_000
"""Requests whose events may wait, as many as changes may; beyond that they are written at once."""

SUMMARIES_PER_TURN: Final = 256
"""Summaries that one turn of the event loop writes, in some 3 ms."""

LOG: Final = structlog.get_logger("kustos.audit")


class AuditLog:
    """Created inside a running event loop, which alone may call it. Without sinks it keeps nothing."""

    def __init__(
        self,
        sinks: Sequence[AuditSink],
        *,
        queue_max_events: int = 65_536,
        on_full: OnFull = OnFull.BLOCK,
        denied_bytes_per_hour: int = 104_857_600,
        allowed_bytes_per_hour: int = 2**30,
        clock: Clock | None = None,
        keeper: AuditKeeper | None = None,
    ) -> None:
        self.lanes: Final = tuple(Lane(sink, on_full, queue_max_events) for sink in sinks)
        self.refused_requests = 0
        """Requests refused since the log was full, since the start; only in mode `deny`."""
        self._limit: Final = queue_max_events
        self.denies: Final = on_full is OnFull.DENY
        """Whether requests are refused while the log is full."""
        self._blocks: Final = on_full is not OnFull.DROP
        clock = clock or SystemClock()
        self.budgets: Final = DecisionBudgets(
            denied_bytes_per_hour, allowed_bytes_per_hour, clock.monotonic_ms
        )
        self._takes_lease: Final = self.budgets.use.takes_lease
        self._summaries: asyncio.TimerHandle | None = None
        self._wall_ms: Final = clock.wall_ms
        self._number = 0
        self._is_open = True
        self._held: dict[int, tuple[AuditEntry, asyncio.TimerHandle, Callable[[], object]]] = {}
        self._loop: Final = asyncio.get_running_loop()
        self._journals: Final = keeper
        self._keeper: Final = keeper if self._blocks else None
        self.security: Final = SecurityLog(
            self._put_security,
            lambda: self.is_full,
            self._keep_security,
            AuditBudget(denied_bytes_per_hour, clock.monotonic_ms),
        )
        self._tasks: Final = [supervised("audit-lane", lane.run) for lane in self.lanes]
        self._recovering: asyncio.Task[None] | None = None
        if keeper is not None and keeper.has_left:
            self._recovering = supervised("audit-recovery", partial(self._recover, keeper))

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be decided now; never in mode `drop`."""
        if self._blocks:
            for lane in self.lanes:
                if lane.is_failing or lane.depth >= self._limit:
                    return True
        return self._keeper is not None and self._keeper.is_full

    @property
    def is_ready(self) -> bool:
        """Whether every sink writes."""
        return self._is_open and not any(lane.is_failing for lane in self.lanes)

    def record(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        acl_offset: int,
        latency_us: int | None = None,
    ) -> None:
        """Take the decisions of a request, made on the ACLs at this offset; never waits.

        In the modes that fail closed it takes them even when full: every decision must be written. Callers
        check `is_full` before they decide, which keeps the excess small. Raise `AuditLogClosedError` after
        `close`.
        """
        if not self._is_open:
            raise _closed()
        if not (self.lanes and decided):
            return
        now_ms = self._wall_ms()
        admitted = self.budgets.admit(context, decided, now_ms, acl_offset)
        if admitted:
            self._put(self._entry(now_ms, context, admitted, acl_offset, latency_us))
        if len(self.budgets.summaries):
            self._await_summaries()

    def recorder(
        self, context: AuthorizableRequestContext, decided: Sequence[Decided]
    ) -> Callable[[int, int, int], None]:
        """Return a callback that takes the same decisions again, as `record` does.

        It gets the correlation id of the request, the offset of the ACLs, and the latency in microseconds.
        """
        decided, keeper = tuple(decided), self._keeper

        def by_decision(correlation_id: int, acl_offset: int, latency_us: int) -> None:
            self.record(replace(context, correlation_id=correlation_id), decided, acl_offset, latency_us)

        size_bytes = self.budgets.repeated_bytes(context, decided)
        if keeper is None or size_bytes is None or not self.lanes:
            return by_decision
        owner = key_of(context.principal)
        return partial(self._record_again, keeper.repeated(context, decided), owner, size_bytes, by_decision)

    def _record_again(
        self,
        repeated: RepeatedEntry,
        owner: PrincipalKey,
        size_bytes: int,
        by_decision: Callable[[int, int, int], None],
        correlation_id: int,
        acl_offset: int,
        latency_us: int,
    ) -> None:
        if not self._takes_lease(owner, size_bytes):
            by_decision(correlation_id, acl_offset, latency_us)
            return
        if not self._is_open:
            raise _closed()
        self._put(repeated.entry(self._number, self._wall_ms(), correlation_id, acl_offset, latency_us))
        self._number += len(repeated.decided)

    def hold(
        self,
        context: AuthorizableRequestContext,
        decided: Sequence[Decided],
        acl_offset: int,
        latency_us: int | None = None,
    ) -> Callable[[int | None], None]:
        """Take the decisions of a request as `record` does; return the callback for the offset of its change.

        They are written on its first call, with the offset or None, at the latest after `HELD_MAX_S`. Raise
        `AuditLogClosedError` after `close`.
        """
        if not self._is_open:
            raise _closed()
        if not self.lanes or not decided or len(self._held) >= HELD_MAX:
            self.record(context, decided, acl_offset, latency_us)
            return _nobody_listens
        entry = self._entry(self._wall_ms(), context, tuple(decided), acl_offset, latency_us)
        release = partial(self._release, entry.number)
        timer = self._loop.call_later(HELD_MAX_S, release, None)
        self._held[entry.number] = (entry, timer, self._keep_held([entry]))
        return release

    def _entry(
        self,
        time_ms: int,
        context: AuthorizableRequestContext,
        decided: tuple[Decided, ...],
        acl_offset: int,
        latency_us: int | None = None,
    ) -> AuditEntry:
        logged = with_logged_names(decided)
        entry = AuditEntry(self._number, time_ms, context, logged, acl_offset, latency_us=latency_us)
        self._number += len(decided)
        return entry

    def _await_summaries(self) -> None:
        if self._summaries is None and self._is_open:
            delay_s = FULL_RETRY_S if self.is_full else self.budgets.summaries.due_ms / 1000
            self._summaries = self._loop.call_later(delay_s, self._write_due_summaries)

    def _write_due_summaries(self) -> None:
        """Write some summaries; the others wait for a later turn, and for room in the log."""
        self._summaries = None
        try:
            if not self.is_full:
                self._write_summaries(self.budgets.summaries.take(SUMMARIES_PER_TURN))
        finally:
            if len(self.budgets.summaries):
                self._await_summaries()

    def _write_summaries(self, summaries: Sequence[Summary]) -> None:
        for each in summaries:
            entry = self._entry(each.time_ms, each.context, (each.decided,), each.acl_offset)
            # an orderly stop writes all at once, also what the journal has no room for
            self._put(entry, is_kept=self._keeper is not None and not self._keeper.is_full)

    def _release(self, number: int, change_offset: int | None) -> None:
        if (held := self._held.pop(number, None)) is not None:
            entry, timer, on_done = held
            timer.cancel()
            self._put(entry._replace(change_offset=change_offset))
            on_done()

    def _keep_security(self, events: Sequence[SecurityEvent]) -> Callable[[], object]:
        """Keep the events of a change that begins, as they are written if no outcome is reported."""
        numbers = range(self._number, self._number + len(events))
        self._number = numbers.stop
        return self._keep_held([SecurityEntry(*each) for each in zip(numbers, events, strict=True)])

    def _keep_held(self, entries: Sequence[Entry]) -> Callable[[], object]:
        """Keep entries that wait for their outcome; return the callback for when they are in the lanes."""
        if self._keeper is None or not self.lanes:
            return nothing
        return partial(_call_all, [self._keeper.keep(entry, 1)[1] for entry in entries])

    def _put_security(self, event: SecurityEvent) -> None:
        if not self._is_open:
            raise _closed()
        if self.lanes:
            self._put(SecurityEntry(self._number, event))
            self._number += 1

    @property
    def now_ms(self) -> int:
        """The wall time by which entries are stamped."""
        return self._wall_ms()

    def _put(self, entry: Entry, *, is_kept: bool = True) -> None:
        on_done: Callable[[], object] = nothing
        if is_kept and self._keeper is not None and self.lanes:
            entry, on_done = self._keeper.keep(entry, len(self.lanes))
        for lane in self.lanes:
            if self._blocks or lane.depth < self._limit:
                lane.put(entry, on_done)
            else:
                lane.dropped += entry.size

    async def _recover(self, keeper: AuditKeeper) -> None:
        """Write what earlier processes left, one piece after the other.

        After an exception it begins again with the first piece that is not written.
        """
        pieces = keeper.left()
        while (piece := await self._next_piece(pieces)) is not None:
            (*entries, last), on_done = piece
            # a lane keeps the order: with the last entry it has written them all
            written = [asyncio.Event() for _ in self.lanes]
            for lane, event in zip(self.lanes, written, strict=True):
                for entry in entries:
                    lane.put(entry)
                lane.put(last, event.set)
            for event in written:
                await event.wait()
            on_done()

    async def _next_piece(self, pieces: Iterator[Piece]) -> Piece | None:
        with short_switch_interval():
            return await asyncio.to_thread(next, pieces, None)

    async def close(self) -> None:
        """Return when everything is written and the sinks are closed.

        Raise `EventsLostError` where a sink did not take everything in time, or does not close.
        """
        if not self._is_open:
            return
        self.security.close()
        self._is_open = False
        if self._summaries is not None:
            self._summaries.cancel()
        self._write_summaries(self.budgets.summaries.take(is_end=True))
        for number in list(self._held):
            self._release(number, None)
        end_s = self._loop.time() + CLOSE_TIMEOUT_S
        if self._recovering is not None:
            # what it does not write is left to the next start; the sinks need time for the other events
            await asyncio.wait([self._recovering], timeout=CLOSE_TIMEOUT_S / 2)
            self._recovering.cancel()
        for lane in self.lanes:
            lane.end()
        lost: list[str] = []
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=max(0, end_s - self._loop.time()))
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
        if self._journals is not None:
            self._journals.close()
        if lost:
            raise EventsLostError("; ".join(lost))


def _call_all(callbacks: Sequence[Callable[[], object]]) -> None:
    for callback in callbacks:
        callback()


def _closed() -> AuditLogClosedError:
    return AuditLogClosedError("the audit log is closed, nothing can be decided any more")


def _nobody_listens(_change_offset: int | None) -> None:
    """Ignore the offset of a change whose event does not wait for it."""
