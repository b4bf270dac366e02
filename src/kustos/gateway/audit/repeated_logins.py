"""Repeated logins counted together, so that a flood of them neither fills the audit log nor is lost in it.

Theory of operation. The first failure of a kind (the same listener, address, mechanism, name and reason) is
reported at once. Equal ones within the window are counted, and its end reports them as one event with their
number. Clients choose names freely and may have many addresses, so kinds are limited: failures beyond
`KINDS_PER_HOST_MAX` of one address are counted without their names, and those beyond `KINDS_MAX` without
their addresses. Each failure is in exactly one event's `attempt_count`. A window yields two events for each
kind at most: with 1,024 kinds in five minutes, of 0.6 KB each, some 350 MB a day however many strangers there
are.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from kustos.authorizer import SecurityEvent
from kustos.gateway.audit.budget import AuditBudget

WINDOW_S: Final = 300.0
"""How long equal failures are counted in one event: the longest that an operator waits for the number."""

KINDS_MAX: Final = 1024
"""Kinds that are distinguished within a window, about 1 MB with the longest names."""

KINDS_PER_HOST_MAX: Final = 32
"""Kinds of one address: more names than people mistype, too few for one address to take all places."""

TOO_MANY_OF_HOST: Final = f"more than {KINDS_PER_HOST_MAX} different failures from this address"
TOO_MANY: Final = "more different failures than are distinguished"


@dataclass(slots=True)
class CountedKind:
    """A kind: its last event, how many were not reported yet, and since when."""

    last: SecurityEvent
    count: int
    first_time_ms: int

    def add(self, event: SecurityEvent) -> None:
        """Count one more event, to be reported later."""
        self.first_time_ms = self.first_time_ms if self.count else event.time_ms
        self.count += 1
        self.last = event


class FailedLogins:
    """The failures of one window. Times are those of the events."""

    def __init__(self) -> None:
        self._kinds: Final[dict[SecurityEvent, CountedKind]] = {}
        self._of_host: Final[Counter[str | None]] = Counter()

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, failure: SecurityEvent, *, may_report: bool = True) -> SecurityEvent | None:
        """Take a failure; return it if it must be reported at once, None if it was counted.

        With `may_report` False (the log is full) it is counted in any case.
        """
        for kind in (failure, _without_name(failure), _without_host(failure)):
            key = kind_key(kind)
            known = self._kinds.get(key)
            if known is not None:
                known.add(kind)
                return None
            is_exact = kind is failure
            if self._has_room(kind.host, is_exact=is_exact):
                self._of_host[kind.host] += is_exact
                is_reported = is_exact and may_report
                self._kinds[key] = CountedKind(kind, 0 if is_reported else 1, failure.time_ms)
                return failure if is_reported else None
        raise AssertionError("failures without an address always have room")

    def _has_room(self, host: str | None, *, is_exact: bool) -> bool:
        # without an address there are as many kinds as listeners
        if host is None:
            return True
        if len(self._kinds) >= KINDS_MAX:
            return False
        return not is_exact or self._of_host[host] < KINDS_PER_HOST_MAX

    def end_window(self) -> list[SecurityEvent]:
        """Return an event for each kind with counted failures, and start over."""
        reported = reports(self._kinds.values())
        self._kinds.clear()
        self._of_host.clear()
        return reported


def reports(kinds: Iterable[CountedKind]) -> list[SecurityEvent]:
    """Return an event for each kind with events that were not reported."""
    return [
        replace(kind.last, attempt_count=kind.count, first_time_ms=kind.first_time_ms)
        for kind in kinds
        if kind.count
    ]


def kind_key(event: SecurityEvent) -> SecurityEvent:
    """Return what equal events have in common: all but their times."""
    return replace(event, time_ms=0, first_time_ms=0)


def _without_name(failure: SecurityEvent) -> SecurityEvent:
    return replace(failure, principal=None, mechanism=None, claimed_name=None, failure=TOO_MANY_OF_HOST)


def _without_host(failure: SecurityEvent) -> SecurityEvent:
    return replace(_without_name(failure), host=None, failure=TOO_MANY)


class FrequentLogins:
    """The logins of one window that exceeded the budget. Times are those of the events."""

    def __init__(self, budget: AuditBudget) -> None:
        self.counted = 0
        """Logins that have no event of their own, since the start."""
        self._budget: Final = budget
        self._kinds: Final[dict[SecurityEvent, CountedKind]] = {}

    def add(self, login: SecurityEvent) -> SecurityEvent | None:
        """Take a login; return it if it must be reported at once, None if it was counted."""
        if login.principal is None or self._budget.admit_one(login.principal):
            return login
        kind = replace(login, host=None, mechanism=None, claimed_name=None)
        key = kind_key(kind)
        if key not in self._kinds and len(self._kinds) >= KINDS_MAX:
            kind = replace(kind, principal=None)
            key = kind_key(kind)
        known = self._kinds.get(key)
        if known is None:
            self._kinds[key] = CountedKind(kind, 0, login.time_ms)
            return login
        known.add(kind)
        self.counted += 1
        return None

    def end_window(self) -> list[SecurityEvent]:
        """Return an event for each kind with counted logins, and start over."""
        reported = reports(self._kinds.values())
        self._kinds.clear()
        return reported
