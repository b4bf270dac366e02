"""Theorems about spreadsheets: they show every name that we write and never run it."""

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kustos.runtime.spreadsheet import CELL_CHARACTERS_MAX, safe_cell, spreadsheet_line

RUNNING = ("=", "+", "-", "@", "\t", "\r", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")
TEXTS = st.text(st.sampled_from("=+-@\t\r\n\0'\\ab \uff1d|,\"\ufeff;"), max_size=8) | st.text(max_size=20)
ESCAPES = {"\\": "\\", "n": "\n", "r": "\r", "0": "\0"}


def undone(cell: str) -> str:
    """Return the text written as this cell, as a person reads it."""
    parts, rest = [], iter(cell)
    is_beginning = True
    for character in rest:
        if is_beginning and character == "'":
            is_beginning = False
            continue
        is_beginning = character in ';\t"'
        parts.append(ESCAPES[next(rest)] if character == "\\" else character)
    return "".join(parts)


@given(TEXTS)
def test_no_cell_runs_and_none_is_mistaken_for_another(text: str) -> None:
    cell = safe_cell(text)
    assert not cell.lstrip(" ").startswith(RUNNING)
    assert not set(cell) & set("\r\n\0")
    assert undone(cell) == text


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@given(rows=st.lists(st.lists(TEXTS, min_size=1, max_size=4), max_size=3))
@example(rows=[["User:alice", "a;=1+1;b"]])
@example(rows=[["User:alice", ';"=1+1']])
@example(rows=[['a"', ";=1+1"], ["a\t=1+1", '";@x']])
def test_nothing_runs_whichever_separator_a_spreadsheet_takes(rows: list[list[str]], separator: str) -> None:
    written = "".join(spreadsheet_line(map(safe_cell, row)) for row in rows)
    found = list(csv.reader(io.StringIO(written, newline=""), delimiter=separator))
    assert separator != "," or len(found) == len(rows)
    # a quote after another separator begins a cell that continues past the end of the line
    cells = [cell.lstrip(" \r\n") for row in found for cell in row]
    assert not [cell for cell in cells if cell.startswith(RUNNING)]


def test_a_cell_has_the_length_that_is_opened() -> None:
    assert len(safe_cell("x" * (CELL_CHARACTERS_MAX + 1))) == CELL_CHARACTERS_MAX
