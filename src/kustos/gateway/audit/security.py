"""The security events of a node, before they enter the audit log.

Equal failed logins, and logins beyond their principal's budget, are counted in one event (`repeated_logins`).
The event of a change waits for its outcome. It is always written, even if the client disconnects: when the
outcome is reported, or as UNKNOWN after `CHANGE_MAX_S` or when the log is closed.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kustos.authorizer import SecurityEvent, SecurityResult
from kustos.gateway.audit.budget import AuditBudget
from kustos.gateway.audit.repeated_logins import WINDOW_S, RepeatedLogins

CHANGE_MAX_S: Final = 5.0
"""How long the event of a change waits for its outcome; a later outcome becomes a second event."""

CHANGES_MAX: Final = 10_000
"""Changes whose events may wait; further events are written as UNKNOWN at once."""

FULL_RETRY_S: Final = 1.0
"""The delay before a window that ended while the log was full is ended again; the window continues until
then."""

OutcomeReport = Callable[[Sequence[SecurityEvent]], None]
"""Reports the outcome of a change, as the events to write for it."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The events of a change in flight, and the callback that puts its outcome into the log."""

    events: tuple[SecurityEvent, ...]
    timer: asyncio.TimerHandle
    settle: OutcomeReport


class SecurityLog:
    """The security log, created inside a running event loop.

    `put` adds an event to the audit log; `is_full` returns whether counted events must wait.

    `keep` stores events so that they outlive the process, and returns the callback that replaces them by the
    outcome. Events after `close` go to `put`, which refuses them: they must not take effect.
    """

    def __init__(
        self,
        put: Callable[[SecurityEvent], None],
        is_full: Callable[[], bool],
        keep: Callable[[Sequence[SecurityEvent]], OutcomeReport],
        budget: AuditBudget,
    ) -> None:
        self.logins: Final = RepeatedLogins(budget)
        self._put: Final = put
        self._keep: Final = keep
        self._is_full: Final = is_full
        self._loop: Final = asyncio.get_running_loop()
        self._window: asyncio.TimerHandle | None = None
        self._held: Final[dict[int, _Held]] = {}
        self._number = 0
        self._is_open = True

    def record(self, event: SecurityEvent) -> None:
        """Take an event at once."""
        self._put(event)

    def admit(self, login: SecurityEvent) -> None:
        """Take a successful login or the end of its session; beyond its budget the event is counted."""
        if not self._is_open:
            self._put(login)
        reported = self.logins.add(login)
        if reported is not None:
            self._put(reported)
        self._begin_window()

    def count(self, failure: SecurityEvent) -> None:
        """Take a failed login, or count it with equal ones."""
        if not self._is_open:
            self._put(failure)
        reported = self.logins.add(failure, may_report=not self._is_full())
        if reported is not None:
            self._put(reported)
        self._begin_window()

    def _begin_window(self) -> None:
        if self._window is None:
            self._window = self._loop.call_later(WINDOW_S, self._end_window)

    def _end_window(self) -> None:
        self._window = None
        if self._is_full():
            # unauthenticated clients must not add to a log that is full
            self._window = self._loop.call_later(FULL_RETRY_S, self._end_window)
            return
        for event in self.logins.end_window():
            self._put(event)

    def hold(self, events: Sequence[SecurityEvent]) -> OutcomeReport:
        """Keep the events of a change that starts; return the callback for its outcome."""
        self._number += 1
        number = self._number
        if not self._is_open or len(self._held) >= CHANGES_MAX:
            for event in _unknown(events):
                self._put(event)
        else:
            settle = self._keep(events)
            timer = self._loop.call_later(CHANGE_MAX_S, self._give_up, number)
            self._held[number] = _Held(tuple(events), timer, settle)

        def report_outcome(outcomes: Sequence[SecurityEvent]) -> None:
            held = self._held.pop(number, None)
            if held is not None:
                held.timer.cancel()
                held.settle(outcomes)
            elif self._is_open:  # else it was written as UNKNOWN
                for event in outcomes:
                    self._put(event)

        return report_outcome

    def _give_up(self, number: int) -> None:
        held = self._held.pop(number)
        held.timer.cancel()
        held.settle(_unknown(held.events))

    def close(self) -> None:
        """Write the counted and the waiting events; further calls have no effect."""
        if not self._is_open:
            return
        self._is_open = False
        for number in list(self._held):
            self._give_up(number)
        if self._window is not None:
            self._window.cancel()
        for event in self.logins.end_window():
            self._put(event)


def _unknown(events: Sequence[SecurityEvent]) -> list[SecurityEvent]:
    return [replace(event, result=SecurityResult.UNKNOWN) for event in events]
