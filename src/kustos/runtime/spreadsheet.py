"""CSV for spreadsheets, without a cell that they would execute: for people, not to be parsed again.

A name is whatever somebody chose. A cell that begins as a formula does (`=`, `+`, `-`, `@`, a tab or a
pipe, blanks before them or not) is written with an apostrophe before it, which makes it text (OWASP, "CSV
Injection"). So is what stands behind a semicolon, a tab or a quote within a cell: where numbers are written
with a comma, a spreadsheet takes semicolons for the ends of cells, and finds other quotes than were meant.
What begins with an apostrophe gets another, so that nothing is lost. Line breaks and NUL are written as
backslash n, r and 0, a backslash as two, so that a row is a line.
"""

import csv
import io
import re
from collections.abc import Iterable
from typing import Final

BYTE_ORDER_MARK: Final = "\ufeff"
"""What the file begins with: without it spreadsheets take UTF-8 for something else."""

CELL_CHARACTERS_MAX: Final = 32_767
"""Longest cell that Excel opens; the rest is cut, and the other forms have it."""

_CUT: Final = "..."
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_RUNNING: Final = re.compile(r"(?:\A|(?<=[;\t\x22]))(?= *[=+\-@\t|%'\uff1d\uff0b\uff0d\uff20])")
"""Where a formula begins, with full-width signs too; and the apostrophe that keeps one from running."""


def safe_cell(text: str) -> str:
    """Return a cell that a spreadsheet shows and never runs, on one line, of at most CELL_CHARACTERS_MAX."""
    line = _RUNNING.sub("'", text.translate(_ESCAPES))
    if len(line) > CELL_CHARACTERS_MAX:
        line = line[: CELL_CHARACTERS_MAX - len(_CUT)] + _CUT
    return line


def spreadsheet_line(cells: Iterable[str]) -> str:
    """Return a line of such a file (RFC 4180, CRLF); the cells are safe already."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue()
