"""`kustos pipeline jars`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kustos.cli.options import Output
from kustos.cli.output import OutputFormat

if TYPE_CHECKING:
    from kustos.cli.output import Columns

EXAMPLES = """
kustos pipeline jars
kustos pipeline jars --out jars
"""

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Download them here with Maven; else only list them.",
        show_default=False,
    ),
]


def jars(out: Out = None, output: Output = OutputFormat.TABLE) -> None:
    """Download the jars that Spark needs to read a topic.

    Spark ships without its Kafka connector. Name the folder as `jars` under `spark` in the configuration.
    """
    from kustos.cli.output import print_rows
    from kustos.cli.pipeline.context import check_installed
    from kustos.cli.terminal import progress

    check_installed()
    from kustos.pipeline.run.topic import KAFKA_COORDINATES, download_jars

    if out is None:
        downloaded = []
    else:
        with progress("downloading the Kafka connector with Maven"):
            downloaded = [str(path) for path in download_jars(out)]
    print_rows(
        jar_columns(),
        downloaded or KAFKA_COORDINATES,
        output,
        document=lambda: {"coordinates": list(KAFKA_COORDINATES), "jars": downloaded},
    )


def jar_columns() -> "Columns[str]":
    """Return the one column: a path, or Maven coordinates if nothing was downloaded."""
    from kustos.cli.output import Column, Columns

    return Columns((Column("jar", str),), lambda jar: (jar,), "the files, or their coordinates for Maven")
