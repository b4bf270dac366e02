"""The parts of a month: the trail of access, its labels, and the ranges of its parameters."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Literal, NamedTuple

Kind = Literal[
    "FIRST_SEEN_ACCESS",
    "NEW_HOST",
    "BRUTE_FORCE",
    "MISSING_RIGHT",
    "UNUSUAL_HOURS",
    "TOPIC_ENUMERATION",
    "SUPER_USER_USE",
    "DORMANT_WAKING",
]
KINDS: tuple[Kind, ...] = (
    "FIRST_SEEN_ACCESS",
    "NEW_HOST",
    "BRUTE_FORCE",
    "MISSING_RIGHT",
    "UNUSUAL_HOURS",
    "TOPIC_ENUMERATION",
    "SUPER_USER_USE",
    "DORMANT_WAKING",
)

Span = tuple[int, int]
"""The minimum and the maximum, both inclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """The ranges of a month's parameters; times in whole days or hours, counts per hour."""

    starts: tuple[date, ...]
    history_days: Span
    window_days: Span
    teams: Span
    services: Span
    topics: Span
    humans: Span
    separators: tuple[str, ...]
    zones: tuple[int, ...]
    networks: tuple[str, ...]
    rate: Span
    noise: float
    deploy_every_days: Span
    chronic_denials: Span
    blip_denials: Span
    look_alikes: Span
    labels_per_kind: Span
    foreign_topics: Span
    foreign_days: Span
    brute_attempts: Span
    brute_operations: Span
    brute_hours: Span
    retries: Span
    retry_hours: Span
    enumerated: Span
    night_hours: Span
    dormant_days: Span


class Access(NamedTuple):
    """The key of a count in the trail; `day` counts from the first day of the history."""

    day: int
    principal: str
    host: str
    operation: str
    resource_type: str
    resource_name: str
    decision: str
    access: str
    rule_kind: str


class Label(NamedTuple):
    """A known anomaly: a finding of its kind about its principal on one of its days matches it."""

    kind: Kind
    principal: str
    first_day: int
    last_day: int


@dataclass(slots=True)
class Trail:
    """Counts of events by access and hour of the day."""

    counts: dict[Access, dict[int, int]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(int))
    )

    def use(
        self,
        principal: str,
        host: str,
        operation: str,
        resource: tuple[str, str],
        hours: Iterable[tuple[int, int]],
        *,
        decision: str = "ALLOWED",
        access: str = "ACCESS",
        rule_kind: str | None = None,
    ) -> None:
        """Add `hours`: pairs of an hour since the start of the history and its number of events."""
        rule = rule_kind or ("MatchingAcl" if decision == "ALLOWED" else "DefaultDeny")
        for hour, count in hours:
            day, hour_of_day = divmod(hour, 24)
            key = Access(day, principal, host, operation, *resource, decision, access, rule)
            self.counts[key][hour_of_day] += max(count, 1)


@dataclass(frozen=True, slots=True)
class Month:
    """A history and a window after it, with the labels of the window's anomalies."""

    start: date
    history_days: int
    window_days: int
    trail: Trail
    labels: tuple[Label, ...]
