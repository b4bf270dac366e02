"""Theorems about output: every format holds the same rows, whatever the names are."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from operator import itemgetter
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from kustos.cli.output import (
    ALIGNED_WIDTH_MAX,
    Column,
    Columns,
    OutputFormat,
    StreamFormat,
    Words,
    document_text,
    print_document,
    print_rows,
    printable,
    shown_width,
    stream_document,
    stream_rows,
    table_lines,
)
from kustos.runtime.spreadsheet import BYTE_ORDER_MARK, safe_cell

NAMES = st.text(max_size=12) | st.integers(1, 40).map(lambda count: "long-name-" * count)
"""Any possible name, also with line breaks and escape sequences; and very long ones."""

ROWS = st.lists(st.tuples(NAMES, NAMES, st.integers(), st.tuples(NAMES, NAMES)), max_size=8)
Row = tuple[str, str, int, tuple[str, str]]

COLUMNS: Columns[Row] = Columns(
    (
        Column("name", itemgetter(0), groups=True),
        Column("text", lambda row: Words(row[1])),
        Column("count", itemgetter(2)),
        Column("list", itemgetter(3), merges=True),
    ),
    lambda row: (row[0],),
    "names",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(rows: list[Row], output: OutputFormat, stream: io.StringIO) -> str:
    with redirect_stdout(stream):
        print_rows(COLUMNS, rows, output, document=lambda: {"rows": [list(row) for row in rows]})
    return stream.getvalue()


@given(ROWS)
def test_csv_reads_back_as_the_rows(rows: list[Row]) -> None:
    text = printed(rows, OutputFormat.CSV, io.StringIO())
    header, *found = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == ["name", "text", "count", "list"]
    assert found == [[a, b, str(n), ", ".join(c)] for a, b, n, c in rows]


@given(ROWS)
def test_a_spreadsheet_gets_the_same_rows_and_no_formula(rows: list[Row]) -> None:
    text = printed(rows, OutputFormat.SPREADSHEET, io.StringIO())
    assert text.startswith(BYTE_ORDER_MARK)
    lines = io.StringIO(text.removeprefix(BYTE_ORDER_MARK), newline="")
    header, *found = csv.reader(lines, strict=True)
    assert header == ["name", "text", "count", "list"]
    assert found == [[safe_cell(a), safe_cell(b), str(n), safe_cell(", ".join(c))] for a, b, n, c in rows]


@given(ROWS)
def test_documents_read_back_as_the_rows(rows: list[Row]) -> None:
    document = json.loads(printed(rows, OutputFormat.JSON, io.StringIO()))
    assert document == {"rows": [[a, b, n, list(c)] for a, b, n, c in rows]}
    with redirect_stdout(io.StringIO()) as stream:
        print_document(document, OutputFormat.YAML)
    assert yaml.safe_load(stream.getvalue()) == document
    assert stream.getvalue().isascii()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(NAMES | st.sampled_from(["on", "y", "null", "acls", "a b"]), VALUES, max_size=4))
@example({"": {"1": [[], {}, [["x"], 1e300, 1e-7, -0.0]], "12": "12", "no": "2026-11-22"}})
def test_every_document_reads_back_from_yaml(document: dict[str, object]) -> None:
    with redirect_stdout(io.StringIO()) as stream:
        print_document(document, OutputFormat.YAML)
    assert yaml.safe_load(stream.getvalue()) == document


@given(ROWS)
def test_a_pipe_gets_one_line_for_each_row_with_all_it_says(rows: list[Row]) -> None:
    for output in (OutputFormat.TABLE, OutputFormat.WIDE):
        lines = printed(rows, output, io.StringIO()).split("\n")
        assert lines.pop() == ""
        assert len(lines) == (len(rows) + 1 if rows else 0)
        for line, (name, text, number, pair) in zip(lines[1:], rows, strict=True):
            for said in (name, text, str(number), ", ".join(pair)):
                assert printable(said).strip() in line


@given(ROWS)
def test_the_blanks_of_a_pipe_do_not_grow_with_the_longest_name(rows: list[Row]) -> None:
    for line, (name, text, number, pair) in zip(
        printed(rows, OutputFormat.TABLE, io.StringIO()).split("\n")[1:], rows, strict=False
    ):
        widths = [shown_width(printable(said)) for said in (name, text, str(number), ", ".join(pair))]
        assert shown_width(line) <= 6 + sum(max(width, ALIGNED_WIDTH_MAX) for width in widths)


@given(ROWS, st.integers(1, 120))
def test_a_name_is_never_broken_on_a_terminal(rows: list[Row], width: int) -> None:
    lines = list(table_lines(["name", "text", "count", "list"], rows, width))
    for name, _, number, pair in rows:
        for said in (name, f"{number:,}", *pair):
            assert any(printable(said).strip() in line for line in lines)


SHORT = st.lists(st.tuples(st.text("abcd", max_size=9), st.text("ab ", max_size=90).map(Words)), max_size=5)


@given(SHORT)
def test_words_are_wrapped_to_fit_the_terminal(rows: list[tuple[str, str]]) -> None:
    longest = max((len(word) for _, text in rows for word in text.split()), default=0)
    lines = list(table_lines(["name", "text"], rows, 40))
    assert all(shown_width(line) <= max(40, 11 + longest) for line in lines)
    words = [word for line in lines[2:] for word in line.split()]
    assert sorted(words) == sorted(word for row in rows for cell in row for word in cell.split())


@given(ROWS)
def test_nothing_that_is_printed_commands_a_terminal(rows: list[Row]) -> None:
    for output in OutputFormat:
        text = printed(rows, output, Terminal())
        assert all(character.isprintable() or character == "\n" for character in text)


def streamed(rows: Iterable[Row], output: StreamFormat, stream: io.StringIO) -> str:
    with redirect_stdout(stream):
        stream_rows(COLUMNS, rows, output, member="rows", document=list)
    return stream.getvalue()


@given(ROWS, st.integers(1, 8), st.booleans())
def test_what_comes_row_by_row_is_printed_as_if_it_were_held(
    rows: list[Row], page: int, is_terminal: bool
) -> None:
    stream = Terminal if is_terminal else io.StringIO
    plain = {OutputFormat.CSV, OutputFormat.SPREADSHEET, OutputFormat.JSON, OutputFormat.YAML}
    for output in plain:
        assert streamed(iter(rows), StreamFormat(output.value), stream()) == printed(rows, output, stream())
    lines = streamed(iter(rows), StreamFormat.JSON_LINES, stream()).splitlines()
    assert list(map(json.loads, lines)) == [[a, b, n, list(c)] for a, b, n, c in rows]
    names = streamed(iter(rows), StreamFormat.NAME, stream()).split("\n")[:-1]
    assert list(dict.fromkeys(names)) == printed(rows, OutputFormat.NAME, stream()).split("\n")[:-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kustos.cli.output.streams.PAGE_ROWS", page)
        table = streamed(iter(rows), StreamFormat.TABLE, io.StringIO()).split("\n")[:-1]
    assert len(table) == (len(rows) + 1 if rows else 0), "a pipe gets a line for each row, and one of titles"
    for line, row in zip(table[1:], rows, strict=False):
        assert all(printable(said).strip() in line for said in (row[0], row[1], *row[3]))


@given(
    ROWS, st.sampled_from([StreamFormat.CSV, StreamFormat.JSON_LINES, StreamFormat.JSON, StreamFormat.NAME])
)
def test_a_row_is_printed_before_the_next_is_read(rows: list[Row], output: StreamFormat) -> None:
    stream = io.StringIO()

    def reading() -> Iterator[Row]:
        for row in rows:
            before = len(stream.getvalue())
            yield row
            assert output is StreamFormat.NAME or len(stream.getvalue()) > before
        raise EOFError

    with pytest.raises(EOFError):
        streamed(reading(), output, stream)
    if output is StreamFormat.JSON:
        with pytest.raises(json.JSONDecodeError):
            json.loads(stream.getvalue())


@given(ROWS)
def test_names_are_lines_each_once(rows: list[Row]) -> None:
    lines = printed(rows, OutputFormat.NAME, io.StringIO()).split("\n")[:-1]
    assert lines == [printable(name) for name in dict.fromkeys(row[0] for row in rows)]


@given(ROWS, st.dictionaries(st.sampled_from(["as_of", "count", "found"]), st.none() | st.lists(st.text())))
def test_a_document_whose_list_comes_item_by_item_is_printed_as_if_it_were_held(
    rows: list[Row], head: dict[str, Any]
) -> None:
    items = [[a, b, n, {"c": list(c)}] for a, b, n, c in rows]
    for output in (OutputFormat.JSON, OutputFormat.YAML):
        stream = io.StringIO()
        with redirect_stdout(stream):
            stream_document(head, "rows", iter(items), output)
        assert stream.getvalue() == document_text({**head, "rows": items}, output)
