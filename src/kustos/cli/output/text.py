"""Text for people: escaped, and wrapped only on a terminal.

Names come from a cluster that others write to, so everything unprintable is escaped: a terminal must never
interpret a resource name as a control sequence.
"""

import os
import re
import sys
from shutil import get_terminal_size
from typing import Final, TextIO
from unicodedata import combining, east_asian_width

_PIECES: Final = re.compile(r"(?:`[^`]*`|[^\s`]|`)+")
"""A piece that stays on one line: a word, with everything it quotes in backticks."""

COLUMNS_DEFAULT: Final = 80
"""The assumed width of a terminal that does not report one."""


def is_terminal() -> bool:
    """Return whether standard output is a terminal, not a program or a file."""
    return sys.stdout.isatty()


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal on a stream (default standard output), None for anything else."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return None
    try:
        own = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # it claims to be a terminal, but does not know its size
        own = 0
    # COLUMNS overrides it, and without both the default applies
    return get_terminal_size((own or COLUMNS_DEFAULT, 0)).columns


def printable(text: str) -> str:
    r"""Return the text with control and invisible characters as `\xNN` or `\uNNNN`."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "replace").decode()
        for character in text
    )


def shown_width(text: str) -> int:
    """Return the terminal columns that a printable text fills."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1 for character in text
    )


def pieces_of(text: str) -> list[str]:
    """Return the pieces of a text between which a line may break: its words, but nothing inside backticks."""
    return _PIECES.findall(text)


def filled(pieces: list[str], width: int, *, first_width: int | None = None) -> list[str]:
    """Return lines of at most `width` columns, longer only for a single longer piece.

    `first_width` is the width of the first line, if something stands before it.
    """
    lines: list[str] = []
    line, room = "", width if first_width is None else first_width
    for piece in pieces:
        if line and shown_width(line) + 1 + shown_width(piece) > room:
            lines.append(line)
            line, room = piece, width
        else:
            line = f"{line} {piece}" if line else piece
    return [*lines, line]


def print_lines(*lines: str) -> None:
    """Print plain lines, never wrapped."""
    for line in lines:
        sys.stdout.write(printable(line) + "\n")


def print_paragraph(text: str, *, indent: str = "", first: str | None = None) -> None:
    """Print a text: wrapped and indented on a terminal, else in one line.

    `first` replaces the indent of the first line.
    """
    _write_paragraph(sys.stdout, text, indent, indent if first is None else first)


def print_notice(kind: str, text: str) -> None:
    """Print a text on standard error after its kind, such as `note`; wrapped on a terminal."""
    _write_paragraph(sys.stderr, text, "", f"{kind}: ")


def _write_paragraph(stream: TextIO, text: str, indent: str, beginning: str) -> None:
    columns = terminal_width(stream)
    if columns is None:
        stream.write(printable(beginning + text) + "\n")
        return
    width = max(columns, len(indent) + 20)
    lines = filled(
        pieces_of(printable(text)), width - len(indent), first_width=width - shown_width(printable(beginning))
    )
    lines = [beginning + lines[0], *(indent + line for line in lines[1:])]
    stream.writelines(printable(line) + "\n" for line in lines)


def counted(count: int, noun: str) -> str:
    """Return `1 ACL`, `2 ACLs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
