"""The interactive side of the metadata shell: prompt, completion, history."""

import os
import readline
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kustos.cli.output import print_lines
from kustos.metadata.inspection import MetadataShell

HISTORY_LINES_MAX: Final = 1000
"""Lines of history kept: more than anybody scrolls back."""

_DELIMITERS: Final = " \t"
"""Characters that end a word for completion; a path is one word."""


def converse(shell: MetadataShell, name: str, run: Callable[[str], bool]) -> None:
    """Read commands at the terminal and run them, until `exit` or the end of input."""
    readline.set_completer_delims(_DELIMITERS)
    readline.set_completer(lambda _, number: _completion(shell, number))
    # on macOS libedit is behind the same module, with its own configuration language
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    # the user would have to delete a space after a completed folder to go on
    readline.parse_and_bind('set completion-append-character ""')
    history = _history_path()
    _read_history(history)
    print_lines(f"{name}: `help` shows the commands, `exit` or Ctrl-D ends")
    try:
        while not shell.has_ended:
            try:
                run(input(f"{shell.path}> "))
            except KeyboardInterrupt:
                print_lines("")
            except EOFError:
                print_lines("")
                return
    finally:
        _write_history(history)


def _completion(shell: MetadataShell, number: int) -> str | None:
    found = shell.completions(readline.get_line_buffer()[: readline.get_endidx()])
    if number >= len(found):
        return None
    return found[number] if found[number].endswith("/") or len(found) > 1 else found[number] + " "


def _history_path() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kustos" / "metadata-shell.history"


def _read_history(path: Path) -> None:
    try:
        readline.read_history_file(path)
    except OSError:
        # no history file yet, or an unreadable one: the shell works without
        return


def _write_history(path: Path) -> None:
    readline.set_history_length(HISTORY_LINES_MAX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        readline.write_history_file(path)
    except OSError:
        # an unwritable home directory only loses the history
        return
