"""From arguments to an exit code: the one place that turns errors into messages."""

import os
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import typer

from kustos.cli.failures import ExitCode, failure_of
from kustos.cli.output import OutputFormat, print_error
from kustos.cli.usage import usage_text

# newer releases of typer bundle their own click: get its classes from what typer raises
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
_ClickError: type[Exception] = _UsageError.__bases__[0]

_HELP_WANTED: Final = "NoArgsIsHelpError"
"""The error of a group without a command, whose message is the help; its name in click and typer."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; the command's own bugs raise."""
    from kustos.cli.app import app

    output = _wanted_output(arguments)
    try:
        result = app(args=list(arguments), prog_name="kustos", standalone_mode=False)
        sys.stdout.flush()
    except _ClickError as error:
        return _usage(error, output)
    except (typer.Abort, KeyboardInterrupt):
        print_error("INTERRUPTED", "interrupted, nothing more was done", output)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # the reader has closed the pipe, as `head` does: the last flush must not try to write
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        print_error(failure.code, failure.message, output)
        return failure.exit_code
    return result if isinstance(result, int) else ExitCode.OK


def _wanted_output(arguments: Sequence[str]) -> OutputFormat:
    """Find `--output` by hand, since errors in unparsable arguments have its format too."""
    for argument, following in pairwise([*arguments, ""]):
        joined = re.fullmatch(r"(?:--output=|-o)(\w+)", argument)
        value = following if argument in {"--output", "-o"} else joined[1] if joined else ""
        if value.lower() in list(OutputFormat):
            return OutputFormat(value.lower())
    return OutputFormat.TABLE


def _usage(error: Exception, output: OutputFormat) -> int:
    if type(error).__name__ == _HELP_WANTED:
        # a group without a command; stream and exit code follow click's convention
        sys.stderr.write(f"{getattr(error, 'message', error)}\n")
        return ExitCode.USAGE
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "kustos"
    print_error("USAGE", f"{usage_text(error)}; see `{path} --help`", output)
    return ExitCode.USAGE
