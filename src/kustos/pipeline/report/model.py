"""The data of a report, as values: every list has a limit, for any input."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame

from kustos.pipeline.report.answers import (
    Findings,
    Grants,
    Replayed,
    collect_findings,
    collect_grants,
    collect_replayed,
    utc,
)
from kustos.pipeline.report.logins import Logins, collect_logins
from kustos.pipeline.stages import access

MATRIX_PRINCIPALS: Final = 20
"""Rows of the heat map: what fits on a printed page; the rest is summed as others."""
MATRIX_RESOURCES: Final = 15
"""Columns of the heat map: what a landscape page or a wide window can label."""
TOP_DENIALS: Final = 15
"""Bars of the chart: more are unreadable; `access_counts` has them all."""
DRILL_DOWN_ROWS: Final = 12
"""Rows shown of one principal: enough for an overview; `access_counts` has them all."""
MAXIMUM_BUCKETS: Final = 96
"""Bars over time: the narrowest that are still distinct on a 400 px screen."""
MAXIMUM_REASONS: Final = 20
"""Rows of the quarantine table; there are fewer kinds of fault than this."""

BUCKET_SECONDS: Final = tuple(
    [1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400]
    + [years * 365 * 86400 for years in (10, 100)]
)
"""Widths to choose from; the last covers the years 1970 to 9999 within the limit."""


DAY_SECONDS: Final = 86400


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all events, each of which is allowed, denied or a probe."""

    allowed: int
    denied: int
    probes: int
    denied_listing: int
    error: int
    principals: int
    resources: int
    first_time: datetime | None
    last_time: datetime | None


@dataclass(frozen=True, slots=True)
class AccessRow:
    """One row of `access_counts`; `attempts` leaves out what was only filtered from a list."""

    principal: str
    operation: str
    resource_type: str
    resource_name: str | None
    decision: str
    event_count: int
    attempts: int
    first_time: datetime
    last_time: datetime


@dataclass(frozen=True, slots=True)
class Bucket:
    """Events from `start` until the next bucket."""

    start: datetime
    allowed: int
    denied: int


ResourceLabel = tuple[str, str | None] | None
"""Type and name, None for all others."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """Allowed and denied by (principal, resource); None stands for all others, listed last."""

    principals: tuple[str | None, ...]
    resources: tuple[ResourceLabel, ...]
    cells: Mapping[tuple[str | None, ResourceLabel], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class QuarantineReason:
    """A kind of fault, how often it came, and one line as an example."""

    reason: str
    line_count: int
    file: str
    sample: str


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report."""

    files: int
    lines: int | None
    outcomes: Mapping[str, int]
    totals: Totals
    denials: tuple[AccessRow, ...]
    matrix: Matrix
    bucket_seconds: int
    buckets: tuple[Bucket, ...]
    drill_down: tuple[tuple[str, tuple[AccessRow, ...]], ...]
    reasons: tuple[QuarantineReason, ...]
    replayed: Replayed | None = None
    grants: Grants | None = None
    findings: Findings | None = None
    logins: Logins | None = None


def bucket_seconds_for(first: datetime | None, last: datetime | None) -> int:
    """Return the finest width that needs at most MAXIMUM_BUCKETS buckets."""
    if first is None or last is None:
        return BUCKET_SECONDS[0]
    span = (last - first).total_seconds()
    return next((w for w in BUCKET_SECONDS if span / w + 2 <= MAXIMUM_BUCKETS), BUCKET_SECONDS[-1])


def collect_report(
    tables: Mapping[str, DataFrame], *, lines: int | None, outcomes: Mapping[str, int], files: int
) -> Report:
    """Return the report over the tables; the session's time zone must be UTC.

    `lines` None: the runs that filled the tables counted them, so the page leaves them out. With
    `audit_rollup` among the tables whole days are summed up from it. `security_events`, `replay_flips`,
    `access_review` and `findings` are shown if they are among the tables.
    """
    counts = tables["access_counts"].cache()
    sums = access.totals(counts).collect()[0].asDict()
    totals = Totals(**{**sums, "first_time": utc(sums["first_time"]), "last_time": utc(sums["last_time"])})
    width = bucket_seconds_for(totals.first_time, totals.last_time)
    denials = access.top_denials(counts, TOP_DENIALS).collect()
    cells = access.access_matrix(counts, MATRIX_PRINCIPALS, MATRIX_RESOURCES)
    matrix = _matrix(cells.collect())
    shown = cells.filter("not other_principal")
    drill = access.busiest_by_principal(counts, shown, DRILL_DOWN_ROWS).collect()
    by_principal: dict[str, list[AccessRow]] = {name: [] for name in matrix.principals if name is not None}
    for row in drill:
        by_principal[row["principal"]].append(_access(row))
    reasons = access.quarantine_reasons(tables["quarantine"]).limit(MAXIMUM_REASONS).collect()
    by_day = width % DAY_SECONDS == 0 and "audit_rollup" in tables
    buckets = (
        access.activity_by_day(tables["audit_rollup"], width)
        if by_day
        else access.activity(tables["audit_events"], width)
    ).collect()
    counts.unpersist()
    return Report(
        files=files,
        lines=lines,
        outcomes=dict(outcomes),
        totals=totals,
        denials=tuple(_access(row) for row in denials),
        matrix=matrix,
        bucket_seconds=width,
        buckets=_buckets(buckets, width),
        drill_down=tuple((name, tuple(rows)) for name, rows in by_principal.items()),
        reasons=tuple(QuarantineReason(**row.asDict()) for row in reasons),
        replayed=collect_replayed(tables["replay_flips"]) if "replay_flips" in tables else None,
        grants=collect_grants(tables["access_review"]) if "access_review" in tables else None,
        findings=(
            collect_findings(tables["findings"], totals.first_time, totals.last_time)
            if "findings" in tables
            else None
        ),
        logins=(
            collect_logins(tables["security_events"], bucket_seconds_for)
            if "security_events" in tables
            else None
        ),
    )


def _access(row: Any) -> AccessRow:
    values = row.asDict()
    listing = values.pop("listing_count")
    values["attempts"] = values["event_count"] - listing
    return AccessRow(**{**values, "first_time": utc(row["first_time"]), "last_time": utc(row["last_time"])})


def _matrix(rows: list[Any]) -> Matrix:
    cells: dict[tuple[str | None, ResourceLabel], tuple[int, int]] = {}
    by_principal: dict[str | None, int] = {}
    by_resource: dict[ResourceLabel, int] = {}
    for row in rows:
        resource = None if row["other_resource"] else (row["resource_type"], row["resource_name"])
        principal = None if row["other_principal"] else row["principal"]
        cells[principal, resource] = (row["allowed"], row["denied"])
        total = row["allowed"] + row["denied"]
        by_principal[principal] = by_principal.get(principal, 0) + total
        by_resource[resource] = by_resource.get(resource, 0) + total
    principals = sorted(by_principal, key=lambda name: (name is None, -by_principal[name], name or ""))
    resources = sorted(by_resource, key=lambda label: (label is None, -by_resource[label], str(label)))
    return Matrix(tuple(principals), tuple(resources), cells)


def _buckets(rows: list[Any], width: int) -> tuple[Bucket, ...]:
    if not rows:
        return ()
    found = {int(row["bucket_start"]): (row["allowed"], row["denied"]) for row in rows}
    starts = range(min(found), max(found) + 1, width)
    return tuple(Bucket(datetime.fromtimestamp(start, UTC), *found.get(start, (0, 0))) for start in starts)
