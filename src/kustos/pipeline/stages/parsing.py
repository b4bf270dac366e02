"""What each line of input says, or why it says nothing: three formats, told apart line by line."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType
from pyspark.sql.utils import is_remote

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
    prepared, parsed = _prepared(tuple(lines.columns), is_remote()), _parsed(is_remote())
    # null is said for a line of JSON, and for what cannot be read: a null line is an empty one
    text = sql.when(sql.col("fault").isNull() & ~_starts_as_json(), sql.coalesce("line", sql.lit("")))
    read = lines.select(*prepared).select("*", kafka_lines.told(text, time_zone).alias("told"))
    return read.select(*parsed)


@lru_cache(maxsize=16)
def _prepared(known: tuple[str, ...], _is_connect: bool) -> tuple[Column, ...]:
    """Return each line with its place, what keeps it from being read, and what it tells as JSON.

    Columns name no session and no frame. Making these takes longer than all else that Python does for a
    batch of a stream: so they are made once, for each of the two kinds of columns that pyspark has.
    """
    file = sql.col("file").alias("source_file")
    return file, sql.col("line"), *_place(known), _json(known).alias("json")


@lru_cache(maxsize=2)
def _parsed(_is_connect: bool) -> tuple[Column, ...]:
    """Return what `parse_lines` returns, of lines with `told` and `json`."""
    told, json = sql.col("told"), sql.col("json")
    form = sql.when(told.getField("time_ms").isNotNull(), sql.lit(KAFKA)).otherwise(
        json.getField("event").getField("source_format")
    )
    reason = sql.coalesce("fault", told.getField("reason"), json.getField("reason"))
    return (
        *(_field(name).alias(name) for name in _EVENT.fieldNames()),
        sql.timestamp_millis(_field("time_ms")).alias("time"),
        form.alias("source_format"),
        sql.col("source_file"),
        sql.col("line"),
        reason.alias("reason"),
        sql.col("log"),
        sql.col("position"),
    )


def _place(columns: Sequence[str]) -> list[Column]:
    """Where each line stands, and why it is not to be read; what the input does not say is told by itself."""
    log, position = sql.regexp_replace("file", r"\.gz$", ""), sql.lit(None).cast("long")
    if "log" in columns:
        log = sql.coalesce("log", log)
    if "position" in columns:
        position = sql.col("position").cast("long")
    return [log.alias("log"), position.alias("position"), _fault(columns).alias("fault")]


def _fault(columns: Sequence[str]) -> Column:
    """Return why a line cannot be read, null if it can."""
    line, maximum = sql.col("line"), sql.lit(MAXIMUM_LINE_CHARACTERS)
    # no line has more characters than bytes, which need not be counted
    is_long = (sql.octet_length(line) > maximum) & (sql.length(line) > maximum)
    fault = sql.when(~sql.is_valid_utf8(line), sql.lit("not_utf8")).when(is_long, sql.lit("line_too_long"))
    return sql.coalesce("fault", fault) if "fault" in columns else fault


def _starts_as_json() -> Column:
    return sql.coalesce(sql.col("line").startswith("{"), sql.lit(False))


def _json(columns: Sequence[str]) -> Column:
    """Return of a line of JSON its `event`, or the `reason` for which it is none; null for any other line.

    A function over an array of one is Spark's way to give a name to a value within an expression. A chain of
    selects would carry each line from one to the next, also the lines that are no JSON.
    """
    envelope = json_lines.parsed_envelope(sql.col("line"))
    judged = _let(envelope, lambda one: sql.struct(one.alias("envelope"), _json_fault(one).alias("reason")))
    read = _let(judged, _told_or_not)
    return sql.when(_fault(columns).isNull() & _starts_as_json(), read)


def _let(value: Column, function: Callable[[Column], Column]) -> Column:
    return sql.transform(sql.array(value), function).getItem(0)


def _told_or_not(judged: Column) -> Column:
    reason = judged.getField("reason")
    event = sql.when(reason.isNull(), _from_json(judged.getField("envelope")))
    return sql.struct(reason.alias("reason"), event.alias("event"))


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
    from_json = sql.col("json").getField("event").getField(name)
    if name not in kafka_lines.TOLD_SCHEMA.names:
        return from_json
    return sql.coalesce(sql.col("told").getField(name), from_json)
