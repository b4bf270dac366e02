"""How rows of tables are shown: times short for people, everything as JSON values for programs."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any


def day(time: datetime | None) -> str:
    """Return the UTC day of a time, `never` for none."""
    return "never" if time is None else f"{time.astimezone(UTC):%Y-%m-%d}"


def seen(time: datetime | None) -> str:
    """Return a time in UTC to the minute, `never` for none."""
    return "never" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M}"


def resource(row: Mapping[str, Any]) -> str:
    """Return type and name of a row's resource."""
    name = row["resource_name"]
    return f"{row['resource_type']} {name if name is not None else '(any)'}"


def plain(value: Any) -> Any:
    """Return a value as JSON has it: rows as objects, times in ISO form of UTC."""
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
