"""`kustos pipeline report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.pipeline.jobs import ReportSummary

EXAMPLES = """
kustos pipeline report --audit /var/log/kustos/audit --out access-report
kustos pipeline report --audit kafka-logs --out report \\
    --time-zone Europe/Berlin
"""

Audit = Annotated[
    Path,
    typer.Option(
        "--audit", metavar="DIR", help="Folder of audit files: kustos' JSON lines, Kafka's log, also `.gz`."
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out", metavar="DIR", help="Folder for the tables and `report.html`; replaced by a new run."
    ),
]
TimeZone = Annotated[
    str, typer.Option("--time-zone", metavar="NAME", help="Time zone of the brokers that wrote Kafka's log.")
]


def report(audit: Audit, out: Out, time_zone: TimeZone = "UTC", output: Output = OutputFormat.TABLE) -> None:
    """Turn audit files into Parquet tables and one HTML report.

    Writes `audit_events`, `access_counts`, `quarantine`, `summary.json` and `report.html`; each line read
    is in one of the tables or a duplicate, or nothing is written.
    """
    from kustos.cli.pipeline.working import check_installed, working

    check_installed()
    from kustos.pipeline.files import list_audit_files
    from kustos.pipeline.jobs import STEPS, run_access_report

    list_audit_files(audit)  # a wrong folder is told before Spark's seconds of start
    with working("report", steps=len(STEPS)) as (spark, step):
        summary = run_access_report(spark, audit, out, time_zone=time_zone, progress=step)
    if output is OutputFormat.JSON:
        print(summary.to_json())
    else:
        _print_summary(summary)


def _print_summary(summary: "ReportSummary") -> None:
    from kustos.cli.output import print_lines, print_table

    rows = [
        ("files read", summary.files),
        ("hidden files passed over", summary.files_passed_over),
        ("lines", summary.lines),
        ("= events", summary.events),
        ("+ quarantined", summary.quarantined),
        ("+ duplicates", summary.duplicates),
        ("allowed", summary.allowed),
        ("denied", summary.denied),
        ("principals", summary.principals),
        ("resources", summary.resources),
    ]
    print_table(("what", "#count"), [(what, f"{count:,}") for what, count in rows], title="access report")
    print_lines(summary.report)
