"""Who asked for a change: the audit trail's admin events beside the log.

An audit event is written when a request is decided, before its records are: it names who asked, when, and
with `acl_offset` how far the log reached then. A change came from a request of its kind that was allowed
at an offset before the change, and shortly before it. A request makes one batch: one that alone can have
made a batch made no later one. Where several remain, all are named.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kustos.metadata.image import AclAdded
from kustos.metadata.inspection.timeline import LoggedChange

WAIT_MAX_MS: Final = 30_000
"""From a decision to its records at most: clients wait no longer (`request.timeout.ms`)."""
CLOCKS_APART_MAX_MS: Final = 1_000
"""How far the clocks of who decided and who wrote may differ; one node has but one clock."""

_MARKS: Final = ("CreateAcls", "DeleteAcls")


class AuditTrailError(Exception):
    """A line that is no audit event."""


@dataclass(frozen=True, slots=True)
class AdminEvent:
    """A request to change ACLs that was allowed."""

    event_id: str
    time_ms: int
    acl_offset: int
    creates: bool
    principal: str
    host: str
    client_id: str | None


def admin_events(lines: Iterable[str]) -> Iterator[AdminEvent]:
    """Yield the allowed requests to create and delete ACLs among audit events, one JSON object a line.

    Raises `AuditTrailError` at a line about such a request that is no whole event, but for one without a
    line feed, which is still being written.
    """
    for number, line in enumerate(lines, start=1):
        if not any(mark in line for mark in _MARKS):
            continue
        try:
            event = _admin_event(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            if not line.endswith("\n"):
                return
            raise AuditTrailError(f"line {number} is no audit event: {error!s}") from None
        if event is not None:
            yield event


def _admin_event(fields: dict[str, Any]) -> AdminEvent | None:
    if fields["api_name"] not in _MARKS or fields["decision"] != "ALLOWED":
        return None
    return AdminEvent(
        str(fields["event_id"]),
        int(fields["time_ms"]),
        int(fields["acl_offset"]),
        fields["api_name"] == "CreateAcls",
        f"{fields['principal_type']}:{fields['principal_name']}",
        str(fields["host"]),
        fields["client_id"],
    )


class Requesters:
    """Finds who may have asked for changes, which must be handed in all and in log order."""

    def __init__(self, events: Iterable[AdminEvent]) -> None:
        # a sink that failed in between may hold an event twice
        once = {event.event_id: event for event in events}
        self._events: Final = sorted(once.values(), key=lambda event: event.time_ms)
        self._times: Final = [event.time_ms for event in self._events]
        self._used: Final[set[int]] = set()
        self._batch = -1
        self._found: list[AdminEvent] = []

    def of(self, logged: LoggedChange) -> list[AdminEvent]:
        """Return the requests that may have made a change, the latest first."""
        if logged.batch_base_offset != self._batch:
            self._batch = logged.batch_base_offset
            candidates = self._candidates(logged)
            if len(candidates) == 1:
                self._used.update(candidates)
            self._found = [self._events[number] for number in candidates]
        return self._found

    def _candidates(self, logged: LoggedChange) -> list[int]:
        creates = isinstance(logged.change, AclAdded)
        first = bisect_left(self._times, logged.time_ms - WAIT_MAX_MS)
        last = bisect_right(self._times, logged.time_ms + CLOCKS_APART_MAX_MS)
        return [
            number
            for number in range(last - 1, first - 1, -1)
            if number not in self._used
            and self._events[number].creates is creates
            and self._events[number].acl_offset < logged.batch_base_offset
        ]
