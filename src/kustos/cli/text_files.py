"""Text files that an argument names; `-` is standard input."""

import sys
from pathlib import Path
from typing import Final

from kustos.cli.failures import usage_error

STANDARD_INPUT: Final = "-"


def called_name(name: str | Path) -> str:
    """Return the name of a file, or of standard input, for messages."""
    return "standard input" if name == STANDARD_INPUT else str(name)


def read_text(name: str | Path) -> str:
    """Return the text of a file, `-` for standard input; raise a usage error if it cannot be read.

    A `Path` is always a file, also one that is called `-`.
    """
    from kustos.acl.forms import FILE_BYTES_MAX
    from kustos.runtime import TextFileError, read_text_file, read_text_stream, reason_of

    try:
        if name == STANDARD_INPUT:
            return read_text_stream(sys.stdin.buffer, FILE_BYTES_MAX, called_name(name))
        return read_text_file(Path(name), FILE_BYTES_MAX)
    except OSError as error:
        raise usage_error(f"cannot read `{called_name(name)}`: {reason_of(error)}") from error
    except TextFileError as error:
        raise usage_error(str(error)) from error
