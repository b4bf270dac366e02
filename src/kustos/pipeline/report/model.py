"""The data of a report, as values: every list has a limit, for any input."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any, Final

from pyspark.sql import DataFrame

from kustos.pipeline.queries import access
from kustos.pipeline.report.accesses import AccessRow, Matrix, access_row, matrix_of
from kustos.pipeline.report.answers import (
    Findings,
    Grants,
    Replayed,
    collect_findings,
    collect_grants,
    collect_replayed,
    utc,
)
from kustos.pipeline.report.charts import Bar, Chart, chart_of
from kustos.pipeline.report.logins import Logins, collect_logins
from kustos.pipeline.report.news import News, collect_news
from kustos.pipeline.review.period import with_team

MATRIX_PRINCIPALS: Final = 20
"""Rows of the heat map: what fits on a printed page; the rest is summed as others."""
MATRIX_RESOURCES: Final = 15
"""Columns of the heat map: what a landscape page or a wide window can label."""
TOP_DENIALS: Final = 15
"""Bars of the chart: more are unreadable; `access_counts` has them all."""
DRILL_DOWN_ROWS: Final = 12
"""Rows shown of one principal: enough for an overview; `access_counts` has them all."""
BARS_MAX: Final = 96
"""Bars shorter than a day: wide enough to be counted."""
DAYS_MAX: Final = 400
"""Bars of days: a year of them is still legible on a wide screen; then weeks follow."""
TEAMS_MAX: Final = 30
"""Rows of the table of teams."""
MAXIMUM_REASONS: Final = 20
"""Rows of the quarantine table; there are fewer kinds of fault than this."""
MAXIMUM_CONFLICTS: Final = 20
"""Pairs of files shown whose events share ids; `conflicting_file` in the tables has all events."""

BUCKET_SECONDS: Final = tuple(
    [1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400]
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
    accesses: int
    """Distinct accesses and decisions: rows of `access_counts`."""


@dataclass(frozen=True, slots=True)
class TeamRow:
    """What the principals of a team did; None: those of no team."""

    team: str | None
    principals: int
    allowed: int
    denied: int


@dataclass(frozen=True, slots=True)
class QuarantineReason:
    """A kind of fault, how often it came, and one line as an example."""

    reason: str
    line_count: int
    file: str
    sample: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """How many events of a file have the id of an event of the other file with other content, and one id."""

    source_file: str
    conflicting_file: str
    event_count: int
    event_id: str


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report."""

    files: int
    lines: int | None
    outcomes: Mapping[str, int]
    totals: Totals
    denials: tuple[AccessRow, ...]
    matrix: Matrix
    activity: Chart | None
    denied_activity: Chart | None
    """What was denied alone, on a scale of its own."""
    drill_down: tuple[tuple[str, tuple[AccessRow, ...]], ...]
    reasons: tuple[QuarantineReason, ...]
    conflicts: tuple[Conflict, ...] = ()
    replayed: Replayed | None = None
    grants: Grants | None = None
    findings: Findings | None = None
    logins: Logins | None = None
    teams: Mapping[str, str] = field(default_factory=dict)
    """Who answers for a principal, as in `with_team`."""
    by_team: tuple[TeamRow, ...] = ()
    news: News | None = None
    """None: there is no earlier page."""
    cluster: str = ""
    """The cluster that the page is about; empty for lines that name none."""
    others: Mapping[str, int] = field(default_factory=dict)
    """How many events other clusters have."""


def bucket_seconds_for(first: datetime | None, last: datetime | None) -> int:
    """Return the finest width that needs at most BARS_MAX bars, DAYS_MAX if they are days or longer."""
    if first is None or last is None:
        return BUCKET_SECONDS[0]
    span = (last - first).total_seconds()
    return next(
        (w for w in BUCKET_SECONDS if span / w + 2 <= (BARS_MAX if w < DAY_SECONDS else DAYS_MAX)),
        BUCKET_SECONDS[-1],
    )


def collect_report(
    tables: Mapping[str, DataFrame],
    *,
    lines: int | None,
    outcomes: Mapping[str, int],
    files: int,
    since: datetime | None = None,
    findings_since: datetime | None = None,
    teams: Mapping[str, str] | None = None,
) -> Report:
    """Return the report over the tables; the session's time zone must be UTC.

    `lines` None: the runs that filled the tables counted them, so the page leaves them out. With
    `audit_rollup` among the tables whole days are summed up from it. `security_events`, `replay_flips`,
    `access_review` and `findings` are shown if they are among the tables. `since` is the last event of the
    page before, `findings_since` when its newest finding was recorded, `teams` as in `with_team`.
    """
    counts = tables["access_counts"].cache()
    sums = access.totals(counts).collect()[0].asDict()
    totals = Totals(**{**sums, "first_time": utc(sums["first_time"]), "last_time": utc(sums["last_time"])})
    width = bucket_seconds_for(totals.first_time, totals.last_time)
    denials = access.top_denials(counts, TOP_DENIALS).collect()
    cells = access.access_matrix(counts, MATRIX_PRINCIPALS, MATRIX_RESOURCES)
    matrix = matrix_of(cells.collect())
    by_principal: dict[str, list[AccessRow]] = {name: [] for name in matrix.principals if name is not None}
    drill = access.busiest_by_principal(counts, by_principal, DRILL_DOWN_ROWS).collect()
    for row in sorted(drill, key=lambda row: row["place"]):
        by_principal[row["principal"]].append(access_row(row))
    reasons = access.quarantine_reasons(tables["quarantine"]).limit(MAXIMUM_REASONS).collect()
    conflicts = access.conflicts(_with_ids(tables)).limit(MAXIMUM_CONFLICTS).collect()
    by_day = width % DAY_SECONDS == 0 and "audit_rollup" in tables
    buckets = (
        access.activity_by_day(tables["audit_rollup"], width)
        if by_day
        else access.activity(tables["audit_events"], width)
    ).collect()
    bars = _bars(buckets, width)
    news = None if since is None else collect_news(counts, tables["audit_events"], since)
    by_team = access.access_by_team(with_team(counts, teams), TEAMS_MAX).collect() if teams else ()
    counts.unpersist()
    return Report(
        files=files,
        lines=lines,
        outcomes=dict(outcomes),
        totals=totals,
        denials=tuple(map(access_row, denials)),
        matrix=matrix,
        activity=chart_of(bars, width),
        denied_activity=(
            chart_of([Bar(bar.start, 0, bar.denied) for bar in bars], width) if totals.denied else None
        ),
        drill_down=tuple((name, tuple(rows)) for name, rows in by_principal.items()),
        reasons=tuple(QuarantineReason(**row.asDict()) for row in reasons),
        conflicts=tuple(Conflict(**row.asDict()) for row in conflicts),
        replayed=collect_replayed(tables["replay_flips"]) if "replay_flips" in tables else None,
        grants=collect_grants(tables["access_review"]) if "access_review" in tables else None,
        findings=(
            collect_findings(tables["findings"], totals.first_time, totals.last_time, findings_since)
            if "findings" in tables
            else None
        ),
        logins=(
            collect_logins(tables["security_events"], bucket_seconds_for)
            if "security_events" in tables
            else None
        ),
        teams=dict(teams or {}),
        by_team=tuple(TeamRow(**row.asDict()) for row in by_team),
        news=news,
    )


def _with_ids(tables: Mapping[str, DataFrame]) -> DataFrame:
    """Return decisions and security events together, in the columns of `access.conflicts`."""
    columns = ("event_id", "source_file", "conflicting_file")
    found = [tables[name].select(*columns) for name in ("audit_events", "security_events") if name in tables]
    return reduce(DataFrame.unionAll, found)


def _bars(rows: list[Any], width: int) -> list[Bar]:
    if not rows:
        return []
    found = {int(row["bucket_start"]): (row["allowed"], row["denied"]) for row in rows}
    starts = range(min(found), max(found) + 1, width)
    return [Bar(datetime.fromtimestamp(start, UTC), *found.get(start, (0, 0))) for start in starts]
