"""Progress displays on a terminal's standard error for work that takes longer than a moment."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

PATIENCE_SECONDS: Final = 1.0
"""Shorter work needs no progress display; it would only flicker."""


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show the work and its duration once it takes long; the display vanishes when the work ends."""
    with counting_progress(doing, None):
        yield


@contextmanager
def counting_progress(doing: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show the share of a total that is done; yields the callback that reports each finished part."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(20), TimeElapsedColumn()
    display = Progress(*columns, console=Console(stderr=True), transient=True)
    task = display.add_task(doing, total=total)
    timer = Timer(PATIENCE_SECONDS, display.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done: display.advance(task, done)
    finally:
        timer.cancel()
        timer.join()
        display.stop()
