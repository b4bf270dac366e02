"""Each line of input becomes an event, a duplicate or a quarantined line; none vanishes."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sql

from kustos.authorizer.audit_fields import AUDIT_FIELDS
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUARANTINE_SCHEMA
from kustos.pipeline.stages import json_lines, kafka_lines

MAXIMUM_LINE_CHARACTERS: Final = 262_144
"""Longer lines are quarantined unparsed: the largest event has a few names of at most 64 KiB each."""

MAXIMUM_QUARANTINED_CHARACTERS: Final = 4_096
"""How much of a quarantined line is kept: enough to see what it was, too little to fill a disk."""

MAXIMUM_TIME_MS: Final = 253_402_300_799_999
"""The end of the year 9999; what claims to be later (or before 1970) is quarantined."""

EVENT, DUPLICATE, QUARANTINED = "event", "duplicate", "quarantined"


def parse_lines(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return each line with what it says: the fields of `audit_events`, `reason`, `line`, `key`.

    `reason` is null for an event. `key` is equal for lines that may be copies of each other: the event id,
    or for Kafka's lines, which have none, the text together with its file (a `.gz` of it being the same).
    """
    text = sql.regexp_replace("line", "\r$", "")
    readable = sql.is_valid_utf8("line") & (sql.length("line") <= MAXIMUM_LINE_CHARACTERS)
    prepared = lines.select(
        sql.col("file").alias("source_file"),
        "line",
        sql.when(readable, text).otherwise(sql.lit("")).alias("text"),
    )
    is_json = sql.col("text").startswith("{")
    parsed = prepared.select(
        "*",
        sql.when(is_json, json_lines.parsed_envelope(sql.col("text"))).alias("envelope"),
        sql.when(~is_json, kafka_lines.captured_parts(sql.col("text"))).alias("parts"),
    )
    is_kafka = sql.col("parts").isNotNull() & kafka_lines.is_complete(sql.col("parts"))
    judged = parsed.withColumn("is_kafka", sql.coalesce(is_kafka, sql.lit(False))).withColumn(
        "reason", _reason()
    )
    json_event = sql.col("envelope.event")
    kafka_event = kafka_lines.event_columns(sql.col("parts"), time_zone)
    known = sql.col("reason").isNull()
    columns = [
        sql.when(known & sql.col("is_kafka"), kafka_event.get(name, sql.lit(None)))
        .when(known, _field(json_event, name))
        .alias(name)
        for name in (field.name for field in AUDIT_FIELDS)
    ]
    flat = judged.select("source_file", "line", "reason", "is_kafka", *columns)
    return _with_key(_nest(flat))


def _reason() -> Column:
    text, line, parts = sql.col("text"), sql.col("line"), sql.col("parts")
    time_ms = sql.col("envelope.event.time_ms")
    kafka = (
        sql.when(
            (sql.col("is_kafka") & kafka_lines.is_ambiguous(parts)) | kafka_lines.has_separator(text),
            sql.lit("kafka_line_ambiguous"),
        )
        .when(sql.col("is_kafka") & kafka_lines.local_time(parts).isNull(), sql.lit("time_out_of_range"))
        .when(sql.col("is_kafka"), sql.lit(None))
        .when(text.rlike(kafka_lines.LINE_START), sql.lit("kafka_line_incomplete"))
        .otherwise(sql.lit("format_unknown"))
    )
    json = sql.coalesce(
        json_lines.fault(sql.col("envelope")),
        sql.when(~time_ms.between(0, MAXIMUM_TIME_MS), sql.lit("time_out_of_range")),
    )
    return (
        sql.when(~sql.is_valid_utf8(line), sql.lit("not_utf8"))
        .when(sql.length(line) > MAXIMUM_LINE_CHARACTERS, sql.lit("line_too_long"))
        .when(sql.trim(text) == "", sql.lit("blank"))
        .when(text.startswith("{"), json)
        .otherwise(kafka)
    )


def _field(event: Column, dotted_name: str) -> Column:
    for name in dotted_name.split("."):
        event = event.getField(name)
    return event


def _nest(flat: DataFrame) -> DataFrame:
    columns: list[Column] = []
    for field in AUDIT_EVENTS_SCHEMA.fields:
        if field.name in {"time", "source_format", "source_file"}:
            continue
        inner = [f.name for f in AUDIT_FIELDS if f.name.startswith(f"{field.name}.")]
        if inner:
            members = (sql.col(f"`{name}`").alias(name.partition(".")[2]) for name in inner)
            columns.append(sql.when(sql.col("reason").isNull(), sql.struct(*members)).alias(field.name))
        else:
            columns.append(sql.col(f"`{field.name}`").cast(field.dataType).alias(field.name))
    form = sql.when(sql.col("is_kafka"), sql.lit("kafka")).otherwise(sql.lit("json"))
    return flat.select(
        *columns,
        sql.when(sql.col("reason").isNull(), sql.timestamp_millis("time_ms")).alias("time"),
        sql.when(sql.col("reason").isNull(), form).alias("source_format"),
        "source_file",
        "line",
        "reason",
    )


def _with_key(parsed: DataFrame) -> DataFrame:
    plain_file = sql.regexp_replace("source_file", r"\.gz$", "")
    digest = sql.sha2(
        sql.concat_ws("\n", plain_file, sql.regexp_replace("line", "\r$", "")).cast("binary"), 256
    )
    return parsed.withColumn(
        "key", sql.coalesce("event_id", sql.concat(sql.lit("kafka-"), digest.substr(1, 32)))
    )


def settle_duplicates(parsed: DataFrame) -> DataFrame:
    """Return `parse_lines` output with an `outcome` and an event id for every event.

    The n-th equal Kafka line of a file is the n-th event, so that real repetitions within a millisecond
    count, and only copies of a file are duplicates. An event id that comes again with another content is
    quarantined: one of the two is a forgery or a fault, and dropping it would hide that.
    """
    is_event = sql.col("reason").isNull()
    same_file = Window.partitionBy("key", "source_file").orderBy("line")
    numbered = parsed.repartition("key").withColumn(
        "occurrence",
        sql.when(sql.col("source_format") == "kafka", sql.row_number().over(same_file)).otherwise(sql.lit(1)),
    )
    content = sql.regexp_replace("line", "\r$", "")
    copies = Window.partitionBy("key", "occurrence").orderBy(
        sql.col("reason").isNotNull(), "line", "source_file"
    )
    ranked = numbered.withColumns(
        {
            "copy": sql.row_number().over(copies),
            "first_line": sql.first(content).over(copies.rowsBetween(Window.unboundedPreceding, 0)),
        }
    )
    outcome = (
        sql.when(~is_event, sql.lit(QUARANTINED))
        .when(sql.col("copy") == 1, sql.lit(EVENT))
        .when(content == sql.col("first_line"), sql.lit(DUPLICATE))
        .otherwise(sql.lit(QUARANTINED))
    )
    event_id = sql.when(
        sql.col("source_format") == "kafka",
        sql.concat("key", sql.lit("-"), sql.col("occurrence").cast("string")),
    ).otherwise(sql.col("event_id"))
    conflict = is_event & (sql.col("outcome") == QUARANTINED)
    return (
        ranked.withColumn("outcome", outcome)
        .withColumn("reason", sql.when(conflict, sql.lit("event_id_conflict")).otherwise(sql.col("reason")))
        .withColumn("event_id", event_id)
        .drop("key", "occurrence", "copy", "first_line")
    )


def classify(lines: DataFrame, *, time_zone: str = "UTC") -> DataFrame:
    """Return every line of `lines` (LINES_SCHEMA) once, with its fields, `outcome`, `reason` and `line`."""
    return lines.transform(parse_lines, time_zone=time_zone).transform(settle_duplicates)


def audit_events(classified: DataFrame) -> DataFrame:
    """Return the table `audit_events`."""
    return classified.filter(sql.col("outcome") == EVENT).select(*AUDIT_EVENTS_SCHEMA.fieldNames())


def quarantine(classified: DataFrame) -> DataFrame:
    """Return the table `quarantine`: file, reason, the beginning of the line, its whole length."""
    line = sql.make_valid_utf8("line")
    return (
        classified.filter(sql.col("outcome") == QUARANTINED)
        .select(
            sql.col("source_file").alias("file"),
            "reason",
            sql.substring(line, 1, MAXIMUM_QUARANTINED_CHARACTERS).alias("line"),
            sql.length(line).alias("line_length"),
        )
        .to(QUARANTINE_SCHEMA)
    )


def tally(classified: DataFrame) -> DataFrame:
    """Return how many lines had each outcome: `outcome`, `line_count`."""
    return classified.groupBy("outcome").agg(sql.count(sql.lit(1)).alias("line_count"))
