"""`kustos version`."""

from typing import Annotated

import typer

from kustos.cli.options import DocumentOutput
from kustos.cli.output import OutputFormat

EXAMPLES = """
kustos version
"""


def _print_and_exit(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


VersionFlag = Annotated[
    bool,
    typer.Option("--version", callback=_print_and_exit, is_eager=True, help="Print the version and exit."),
]


def version(output: DocumentOutput = OutputFormat.TABLE) -> None:
    """Print the version of kustos."""
    from kustos import __version__
    from kustos.cli.output import print_document, print_lines

    if output.is_document:
        print_document({"version": __version__}, output)
    else:
        print_lines(f"kustos {__version__}")
