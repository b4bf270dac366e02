"""The report on the tables that runs fill, and on the result tables of the other commands."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.pipeline.errors import AuditInputError, ReportOutputError
from kustos.pipeline.progress import Progress, silent
from kustos.runtime import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kustos.pipeline.tables import Tables

REPORT_STEPS: Final = ("summing up access", "drawing the report")
ANSWERS: Final = ("replay_flips", "access_review")
FINDINGS: Final = ("findings", "anomalies", "history_findings")
"""Tables of findings, which the page shows as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesReportSummary:
    """The numbers of a page; `answers` are the result tables that existed."""

    events: int
    quarantined: int
    allowed: int
    denied: int
    probes: int
    principals: int
    resources: int
    failed_logins: int
    answers: tuple[str, ...]
    report: str

    def as_dict(self) -> dict[str, object]:
        """Return the same as a document."""
        return asdict(self)


def run_tables_report(
    spark: "SparkSession",
    tables: "Tables",
    out: Path,
    *,
    first_day: date | None = None,
    last_day: date | None = None,
    teams: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> TablesReportSummary:
    """Write the page on the tables, of a period of days if one is given; a former page is replaced whole.

    The page shows the latest replay, access review, anomalies and findings of `review` and `judge`, and what
    is new since the page that it replaces. `teams` says who answers for principals, as in `with_team`. Raises
    `AuditInputError` if no run has filled the tables yet, `ReportOutputError`, and what `Tables.read` raises.
    """
    from kustos.pipeline.report.model import collect_report
    from kustos.pipeline.report.news import last_event_of
    from kustos.pipeline.report.render import render_report
    from kustos.pipeline.stages.access import counts_of_rollup
    from kustos.pipeline.stages.rollup import within_days

    if not tables.days("audit_rollup"):
        raise AuditInputError(f"no run has filled the tables in `{tables.folder}`, see `kustos pipeline run`")
    rollup = within_days(tables.read(spark, "audit_rollup"), first_day, last_day)
    events = within_days(tables.read(spark, "audit_events"), first_day, last_day)
    progress(REPORT_STEPS[0])
    found = {
        "audit_rollup": rollup,
        "audit_events": events,
        "access_counts": rollup.transform(counts_of_rollup),
        "quarantine": tables.read(spark, "quarantine"),
        "security_events": within_days(tables.read(spark, "security_events"), first_day, last_day),
    }
    found |= {name: tables.read(spark, name) for name in ANSWERS if tables.has(name)}
    answered = [name for name in FINDINGS if tables.has(name)]
    frames = [tables.read(spark, name) for name in answered]
    if frames:
        findings = frames[0]
        for more in frames[1:]:
            findings = findings.unionByName(more)
        found["findings"] = findings
    quarantined = found["quarantine"].count()
    report = collect_report(
        found,
        lines=None,
        outcomes={"quarantined": quarantined},
        files=len(tables.inputs()),
        since=last_event_of(out),
        teams=teams,
    )
    progress(REPORT_STEPS[1])
    _replace(out, render_report(report))
    return TablesReportSummary(
        events=report.totals.allowed + report.totals.denied + report.totals.probes,
        quarantined=quarantined,
        allowed=report.totals.allowed,
        denied=report.totals.denied,
        probes=report.totals.probes,
        principals=report.totals.principals,
        resources=report.totals.resources,
        failed_logins=0 if report.logins is None else report.logins.failed,
        answers=(*(name for name in ANSWERS if name in found), *answered),
        report=str(out.resolve()),
    )


def _replace(out: Path, page: str) -> None:
    """Write a file beside the page and rename it, so that no reader sees half a page."""
    beside = out.with_name(f".{out.name}.new")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(out)
    except OSError as error:
        raise ReportOutputError(f"cannot write `{out}`: {reason_of(error)}") from error
