"""Formats of table rows: short times for people, plain values for programs."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from kustos.cli.output import Column, ColumnFormats, OutputFormat, print_document, print_lines


def day(time: datetime | None) -> str:
    """Return the UTC day of a time, `never` for None."""
    return "never" if time is None else f"{time.astimezone(UTC):%Y-%m-%d}"


def seen(time: datetime | None) -> str:
    """Return a time in UTC to the minute, `never` for None."""
    return "never" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def resource(row: Mapping[str, Any]) -> str:
    """Return type and name of a row's resource."""
    name = row["resource_name"]
    return f"{row['resource_type']} {name if name is not None else '(any)'}"


def resource_columns() -> tuple[Column[dict[str, Any]], ...]:
    """Return the columns of a row's resource."""
    return (
        Column("resource", resource, ColumnFormats.NARROW),
        Column("resource_type", lambda row: row["resource_type"], ColumnFormats.WIDE),
        Column("resource_name", lambda row: row["resource_name"], ColumnFormats.WIDE),
    )


def print_plan(lines: Sequence[str], output: OutputFormat) -> None:
    """Print what a dry run would do; formats of rows print nothing."""
    if output.is_document:
        print_document({"plan": lines}, output)
    elif output is OutputFormat.TABLE:
        print_lines(*lines)


def plain(value: Any) -> Any:
    """Return a value in JSON types: rows as objects, times in ISO format in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
