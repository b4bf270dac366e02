"""What pipeline commands share: options, configuration, Spark, progress, and interruption."""

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
    typer.Option("--config", "-c", metavar="FILE", help="The configuration of the pipeline (YAML)."),
]
DEFAULT_CONFIG: Final = Path("pipeline.yml")

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DAY", help="The first day (UTC), such as 2026-11-01."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="DAY", help="The last day (UTC), included.")]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", metavar="NAME", help="The cluster; required if there are several."),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check the arguments without starting Spark, and print the plan."),
]
Limit = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="The number of rows to show.")
]
Rules = Annotated[
    bool, typer.Option("--rules", help="Also show decisions that stay the same, but by another rule.")
]

RowsOfPrincipal = Annotated[
    str | None, typer.Option("--principal", metavar="TYPE:NAME", help="Select rows of this principal.")
]
RowsOfOperation = Annotated[
    str | None,
    typer.Option("--operation", metavar="NAME", help="Select rows of this operation, such as DELETE."),
]
RowsOfResource = Annotated[
    str | None,
    typer.Option(
        "--resource",
        metavar="TYPE[:[PREFIXED:]NAME]",
        help="Select rows of this resource: TOPIC, TOPIC:payments, TOPIC:PREFIXED:pay- or ANY:payments.",
    ),
]
RowsOfTeam = Annotated[
    str | None,
    typer.Option("--team", metavar="NAME", help="Select rows of the principals of this team."),
]
UnusedRows = Annotated[bool, typer.Option("--unused", help="Select rows that the record shows to be unused.")]
"""The rows of a review that match all of these options."""

Step = Callable[[str], None]
"""Callback with the name of each step as it begins."""


def check_installed() -> None:
    """Raise `ExtraMissingError` if a package of the pipeline is missing, before anything is read."""
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

    On a terminal, standard error shows the step, how many of `steps` are done, and Spark's tasks.
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
            tasks = bars.add_task("Spark tasks", total=None)

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
