"""What each line of input says, or why it says nothing: three formats, told apart line by line."""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType

from kustos.pipeline.schemas import EVENT_SCHEMA, relaxed
from kustos.pipeline.stages import confluent_events, json_lines, kafka_lines

MAXIMUM_LINE_CHARACTERS: Final = 262_144
"""Longer lines are quarantined unparsed: the largest event has a few names of at most 64 KiB each."""

MAXIMUM_TIME_MS: Final = 253_402_300_799_999
"""The end of the year 9999; what claims to be later (or before 1970) is quarantined."""

KAFKA, JSON, CONFLUENT = "kafka", "json", "confluent"
"""`source_format` of an event: Kafka's text, kustos' JSON lines, CloudEvents of Confluent."""

_EVENT: Final = relaxed(EVENT_SCHEMA)


def parse_lines(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return each line with what it says: the fields of `audit_events`, `reason`, `line`, `log`, `position`.

    `reason` is null for an event. `lines` is of INPUT_LINES_SCHEMA, or of LINES_SCHEMA: a file is then a log
    of its own, and its `.gz` is the same log.
    `time_zone` (an IANA name) is that of the brokers whose log lines say none.
    """
    text = sql.rtrim("line", sql.lit("\r"))
    readable = sql.is_valid_utf8("line") & (sql.length("line") <= MAXIMUM_LINE_CHARACTERS)
    prepared = lines.select(
        sql.col("file").alias("source_file"),
        "line",
        readable.alias("is_readable"),
        sql.when(readable, text).otherwise(sql.lit("")).alias("text"),
        *_place(lines.columns),
    )
    is_json = sql.col("text").startswith("{")
    split = prepared.select(
        "*",
        sql.when(is_json, json_lines.parsed_envelope(sql.col("text"))).alias("envelope"),
        sql.when(~is_json, kafka_lines.captured_parts(sql.col("text"))).alias("parts"),
    )
    timed = split.select(
        "*",
        _form().alias("form"),
        _kafka_time(time_zone).alias("kafka_time"),
        kafka_lines.names(sql.col("parts")).alias("names"),
    )
    judged = timed.select("*", sql.coalesce("fault", _reason()).alias("reason"))
    told = judged.withColumn("source_format", sql.when(sql.col("reason").isNull(), sql.col("form")))
    return told.select(
        *_event(),
        sql.timestamp_millis(_time_ms()).alias("time"),
        "source_format",
        "source_file",
        "line",
        "reason",
        "log",
        "position",
    )


def _place(columns: Sequence[str]) -> list[Column]:
    """Where each line stands; what the input does not say is made of the file's name."""
    plain_file = sql.regexp_replace("file", r"\.gz$", "")
    log = sql.coalesce("log", plain_file) if "log" in columns else plain_file
    position = sql.col("position") if "position" in columns else sql.lit(None)
    fault = sql.col("fault") if "fault" in columns else sql.lit(None)
    return [log.alias("log"), position.cast("long").alias("position"), fault.cast("string").alias("fault")]


def _form() -> Column:
    """Which format a line is in, null for none of the text forms."""
    is_json = sql.col("text").startswith("{")
    json = sql.when(confluent_events.is_cloud_event(sql.col("envelope")), sql.lit(CONFLUENT))
    kafka = sql.when(kafka_lines.is_complete(sql.col("parts")), sql.lit(KAFKA))
    return sql.when(is_json, json.otherwise(sql.lit(JSON))).otherwise(kafka)


def _kafka_time(time_zone: str) -> Column:
    return sql.when(
        kafka_lines.is_complete(sql.col("parts")), kafka_lines.instant(sql.col("parts"), time_zone)
    )


def _reason() -> Column:
    text, line, form = sql.col("text"), sql.col("line"), sql.col("form")
    envelope = sql.col("envelope")
    unreadable = sql.when(~sql.is_valid_utf8(line), sql.lit("not_utf8")).otherwise(sql.lit("line_too_long"))
    kafka = (
        sql.when(
            kafka_lines.has_separator(text) | kafka_lines.is_ambiguous(sql.col("names")),
            sql.lit("kafka_line_ambiguous"),
        )
        .when(sql.col("kafka_time").isNull(), sql.lit("time_out_of_range"))
        .when(~_in_range(sql.unix_millis("kafka_time")), sql.lit("time_out_of_range"))
    )
    no_kafka = (
        sql.when(kafka_lines.has_separator(text), sql.lit("kafka_line_ambiguous"))
        .when(
            text.rlike(kafka_lines.LINE_START),
            sql.when(kafka_lines.repeats_itself(text), sql.lit("kafka_line_ambiguous")).otherwise(
                sql.lit("kafka_line_incomplete")
            ),
        )
        .when(text.rlike(kafka_lines.NOTE_START), sql.lit("kafka_note"))
        .otherwise(sql.lit("format_unknown"))
    )
    return (
        sql.when(~sql.col("is_readable"), unreadable)
        .when(form == KAFKA, kafka)
        .when(form == JSON, _timed(json_lines.fault(envelope), sql.col("envelope.event.time_ms")))
        .when(form == CONFLUENT, _timed(confluent_events.fault(envelope), confluent_events.time_ms(envelope)))
        .when(sql.trim(text) == "", sql.lit("blank"))
        .otherwise(no_kafka)
    )


def _timed(fault: Column, time_ms: Column) -> Column:
    return sql.coalesce(fault, sql.when(~_in_range(time_ms), sql.lit("time_out_of_range")))


def _in_range(time_ms: Column) -> Column:
    return time_ms.between(0, MAXIMUM_TIME_MS)


def _time_ms() -> Column:
    envelope = sql.col("envelope")
    return _by_format(
        sql.unix_millis("kafka_time"),
        confluent_events.time_ms(envelope),
        json_lines.event_columns(envelope)["time_ms"],
    )


def _event() -> list[Column]:
    """Return the fields of the event, each chosen by itself: a struct would be built to be taken apart."""
    envelope = sql.col("envelope")
    kafka = _fields(kafka_lines.event_columns(sql.col("parts"), sql.col("kafka_time")))
    confluent = _fields(confluent_events.event_columns(envelope))
    json = _fields(json_lines.event_columns(envelope))
    return [_by_format(kafka[name], confluent[name], json[name]).alias(name) for name in _EVENT.fieldNames()]


def _by_format(kafka: Column, confluent: Column, json: Column) -> Column:
    """Return what is told in the format of the line; null where `source_format` is, of no event."""
    form = sql.col("source_format")
    return sql.when(form == KAFKA, kafka).when(form == CONFLUENT, confluent).when(form == JSON, json)


def _fields(told: Mapping[str, Column], type_: StructType = _EVENT, prefix: str = "") -> dict[str, Column]:
    """Return the fields of the event of which `told` has some by dotted names; the others are null."""
    return {field.name: _member(told, field.dataType, prefix + field.name) for field in type_.fields}


def _member(told: Mapping[str, Column], type_: DataType, name: str) -> Column:
    if isinstance(type_, StructType):
        members = _fields(told, type_, f"{name}.")
        return sql.struct(*(column.alias(member) for member, column in members.items()))
    return told.get(name, sql.lit(None)).cast(type_)
