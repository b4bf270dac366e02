"""The access report: one folder of audit files to four tables and a page, anew each time.

Public front: `run_access_report`. Everything it composes is a stage that can be called alone.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.pipeline.files import check_replaceable, list_audit_files, publish, staging
from kustos.pipeline.jobs.reading import check_time_zone, read_lines, reading
from kustos.pipeline.progress import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES: Final = ("audit_events", "access_counts", "security_events", "quarantine")
REPORT_NAME: Final = "report.html"
SUMMARY_NAME: Final = "summary.json"
STEPS: Final = (
    "reading and sorting lines",
    "writing audit_events",
    "writing access_counts and security_events",
    "writing quarantine",
    "drawing the report",
    "putting it in place",
)


@dataclass(frozen=True, slots=True)
class ReportSummary:
    """What a run read and wrote, in lines; `lines == events + security_events + quarantined + duplicates`."""

    files: int
    files_passed_over: int
    lines: int
    events: int
    security_events: int
    quarantined: int
    duplicates: int
    allowed: int
    denied: int
    probes: int
    principals: int
    resources: int
    failed_logins: int
    access_rows: int
    report: str

    def to_json(self) -> str:
        """Return one JSON object."""
        return json.dumps(asdict(self), indent=2)


def write_tables(
    spark: "SparkSession", lines: "DataFrame", folder: Path, *, time_zone: str, progress: Progress
) -> tuple[int, dict[str, int]]:
    """Write the tables below `folder`; return lines read and rows per outcome, as found on disk."""
    from kustos.pipeline.stages import access, classify
    from kustos.pipeline.tables.staging import sort_out, stage_lines

    progress(STEPS[0])
    (folder / "sorted").mkdir()
    staged = stage_lines(lines, folder / "sorted" / "identified", time_zone=time_zone)
    classified = sort_out(spark, staged, folder / "sorted").rows
    paths = {table: str(folder / table) for table in TABLES}
    progress(STEPS[1])
    classified.transform(classify.audit_events).write.parquet(paths["audit_events"])
    events = spark.read.parquet(paths["audit_events"])
    progress(STEPS[2])
    events.transform(access.access_counts).coalesce(1).write.parquet(paths["access_counts"])
    security = classified.transform(classify.security_events)
    security.coalesce(1).write.parquet(paths["security_events"])
    progress(STEPS[3])
    classified.transform(classify.quarantine).coalesce(1).write.parquet(paths["quarantine"])
    tally = {row["outcome"]: int(row["line_count"]) for row in classify.tally(classified).collect()}
    outcomes = {
        classify.EVENT: events.count(),
        "security_events": spark.read.parquet(paths["security_events"]).count(),
        classify.QUARANTINED: spark.read.parquet(paths["quarantine"]).count(),
        classify.DUPLICATE: tally.get(classify.DUPLICATE, 0),
    }
    return staged.lines, outcomes


def run_access_report(
    spark: "SparkSession",
    audit: Path,
    out: Path,
    *,
    time_zone: str = "UTC",
    progress: Progress = silent,
) -> ReportSummary:
    """Read all audit files below `audit` and replace the tables and the report in `out`.

    `time_zone` (an IANA name) is that of the brokers whose log4j lines are read. Raises `AuditInputError`,
    `ReportOutputError` or `LinesLostError`; after any error the former output stays.
    """
    from kustos.pipeline.report.model import collect_report
    from kustos.pipeline.report.news import last_event_of
    from kustos.pipeline.report.render import render_report
    from kustos.pipeline.stages.classify import DUPLICATE, EVENT, QUARANTINED
    from kustos.pipeline.tables.summary import check_no_line_lost

    check_time_zone(time_zone)
    found = list_audit_files(audit)
    with staging(out, audit) as folder:
        check_replaceable(out, TABLES)
        lines, outcomes = reading(
            lambda: write_tables(
                spark, read_lines(spark, found), folder, time_zone=time_zone, progress=progress
            )
        )
        check_no_line_lost(lines, outcomes)
        progress(STEPS[4])
        tables = {table: spark.read.parquet(str(folder / table)) for table in TABLES}
        report = collect_report(
            tables,
            lines=lines,
            outcomes=outcomes,
            files=len(found.files),
            since=last_event_of(out / REPORT_NAME),
        )
        (folder / REPORT_NAME).write_text(render_report(report), encoding="utf-8")
        summary = ReportSummary(
            files=len(found.files),
            files_passed_over=len(found.passed_over),
            lines=lines,
            events=outcomes[EVENT],
            security_events=outcomes["security_events"],
            quarantined=outcomes[QUARANTINED],
            duplicates=outcomes[DUPLICATE],
            allowed=report.totals.allowed,
            denied=report.totals.denied,
            probes=report.totals.probes,
            principals=report.totals.principals,
            resources=report.totals.resources,
            failed_logins=0 if report.logins is None else report.logins.failed,
            access_rows=tables["access_counts"].count(),
            report=str(out.resolve() / REPORT_NAME),
        )
        (folder / SUMMARY_NAME).write_text(summary.to_json() + "\n", encoding="utf-8")
        progress(STEPS[5])
        publish(folder, out.resolve(), TABLES, (REPORT_NAME, SUMMARY_NAME))
    return summary
