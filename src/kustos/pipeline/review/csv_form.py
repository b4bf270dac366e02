"""The review as CSV that spreadsheets open: stable columns, and no cell that they would run.

A name is whatever somebody chose. A cell that begins as a formula does (`=`, `+`, `-`, `@`, a tab or a
pipe, blanks before them or not) is written with an apostrophe before it, which makes it text (OWASP, "CSV
Injection"); one that begins with an apostrophe gets another, so that nothing is lost. Line breaks and NUL are
written as backslash n, r and 0, a backslash as two, so that a row is a line.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

COLUMNS: Final = (
    "as_of",
    "team",
    "principal",
    "operation",
    "resource_type",
    "resource_name",
    "pattern_type",
    "hosts",
    "basis",
    "granted_by",
    "granted_since",
    "last_used",
    "use_count",
    "denied_count",
    "dormant_days",
    "is_dormant",
)
"""The columns of `access_review`, in order; `hosts` and `granted_by` are several in one cell."""

BYTE_ORDER_MARK: Final = "\ufeff"
"""Without it spreadsheets take UTF-8 for something else."""

CELL_CHARACTERS_MAX: Final = 32_767
"""Longest cell that Excel opens; the rest is cut, and the JSON form has it."""

_CUT: Final = "..."
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\0": "\\0"})
_RUNNING: Final = "=+-@\t|%'\uff1d\uff0b\uff0d\uff20"
"""With these a formula begins, full-width ones too; and the apostrophe that keeps one from running."""


def review_csv(rows: Iterable[Mapping[str, Any]], *, byte_order_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a CSV file (RFC 4180, CRLF) of `access_review` rows: a header, then each row.

    Rows are mappings, such as `row.asDict(recursive=True)` of a table in the order wanted.
    """
    yield (BYTE_ORDER_MARK if byte_order_mark else "") + _line(COLUMNS)
    for row in rows:
        yield _line([safe_cell(_text(row[name])) for name in COLUMNS])


def safe_cell(text: str) -> str:
    """Return a cell that a spreadsheet shows and never runs, on one line, of at most CELL_CHARACTERS_MAX."""
    line = text.translate(_ESCAPES)
    if line.lstrip(" ")[:1] in _RUNNING and line.strip(" "):
        line = f"'{line}"
    if len(line) > CELL_CHARACTERS_MAX:
        line = line[: CELL_CHARACTERS_MAX - len(_CUT)] + _CUT
    return line


def _line(cells: Iterable[str]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Mapping):
        return grant_text(value)
    if isinstance(value, list | tuple):
        return "; ".join(_text(one) for one in value)
    return str(value)


def instant_text(time: datetime) -> str:
    """Return a time in UTC (ISO 8601, `Z`); one without a zone is Spark's, which is UTC."""
    told = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return told.isoformat().replace("+00:00", "Z")


def grant_text(texts: Mapping[str, Any]) -> str:
    """Return an ACL on one line: `ALLOW READ TOPIC PREFIXED pay. to User:alice from *`."""
    return (
        f"{texts['permission_type']} {texts['operation']} {texts['resource_type']} {texts['pattern_type']} "
        f"{texts['resource_name']} to {texts['principal']} from {texts['host']}"
    )
