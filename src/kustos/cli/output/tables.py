"""Tables that never break a name: aligned, and as wide as needed.

The type of a cell determines its layout. A `str` is a name and stays in one piece. A number is aligned
right. A tuple is a list, and may be wrapped between items; `Words` may be wrapped between words. If
standard output is not a terminal, each row is one line, and numbers are bare.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kustos.cli.output.text import (
    filled,
    pieces_of,
    print_lines,
    printable,
    shown_width,
    terminal_width,
)

_GAP: Final = "  "

ALIGNED_WIDTH_MAX: Final = 256
"""Largest width to which blanks pad a cell if nothing is wrapped: a topic name has at most 249 characters. A
longer cell, such as a list of thousands of principals, puts only its own row out of line; padding all other
rows would take gigabytes."""


class Words(str):
    """A cell to read, not to copy: it may be wrapped between words."""

    __slots__ = ()


Cell = str | int | float | tuple[str, ...] | None
"""`bool` is an `int` and shown as yes or no."""

_Pieces = list[str]


def cell_text(cell: Cell) -> str:
    """Return a cell in one line for people, not yet escaped; numbers are bare."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return ", ".join(cell) if isinstance(cell, tuple) else "" if cell is None else str(cell)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str | None = None) -> None:
    """Print a table: wrapped as its cells allow on a terminal, one line per row elsewhere."""
    if title is not None:
        print_lines(title)
    for line in table_lines(titles, list(rows), terminal_width()):
        print_lines(line)


def table_lines(titles: Sequence[str], rows: Sequence[Sequence[Cell]], width: int | None) -> Iterator[str]:
    """Yield the lines of a table, the titles first.

    `width` is the terminal's width in columns: lists and words are wrapped to fit it, a longer name exceeds
    it. If None, nothing is wrapped, and a cell of more than `ALIGNED_WIDTH_MAX` exceeds its column.
    """
    is_right = [_is_of_numbers(row[column] for row in rows) for column in range(len(titles))]
    if width is None:
        texts = [list(map(printable, titles))]
        texts += [[printable(cell_text(cell)) for cell in row] for row in rows]
        widths = [_aligned(map(shown_width, column)) for column in zip(*texts, strict=True)]
        yield from (_line(row, widths, is_right) for row in texts)
        return
    head = [_pieces(Words(title)) for title in titles]
    body = [[_pieces(cell) for cell in row] for row in rows]
    gaps = len(_GAP) * (len(titles) - 1)
    widths = _fitting([head, *body], width - gaps)
    yield from _lines(head, widths, is_right)
    yield "─" * min(width, sum(widths) + gaps)
    for row in body:
        yield from _lines(row, widths, is_right)


def _lines(row: Sequence[_Pieces], widths: Sequence[int], is_right: Sequence[bool]) -> Iterator[str]:
    columns = [filled(pieces, width) for pieces, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, columns))):
        parts = [lines[number] if number < len(lines) else "" for lines in columns]
        yield _line(parts, widths, is_right)


def _aligned(widths: Iterable[int]) -> int:
    """Return the width of an unwrapped column."""
    return max([width for width in widths if width <= ALIGNED_WIDTH_MAX], default=0)


def _is_of_numbers(cells: Iterable[Cell]) -> bool:
    kinds = {type(cell) for cell in cells if cell is not None}
    return bool(kinds) and kinds <= {int, float}


def _pieces(cell: Cell) -> _Pieces:
    """Return the parts of a cell that stay whole on a terminal, joined by blanks."""
    if isinstance(cell, tuple):
        return [*(f"{printable(item)}," for item in cell[:-1]), *map(printable, cell[-1:])] or [""]
    if isinstance(cell, Words):
        return pieces_of(printable(cell)) or [""]
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return [f"{cell:,}"]
    return [printable(cell_text(cell))]


def _fitting(rows: Sequence[Sequence[_Pieces]], room: int) -> list[int]:
    """Return widths whose sum is at most `room`; the first row holds the titles.

    If the longest pieces do not fit next to each other, those that are too long exceed their width, so that
    only their own rows are out of line.
    """
    columns = list(zip(*rows, strict=True))
    least = [max(max(map(shown_width, pieces)) for pieces in column) for column in columns]
    whole = [max(shown_width(" ".join(pieces)) for pieces in column) for column in columns]
    if sum(least) > room:
        least = [max(map(shown_width, title)) for title in rows[0]]

    def widths(most: int) -> list[int]:
        return [max(low, min(high, most)) for low, high in zip(least, whole, strict=True)]

    most = bisect_right(range(max(whole) + 1), room, key=lambda most: sum(widths(most))) - 1
    return widths(max(1, most))


def _line(parts: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    cells = []
    for text, width, right in zip(parts, widths, is_right, strict=True):
        padding = " " * (width - shown_width(text))
        cells.append(padding + text if right else text + padding)
    return _GAP.join(cells).rstrip(" ")
