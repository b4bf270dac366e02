"""Which tables there are: their names, columns and partitions."""

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DateType, StringType, StructField, StructType

from kustos.pipeline.schemas import (
    ACCESS_REVIEW_SCHEMA,
    ANOMALIES_SCHEMA,
    ANOMALY_STATES_SCHEMA,
    AUDIT_EVENTS_SCHEMA,
    AUDIT_ROLLUP_SCHEMA,
    CLUSTER,
    DECISIONS_SCHEMA,
    DISCREPANCIES_SCHEMA,
    ENTITLEMENTS_SCHEMA,
    FINDINGS_SCHEMA,
    JUDGED_SCHEMA,
    QUARANTINE_SCHEMA,
    SECURITY_EVENTS_SCHEMA,
)
from kustos.pipeline.schemas.events import INPUT_LINES_SCHEMA
from kustos.pipeline.tables.delta import DAY

AUDIT_RAW, AUDIT_EVENTS, AUDIT_ROLLUP, QUARANTINE = "audit_raw", "audit_events", "audit_rollup", "quarantine"
SECURITY_EVENTS: Final = "security_events"

SCHEMAS: Final[Mapping[str, StructType]] = {
    AUDIT_RAW: INPUT_LINES_SCHEMA,
    AUDIT_EVENTS: StructType([*AUDIT_EVENTS_SCHEMA.fields, StructField(DAY, DateType())]),
    SECURITY_EVENTS: StructType([*SECURITY_EVENTS_SCHEMA.fields, StructField(DAY, DateType())]),
    AUDIT_ROLLUP: AUDIT_ROLLUP_SCHEMA,
    QUARANTINE: QUARANTINE_SCHEMA,
    **{
        name: StructType([StructField(CLUSTER, StringType()), *schema.fields])
        for name, schema in {
            "decisions": DECISIONS_SCHEMA,
            "access_review": ACCESS_REVIEW_SCHEMA,
            "entitlements": ENTITLEMENTS_SCHEMA,
            "findings": FINDINGS_SCHEMA,
            "anomalies": ANOMALIES_SCHEMA,
            "anomaly_states": ANOMALY_STATES_SCHEMA,
            "judged": JUDGED_SCHEMA,
            "discrepancies": DISCREPANCIES_SCHEMA,
        }.items()
    },
}
"""Tables and their columns; a table of any other name has the columns that `replace` wrote."""

BY_DAY: Final = frozenset({AUDIT_EVENTS, SECURITY_EVENTS, AUDIT_ROLLUP})
"""Partitioned by the UTC date of the events."""

LINES: Final = frozenset({AUDIT_RAW, QUARANTINE})
"""Partitioned by the UTC date on which the lines were ingested, since lines may have no time."""

GROWING: Final = BY_DAY | LINES
"""Only runs write these; all others are replaced whole."""


def stored_schema(name: str, rows: StructType | None = None) -> pa.Schema:
    """Return the columns of a table in Delta's log: those of `rows`, by default those of its schema."""
    schema = SCHEMAS[name] if rows is None else rows
    if name in LINES:
        schema = StructType([*schema.fields, StructField(DAY, DateType())])
    return to_arrow_schema(schema, timezone="UTC")


def period_of(days: Sequence[str]) -> str:
    """Return the first and the last of sorted days, as a text."""
    return " to ".join(dict.fromkeys((*days[:1], *days[-1:]))) or "no day"
