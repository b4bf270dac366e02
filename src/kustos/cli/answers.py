"""Answers to requests for decisions, written as they come: JSON lines, CSV, Parquet."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, Final, Protocol

from kustos.authorizer import Decision
from kustos.authorizer.questions import ERROR, Answer

KEPT_LINES_MAX: Final = 65_536
"""Lines of answers kept ready, some 20 MB; one more starts the memory anew."""

ROW_GROUP_ROWS: Final = 131_072
"""Answers of a Parquet file that are written together."""

FIELDS: Final = ("result", "rule")


class AnswerWriter(Protocol):
    """Takes answers in order; a text among them says why there is no decision."""

    def write(self, decisions: Sequence[Decision | str]) -> None:
        """Write these answers; whoever reads can have them when it returns, but for Parquet."""

    def close(self) -> None:
        """Write what is left."""


class TextAnswers:
    """Answers as lines of text: those of JSON, or of CSV with a header."""

    def __init__(self, stream: BinaryIO, line_of: Callable[[Answer], str], header: str = "") -> None:
        self._stream: Final = stream
        self._line_of: Final = line_of
        self._header = header
        self._lines: Final[dict[int, tuple[Decision, str]]] = {}

    def write(self, decisions: Sequence[Decision | str]) -> None:
        """Write one line for each and hand them on."""
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
        """Write lines that were rendered before and hand them on."""
        self._stream.write((self._header + lines).encode())
        self._stream.flush()
        self._header = ""

    def _line(self, decision: Decision | str) -> str:
        line = self._line_of(answer_of(decision))
        if not isinstance(decision, str):
            if len(self._lines) >= KEPT_LINES_MAX:
                self._lines.clear()
            # the decision is kept too: an identity is only its own while it lives
            self._lines[id(decision)] = decision, line
        return line

    def close(self) -> None:
        """Write the header if there was no answer."""
        self.write(())


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
        """Take these answers; write them when they are many."""
        self._answers += map(answer_of, decisions)
        if len(self._answers) >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        columns = list(zip(*self._answers, strict=True)) or [(), ()]
        arrays = [self._arrow.array(column, self._arrow.string()) for column in columns]
        self._writer.write_table(self._arrow.table(arrays, schema=self._schema))
        self._answers = []

    def close(self) -> None:
        """Write the rest and the file's end."""
        self._flush()
        self._writer.close()
