"""Rows of the roll-up, made by hand: what is not said is a plain access of one event."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA

START = datetime(2026, 11, 1, tzinfo=UTC)


def used(name: str | None, operation: str = "READ", **more: Any) -> dict[str, Any]:
    """Return a row: `principal`, `host`, `resource_type`, `decision`, `access`, `kind`, `count`, `hours`."""
    return {"name": name, "operation": operation} | more


def denied(name: str | None, operation: str = "READ", **more: Any) -> dict[str, Any]:
    return used(name, operation, decision="DENIED", kind="DefaultDeny", **more)


def rollup(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    return spark.createDataFrame([_row(**row) for row in rows], AUDIT_ROLLUP_SCHEMA)


def _row(
    *,
    name: str | None,
    operation: str,
    principal: str = "User:app",
    host: str = "10.0.0.1",
    resource_type: str = "TOPIC",
    decision: str = "ALLOWED",
    access: str = "ACCESS",
    kind: str | None = "MatchingAcl",
    count: int = 1,
    hours: float = 0,
) -> dict[str, Any]:
    time = START + timedelta(hours=hours)
    return {
        "day": time.date(),
        "principal": principal,
        "host": host,
        "operation": operation,
        "resource_type": resource_type,
        "resource_name": name,
        "decision": decision,
        "access": access,
        "rule": {"kind": kind},
        "event_count": count,
        "reference_count": count,
        "first_time": time,
        "last_time": time,
        "hours": 1 << time.hour,
        "sample_event_id": "e",
    }
