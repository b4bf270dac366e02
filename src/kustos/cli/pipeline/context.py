"""What pipeline commands share: options, configuration, Spark, progress, an end when interrupted."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from kustos.pipeline.configuration import PipelineConfiguration, SparkSettings

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
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", metavar="NAME", help="The cluster to look at; needed if there are several."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything that can be checked without Spark, and print the plan."),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="Rows to show.")]
Rules = Annotated[
    bool, typer.Option("--rules", help="Also show what is decided the same way, but by another rule.")
]

RowsOfPrincipal = Annotated[
    str | None, typer.Option("--principal", metavar="TYPE:NAME", help="Only rows of this principal.")
]
RowsOfOperation = Annotated[
    str | None,
    typer.Option("--operation", metavar="NAME", help="Only rows of this operation, such as DELETE."),
]
RowsOfResourceType = Annotated[
    str | None, typer.Option("--resource-type", metavar="TYPE", help="Only rows of TOPIC, GROUP, and so on.")
]
RowsOfResourceName = Annotated[
    str | None, typer.Option("--resource-name", metavar="NAME", help="Only rows of this name.")
]
RowsOfPatternType = Annotated[
    str | None,
    typer.Option("--pattern-type", metavar="TYPE", help="Only rows of LITERAL or of PREFIXED names."),
]
RowsOfTeam = Annotated[
    str | None,
    typer.Option("--team", metavar="NAME", help="Only rows for which this team is responsible."),
]
UnusedRows = Annotated[bool, typer.Option("--unused", help="Only rows that the record shows as unused.")]
"""Which rows of a review: those that match all of these options."""

Step = Callable[[str], None]
"""Callback with the name of each step as it begins."""


def check_installed() -> None:
    """Raise `ExtraMissingError`, before reading anything, if one of the pipeline's packages is missing."""
    from importlib import import_module

    from kustos.extras import EXTRAS, needs_extra

    with needs_extra("spark", "the pipeline"):
        for module in EXTRAS["spark"]:
            import_module(module)


def configured(path: Path) -> "PipelineConfiguration":
    """Return the configuration; raise the errors of `check_installed` and of reading."""
    check_installed()
    from kustos.pipeline.configuration import read_configuration

    return read_configuration(path)


@contextmanager
def working(
    doing: str,
    settings: "SparkSettings | None" = None,
    rows: int | None = None,
    *,
    steps: int | None = None,
) -> Iterator[tuple[Any, Step]]:
    """Yield a Spark session, `rows` as in `open_session`, and a callback to call as each step begins.

    On a terminal standard error shows the step, the steps done of `steps`, and Spark's tasks; elsewhere
    nothing.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    from kustos.pipeline.configuration import SparkSettings
    from kustos.pipeline.progress import watched
    from kustos.pipeline.session import open_session

    settings = settings or SparkSettings()
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        step_task = bars.add_task("starting Spark", total=None if steps is None else steps + 1)
        with open_session(
            f"kustos {doing}",
            master=settings.master,
            remote=settings.remote,
            settings=settings.all_settings(),
            rows=rows,
        ) as spark:
            tasks = bars.add_task("tasks of Spark", total=None)

            def step(name: str) -> None:
                bars.update(step_task, description=name, advance=1)
                bars.reset(tasks, total=None)

            with watched(spark, lambda done, total: bars.update(tasks, completed=done, total=total)):
                yield spark, step


@contextmanager
def until_interrupted() -> Iterator[Event]:
    """Yield an event that the first interrupt sets; a second one interrupts as usual."""
    stop = Event()

    def first(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        for number, handler in former.items():
            signal.signal(number, handler)

    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in former:
        signal.signal(number, first)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
