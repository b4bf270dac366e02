"""A month as tables: the roll-up, or individual events."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow

from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA
from testkit.months.values import Access, Month


def _rule(kind: str, key: Access) -> dict[str, Any]:
    rule = {"kind": kind} | dict.fromkeys(
        ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation")
    )
    rule["permission_type"] = None
    if kind == "MatchingAcl":
        rule |= {"resource_type": key.resource_type, "resource_name": key.resource_name}
        rule |= {"pattern_type": "LITERAL", "principal": key.principal, "host": "*"}
        rule |= {"operation": key.operation, "permission_type": "ALLOW"}
    return rule


def rollup_rows(month: Month) -> Iterator[dict[str, Any]]:
    """Yield the rows of `audit_rollup`, in the order in which they were recorded."""
    start = datetime.combine(month.start, datetime.min.time(), UTC)
    for key, hours in month.trail.counts.items():
        day = start + timedelta(days=key.day)
        count = sum(hours.values())
        yield {
            "day": day.date(),
            "principal": key.principal,
            "host": key.host,
            "operation": key.operation,
            "resource_type": key.resource_type,
            "resource_name": key.resource_name,
            "decision": key.decision,
            "access": key.access,
            "rule": _rule(key.rule_kind, key),
            "event_count": count,
            "reference_count": count,
            "first_time": day + timedelta(hours=min(hours)),
            "last_time": day + timedelta(hours=max(hours), minutes=59),
            "hours": sum(1 << hour for hour in hours),
            "sample_event_id": str(uuid.uuid5(uuid.NAMESPACE_OID, repr(key))),
        }


def event_rows(month: Month) -> Iterator[dict[str, Any]]:
    """Yield the events of the month, spread over their hours; only for small months, since they are many."""
    start = datetime.combine(month.start, datetime.min.time(), UTC)
    number = 0
    for key, hours in month.trail.counts.items():
        for hour, count in hours.items():
            for place in range(count):
                number += 1
                time = start + timedelta(days=key.day, hours=hour, seconds=3600 * place // count)
                row: dict[str, Any] = dict.fromkeys(AUDIT_EVENTS_SCHEMA.fieldNames())
                row |= {name: getattr(key, name) for name in key._fields if name in row}
                row["principal_type"], _, row["principal_name"] = key.principal.partition(":")
                row |= {"event_id": f"{number:036d}", "time": time, "reference_count": 1}
                row |= {"time_ms": int(time.timestamp() * 1000), "rule": _rule(key.rule_kind, key)}
                yield row


def arrow_table(rows: Iterator[dict[str, Any]], schema: Any) -> pyarrow.Table:
    """Return rows as an Arrow table of a Spark schema."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return pyarrow.Table.from_pylist(list(rows), schema=to_arrow_schema(schema, timezone="UTC"))


def rollup_table(month: Month) -> pyarrow.Table:
    """Return the month's `audit_rollup`."""
    return arrow_table(rollup_rows(month), AUDIT_ROLLUP_SCHEMA)
