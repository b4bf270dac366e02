"""What a terminal shows besides the answer: progress, and confirmations before something is lost."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Final

import typer

from kustos.cli.failures import CommandError, ExitCode, usage_error
from kustos.cli.output import printable

PATIENCE_SECONDS: Final = 1.0
"""Shorter work needs no progress display; it would only flicker."""

SHOWN_MAX = 20
"""Lines shown before a confirmation; more would not be read, so the rest is counted."""


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


def confirm(verb: str, what: Sequence[str], option: str = "--force") -> None:
    """Show what would be lost and return on a yes; fail on a no.

    Without a terminal it raises a usage error: a script gives the option.
    """
    if not sys.stdin.isatty():
        raise usage_error(
            f"standard input is no terminal to confirm on, give `{option}` to {verb} without confirmation"
        )
    sys.stderr.write(f"about to {verb}:\n")
    for line in what[:SHOWN_MAX]:
        sys.stderr.write(f"  {printable(line)}\n")
    if len(what) > SHOWN_MAX:
        sys.stderr.write(f"  and {len(what) - SHOWN_MAX} more\n")
    if not typer.confirm("go on?", err=True):
        raise CommandError(ExitCode.FAILED, "DECLINED", "not confirmed, nothing was done")
