"""Table `audit_rollup`: access counted by day and rule, the input of most commands."""

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
"""The deciding rule: `kind`, and for an ACL its seven fields (null for other kinds)."""

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
"""`day` is in UTC, and the partition. `principal` is `Type:name`. A null `resource_name` means any of the
type. `access` is ACCESS for a use, LISTING for a name that only filtered a list, PROBE for a denial that
refused nothing (ACCESS if that is unknown, and in older roll-ups). The `event_count` events concern
`reference_count` items of requests. Bit h of `hours` is set if there was an event in hour h of UTC.
`sample_event_id` is the smallest event id of the row: a re-run chooses the same."""
