"""Answers too long for memory: rows are printed as they come, in every format."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, TypeVar

from kustos.cli.output.documents import OutputFormat, document_text
from kustos.cli.output.rows import Columns, cells_of, print_csv, print_spreadsheet
from kustos.cli.output.tables import table_lines
from kustos.cli.output.text import print_lines, terminal_width

Row = TypeVar("Row")

PAGE_ROWS: Final = 1000
"""Rows of a table that are buffered and aligned together."""


_NO_HEAD: Final[Mapping[str, Any]] = MappingProxyType({})


class StreamFormat(StrEnum):
    """`-o/--output` of a command that prints rows as they come: all formats, and JSON lines."""

    TABLE = OutputFormat.TABLE.value
    WIDE = OutputFormat.WIDE.value
    NAME = OutputFormat.NAME.value
    CSV = OutputFormat.CSV.value
    SPREADSHEET = OutputFormat.SPREADSHEET.value
    JSON = OutputFormat.JSON.value
    YAML = OutputFormat.YAML.value
    JSON_LINES = "json-lines"


def stream_rows(
    columns: Columns[Row],
    rows: Iterable[Row],
    output: StreamFormat,
    *,
    member: str,
    document: Callable[[Row], Any],
) -> None:
    """Print rows as they come; an error from `rows` propagates, and leaves a document without its end.

    `document` turns a row into an item of the list `member` in `json` and `yaml`, or into one line of
    `json-lines`. Consecutive equal names are printed once.
    """
    if output is StreamFormat.JSON_LINES:
        for row in rows:
            sys.stdout.write(json.dumps(document(row)) + "\n")
        return
    match OutputFormat(output.value):
        case OutputFormat.JSON:
            _print_json(map(document, rows), member)
        case OutputFormat.YAML:
            _print_yaml(map(document, rows), member)
        case OutputFormat.NAME:
            last = None
            for name in (name for row in rows for name in columns.names(row)):
                if name != last:
                    print_lines(name)
                last = name
        case OutputFormat.CSV:
            print_csv(columns.of(OutputFormat.CSV), rows)
        case OutputFormat.SPREADSHEET:
            print_spreadsheet(columns.of(OutputFormat.SPREADSHEET), rows)
        case OutputFormat.TABLE | OutputFormat.WIDE as table:
            _print_pages(columns, iter(rows), table)


def stream_document(head: Mapping[str, Any], member: str, items: Iterable[Any], output: OutputFormat) -> None:
    """Print one document in `json` or `yaml`: `head`, then the list `member`, item by item as they come."""
    print_items = _print_yaml if output is OutputFormat.YAML else _print_json
    print_items(items, member, head)


def _print_json(items: Iterable[Any], member: str, head: Mapping[str, Any] = _NO_HEAD) -> None:
    around = document_text({member: []}, OutputFormat.JSON)
    begin, end = around.replace("[]\n}\n", "[\n"), "\n  ]\n}\n"
    empty = document_text({**head, member: []}, OutputFormat.JSON)
    count = 0
    for count, item in enumerate(items, start=1):
        text = document_text({member: [item]}, OutputFormat.JSON)
        if count == 1:
            sys.stdout.write(empty.removesuffix("]\n}\n") + "\n")
        sys.stdout.write((",\n" if count > 1 else "") + text[len(begin) : -len(end)])
    sys.stdout.write(end if count else empty)


def _print_yaml(items: Iterable[Any], member: str, head: Mapping[str, Any] = _NO_HEAD) -> None:
    if head:
        sys.stdout.write(document_text(dict(head), OutputFormat.YAML))
    count = 0
    for count, item in enumerate(items, start=1):
        text = document_text({member: [item]}, OutputFormat.YAML)
        sys.stdout.write(text if count == 1 else text.partition("\n")[2])
    if not count:
        sys.stdout.write(document_text({member: []}, OutputFormat.YAML))


def _print_pages(columns: Columns[Row], rows: Iterator[Row], output: OutputFormat) -> None:
    """Print tables of `PAGE_ROWS` rows; in a pipe the titles appear once."""
    chosen, width = columns.of(output), terminal_width()
    is_first = True
    while page := list(islice(rows, PAGE_ROWS)):
        lines = table_lines([column.heading for column in chosen], list(cells_of(chosen, page)), width)
        print_lines(*islice(lines, 0 if is_first or width is not None else 1, None))
        is_first = False
