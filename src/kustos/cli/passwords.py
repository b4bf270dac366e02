"""Where passwords come from: a prompt, a file, an environment variable; never an argument."""

import os
import sys
from getpass import getpass
from pathlib import Path
from typing import Final

from kustos.cli.failures import usage_error
from kustos.runtime import reason_of

MAX_PASSWORD_BYTES: Final = 4096
"""A longer file is no password file; also bounds the cost of hashing."""


def require_user_name(name: str) -> None:
    """Raise a usage error for a principal given instead of a user name."""
    bare = name.removeprefix("User:")
    if bare != name:
        raise usage_error(
            f"a user's name has no type: `{name}` would log in as the principal `User:{name}`, write `{bare}`"
        )


def read_password(what: str, file: Path | None, variable: str | None) -> str:
    """Return the password; raise a usage error, which never shows it, if there is none."""
    if file is not None and variable is not None:
        raise usage_error("give the password by a file or by an environment variable, not both")
    if file is not None:
        return _from_file(file)
    if variable is not None:
        return _from_environment(variable)
    if not sys.stdin.isatty():
        raise usage_error(
            "there is not a terminal for a prompt, give the password by a file or the environment"
        )
    return _from_prompt(what)


def _from_prompt(what: str) -> str:
    # getpass turns the echo off before showing the prompt; typer's prompt does so after
    password = getpass(f"{what}: ")
    if not password:
        raise usage_error("the password is empty, nothing was done")
    if getpass("again: ") != password:
        raise usage_error("the two passwords differ, nothing was done")
    return password


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_PASSWORD_BYTES + 1)
    except OSError as error:
        raise usage_error(f"cannot read the password file `{path}`: {reason_of(error)}") from None
    if len(raw) > MAX_PASSWORD_BYTES:
        raise usage_error(f"the password file `{path}` is longer than {MAX_PASSWORD_BYTES} bytes")
    try:
        password = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise usage_error(f"the password file `{path}` is not UTF-8 text") from None
    if not password:
        raise usage_error(f"the password file `{path}` is empty")
    return password


def _from_environment(variable: str) -> str:
    password = os.environ.get(variable, "")
    if not password:
        raise usage_error(f"the environment variable `{variable}` holds no password")
    return password
