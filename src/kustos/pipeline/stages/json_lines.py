"""kustos' own audit events, one JSON object a line.

Spark's JSON reader stops after the first complete value and says nothing of the rest, so two events glued
by a torn write would lose the second. Each line is therefore read inside an envelope whose last member must
have been reached.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION
from kustos.pipeline.schemas import EVENT_SCHEMA, REQUIRED_FIELDS, relaxed
from kustos.pipeline.stages.confluent_events import CLOUD_EVENT_FIELDS

DECISIONS: Final = ("ALLOWED", "DENIED", "ERROR")

_CORRUPT: Final = "corrupt"
_ENVELOPE: Final = StructType(
    [
        StructField("event", StructType([*relaxed(EVENT_SCHEMA).fields, *CLOUD_EVENT_FIELDS])),
        StructField("end", BooleanType()),
        StructField(_CORRUPT, StringType()),
    ]
)
_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
}


def parsed_envelope(line: Column) -> Column:
    """Return the struct `event, end, corrupt` of a line."""
    return sql.from_json(sql.concat(sql.lit('{"event":'), line, sql.lit(',"end":true}')), _ENVELOPE, _OPTIONS)


def fault(envelope: Column) -> Column:
    """Return why a parsed line is no audit event of this schema version, null if it is one."""
    event = envelope.getField("event")
    missing = sql.concat_ws(
        ", ", *(sql.when(_nested(event, name).isNull(), sql.lit(name)) for name in REQUIRED_FIELDS)
    )
    return (
        sql.when(envelope.isNull() | envelope.getField(_CORRUPT).isNotNull(), sql.lit("json_malformed"))
        .when(
            event.isNull() | ~sql.coalesce(envelope.getField("end"), sql.lit(False)),
            sql.lit("json_malformed"),
        )
        .when(event.getField("schema_version") != AUDIT_SCHEMA_VERSION, sql.lit("schema_version_unknown"))
        .when(missing != "", sql.concat(sql.lit("field_missing: "), missing))
        .when(~event.getField("decision").isin(*DECISIONS), sql.lit("decision_unknown"))
    )


def _nested(event: Column, dotted_name: str) -> Column:
    column = event
    for name in dotted_name.split("."):
        column = column.getField(name)
    return column


def event_columns(envelope: Column) -> dict[str, Column]:
    """Return the audit fields of a parsed line, by dotted name."""
    event = envelope.getField("event")
    return {field.name: _nested(event, field.name) for field in AUDIT_FIELDS}
