"""The review as CSV for spreadsheets: stable columns, and no cell that they would execute.

Two files: the entitlements, which people certify, and the accesses behind them.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kustos.runtime import BYTE_ORDER_MARK, safe_cell, spreadsheet_line

RECORD_COLUMNS: Final = ("recorded_days", "covered_since")
"""What the record covers, the same in each row of a table; a document has it once, as `review.record`."""

ACCESS_COLUMNS: Final = (
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
    *RECORD_COLUMNS,
)
"""The columns of `access_review`, in order; `hosts` and `granted_by` are several in one cell."""

TOO_EARLY: Final = "too early to say"
"""What people read where `is_dormant` is null."""

COMPARED_COLUMNS: Final = ("change", "changed", "former_decision")
"""What a comparison with a former review adds to an entitlement; empty without one."""

ENTITLEMENT_COLUMNS: Final = (
    "as_of",
    "team",
    "principal",
    "operation",
    "resource_type",
    "resource_name",
    "pattern_type",
    "host",
    "breadth",
    "principal_count",
    "name_count",
    "effect",
    "use_count",
    "used_by_count",
    "used_name_count",
    "last_used",
    "dormant_days",
    "is_dormant",
    *RECORD_COLUMNS,
    *COMPARED_COLUMNS,
    "basis",
    "is_implied",
    "granted_by",
    "granted_since",
    "denied_by",
    "deny_count",
)
"""The columns of `entitlements` and of a comparison: what it is, how much it is used, what is new, why."""


def review_csv(rows: Iterable[Mapping[str, Any]], *, byte_order_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a CSV file of `access_review` rows: a header, then each row.

    Rows are mappings, such as `row.asDict(recursive=True)` of a table in the order wanted.
    """
    return _lines(rows, ACCESS_COLUMNS, byte_order_mark=byte_order_mark)


def entitlements_csv(rows: Iterable[Mapping[str, Any]], *, byte_order_mark: bool = True) -> Iterator[str]:
    """Yield the lines of a CSV file of `entitlements` rows, compared or not (`former.Comparison`).

    The column `cluster` is before them.
    """
    return _lines(rows, ("cluster", *ENTITLEMENT_COLUMNS), byte_order_mark=byte_order_mark)


def _lines(
    rows: Iterable[Mapping[str, Any]], columns: tuple[str, ...], *, byte_order_mark: bool
) -> Iterator[str]:
    yield (BYTE_ORDER_MARK if byte_order_mark else "") + spreadsheet_line(columns)
    for row in rows:
        texts = {name: _text(row.get(name)) for name in columns}
        if row.get("is_dormant") is None:
            texts["is_dormant"] = TOO_EARLY
        yield spreadsheet_line([safe_cell(text) for text in texts.values()])


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
    """Return a time in UTC (ISO 8601, `Z`); Spark's rows have the driver's local time, without a zone."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def grant_text(texts: Mapping[str, Any]) -> str:
    """Return an ACL on one line: `ALLOW READ TOPIC PREFIXED pay. to User:alice from *`."""
    return (
        f"{texts['permission_type']} {texts['operation']} {texts['resource_type']} {texts['pattern_type']} "
        f"{texts['resource_name']} to {texts['principal']} from {texts['host']}"
    )
