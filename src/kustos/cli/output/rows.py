"""Answers with rows: a command declares its columns once, and every format is made from them."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto, unique
from itertools import chain
from typing import Any, Final, Generic, TypeVar

from kustos.cli.output.documents import OutputFormat, print_document
from kustos.cli.output.tables import Cell, Words, cell_text, print_table
from kustos.cli.output.text import is_terminal, print_lines, printable

Row = TypeVar("Row")


@unique
class ColumnFormats(Enum):
    """The formats that show a column. `wide`, `csv` and `spreadsheet` have the same columns."""

    EVERYWHERE = auto()
    WIDE = auto()
    NARROW = auto()
    """Only in `table`: says in words what other formats show in separate columns."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column. `key` is its name for programs; people see it with blanks, or `title`.

    On a terminal, a column that `groups` leaves out a cell equal to the one above, and rows that differ only
    in a column that `merges` become one.
    """

    key: str
    cell: Callable[[Row], Cell]
    shown: ColumnFormats = ColumnFormats.EVERYWHERE
    title: str = ""
    groups: bool = False
    merges: bool = False

    @property
    def heading(self) -> str:
        """The column's title."""
        return self.title or self.key.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Columns(Generic[Row]):
    """The columns of a command. `names` returns what `-o name` prints for a row, `named` describes that."""

    columns: tuple[Column[Row], ...]
    names: Callable[[Row], Iterable[str]]
    named: str

    def of(self, output: OutputFormat) -> list[Column[Row]]:
        """Return the columns that a format shows."""
        hidden = ColumnFormats.WIDE if output is OutputFormat.TABLE else ColumnFormats.NARROW
        return [column for column in self.columns if column.shown is not hidden]


def print_rows(
    columns: Columns[Row],
    rows: Sequence[Row],
    output: OutputFormat,
    *,
    document: Callable[[], Any],
    lead: tuple[str, ...] = (),
    tail: tuple[str, ...] = (),
    people: Callable[[], None] | None = None,
) -> None:
    """Print rows in the requested format.

    `document` makes the document of `json` and `yaml`. Tables stand between `lead` and `tail`, lines that
    no program needs. `people` replaces the table on a terminal, if rows are too long to read in one line.
    """
    match output:
        case OutputFormat.JSON | OutputFormat.YAML:
            print_document(document(), output)
        case OutputFormat.NAME:
            print_lines(*dict.fromkeys(name for row in rows for name in columns.names(row)))
        case OutputFormat.CSV:
            print_csv(columns.of(output), rows)
        case OutputFormat.SPREADSHEET:
            print_spreadsheet(columns.of(output), rows)
        case OutputFormat.TABLE if people is not None and is_terminal():
            people()
        case OutputFormat.TABLE | OutputFormat.WIDE:
            chosen = columns.of(output)
            print_lines(*lead, *_blank_line(lead, rows))
            if rows:
                print_table([column.heading for column in chosen], _grouped(chosen, cells_of(chosen, rows)))
            print_lines(*_blank_line(tail, rows), *tail)


def _blank_line(lines: tuple[str, ...], rows: Sequence[Any]) -> tuple[str, ...]:
    return ("",) if lines and rows else ()


_Cells = tuple[Cell, ...]


def cells_of(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[_Cells]:
    """Yield the cells of each row."""
    return (tuple([column.cell(row) for column in columns]) for row in rows)


def _grouped(columns: Sequence[Column[Row]], rows: Iterable[_Cells]) -> Iterable[_Cells]:
    """Return the rows grouped for a terminal; elsewhere each row is complete."""
    if not is_terminal():
        return rows
    merged = next((place for place, column in enumerate(columns) if column.merges), None)
    if merged is not None:
        together: dict[_Cells, list[str]] = {}
        for row in rows:
            key = (*row[:merged], *row[merged + 1 :])
            together.setdefault(key, []).append(cell_text(row[merged]))
        rows = [(*key[:merged], tuple(items), *key[merged:]) for key, items in together.items()]
    group = next((place for place, column in enumerate(columns) if column.groups), None)
    return rows if group is None else _without_repeats(rows, group)


def _without_repeats(rows: Iterable[_Cells], place: int) -> Iterator[_Cells]:
    last: Cell = None
    for row in rows:
        yield row if row[place] != last else (*row[:place], None, *row[place + 1 :])
        last = row[place]


def print_csv(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> None:
    """Print a header and the rows, every field in quotes: a line break in a name does not end its row.

    Names are exact, as a program needs them; on a terminal they are escaped.
    """
    shown = printable if is_terminal() else _encodable
    sys.stdout.write(",".join(column.key for column in columns) + "\n")
    writer = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([shown(_field(cell)) for cell in row] for row in cells_of(columns, rows))


def print_spreadsheet(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> None:
    """Print a header and the rows for a spreadsheet: no text in them is a formula."""
    from kustos.runtime import BYTE_ORDER_MARK, spreadsheet_line

    if not is_terminal():
        sys.stdout.write(BYTE_ORDER_MARK)
    heading = [column.key for column in columns]
    for cells in chain([heading], ([_safe_field(cell) for cell in row] for row in cells_of(columns, rows))):
        line = spreadsheet_line(cells)
        sys.stdout.write(printable(line.removesuffix("\r\n")) + "\n" if is_terminal() else line)


def _safe_field(cell: Cell) -> str:
    from kustos.runtime import safe_cell

    text = _encodable(_field(cell))
    # a negative number begins like a formula, but is none
    return text if type(cell) in (int, float) else safe_cell(text)


_TRUTH: Final = {True: "true", False: "false"}


def _field(cell: Cell) -> str:
    return _TRUTH[cell] if isinstance(cell, bool) else cell_text(cell)


def _encodable(text: str) -> str:
    """Return the text with lone surrogates escaped, which no encoding has."""
    return text.encode("utf-8", "backslashreplace").decode()


def words_of(read: Callable[[Row], str]) -> Callable[[Row], Words]:
    """Return a cell reader for a column whose texts may be wrapped between words."""
    return lambda row: Words(read(row))
