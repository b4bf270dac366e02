"""The changes that ACLs on trial would have caused, summarized from the events of the audit log.

Two kinds of ACLs decide without effect: the ACLs of the node, on a listener in mode `shadow`, and candidates.
Events record only different decisions, so the absence of differences proves nothing by itself: the summary
also has the candidates that were evaluated, with the time of their start, and the ones that could not be
evaluated.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any, Final

from kustos.authorizer import AUDIT_SCHEMA_VERSION, SECURITY_SCHEMA_VERSION

CANDIDATE_ACLS: Final = "CANDIDATE_ACLS"
"""The subject of events on candidates."""

MARKS: Final = ('"shadow_decision"', CANDIDATE_ACLS)
"""The marks of relevant lines; most lines have neither."""

HOSTS_MAX: Final = 100
"""Addresses kept for one difference; a number that reaches this limit is a lower bound."""


@unique
class DifferenceKind(Enum):
    """The kind of difference."""

    SHADOW_DENIED = "SHADOW_DENIED"
    """The action passed a listener in mode `shadow`, and the ACLs would have denied it."""
    LOST = "LOST"
    """The ACLs allow the action, and the candidate would deny it."""
    GAINED = "GAINED"
    """The ACLs deny the action, and the candidate would allow it."""
    ERROR = "ERROR"
    """The ACLs on trial gave no answer."""


@dataclass(frozen=True, slots=True)
class DifferenceKey:
    """The key of decisions that are counted together. `candidate` None: the node's own ACLs decided."""

    kind: DifferenceKind
    access: str
    """ACCESS, PROBE (a later check decides) or LISTING (a list was filtered)."""
    principal: str
    operation: str
    resource_type: str
    resource_name: str | None
    rule: str
    candidate: str | None


@dataclass(slots=True)
class DifferenceCount:
    """The number of decisions, the first and last time (milliseconds since the epoch), and the addresses."""

    decisions: int = 0
    first_ms: int = 0
    last_ms: int = 0
    hosts: set[str] = field(default_factory=set)

    def add(self, decisions: int, time_ms: int, host: str) -> None:
        """Count one more event."""
        self.first_ms = min(self.first_ms, time_ms) if self.decisions else time_ms
        self.last_ms = max(self.last_ms, time_ms)
        self.decisions += decisions
        if len(self.hosts) < HOSTS_MAX:
            self.hosts.add(host)


@dataclass(frozen=True, slots=True)
class CandidateLoad:
    """The time at which a candidate was put on trial, or could not be loaded (`failure`)."""

    time_ms: int
    node_id: int
    source: str
    failure: str | None


@dataclass(slots=True)
class TrialSummary:
    """The summary of all lines given to `of`."""

    differences: dict[DifferenceKey, DifferenceCount] = field(default_factory=dict)
    loads: list[CandidateLoad] = field(default_factory=list)
    unreadable: int = 0
    """Lines that look like events on trials but are invalid."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> "TrialSummary":
        """Return the summary of events, one JSON object per line; duplicate events count once."""
        summary = cls()
        seen: set[str] = set()
        for line in lines:
            if any(mark in line for mark in MARKS):
                try:
                    summary._add(json.loads(line), seen)
                except (ValueError, KeyError, TypeError, AttributeError):
                    # a line without a line feed is still being written
                    summary.unreadable += line.endswith("\n")
        summary.loads.sort(key=lambda load: load.time_ms)
        return summary

    @property
    def lost_uses(self) -> int:
        """Decisions on uses, not on lists or probes, that the ACLs on trial would have denied."""
        return sum(
            count.decisions
            for key, count in self.differences.items()
            if key.access == "ACCESS" and key.kind in (DifferenceKind.LOST, DifferenceKind.SHADOW_DENIED)
        )

    @property
    def errors(self) -> int:
        """Decisions for which the ACLs on trial gave no answer."""
        return sum(
            count.decisions for key, count in self.differences.items() if key.kind is DifferenceKind.ERROR
        )

    def sorted(self) -> list[tuple[DifferenceKey, DifferenceCount]]:
        """Return the differences, uses first, then the most frequent."""
        order = ("ACCESS", "PROBE", "LISTING")
        return sorted(
            self.differences.items(),
            key=lambda item: (order.index(item[0].access), -item[1].decisions, item[0].principal),
        )

    def _add(self, event: dict[str, Any], seen: set[str]) -> None:
        event_id = event["event_id"]
        if event_id in seen:
            return
        if event["schema_version"] == SECURITY_SCHEMA_VERSION:
            if event["subject"] == CANDIDATE_ACLS:
                self.loads.append(
                    CandidateLoad(event["time_ms"], event["node_id"], event["detail"], event["failure"])
                )
        elif event["schema_version"] == AUDIT_SCHEMA_VERSION and "shadow_decision" in event:
            for key in _keys(event):
                # a summary event stands for several decisions
                decisions = event["decision_count"] or 1
                count = self.differences.setdefault(key, DifferenceCount())
                count.add(decisions, event["time_ms"], event["host"])
        seen.add(event_id)


def _keys(event: dict[str, Any]) -> Iterator[DifferenceKey]:
    """Yield the differences in an event: by the node's ACLs, by a candidate, or both."""
    if event["access"] == "LISTING":
        access = "LISTING"
    else:
        is_first = not event["log_if_denied"] and event["resource_name"] is not None
        access = "PROBE" if is_first else "ACCESS"
    for name in ("shadow", "candidate"):
        decision = event[f"{name}_decision"]
        if decision is not None:
            yield DifferenceKey(
                _KINDS[name, decision],
                access,
                f"{event['principal_type']}:{event['principal_name']}",
                event["operation"],
                event["resource_type"],
                event["resource_name"],
                event[f"{name}_rule"],
                event["candidate_id"] if name == "candidate" else None,
            )


_KINDS: Final = {
    ("shadow", "DENIED"): DifferenceKind.SHADOW_DENIED,
    ("shadow", "ERROR"): DifferenceKind.ERROR,
    ("candidate", "DENIED"): DifferenceKind.LOST,
    ("candidate", "ALLOWED"): DifferenceKind.GAINED,
    ("candidate", "ERROR"): DifferenceKind.ERROR,
}
