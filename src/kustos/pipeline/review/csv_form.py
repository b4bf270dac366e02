"""The review as CSV for spreadsheets: stable columns, and no cell that they would execute."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kustos.pipeline.spreadsheet import BYTE_ORDER_MARK, safe_cell, spreadsheet_line

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


def review_csv(rows: Iterable[Mapping[str, Any]], *, byte_order_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a CSV file of `access_review` rows: a header, then each row.

    Rows are mappings, such as `row.asDict(recursive=True)` of a table in the order wanted.
    """
    yield (BYTE_ORDER_MARK if byte_order_mark else "") + spreadsheet_line(COLUMNS)
    for row in rows:
        yield spreadsheet_line([safe_cell(_text(row[name])) for name in COLUMNS])


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
    """Return a time in UTC (ISO 8601, `Z`); a time without a zone comes from Spark, in UTC."""
    zoned = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return zoned.isoformat().replace("+00:00", "Z")


def grant_text(texts: Mapping[str, Any]) -> str:
    """Return an ACL on one line: `ALLOW READ TOPIC PREFIXED pay. to User:alice from *`."""
    return (
        f"{texts['permission_type']} {texts['operation']} {texts['resource_type']} {texts['pattern_type']} "
        f"{texts['resource_name']} to {texts['principal']} from {texts['host']}"
    )
