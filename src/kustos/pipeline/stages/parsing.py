"""What each line of input says, or why it says nothing: three formats, told apart line by line."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType

from kustos.pipeline.schemas import EVENT_SCHEMA, relaxed
from kustos.pipeline.stages import confluent_events, json_lines, kafka_lines
from kustos.pipeline.stages.kafka_grammar import MAXIMUM_TIME_MS

MAXIMUM_LINE_CHARACTERS: Final = 262_144
"""Longer lines are quarantined unparsed: the largest event has a few names of at most 64 KiB each."""

KAFKA, JSON, CONFLUENT = "kafka", "json", "confluent"
"""`source_format` of an event: Kafka's text, kustos' JSON lines, CloudEvents of Confluent."""

_EVENT: Final = relaxed(EVENT_SCHEMA)


def parse_lines(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return each line with what it says: the fields of `audit_events`, `reason`, `line`, `log`, `position`.

    `reason` is null for an event. `lines` is of INPUT_LINES_SCHEMA, or of LINES_SCHEMA: a file is then a log
    of its own, and its `.gz` is the same log.
    `time_zone` (an IANA name) is that of the brokers whose log lines say none.
    """
    envelope = sql.col("envelope")
    placed = lines.select(sql.col("file").alias("source_file"), "line", *_place(lines.columns))
    opened = placed.select(
        *_PLACE, sql.when(_is_json(), json_lines.parsed_envelope(sql.col("line"))).alias("envelope")
    )
    judged = opened.select(
        *_PLACE, "envelope", sql.when(_is_json(), _json_fault(envelope)).alias("json_fault")
    )
    is_event = _is_json() & sql.col("json_fault").isNull()
    converted = judged.select(
        *_PLACE, "json_fault", sql.when(is_event, _from_json(envelope)).alias("from_json")
    )
    # null is said for a line of JSON, and for what cannot be read: a null line is an empty one
    text = sql.when(sql.col("fault").isNull() & ~_starts_as_json(), sql.coalesce("line", sql.lit("")))
    read = converted.select("*", kafka_lines.told(text, time_zone).alias("told"))
    reason = sql.coalesce("fault", "json_fault", sql.col("told").getField("reason"))
    is_kafka = sql.col("told").getField("time_ms").isNotNull()
    form = sql.when(is_kafka, sql.lit(KAFKA)).otherwise(sql.col("from_json").getField("source_format"))
    return read.select(
        *(_field(name).alias(name) for name in _EVENT.fieldNames()),
        sql.timestamp_millis(_field("time_ms")).alias("time"),
        form.alias("source_format"),
        "source_file",
        "line",
        reason.alias("reason"),
        "log",
        "position",
    )


_PLACE: Final = ("source_file", "line", "log", "position", "fault")


def _place(columns: Sequence[str]) -> list[Column]:
    """Where each line stands, and why it is not to be read; what the input does not say is told by itself."""
    log = sql.regexp_replace("file", r"\.gz$", "")
    position, fault = sql.lit(None).cast("long"), _unreadable()
    if "log" in columns:
        log = sql.coalesce("log", log)
    if "position" in columns:
        position = sql.col("position").cast("long")
    if "fault" in columns:
        fault = sql.coalesce("fault", fault)
    return [log.alias("log"), position.alias("position"), fault.alias("fault")]


def _unreadable() -> Column:
    """Return why a line cannot be read, null if it can."""
    line, maximum = sql.col("line"), sql.lit(MAXIMUM_LINE_CHARACTERS)
    # no line has more characters than bytes, which need not be counted
    is_long = (sql.octet_length(line) > maximum) & (sql.length(line) > maximum)
    return sql.when(~sql.is_valid_utf8(line), sql.lit("not_utf8")).when(is_long, sql.lit("line_too_long"))


def _starts_as_json() -> Column:
    return sql.coalesce(sql.col("line").startswith("{"), sql.lit(False))


def _is_json() -> Column:
    """Return whether the line is to be read as JSON."""
    return sql.col("fault").isNull() & _starts_as_json()


def _json_fault(envelope: Column) -> Column:
    """Return why a line of JSON is no event, null if it is one."""
    confluent = _timed(confluent_events.fault(envelope), confluent_events.time_ms(envelope))
    ours = _timed(json_lines.fault(envelope), envelope.getField("event").getField("time_ms"))
    return sql.when(confluent_events.is_cloud_event(envelope), confluent).otherwise(ours)


def _timed(fault: Column, time_ms: Column) -> Column:
    is_in_range = time_ms.between(0, MAXIMUM_TIME_MS)
    return sql.coalesce(fault, sql.when(~is_in_range, sql.lit("time_out_of_range")))


def _from_json(envelope: Column) -> Column:
    """Return the event of a line of JSON: its fields and `source_format`."""
    confluent = _event(confluent_events.event_columns(envelope), CONFLUENT)
    ours = _event(json_lines.event_columns(envelope), JSON)
    return sql.when(confluent_events.is_cloud_event(envelope), confluent).otherwise(ours)


def _event(told: Mapping[str, Column], form: str) -> Column:
    fields = {name: _member(told, type_, name) for name, type_ in _types(_EVENT)}
    columns = [column.alias(name) for name, column in fields.items()]
    return sql.struct(*columns, sql.lit(form).alias("source_format"))


def _types(struct: StructType) -> list[tuple[str, DataType]]:
    return [(field.name, field.dataType) for field in struct.fields]


def _member(told: Mapping[str, Column], type_: DataType, name: str) -> Column:
    """Return a field of the event, null if `told` has none of this dotted name."""
    if isinstance(type_, StructType):
        members = ((member, _member(told, kind, f"{name}.{member}")) for member, kind in _types(type_))
        return sql.struct(*(column.alias(member) for member, column in members))
    return told.get(name, sql.lit(None)).cast(type_)


def _field(name: str) -> Column:
    """Return a field of the event: only the reader of the line's format has told it."""
    from_json = sql.col("from_json").getField(name)
    if name not in kafka_lines.TOLD_SCHEMA.names:
        return from_json
    return sql.coalesce(sql.col("told").getField(name), from_json)
