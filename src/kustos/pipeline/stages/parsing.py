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
        sql.when(readable, text).otherwise(sql.lit("")).alias("text"),
        *_place(lines.columns),
    )
    is_json = sql.col("text").startswith("{")
    split = prepared.select(
        "*",
        sql.when(is_json, json_lines.parsed_envelope(sql.col("text"))).alias("envelope"),
        sql.when(~is_json, kafka_lines.captured_parts(sql.col("text"))).alias("parts"),
    )
    timed = split.select("*", _form().alias("source_format"), _kafka_time(time_zone).alias("kafka_time"))
    judged = timed.select("*", sql.coalesce("fault", _reason()).alias("reason"))
    told = judged.select("*", sql.when(sql.col("reason").isNull(), _event()).alias("event"))
    known = sql.col("reason").isNull()
    return told.select(
        "event.*",
        sql.timestamp_millis("event.time_ms").alias("time"),
        sql.when(known, sql.col("source_format")).alias("source_format"),
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
    text, line, form = sql.col("text"), sql.col("line"), sql.col("source_format")
    envelope, parts = sql.col("envelope"), sql.col("parts")
    kafka = (
        sql.when(
            kafka_lines.has_separator(text) | kafka_lines.is_ambiguous(parts), sql.lit("kafka_line_ambiguous")
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
        sql.when(~sql.is_valid_utf8(line), sql.lit("not_utf8"))
        .when(sql.length(line) > MAXIMUM_LINE_CHARACTERS, sql.lit("line_too_long"))
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


def _event() -> Column:
    form, envelope = sql.col("source_format"), sql.col("envelope")
    kafka = kafka_lines.event_columns(sql.col("parts"), sql.col("kafka_time"))
    return (
        sql.when(form == KAFKA, _struct(kafka))
        .when(form == CONFLUENT, _struct(confluent_events.event_columns(envelope)))
        .otherwise(_struct(json_lines.event_columns(envelope)))
    )


def _struct(told: Mapping[str, Column], type_: StructType = _EVENT, prefix: str = "") -> Column:
    """Return the event of which `told` has fields by their dotted names; the others are null."""
    return sql.struct(
        *(_member(told, field.dataType, prefix + field.name).alias(field.name) for field in type_.fields)
    )


def _member(told: Mapping[str, Column], type_: DataType, name: str) -> Column:
    if isinstance(type_, StructType):
        return _struct(told, type_, f"{name}.")
    return told.get(name, sql.lit(None)).cast(type_)
