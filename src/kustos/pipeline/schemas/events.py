"""The Spark schemas of events, from the tables in `kustos.authorizer.audit.fields`, and of their roll-up."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kustos.authorizer.audit import AUDIT_FIELDS, SECURITY_FIELDS, AuditField

_TYPES: Final[dict[str, DataType]] = {
    "string": StringType(),
    "int": IntegerType(),
    "long": LongType(),
    "boolean": BooleanType(),
    "timestamp_ms": LongType(),
}


def event_struct(fields: Sequence[AuditField]) -> StructType:
    """Return the StructType of these fields, in their order, dotted names nested.

    Fields of one struct must be adjacent; a struct is nullable if all its fields are.
    """
    struct = StructType()
    for head, group in groupby(fields, key=lambda field: field.name.partition(".")[0]):
        members = list(group)
        if "." not in members[0].name:
            for field in members:
                struct.add(StructField(head, _TYPES[field.kind], field.nullable))
            continue
        inner = event_struct([replace(field, name=field.name.partition(".")[2]) for field in members])
        struct.add(StructField(head, inner, all(f.nullable for f in members)))
    return struct


def relaxed(struct: StructType) -> StructType:
    """Return the same struct with every field nullable, as parsed text and Parquet files are."""
    return StructType(
        [
            StructField(f.name, relaxed(f.dataType) if isinstance(f.dataType, StructType) else f.dataType)
            for f in struct.fields
        ]
    )


EVENT_SCHEMA: Final = event_struct(AUDIT_FIELDS)
"""An audit event as kustos writes it."""

REQUIRED_FIELDS: Final = tuple(field.name for field in AUDIT_FIELDS if not field.nullable)
"""Dotted names that a JSON event must have."""

SECURITY_SCHEMA: Final = event_struct(SECURITY_FIELDS)
"""A security event as kustos writes it: a login, a change of a user, token or setting."""

REQUIRED_SECURITY_FIELDS: Final = tuple(field.name for field in SECURITY_FIELDS if not field.nullable)
"""Names that a security event must have."""

ANY_EVENT_SCHEMA: Final = StructType(
    [
        *relaxed(EVENT_SCHEMA).fields,
        *(field for field in relaxed(SECURITY_SCHEMA).fields if field.name not in EVENT_SCHEMA.fieldNames()),
    ]
)
"""The fields of both kinds of events: `event_type` is null for a decision."""

CLUSTER: Final = "cluster"
"""The column that says whose a row is; empty where nothing names the cluster, null in older files only."""

CONTENT_SCHEMA: Final = StructType([field for field in ANY_EVENT_SCHEMA if field.name != "cluster_id"])
"""What two events of one id and cluster have in common if they are copies; older ones lack `cluster_id`."""

_SOURCE: Final = (
    StructField("time", TimestampType()),
    StructField("source_format", StringType()),
    StructField("source_file", StringType()),
    StructField("cluster", StringType()),
    StructField("conflicting_file", StringType()),
)

AUDIT_EVENTS_SCHEMA: Final = StructType([*relaxed(EVENT_SCHEMA).fields, *_SOURCE])
"""Table `audit_events`: decisions. Kafka's lines have fewer fields than ours: the others are null.

`conflicting_file` is null but for an event whose id another event has with other content: it is the file of
that other event."""

SECURITY_EVENTS_SCHEMA: Final = StructType([*relaxed(SECURITY_SCHEMA).fields, *_SOURCE])
"""Table `security_events`: logins, ends of sessions, changes of users, tokens and settings.

`attempt_count` is the number of equal attempts that a row counts, from `first_time_ms` to `time_ms`.
"""

LINES_SCHEMA: Final = StructType([StructField("file", StringType()), StructField("line", StringType())])
"""Raw input: the file's path under the audit folder, and one line without its line feed."""

INPUT_LINES_SCHEMA: Final = StructType(
    [
        *LINES_SCHEMA.fields,
        StructField("log", StringType()),
        StructField("position", LongType()),
        StructField("fault", StringType()),
        StructField("layout", StringType()),
        StructField("cluster", StringType()),
    ]
)
"""Raw input with its place, which identifies a line without an id when it is read again.

`log` identifies the original of all copies: for a file by its beginning, for a topic by its partition.
`position` is the line's offset there; null if lines have none, and then equal lines of a file are counted.
`fault` is a reason for which a line is quarantined unread, null for all others. `layout` is log4j's pattern
of the line, null for Kafka's own and for JSON. `cluster` is whose the line was declared to be: null leaves
that to the event, the empty text leaves it unnamed whatever the event says.
"""

QUARANTINE_SCHEMA: Final = StructType(
    [
        StructField("file", StringType()),
        StructField("reason", StringType()),
        StructField("line", StringType()),
        StructField("line_length", IntegerType()),
        StructField("line_id", StringType()),
        StructField("cluster", StringType()),
    ]
)
"""Table `quarantine`: lines that are not events; `line` is cut, `line_length` the full length in characters.

`line_id` is equal for copies of one line, and different for two equal lines of one file. `cluster` is that of
its input; empty if nothing names it."""

ACCESS_COUNTS_SCHEMA: Final = StructType(
    [
        StructField("cluster", StringType()),
        StructField("principal", StringType()),
        StructField("operation", StringType()),
        StructField("resource_type", StringType()),
        StructField("resource_name", StringType()),
        StructField("decision", StringType()),
        StructField("event_count", LongType()),
        StructField("listing_count", LongType()),
        StructField("probe_count", LongType()),
        StructField("first_time", TimestampType()),
        StructField("last_time", TimestampType()),
    ]
)
"""Table `access_counts`: `listing_count` of the events only filtered a list of names, `probe_count` were
denials that refused nothing."""

RULE_SCHEMA: Final = AUDIT_EVENTS_SCHEMA["rule"].dataType
"""The deciding rule: `kind`, and for an ACL its seven fields (null for other kinds)."""

ROLLUP_GRAIN: Final = (
    "day",
    "principal",
    "cluster",
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
        StructField("cluster", StringType()),
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
refused nothing (ACCESS if that is unknown, and in older roll-ups). `event_count` counts recorded events, a
summary as the decisions that it stands for (`decision_count`); they concern `reference_count` items of
requests. Bit h of `hours` is set if there was an event in hour h of UTC.
`sample_event_id` is the smallest event id of the row: a re-run chooses the same."""
