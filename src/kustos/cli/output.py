"""What commands print: tables for people, one JSON document for programs.

Names come from a cluster that others write to, so whatever is not printable is shown escaped: a
terminal must never take a resource name for a command. JSON escapes by itself.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class OutputFormat(StrEnum):
    """For whom to print."""

    TABLE = "table"
    JSON = "json"


def printable(text: str) -> str:
    r"""Return the text with control and invisible characters as `\xNN` or `\uNNNN`."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "replace").decode()
        for character in text
    )


def print_json(document: Any) -> None:
    """Print one JSON document, indented, keys in the order given."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=True) + "\n")


def print_lines(*lines: str) -> None:
    """Print plain lines, wrapped by nobody."""
    for line in lines:
        sys.stdout.write(printable(line) + "\n")


def print_paragraph(text: str, *, indent: str = "", first: str | None = None) -> None:
    """Print a text in lines that fit the terminal, indented; `first` stands before the first of them."""
    width = max(get_terminal_size().columns, len(indent) + 20)
    print_lines(
        *wrap(
            printable(text),
            width,
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def counted(count: int, noun: str) -> str:
    """Return `1 ACL`, `2 ACLs`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table that loses nothing: what is too wide for the terminal goes on in the next line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, show_edge=False)
    for name in columns:
        right = name.startswith("#")
        table.add_column(name.lstrip("#"), overflow="fold", justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console().print(table)


def console() -> "Console":
    """Return a console on standard output that neither highlights nor reads markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def print_error(code: str, message: str, output: OutputFormat) -> None:
    """Print the one shape of errors on standard error."""
    if output is OutputFormat.JSON:
        sys.stderr.write(json.dumps({"error": {"code": code, "message": message}}) + "\n")
    else:
        sys.stderr.write(f"error: {printable(message)}\n")
