"""The report's data on a replay, on the access review and on findings, each of which may be missing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from pyspark.sql import DataFrame

from kustos.pipeline.queries import answers

FLIPS_SHOWN: Final = 15
"""Bars of each direction: more are unreadable; table `replay_flips` has them all."""
GRANTS_SHOWN: Final = 25
"""Rows of dormant grants; table `access_review` has them all."""
FINDINGS_SHOWN: Final = 12
"""Rows of each kind of finding; table `findings` has them all."""
FINDINGS_PLOTTED: Final = 600
"""Marks on the time line, the most severe first: more are indistinguishable on a wide screen."""
KINDS_MAX: Final = 40
"""Kinds of findings on the page; there are fewer."""
TEXT_MAX: Final = 600
"""Characters kept of a reason."""


@dataclass(frozen=True, slots=True)
class Flip:
    """Requests of one kind that other ACLs decide differently; `allowed` is the new decision."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str | None
    allowed: bool
    requests: int
    hosts: int
    first_time: datetime
    last_time: datetime
    sample_event_id: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay in numbers of requests, and its largest flips; names left out of lists count separately."""

    lost: int
    gained: int
    rule_changed: int
    listing: int
    principals: int
    flips: tuple[Flip, ...]


@dataclass(frozen=True, slots=True)
class DormantGrant:
    """A grant without use for long; `dormant_days` None: its last use and its age are unknown."""

    team: str | None
    principal: str
    operation: str
    resource_type: str
    resource_name: str | None
    pattern_type: str | None
    granted_since: datetime | None
    last_used: datetime | None
    dormant_days: int | None


@dataclass(frozen=True, slots=True)
class Grants:
    """All grants by the days since their last use (`ages`: label and count), and the most dormant ones."""

    grants: int
    dormant: int
    unknown: int
    """Dormant ones without a recorded use, of which nothing says since when they are granted."""
    too_early: int
    """The grants for which it is too early to say whether they are dormant."""
    recorded_days: int | None
    covered_since: date | None
    """What the record covers, as in the table; None: not even its last days, or an older review."""
    ages: tuple[tuple[str, int], ...]
    most_dormant: tuple[DormantGrant, ...]


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One finding; `first_time` None where it is about an ACL and not about a moment.

    `state` None: nothing is known over runs. `is_new`: first recorded since the page before.
    """

    finding_id: str
    state: str | None
    is_new: bool
    acknowledged_by: str | None
    kind: str
    severity: str
    score: float | None
    principal: str | None
    resource_type: str | None
    resource_name: str | None
    first_time: datetime | None
    last_time: datetime | None
    reason: str
    is_safe_to_remove: bool | None
    is_about_acl: bool


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one kind: how many, the first of them, and marks on the time line as parts of its width."""

    kind: str
    count: int
    high: int
    shown: tuple[FindingRow, ...]
    marks: tuple[tuple[float, float, FindingRow], ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """All kinds, the gravest first, and how many are in which state; suppressed ones are counted only.

    `new`: first recorded since the page before, None without one. `recorded_at`: when the newest was.
    """

    count: int
    kinds: tuple[FindingGroup, ...]
    new: int | None = None
    open: int = 0
    acknowledged: int = 0
    suppressed: int = 0
    resolved: int = 0
    recorded_at: datetime | None = None


def utc(time: datetime | None) -> datetime | None:
    """Return a time in UTC: Spark returns local time without a zone."""
    return None if time is None else time.astimezone(UTC)


def collect_replayed(flips: DataFrame) -> Replayed:
    """Return the replay of a table `replay_flips`."""
    sums = answers.replay_totals(flips).collect()[0].asDict()
    rows = [_in_utc(row.asDict()) for row in answers.largest_flips(flips, FLIPS_SHOWN).collect()]
    rows.sort(key=lambda row: (row["allowed"], row.pop("place")))
    return Replayed(**sums, flips=tuple(Flip(**row) for row in rows))


def collect_grants(review: DataFrame) -> Grants:
    """Return the grants of an `access_review` table."""
    by_age = answers.grants_by_age(review).collect()
    found = {row["age"]: int(row["grants"]) for row in by_age}
    dormant = answers.most_dormant(review, GRANTS_SHOWN).collect()
    return Grants(
        grants=sum(found.values()),
        dormant=sum(int(row["dormant"]) for row in by_age),
        unknown=sum(int(row["unknown"]) for row in by_age),
        too_early=sum(int(row["too_early"]) for row in by_age),
        **answers.record_of_review(review).collect()[0].asDict(),
        ages=tuple((label, found.get(label, 0)) for label in answers.AGES),
        most_dormant=tuple(DormantGrant(**_in_utc(row.asDict())) for row in dormant),
    )


def collect_findings(
    findings: DataFrame,
    first_time: datetime | None,
    last_time: datetime | None,
    since: datetime | None = None,
) -> Findings:
    """Return the findings of `findings` tables and of `anomaly_states`.

    Marks stand between the times of the report. `since`: when the newest finding of the page before was
    recorded.
    """
    stated = answers.with_state(findings, since)
    sums = _in_utc(answers.finding_sums(stated).collect()[0].asDict())
    if since is None:
        sums["new"] = None
    findings = stated.filter("state is null or state <> 'SUPPRESSED'")
    counts = answers.findings_by_kind(findings).limit(KINDS_MAX).collect()
    gravest = answers.gravest_of_each_kind(findings, FINDINGS_SHOWN).collect()
    shown = _by_kind(sorted(gravest, key=lambda row: row["place"]))
    plotted = _by_kind(answers.gravest_in_time(findings, FINDINGS_PLOTTED).collect())
    kinds = tuple(
        FindingGroup(
            kind=row["kind"],
            count=int(row["count"]),
            high=int(row["high"]),
            shown=tuple(shown[row["kind"]]),
            marks=tuple(_marks(plotted[row["kind"]], first_time, last_time)),
        )
        for row in counts
    )
    return Findings(count=sum(kind.count for kind in kinds), kinds=kinds, **sums)


def _by_kind(rows: Iterable[Any]) -> Mapping[str, list[FindingRow]]:
    found: defaultdict[str, list[FindingRow]] = defaultdict(list)
    for row in rows:
        values = _in_utc(row.asDict())
        values.pop("place", None)
        values["reason"] = values["reason"][:TEXT_MAX]
        found[values["kind"]].append(FindingRow(**values))
    return found


def _marks(
    findings: Iterable[FindingRow], first_time: datetime | None, last_time: datetime | None
) -> Iterable[tuple[float, float, FindingRow]]:
    if first_time is None or last_time is None:
        return
    span = max(1.0, (last_time - first_time).total_seconds())
    for finding in findings:
        if finding.first_time is None or finding.last_time is None:
            continue
        start = (finding.first_time - first_time).total_seconds() / span
        end = (finding.last_time - first_time).total_seconds() / span
        if end >= 0 and start <= 1:
            yield max(0.0, start), min(1.0, end), finding


def _in_utc(values: dict[str, Any]) -> dict[str, Any]:
    return {name: utc(value) if isinstance(value, datetime) else value for name, value in values.items()}
