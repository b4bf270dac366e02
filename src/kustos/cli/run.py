"""From arguments to an exit code: the one place that turns errors into words."""

import os
import re
import sys
from collections.abc import Sequence

import typer

from kustos.cli.failures import ExitCode, failure_of
from kustos.cli.output import OutputFormat, print_error

# typer brings its own click in newer releases: its classes are taken from what typer raises
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]
_ClickError: type[Exception] = _UsageError.__bases__[0]


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
        # whoever read us has gone, as `head` does: nobody is left to tell, and the last flush must not try
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
    """Find `--output json` by hand, since arguments that cannot be parsed are told of in it too."""
    for number, argument in enumerate(arguments):
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        if argument == "--output=json" or (argument in {"--output", "-o"} and following == "json"):
            return OutputFormat.JSON
    return OutputFormat.TABLE


def _usage(error: Exception, output: OutputFormat) -> int:
    message = getattr(error, "format_message", lambda: str(error))().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "kustos"
    if not message:  # no command was given: its help was printed already
        return ExitCode.USAGE
    quoted = re.sub(r"'([^']*)'", r"`\1`", message[:1].lower() + message[1:])
    print_error("USAGE", f"{quoted}; see `{path} --help`", output)
    return ExitCode.USAGE
