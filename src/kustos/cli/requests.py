r"""Decision requests, read as they come: JSON lines, CSV, Parquet.

Readers yield batches of items: five values (`FIELDS`), or a text that says what is wrong with a line. A
batch is the result of one read, so that a process at the other end of a pipe gets an answer to everything
it wrote. Only `\n` ends a line. No malformed line ends the reading.
"""

import codecs
import csv
import json
import os
import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from kustos.acl.forms import LINE_CHARACTERS_MAX
from kustos.cli.failures import usage_error
from kustos.cli.output import OutputFormat

FIELDS: Final = ("principal", "host", "operation", "resource_type", "resource_name")

READ_BYTES: Final = 1 << 18
"""Bytes per read: enough lines to be quick, few enough to answer soon."""

VALUE_CHARACTERS_SHOWN_MAX: Final = 200
"""Characters of a value that an error shows."""

BATCH_ROWS: Final = 8_192
"""Rows of a Parquet file per batch."""

Item = tuple[Any, ...] | str
"""The values of a request in the order of `FIELDS`, or the error in it."""


class RecordFormat(StrEnum):
    """`--input-format`: the format of requests."""

    JSON_LINES = "json-lines"
    CSV = "csv"
    PARQUET = "parquet"


_EXTENSIONS: Final = {
    ".csv": RecordFormat.CSV,
    ".parquet": RecordFormat.PARQUET,
}


def format_of(name: str, chosen: RecordFormat | None) -> RecordFormat:
    """Return the format given, else that of a file's extension, else JSON lines."""
    return chosen or _EXTENSIONS.get(Path(name).suffix.lower(), RecordFormat.JSON_LINES)


class AnswerFormat(StrEnum):
    """`--output` of `decide`: what every command has for documents and rows, and forms of files."""

    TABLE = OutputFormat.TABLE.value
    CSV = OutputFormat.CSV.value
    SPREADSHEET = OutputFormat.SPREADSHEET.value
    JSON = OutputFormat.JSON.value
    YAML = OutputFormat.YAML.value
    JSON_LINES = "json-lines"
    PARQUET = "parquet"


_ANSWER_EXTENSIONS: Final = {
    ".csv": AnswerFormat.CSV,
    ".json": AnswerFormat.JSON,
    ".parquet": AnswerFormat.PARQUET,
    ".yaml": AnswerFormat.YAML,
    ".yml": AnswerFormat.YAML,
}


def answer_format_of(name: str, chosen: AnswerFormat | None) -> AnswerFormat:
    """Return the format given, else that of a file's extension, else JSON lines."""
    return chosen or _ANSWER_EXTENSIONS.get(Path(name).suffix.lower(), AnswerFormat.JSON_LINES)


_OVERLONG: Final = "\udc00"
"""Placeholder for a line that is too long: no decoded text contains it."""


class Lines:
    """Lines of a file descriptor, batch by batch, in bounded memory. `read_bytes` is the progress."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: Final = descriptor
        self.read_bytes = 0

    def is_ready(self) -> bool:
        """Return whether the next read would not block."""
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def batches(self) -> Iterator[list[str]]:
        """Yield the lines that each read completed; invalid UTF-8 becomes lone surrogates."""
        rest, is_overlong = b"", False
        while chunk := os.read(self._descriptor, READ_BYTES):
            if not self.read_bytes:
                chunk = chunk.removeprefix(codecs.BOM_UTF8)
            self.read_bytes += len(chunk)
            first, newline, others = chunk.partition(b"\n")
            is_overlong |= len(rest) + len(first) > LINE_CHARACTERS_MAX
            rest = b"" if is_overlong else rest + first
            if newline:
                whole, _, tail = others.rpartition(b"\n")
                more = _decoded(whole).split("\n") if whole or len(others) > len(tail) else []
                yield [_OVERLONG if is_overlong else _decoded(rest), *more]
                rest, is_overlong = tail, False
        if rest or is_overlong:
            yield [_OVERLONG if is_overlong else _decoded(rest)]


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


_SCAN: Final[Callable[[str, int], tuple[Any, int]]] = json.JSONDecoder(object_pairs_hook=tuple).scan_once  # type: ignore[attr-defined]
"""Parses one value; an object becomes its pairs, so that a repeated name is detected."""

_VALUES: Final = itemgetter(*FIELDS)


def json_items(lines: list[str]) -> list[Item]:
    """Return the requests of JSON lines."""
    return [_of_json(line) for line in lines]


def _of_json(line: str) -> Item:
    try:
        pairs, end = _SCAN(line, 0)
        is_plain = pairs.__class__ is tuple and end == len(line) and "\\u" not in line
        if is_plain and len(pairs) == len(FIELDS) and (line.isascii() or line.isprintable()):
            values: tuple[Any, ...] = _VALUES(dict(pairs))
            if values[4].__class__ is str or values[4] is None:
                hash(values)
                return values
    except (StopIteration, ValueError, TypeError, KeyError, RecursionError):
        pass
    # check everything less simple in detail
    return _of_odd_json(line)


def _of_odd_json(line: str) -> Item:
    if _OVERLONG in line:
        return _fault(f"the line has more than {LINE_CHARACTERS_MAX} bytes")
    if not _is_text(line):
        return _fault("this is not text in UTF-8")
    try:
        pairs = json.loads(line, object_pairs_hook=tuple)
    except json.JSONDecodeError as error:
        return _fault(f"this is not JSON, {error.msg.lower()} at character {error.pos + 1}", line)
    except (RecursionError, ValueError):
        return _fault("this is not JSON that a request is written in", line)
    if not isinstance(pairs, tuple):
        return _fault("this is not an object, a request is one with five fields", line)
    return _names_fault([name for name, _ in pairs]) or _of_fields(dict(pairs))


def _names_fault(names: list[str]) -> str:
    for name in names:
        if name not in FIELDS:
            return _fault("is not a field of a request", name)
        if names.count(name) > 1:
            return _fault("occurs twice, give it once", name)
    return next((_fault("is missing", name) for name in FIELDS if name not in names), "")


def _of_fields(fields: dict[str, Any]) -> Item:
    for name in FIELDS:
        value = fields[name]
        if not isinstance(value, str) and not (value is None and name == FIELDS[-1]):
            return _fault(f"is not text, write `{name}` in quotes", json.dumps(value))
        if isinstance(value, str) and not _is_text(value):
            return _fault(f"`{name}` holds half of a character")
    return tuple(fields[name] for name in FIELDS)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fault(rule: str, value: str = "") -> str:
    return f"`{shown(value)}` {rule}" if value else rule


def shown(value: str) -> str:
    """Return the part of a value that an error shows."""
    if len(value) <= VALUE_CHARACTERS_SHOWN_MAX:
        return value
    return f"{value[:VALUE_CHARACTERS_SHOWN_MAX]}..."


class _Feed:
    """Yields the lines of batches one by one; `is_empty` once every line read was yielded."""

    def __init__(self, batches: Iterator[list[str]]) -> None:
        self._batches: Final = batches
        self._lines: Final[deque[str]] = deque()

    @property
    def is_empty(self) -> bool:
        return not self._lines

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        if not self._lines:
            self._lines.extend(next(self._batches))
        return self._lines.popleft() + "\n"


def csv_batches(lines: Lines) -> Iterator[list[Item]]:
    """Yield the requests of CSV with a header; an empty cell is a null.

    Raises a usage error for another header.
    """
    feed = _Feed(lines.batches())
    rows = csv.reader(feed, strict=True)
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise usage_error(f"the requests' first line is not a CSV header: {error}") from error
    pick = _picker(header)
    items: list[Item] = []
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            items.append(_fault(f"this is not CSV, {error}"))
        else:
            items.append(_of_row(row, pick))
        if feed.is_empty:
            yield items
            items = []
    yield items


def _picker(names: Sequence[str]) -> Any:
    """Return a function that picks the fields from a row with these columns."""
    for name in (*names, *FIELDS):
        if name not in FIELDS or names.count(name) != 1:
            raise usage_error(
                f"the requests' columns are `{', '.join(names)}`, and not each once `{', '.join(FIELDS)}`"
            )
    return itemgetter(*[names.index(name) for name in FIELDS])


def _of_row(row: list[str], pick: Any) -> Item:
    if len(row) != len(FIELDS):
        return _fault(f"the row has {len(row)} cells, not {len(FIELDS)}")
    text = "".join(row)
    if _OVERLONG in text:
        return _fault(f"the line has more than {LINE_CHARACTERS_MAX} bytes")
    if not text.isascii() and not _is_text(text):
        return _fault("this is not text in UTF-8")
    return tuple(cell or None for cell in pick(row))


def parquet_batches(file: Any) -> Iterator[list[Item]]:
    """Yield the requests of an open Parquet file; raise a usage error for other columns."""
    import pyarrow as pa

    schema = file.schema_arrow
    _picker(schema.names)
    for name in FIELDS:
        kind = schema.field(name).type
        texts = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(texts) or pa.types.is_large_string(texts) or pa.types.is_null(texts)):
            raise usage_error(f"the requests' column `{name}` has type `{kind}`, write strings")
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(FIELDS)):
        yield list(zip(*[batch.column(name).to_pylist() for name in FIELDS], strict=True))
