"""Answers to decision requests, written as they come, in any format."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final, Protocol

from kustos.authorizer import ERROR, Answer, Decision
from kustos.cli.output import OutputFormat, document_text, printable
from kustos.cli.requests import AnswerFormat
from kustos.runtime import BYTE_ORDER_MARK, safe_cell, spreadsheet_line

KEPT_LINES_MAX: Final = 65_536
"""Rendered answer lines kept in the cache, about 20 MB; one more clears it."""

ROW_GROUP_ROWS: Final = 131_072
"""Answers per write to a Parquet file."""

FIELDS: Final = ("result", "rule")


class AnswerWriter(Protocol):
    """Takes answers in order; a string among them says why there is no decision."""

    def write(self, decisions: Sequence[Decision | str]) -> None:
        """Write these answers; except for Parquet, a reader can see them when this returns."""

    def close(self) -> None:
        """Write the remaining answers."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """How answers become text: the text of each answer, before and after all, and for no answers.

    The text of each begins with the separator, which is dropped from the first one.
    """

    line_of: Callable[[Answer], str]
    opening: str = ""
    closing: str = ""
    separator: str = ""
    nothing: str = ""

    def for_terminal(self) -> "TextForm":
        """Return the form that escapes names, so that none of them controls the terminal."""
        return replace(
            self,
            line_of=lambda answer: _tame(self.line_of(answer)),
            opening=_tame(self.opening),
            nothing=_tame(self.nothing),
        )


def _tame(text: str) -> str:
    plain = text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
    return "\n".join(map(printable, plain.split("\n")))


class TextAnswers:
    """Answers as text, one line each."""

    def __init__(self, stream: BinaryIO, form: TextForm) -> None:
        self._stream: Final = stream
        self._form: Final = form
        self._line_of: Final = form.line_of
        self._has_begun = False
        self._lines: Final[dict[int, tuple[Decision, str]]] = {}

    def write(self, decisions: Sequence[Decision | str]) -> None:
        """Write and flush one line for each."""
        self.write_text(self.render(decisions))

    def render(self, decisions: Sequence[Decision | str]) -> str:
        """Return the lines of these answers."""
        texts = []
        kept_of = self._lines.get
        for decision in decisions:
            kept = kept_of(id(decision))
            texts.append(self._line(decision) if kept is None else kept[1])
        return "".join(texts)

    def write_text(self, lines: str) -> None:
        """Write and flush lines rendered earlier."""
        if lines and not self._has_begun:
            lines = self._form.opening + lines.removeprefix(self._form.separator)
            self._has_begun = True
        self._stream.write(lines.encode())
        self._stream.flush()

    def _line(self, decision: Decision | str) -> str:
        line = self._line_of(answer_of(decision))
        if not isinstance(decision, str):
            if len(self._lines) >= KEPT_LINES_MAX:
                self._lines.clear()
            # keep the decision too: its id is unique only while it lives
            self._lines[id(decision)] = decision, line
        return line

    def close(self) -> None:
        """Write the text after the answers, or the text for no answers."""
        self._stream.write((self._form.closing if self._has_begun else self._form.nothing).encode())
        self._stream.flush()


def answer_of(decision: Decision | str) -> Answer:
    """Return the result and the rule in words."""
    if isinstance(decision, str):
        return ERROR, f"Error({decision})"
    return decision.result.value, str(decision.rule)


def json_line(answer: Answer) -> str:
    """Return an answer as a line of JSON."""
    return json.dumps(dict(zip(FIELDS, answer, strict=True)), ensure_ascii=False) + "\n"


def csv_line(answer: Sequence[str]) -> str:
    """Return an answer, or the header, as a line of CSV."""
    cells = io.StringIO()
    csv.writer(cells, lineterminator="\n").writerow(answer)
    return cells.getvalue()


def _table_line(answer: Sequence[str]) -> str:
    result, rule = answer
    return printable(f"{result:{_RESULT_WIDTH}}  {rule}") + "\n"


_RESULT_WIDTH: Final = len("ALLOWED")
_TABLE_HEAD: Final = _table_line(FIELDS)

_SPREADSHEET_HEAD: Final = BYTE_ORDER_MARK + spreadsheet_line(FIELDS)

TEXT_FORMS: Final = {
    AnswerFormat.TABLE: TextForm(_table_line, _TABLE_HEAD, nothing=_TABLE_HEAD),
    AnswerFormat.CSV: TextForm(csv_line, csv_line(FIELDS), nothing=csv_line(FIELDS)),
    AnswerFormat.SPREADSHEET: TextForm(
        lambda answer: spreadsheet_line(map(safe_cell, answer)), _SPREADSHEET_HEAD, nothing=_SPREADSHEET_HEAD
    ),
    AnswerFormat.JSON_LINES: TextForm(json_line),
    AnswerFormat.JSON: TextForm(
        lambda answer: f",\n  {json.dumps(dict(zip(FIELDS, answer, strict=True)))}",
        opening='{"answers": [',
        closing="\n]}\n",
        separator=",",
        nothing='{"answers": []}\n',
    ),
    AnswerFormat.YAML: TextForm(
        lambda answer: document_text([dict(zip(FIELDS, answer, strict=True))], OutputFormat.YAML),
        opening="answers:\n",
        nothing="answers: []\n",
    ),
}
"""Parquet has no text form."""


class ParquetAnswers:
    """Answers as rows of a Parquet file."""

    def __init__(self, stream: BinaryIO) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._arrow: Final = pa
        self._schema: Final = pa.schema([pa.field(name, pa.string(), nullable=False) for name in FIELDS])
        self._writer: Final[Any] = parquet.ParquetWriter(stream, self._schema)
        self._answers: list[Answer] = []

    def write(self, decisions: Sequence[Decision | str]) -> None:
        """Buffer these answers; write them in large groups."""
        self._answers += map(answer_of, decisions)
        if len(self._answers) >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = list(zip(*self._answers, strict=True)) or [(), ()]
        arrays = [self._arrow.array(column, self._arrow.string()) for column in columns]
        self._writer.write_table(self._arrow.table(arrays, schema=self._schema))
        self._answers = []

    def close(self) -> None:
        """Write the rest and the file's footer."""
        self._flush()
        self._writer.close()
