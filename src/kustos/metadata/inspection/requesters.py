"""Finds who requested a change, from the audit trail's admin events and the log.

An audit event has the requester, the time, the end of the log at the decision (`acl_offset`), and the offset
of the first record of the request (`change_offset`). For a change in a node's own log that is conclusive: a
request makes one batch, which begins there.

Without `change_offset` (in cluster mode, in events of earlier versions, after a crash) a change came from a
request of its kind that was allowed at an earlier offset, and shortly before it. A request that is the only
candidate for one batch is no candidate for later ones. If several remain, all are named.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kustos.metadata.image import AclAdded
from kustos.metadata.inspection.timeline import LoggedChange

WAIT_MAX_MS: Final = 30_000
"""Longest time from a decision to its records: clients wait no longer (`request.timeout.ms`)."""
CLOCKS_APART_MAX_MS: Final = 1_000
"""Largest clock difference between the deciding and the writing node; they may be the same node."""

_MARKS: Final = ("CreateAcls", "DeleteAcls")


class AuditTrailError(Exception):
    """A line that is not an audit event."""


@dataclass(frozen=True, slots=True)
class AdminEvent:
    """An allowed request to change ACLs."""

    event_id: str
    time_ms: int
    acl_offset: int
    creates: bool
    principal: str
    host: str
    client_id: str | None
    change_offset: int | None = None


@dataclass(frozen=True, slots=True)
class RequestedBy:
    """The requester of a change (one, if `is_exact`), or all possible ones, the latest first."""

    events: tuple[AdminEvent, ...] = ()
    is_exact: bool = False


def admin_events(lines: Iterable[str]) -> Iterator[AdminEvent]:
    """Yield the allowed requests to create and delete ACLs among audit events, one JSON object per line.

    Raises `AuditTrailError` at an incomplete event of such a request, except for a line without a line feed,
    which is still being written.
    """
    for number, line in enumerate(lines, start=1):
        if not any(mark in line for mark in _MARKS):
            continue
        try:
            event = _admin_event(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            if not line.endswith("\n"):
                return
            raise AuditTrailError(f"line {number} is not an audit event: {error!s}") from None
        if event is not None:
            yield event


def _admin_event(fields: dict[str, Any]) -> AdminEvent | None:
    if "event_type" in fields:
        # a security event: a user named `CreateAcls` must not look like a request
        return None
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
        # lines of earlier versions lack the field
        None if (change_offset := fields.get("change_offset")) is None else int(change_offset),
    )


class Requesters:
    """Finds the possible requesters of changes; pass all changes, in log order."""

    def __init__(self, events: Iterable[AdminEvent]) -> None:
        # a sink that failed in between may have an event twice
        once = {event.event_id: event for event in events}
        self._events: Final = sorted(once.values(), key=lambda event: event.time_ms)
        self._times: Final = [event.time_ms for event in self._events]
        self._used: Final[set[int]] = set()
        self._batch = -1
        self._found = RequestedBy()

    def of(self, logged: LoggedChange) -> RequestedBy:
        """Return the request behind a change, or all possible ones."""
        if logged.batch_base_offset != self._batch:
            self._batch = logged.batch_base_offset
            self._found = self._requested_by(logged)
        return self._found

    def _requested_by(self, logged: LoggedChange) -> RequestedBy:
        near = self._candidates(logged)
        events = [self._events[number] for number in near]
        exact = [event for event in events if event.change_offset == logged.batch_base_offset]
        if len(exact) == 1:
            return RequestedBy(tuple(exact), is_exact=True)
        if exact:
            # files of several nodes with their own logs
            return RequestedBy(tuple(exact))
        # a request with a known change elsewhere did not make this one
        near = [number for number in near if self._events[number].change_offset is None]
        if len(near) == 1:
            self._used.update(near)
        return RequestedBy(tuple(self._events[number] for number in near))

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
