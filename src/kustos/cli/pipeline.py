"""`kustos pipeline`: study months of access with PySpark."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from kustos.pipeline.jobs import Progress, ReportSummary

EXIT_LINES_LOST: Final = 1
EXIT_INPUT: Final = 3
EXIT_OUTPUT: Final = 4
EXIT_SPARK_MISSING: Final = 5

app = typer.Typer(
    name="pipeline",
    help="Study access in bulk with PySpark.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class OutputForm(StrEnum):
    """How the summary is printed."""

    text = "text"
    json = "json"


@app.callback()
def pipeline() -> None:
    """Study access in bulk with PySpark."""


@app.command()
def report(
    audit: Annotated[
        Path, typer.Option(help="Folder of audit files: kustos JSON lines, Kafka's log, `.gz`.")
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the tables and `report.html`; replaced by a new run.")
    ],
    time_zone: Annotated[str, typer.Option(help="Time zone of the brokers that wrote Kafka's log.")] = "UTC",
    output: Annotated[
        OutputForm, typer.Option(help="`json` prints the summary for programs.")
    ] = OutputForm.text,
) -> None:
    """Turn audit files into Parquet tables and one HTML report.

    Writes `audit_events`, `access_counts`, `quarantine`, `summary.json` and `report.html`.

    Exit codes: 0 done; 1 lines were lost (a fault of kustos); 2 wrong usage; 3 the audit files cannot be
    read; 4 the output cannot be written; 5 PySpark or Java is missing.
    """
    from kustos.pipeline.errors import (
        AuditInputError,
        LinesLostError,
        PipelineError,
        ReportOutputError,
        SparkMissingError,
    )

    exit_codes: dict[type[PipelineError], int] = {
        LinesLostError: EXIT_LINES_LOST,
        AuditInputError: EXIT_INPUT,
        ReportOutputError: EXIT_OUTPUT,
        SparkMissingError: EXIT_SPARK_MISSING,
    }
    try:
        summary = _run(audit, out, time_zone)
    except PipelineError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(exit_codes.get(type(error), 1)) from error
    if output is OutputForm.json:
        print(summary.to_json())
    else:
        _print_summary(summary)


def _run(audit: Path, out: Path, time_zone: str) -> "ReportSummary":
    from kustos.pipeline.files import list_audit_files
    from kustos.pipeline.jobs import run_access_report
    from kustos.pipeline.session import local_session

    list_audit_files(audit)  # a wrong folder is told before Spark's seconds of start
    with _progress() as progress, local_session("kustos report") as spark:
        return run_access_report(spark, audit, out, time_zone=time_zone, progress=progress)


@contextmanager
def _progress() -> "Iterator[Progress]":
    """Show the steps on a terminal's standard error, nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from kustos.pipeline.jobs import STEPS

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("starting Spark", total=len(STEPS) + 1)
        yield lambda step: bars.update(task, description=step, advance=1)


def _print_summary(summary: "ReportSummary") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "count", title="access report", title_justify="left")
    table.columns[1].justify = "right"
    for label, count in (
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
    ):
        table.add_row(label, f"{count:,}")
    console = Console()
    console.print(table)
    console.print(summary.report, soft_wrap=True, markup=False, highlight=False)
