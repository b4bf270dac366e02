"""Reads one file of a git revision. Runs `git` without a shell, filters, pagers or the network."""

import os
import re
from pathlib import Path
from typing import Final

from kustos.runtime.texts import TextFileError, text_of_bytes

GIT_TIMEOUT_S: Final = 60
"""For one file of a local repository; longer means that git waits for input."""

_REVISION: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+-]{0,199}")
"""A name of a commit; no leading `-`, which would be an option, and no `:`, which ends a revision."""

_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
}


def read_git_text(path: Path, revision: str, bytes_max: int, name: str) -> str:
    """Return the text of a file as a git revision of its repository has it; the file itself is not read.

    The file may be gone, its folder must exist. `name` is for messages. Raises `TextFileError`.
    """
    if not _REVISION.fullmatch(revision):
        raise TextFileError(f"`{revision}` names no git revision, write a commit, a branch or a tag")
    place = f"{revision}:./{path.name}"
    size = int(_git(path.parent, "cat-file", "-s", place))
    if size > bytes_max:
        raise TextFileError(f"{name} is larger than {bytes_max} bytes, split it")
    return text_of_bytes(_git(path.parent, "cat-file", "blob", place), name)


def _git(folder: Path, *arguments: str) -> bytes:
    # a node imports this package and runs no programs
    import subprocess

    try:
        done = subprocess.run(  # noqa: S603 - no shell, a checked revision, and never an option of the user's
            ["git", "--no-pager", *arguments],  # noqa: S607
            cwd=folder,
            env=os.environ | _ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        missing = "git is not installed" if folder.is_dir() else f"there is no folder `{folder}`"
        raise TextFileError(f"{missing}, a revision cannot be read") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TextFileError(f"git failed in `{folder}`: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1] or ["it does not say why"]
        raise TextFileError(f"git has no `{arguments[-1]}` in `{folder}`: {reason[0]}")
    return done.stdout
