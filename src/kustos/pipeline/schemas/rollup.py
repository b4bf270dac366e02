"""Table `audit_rollup`: who did what, a day and a rule at a time. Most answers are asked of it."""

from typing import Final

from pyspark.sql.types import (
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kustos.pipeline.schemas.events import AUDIT_EVENTS_SCHEMA

RULE_SCHEMA: Final = AUDIT_EVENTS_SCHEMA["rule"].dataType
"""What decided: `kind`, and of a deciding ACL its seven fields (null for other kinds)."""

ROLLUP_GRAIN: Final = (
    "day",
    "principal",
    "host",
    "operation",
    "resource_type",
    "resource_name",
    "decision",
    "access",
    "rule",
)
"""One row for each distinct combination of these."""

AUDIT_ROLLUP_SCHEMA: Final = StructType(
    [
        StructField("day", DateType()),
        StructField("principal", StringType()),
        StructField("host", StringType()),
        StructField("operation", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("decision", StringType()),
        StructField("access", StringType()),
        StructField("rule", RULE_SCHEMA),
        StructField("event_count", LongType()),
        StructField("reference_count", LongType()),
        StructField("first_time", TimestampType()),
        StructField("last_time", TimestampType()),
        StructField("hours", IntegerType()),
        StructField("sample_event_id", StringType()),
    ]
)
"""`day` is that of UTC and the partition. `principal` is `Type:name`. `resource_name` null asks for any of
the type. `access` is ACCESS for a use, LISTING for a name that only filtered a list, PROBE for a denial that
refused nothing (where it could not be known, and in roll-ups of before, that is ACCESS). `event_count` events
hung on `reference_count` items of requests. Bit h of `hours` is set if there was an event in hour h of UTC.
`sample_event_id` is the smallest event id of the row: an example that a re-run chooses again."""
