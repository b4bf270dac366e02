"""Rows of the tables that answer, made by hand; what is not said is null or a plain value."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kustos.pipeline.schemas import ACCESS_REVIEW_SCHEMA, FINDINGS_SCHEMA, FLIPS_SCHEMA

START = datetime(2026, 11, 1, tzinfo=UTC)
ALLOW_READ = ("TOPIC", "pay", "PREFIXED", "User:a", "*", "READ", "ALLOW")


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def flips(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    plain = {
        "principal": "User:a",
        "host": "10.0.0.1",
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource_name": "pay",
        "access": "ACCESS",
        "kind": "LOST",
        "from_decision": "ALLOWED",
        "to_decision": "DENIED",
        "event_count": 1,
        "reference_count": 1,
        "first_time": START,
        "last_time": START,
        "sample_event_id": "e",
    }
    return _frame(spark, plain, rows, FLIPS_SCHEMA)


def review(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    plain = {
        "as_of": START,
        "principal": "User:a",
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource_name": "pay",
        "pattern_type": "LITERAL",
        "granted_by": [ALLOW_READ],
        "use_count": 0,
        "denied_count": 0,
        "is_dormant": False,
    }
    return _frame(spark, plain, rows, ACCESS_REVIEW_SCHEMA)


def findings(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    plain = {"finding_id": "f", "kind": "NEW_HOST", "severity": "LOW", "score": 0.5, "reason": "a reason"}
    return _frame(spark, plain, rows, FINDINGS_SCHEMA)


def _frame(
    spark: SparkSession, plain: dict[str, Any], rows: tuple[dict[str, Any], ...], schema: Any
) -> DataFrame:
    names = schema.fieldNames()
    for row in rows:
        assert row.keys() <= set(names), row
    return spark.createDataFrame([tuple((plain | row).get(name) for name in names) for row in rows], schema)
