"""`kustos pipeline report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat
from kustos.cli.pipeline.context import (
    DEFAULT_CONFIG,
    ClusterOption,
    Config,
    Since,
    Until,
    check_installed,
    configured,
    working,
)

if TYPE_CHECKING:
    from kustos.pipeline.report.access_report import ReportSummary

EXAMPLES = """
kustos pipeline report --out report.html
kustos pipeline report --out october.html --since 2026-10-01 \\
    --until 2026-10-31
kustos pipeline report --audit /var/log/kustos/audit --out access-report
kustos pipeline report --audit kafka-logs --out report \\
    --time-zone Europe/Berlin
"""


Audit = Annotated[
    str | None,
    typer.Option(
        "--audit",
        metavar="DIR",
        help="Report on a folder of audit files or s3://BUCKET/FOLDER, without a configuration: JSON lines "
        "or Kafka's log, compressed or not.",
        show_default=False,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="PATH",
        help="The page to write; with --audit the folder for the page and its tables.",
    ),
]
TimeZone = Annotated[
    str,
    typer.Option(
        "--time-zone",
        metavar="NAME",
        help="With --audit: the time zone of the brokers that wrote Kafka's log.",
    ),
]

LINE_BYTES_MIN: Final = 20
"""Of a line in a compressed file, to estimate how many a folder has; a plain one has some hundred."""

_SUMMARY_COUNTS: Final = (
    "events",
    "quarantined",
    "allowed",
    "denied",
    "probes",
    "principals",
    "resources",
    "failed_logins",
)


def report(
    out: Out,
    config: Config = DEFAULT_CONFIG,
    audit: Audit = None,
    time_zone: TimeZone = "UTC",
    since: Since = None,
    until: Until = None,
    cluster: ClusterOption = None,
    output: DocumentOutput = OutputFormat.TABLE,
) -> None:
    """Write one HTML page: who uses what, denials, failed logins.

    Shows the tables of the configuration, and what `replay`, `review`, `judge` and `anomalies` last found.
    With --audit it reads a folder of audit files instead, without a configuration, and also writes the tables
    `audit_events`, `access_counts`, `security_events` and `quarantine`, and `summary.json`, to the folder of
    --out. Files in an unusual layout or format need a configuration. The page runs no script and loads
    nothing.
    """
    if audit is not None:
        _report_on_folder(audit, out, cluster, output, time_zone)
        return
    from kustos.cli.output import print_document, print_notice
    from kustos.cli.pipeline.inputs import of_cluster, period_of

    configuration = configured(config)
    first, last = period_of(since, until)
    configuration, tables = of_cluster(configuration, cluster)
    from kustos.pipeline.report.job import REPORT_STEPS, run_tables_report

    steps = len(REPORT_STEPS)
    with working("report", configuration.spark, tables.recorded_rows(), steps=steps) as (spark, step):
        summary = run_tables_report(
            spark,
            tables,
            out,
            first_day=first,
            last_day=last,
            teams=configuration.review.teams,
            progress=step,
        )
    for text in summary.warnings:
        print_notice("warning", text)
    if output.is_document:
        print_document(summary.as_dict(), output)
        return
    rows = [(name.replace("_", " "), getattr(summary, name)) for name in _SUMMARY_COUNTS]
    _print([*rows], summary.report)


def _report_on_folder(
    audit: str, out: Path, cluster: str | None, output: OutputFormat, time_zone: str
) -> None:
    check_installed()
    import json

    from kustos.cli.failures import usage_error
    from kustos.cli.output import print_document, print_notice
    from kustos.pipeline.files import list_audit_files
    from kustos.pipeline.places import place_of
    from kustos.pipeline.report.access_report import STEPS, run_access_report

    try:
        folder = place_of(audit)
    except ValueError as error:
        raise usage_error(str(error)) from error
    found = list_audit_files(folder)  # report a wrong folder before Spark's seconds of start-up
    rows = sum(state.size_bytes for state in found.states.values()) // LINE_BYTES_MIN
    with working("report", rows=rows, steps=len(STEPS)) as (spark, step):
        summary = run_access_report(spark, folder, out, cluster=cluster, progress=step, time_zone=time_zone)
    for text in summary.warnings:
        print_notice("warning", text)
    if output.is_document:
        print_document(json.loads(summary.to_json()), output)
    else:
        _print_summary(summary)


def _print_summary(summary: "ReportSummary") -> None:
    rows = [
        ("files read", summary.files),
        ("hidden files skipped", summary.files_passed_over),
        ("lines", summary.lines),
        ("= events", summary.events),
        ("+ security events", summary.security_events),
        ("+ quarantined", summary.quarantined),
        ("+ duplicates", summary.duplicates),
        ("events with the id of another event", summary.conflicts),
        ("allowed", summary.allowed),
        ("denied", summary.denied),
        ("probes", summary.probes),
        ("principals", summary.principals),
        ("resources", summary.resources),
        ("failed logins", summary.failed_logins),
    ]
    _print(rows, summary.report)


def _print(rows: list[tuple[str, int]], page: str) -> None:
    from kustos.cli.output import print_lines, print_table

    print_table(("what", "count"), rows, title="access report")
    print_lines(page)
