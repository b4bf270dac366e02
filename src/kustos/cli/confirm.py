"""Confirmation before something is lost."""

import sys
from collections.abc import Sequence

import typer

from kustos.cli.failures import CommandError, ExitCode, usage_error
from kustos.cli.output import printable

SHOWN_MAX = 20
"""Lines shown before a confirmation; nobody reads more, the rest is counted."""


def confirm(verb: str, what: Sequence[str], option: str = "--force") -> None:
    """Show what would be lost and return on a yes; fail on a no.

    Without a terminal it raises a usage error: a script gives the option.
    """
    if not sys.stdin.isatty():
        raise usage_error(f"there is no terminal for a confirmation, give `{option}` to {verb} without one")
    sys.stderr.write(f"about to {verb}:\n")
    for line in what[:SHOWN_MAX]:
        sys.stderr.write(f"  {printable(line)}\n")
    if len(what) > SHOWN_MAX:
        sys.stderr.write(f"  and {len(what) - SHOWN_MAX} more\n")
    if not typer.confirm("go on?", err=True):
        raise CommandError(ExitCode.FAILED, "DECLINED", "not confirmed, nothing was done")
