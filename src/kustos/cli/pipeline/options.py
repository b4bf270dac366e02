"""The options that several commands of the pipeline share, each defined once."""

from pathlib import Path
from typing import Annotated, Final

import typer

Config = Annotated[
    Path,
    typer.Option("--config", "-c", metavar="FILE", help="The pipeline's configuration, a YAML file."),
]
DEFAULT_CONFIG: Final = Path("pipeline.yml")

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DAY", help="First day (UTC) to look at, such as 2026-11-01."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="DAY", help="Last day (UTC) to look at, itself included.")
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything that can be checked without Spark, and print the plan."),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="Rows to show.")]
Rules = Annotated[
    bool, typer.Option("--rules", help="Also show what is decided the same way, but by another rule.")
]
