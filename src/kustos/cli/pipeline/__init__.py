"""`kustos pipeline`: study months of access with Spark. Nothing of Spark is loaded before a command runs."""

import typer

from kustos.cli.commands import register
from kustos.cli.pipeline import report

app = typer.Typer(help="Study months of access with Spark.", no_args_is_help=True)
register(app, "report", report.report, report.EXAMPLES)
