"""A line of JSON: its event, or the reason why it is none.

The line is one event of kustos (a decision or a security event), or one CloudEvent of Confluent
(`confluent_events`). Ambiguous JSON is malformed: a repeated name in an object, half a surrogate pair, an
invalid number.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql.types import BooleanType, DataType, IntegerType, LongType, StringType, StructType

from kustos.authorizer.audit import AUDIT_SCHEMA_VERSION, SECURITY_SCHEMA_VERSION
from kustos.pipeline.lines import confluent_events
from kustos.pipeline.lines.generated_ids import is_generated
from kustos.pipeline.lines.json_values import (
    INT_RANGE,
    LONG_RANGE,
    JsonObject,
    MalformedError,
    boolean,
    integer,
    read_object,
    struct,
    text,
)
from kustos.pipeline.lines.kafka_grammar import MAXIMUM_TIME_MS
from kustos.pipeline.lines.known_values import ATTEMPTS_MAX, invalid_decision, invalid_security_event
from kustos.pipeline.schemas import EVENT_SCHEMA, REQUIRED_FIELDS, REQUIRED_SECURITY_FIELDS, SECURITY_SCHEMA

JSON, CONFLUENT = "json", "confluent"
"""`source_format` of an event: kustos' JSON lines, CloudEvents of Confluent."""

_READERS: Final[dict[type[DataType], Callable[[Any], Any]]] = {
    StringType: text,
    BooleanType: boolean,
    IntegerType: lambda value: integer(value, INT_RANGE),
    LongType: lambda value: integer(value, LONG_RANGE),
}


def read_line(line: str) -> dict[str, Any]:
    """Return the fields of a line of JSON and `source_format`, or the `reason` why it is not an event.

    `rule` is a nested dict; fields that the line lacks are missing or None.
    """
    try:
        values = read_object(line)
        if values.get("specversion") is not None:
            event, form = confluent_events.read_event(values), CONFLUENT
        else:
            event, form = _read_event(values), JSON
    except MalformedError:
        return {"reason": "json_malformed"}
    if isinstance(event, str):
        return {"reason": event}
    if is_generated(event["event_id"]):
        return {"reason": "event_id_reserved"}
    if not 0 <= event["time_ms"] <= MAXIMUM_TIME_MS:
        return {"reason": "time_out_of_range"}
    return {**event, "source_format": form}


def _read_event(values: JsonObject) -> dict[str, Any] | str:
    """Return the event of kustos, or why it is none; raise `MalformedError` for a value of a wrong type."""
    if integer(values.get("schema_version"), INT_RANGE) == SECURITY_SCHEMA_VERSION:
        return _read_security_event(values)
    event = _typed(values, EVENT_SCHEMA)
    if event["schema_version"] not in (None, AUDIT_SCHEMA_VERSION):
        return "schema_version_unknown"
    missing = [name for name in REQUIRED_FIELDS if _is_missing(event, name)]
    if missing:
        return f"field_missing: {', '.join(missing)}"
    return invalid_decision(event) or event


def _read_security_event(values: JsonObject) -> dict[str, Any] | str:
    """Return a login or a change, or why it is none; unknown event types are valid."""
    event = _typed(values, SECURITY_SCHEMA)
    missing = [name for name in REQUIRED_SECURITY_FIELDS if event[name] is None]
    if missing:
        return f"field_missing: {', '.join(missing)}"
    if event["first_time_ms"] > event["time_ms"] or event["attempt_count"] > ATTEMPTS_MAX:
        return "attempts_impossible"
    return invalid_security_event(event) or event


def _typed(values: Mapping[str, Any], schema: StructType) -> dict[str, Any]:
    return {field.name: typed_value(values.get(field.name), field.dataType) for field in schema.fields}


def typed_value(value: Any, kind: DataType) -> Any:
    """Return a value as its type has it; raise `MalformedError` for one of another type."""
    if isinstance(kind, StructType):
        inner = struct(value)
        return None if inner is None else _typed(inner, kind)
    return _READERS[type(kind)](value)


def _is_missing(event: Mapping[str, Any], dotted_name: str) -> bool:
    value: Any = event
    for name in dotted_name.split("."):
        value = None if value is None else value.get(name)
    return value is None
