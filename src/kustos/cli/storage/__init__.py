"""`kustos storage`: create and inspect metadata directories, as `kafka-storage` does."""

import typer

from kustos.cli.options import register
from kustos.cli.storage import format, info  # noqa: A004 - modules, named as their commands

app = typer.Typer(help="Format and inspect metadata directories.", no_args_is_help=True)
register(app, "format", format.format_storage, format.EXAMPLES)
register(app, "info", info.info, info.EXAMPLES)
