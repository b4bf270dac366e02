"""What surrounds the work of every command of the pipeline: its configuration, Spark, progress."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kustos.pipeline.configuration import PipelineConfiguration, SparkSettings

Step = Callable[[str], None]
"""Called with the name of each step as it begins."""


def check_installed() -> None:
    """Raise a usage error, before anything is read, where one of the pipeline's packages is missing."""
    from importlib import import_module

    from kustos.cli.failures import usage_error

    for package in ("pyspark", "pandas", "pyarrow", "jinja2"):
        try:
            import_module(package)
        except ImportError as error:
            raise usage_error(
                f"the pipeline needs `{package}`, install it with `pip install kustos[spark]`"
            ) from error


def configured(path: Path) -> "PipelineConfiguration":
    """Return the configuration; raise what `check_installed` and reading raise."""
    check_installed()
    from kustos.pipeline.configuration import read_configuration

    return read_configuration(path)


@contextmanager
def working(
    doing: str, settings: "SparkSettings | None" = None, *, steps: int | None = None, delta: bool = False
) -> Iterator[tuple[Any, Step]]:
    """Lend a Spark session, and what to call as each step begins.

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
    from kustos.pipeline.session import open_session
    from kustos.pipeline.tables.delta import SETTINGS as DELTA_SETTINGS
    from kustos.pipeline.watching import watched

    settings = settings or SparkSettings()
    wanted = {**(DELTA_SETTINGS if delta else {}), **settings.all_settings()}
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        told = bars.add_task("starting Spark", total=None if steps is None else steps + 1)
        with open_session(
            f"kustos {doing}", master=settings.master, remote=settings.remote, settings=wanted
        ) as spark:
            tasks = bars.add_task("tasks of Spark", total=None)

            def step(name: str) -> None:
                bars.update(told, description=name, advance=1)
                bars.reset(tasks, total=None)

            with watched(spark, lambda done, known: bars.update(tasks, completed=done, total=known)):
                yield spark, step
