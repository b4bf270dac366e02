"""The report on the tables that runs fill, and on the result tables of the other commands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kustos.pipeline.errors import AuditInputError, ReportOutputError
from kustos.pipeline.progress import Progress, silent
from kustos.runtime import FileSystemStorage, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kustos.pipeline.report.model import Conflict
    from kustos.pipeline.tables import Tables

REPORT_STEPS: Final = ("summing up access", "drawing the report")
ANSWERS: Final = ("replay_flips", "access_review")
NOTABLE: Final = {
    "findings": "finding_id",
    "anomaly_states": "anomaly_id",
    "discrepancies": "discrepancy_id",
}
"""Tables that one section of the page shows, and the column of their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesReportSummary:
    """The numbers of a page. `answers`: the result tables that exist. `warnings`: events with one id."""

    cluster: str
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
    warnings: tuple[str, ...] = ()

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
    is new since the page that it replaces. It is about the cluster of the tables, or their only one, and
    counts the events of others. `teams` says who answers for principals, as in `with_team`. Raises
    `AuditInputError` if no run has filled the tables yet, `ReportOutputError`, and what `Tables.read` raises.
    """
    from kustos.pipeline.queries.access import EVENT_COLUMNS, counts_of_rollup
    from kustos.pipeline.queries.logins import LOGIN_COLUMNS
    from kustos.pipeline.report.model import collect_report
    from kustos.pipeline.report.news import last_event_of, last_finding_of
    from kustos.pipeline.report.render import render_report

    tables = tables.rolled_up(spark)
    if not tables.days("audit_rollup"):
        raise AuditInputError(f"no run has filled the tables in `{tables.folder}`, see `kustos pipeline run`")
    tables = tables.of_cluster()
    days: dict[str, Any] = {"first_day": first_day, "last_day": last_day}
    rollup = tables.read(spark, "audit_rollup", **days)
    logins = {*LOGIN_COLUMNS, "event_id", "source_file", "conflicting_file"}
    progress(REPORT_STEPS[0])
    found = {
        "audit_rollup": rollup,
        "audit_events": tables.read(spark, "audit_events", columns=EVENT_COLUMNS, **days),
        "access_counts": rollup.transform(counts_of_rollup),
        "quarantine": tables.read(spark, "quarantine", columns=("file", "reason", "line")),
        "security_events": tables.read(spark, "security_events", columns=logins, **days),
    }
    found |= {name: tables.read(spark, name) for name in ANSWERS if tables.has(name)}
    answered = [name for name in NOTABLE if tables.has(name)]
    if answered:
        found["findings"] = _notable(spark, tables, answered)
    quarantined = found["quarantine"].count()
    report = collect_report(
        found,
        lines=None,
        outcomes={"quarantined": quarantined},
        files=len(tables.inputs()),
        since=last_event_of(out),
        findings_since=last_finding_of(out),
        teams=teams,
    )
    others = _others(spark, tables, first_day, last_day)
    report = replace(report, cluster=tables.chosen_cluster.name, others=others)
    progress(REPORT_STEPS[1])
    _replace(out, render_report(report))
    return TablesReportSummary(
        cluster=tables.chosen_cluster.name,
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
        warnings=_warnings(report.conflicts),
    )


def _notable(spark: "SparkSession", tables: "Tables", names: Iterable[str]) -> "DataFrame":
    """Return the rows of these tables as one, each with its id as `finding_id`."""
    frames = (tables.read(spark, name).withColumnRenamed(NOTABLE[name], "finding_id") for name in names)
    return reduce(lambda one, more: one.unionByName(more, allowMissingColumns=True), frames)


def _warnings(conflicts: "Sequence[Conflict]") -> tuple[str, ...]:
    """Return the warning about events with the id of another event, if there are such events."""
    from kustos.pipeline.tables.conflicts import EXAMPLES_MAX, conflict_text, conflict_warning

    if not conflicts:
        return ()
    examples = [
        conflict_text(each.event_id, each.source_file, each.conflicting_file)
        for each in conflicts[:EXAMPLES_MAX]
    ]
    return (conflict_warning(sum(each.event_count for each in conflicts), examples),)


def _others(
    spark: "SparkSession", tables: "Tables", first_day: date | None, last_day: date | None
) -> dict[str, int]:
    """Return how many events each other cluster has, by its name."""
    from pyspark.sql import functions as sql

    from kustos.pipeline.tables.clusters import names_of

    others = [each for each in tables.clusters() if each not in tables.chosen_cluster.ids]
    if not others:
        return {}
    rollup = tables.of_all_clusters().read(
        spark, "audit_rollup", columns=("event_count",), first_day=first_day, last_day=last_day
    )
    theirs = rollup.filter(sql.col("cluster").isin(others))
    sums = theirs.groupBy("cluster").agg(sql.sum("event_count").alias("n"))
    found = dict.fromkeys(names_of(others, tables.ids), 0)
    for row in sums.collect():
        found[names_of([row["cluster"]], tables.ids)[0]] += int(row["n"])
    return found


def _replace(out: Path, page: str) -> None:
    """Replace the page durably; no reader sees half a page."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        FileSystemStorage().write(out, page.encode())
    except OSError as error:
        raise ReportOutputError(f"cannot write `{out}`: {reason_of(error)}") from error
