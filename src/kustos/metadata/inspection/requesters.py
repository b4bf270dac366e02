"""Who asked for a change: the audit trail's admin events beside the log.

An audit event names who asked and when, with `acl_offset` how far the log reached when it was decided, and
with `change_offset` where the records of the request begin. Of a change in a node's own log that tells for
certain: a request makes one batch, and the batch begins there.

Without it (in cluster mode, in events of earlier versions, after a crash) a change came from a request of its
kind that was allowed at an offset before the change, and shortly before it. One that alone can have made a
batch made no later one. Where several remain, all are named.
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
    change_offset: int | None = None


@dataclass(frozen=True, slots=True)
class AskedBy:
    """Who asked for a change: for certain (`is_exact`, then it is one), or who may have, the latest first."""

    events: tuple[AdminEvent, ...] = ()
    is_exact: bool = False


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
        # lines of earlier versions have none
        None if (change_offset := fields.get("change_offset")) is None else int(change_offset),
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
        self._found = AskedBy()

    def of(self, logged: LoggedChange) -> AskedBy:
        """Return the request that made a change, or those that may have."""
        if logged.batch_base_offset != self._batch:
            self._batch = logged.batch_base_offset
            self._found = self._asked_by(logged)
        return self._found

    def _asked_by(self, logged: LoggedChange) -> AskedBy:
        near = self._candidates(logged)
        events = [self._events[number] for number in near]
        exact = [event for event in events if event.change_offset == logged.batch_base_offset]
        if len(exact) == 1:
            return AskedBy(tuple(exact), is_exact=True)
        if exact:
            # files of nodes with logs of their own beside each other
            return AskedBy(tuple(exact))
        # one that says where its change is has not made this one
        near = [number for number in near if self._events[number].change_offset is None]
        if len(near) == 1:
            self._used.update(near)
        return AskedBy(tuple(self._events[number] for number in near))

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
