"""Counts repeated logins in one event, so that a flood neither fills the audit log nor is missing from it.

Theory of operation. Logins are counted by kind. The first login of a kind is reported at once. Further logins
within the window are counted, and its end reports them as one event with their number. The `attempt_count` of
exactly one event includes each login.

Failures are of one kind if listener, address, mechanism, name and reason are equal. Successful logins are
counted once they exceed the budget of their principal; their kind is the listener and the principal. Clients
choose names freely and may have many addresses, so the numbers of kinds are limited, separately for failures
and for successful logins. Beyond the limits a login counts as a coarser kind, without names, then without
addresses or principals, and is reported only at the end of the window. A window yields at most two events for
each kind: with 1,024 kinds of failures in five minutes, of 0.6 KB each, about 350 MB a day regardless of the
number of clients.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from kustos.authorizer import SecurityEvent
from kustos.gateway.audit.budget import AuditBudget

WINDOW_S: Final = 300.0
"""How long equal logins are counted in one event: the longest time that an operator waits for the number."""

KINDS_MAX: Final = 1024
"""Kinds of failures, and kinds of successful logins, that are distinguished within a window; about 1 MB for
each of the two with the longest names."""

KINDS_PER_HOST_MAX: Final = 32
"""Kinds of failures from one address: more names than people mistype, and one address cannot use up all
kinds."""

TOO_MANY_OF_HOST: Final = f"more than {KINDS_PER_HOST_MAX} different failures from this address"
TOO_MANY: Final = "more different failures than are distinguished"


@dataclass(slots=True)
class CountedKind:
    """A kind: its last event, the number of unreported events, and the time of the first of these."""

    last: SecurityEvent
    count: int
    first_time_ms: int

    def add(self, event: SecurityEvent) -> None:
        """Count one more event, to be reported later."""
        self.first_time_ms = self.first_time_ms if self.count else event.time_ms
        self.count += 1
        self.last = event


class RepeatedLogins:
    """The failed and successful logins of one window; `budget` limits the events of successful logins.

    Times are the times of the events.
    """

    def __init__(self, budget: AuditBudget) -> None:
        self.counted = 0
        """Successful logins that have no event of their own, since the start."""
        self._budget: Final = budget
        self._kinds: Final[dict[SecurityEvent, CountedKind]] = {}
        self._sizes: Final[Counter[bool]] = Counter()
        """The number of kinds of failures (True) and of successful logins (False)."""
        self._of_host: Final[Counter[str | None]] = Counter()
        """Address → the number of its kinds of failures with names."""

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, login: SecurityEvent, *, may_report: bool = True) -> SecurityEvent | None:
        """Take a login; return it if it must be reported at once, None if it was counted.

        With `may_report` False (the log is full) a login that exceeds its budget, or failed, is counted.
        """
        has_failed = login.failure is not None
        if not has_failed and (login.principal is None or self._budget.admit_one(login.principal)):
            return login
        kinds = _kinds_of_failure(login) if has_failed else _kinds_of_login(login)
        kind = next((each for each in kinds if self._has_room(each, is_exact=each is kinds[0])), kinds[-1])
        key = kind_key(kind)
        if (known := self._kinds.get(key)) is None:
            self._sizes[has_failed] += 1
            self._of_host[kind.host] += has_failed and kind is kinds[0]
            is_reported = kind is kinds[0] and may_report
            self._kinds[key] = CountedKind(kind, 0 if is_reported else 1, login.time_ms)
            if is_reported:
                return login
        else:
            known.add(kind)
        self.counted += not has_failed
        return None

    def _has_room(self, kind: SecurityEvent, *, is_exact: bool) -> bool:
        """Return whether logins can be counted as this kind: it is known, or the limits allow a new kind."""
        if kind_key(kind) in self._kinds:
            return True
        has_failed = kind.failure is not None
        if self._sizes[has_failed] >= KINDS_MAX:
            return False
        return not (has_failed and is_exact) or self._of_host[kind.host] < KINDS_PER_HOST_MAX

    def end_window(self) -> list[SecurityEvent]:
        """Return an event for each kind with counted logins, and start over."""
        reported = [
            replace(kind.last, attempt_count=kind.count, first_time_ms=kind.first_time_ms)
            for kind in self._kinds.values()
            if kind.count
        ]
        for counted in (self._kinds, self._sizes, self._of_host):
            counted.clear()
        return reported


def kind_key(event: SecurityEvent) -> SecurityEvent:
    """Return the common part of equal events: all fields except the times."""
    return replace(event, time_ms=0, first_time_ms=0)


def _kinds_of_failure(failure: SecurityEvent) -> tuple[SecurityEvent, ...]:
    """Return the event, without its name, and without its address."""
    nameless = replace(failure, principal=None, mechanism=None, claimed_name=None, failure=TOO_MANY_OF_HOST)
    return failure, nameless, replace(nameless, host=None, failure=TOO_MANY)


def _kinds_of_login(login: SecurityEvent) -> tuple[SecurityEvent, ...]:
    """Return the event of a principal from any address, and of any principal."""
    anywhere = replace(login, host=None, mechanism=None, claimed_name=None)
    return anywhere, replace(anywhere, principal=None, detail=None)
