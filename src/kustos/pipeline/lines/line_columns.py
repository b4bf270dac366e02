"""Lines of input parsed in columns: events, or the reasons why they are none; three formats may be mixed."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from kustos.pipeline.columns.codes import CODED, as_coded, coded_fields
from kustos.pipeline.lines import json_columns, kafka_columns
from kustos.pipeline.lines.clusters import UNDECLARED, DeclaredCluster, clusters_of
from kustos.pipeline.lines.envelopes import is_part
from kustos.pipeline.lines.layouts import Layout, compiled, is_cri
from kustos.pipeline.lines.text_pieces import Numbers, flags_of, in_order
from kustos.pipeline.schemas import ANY_EVENT_SCHEMA, AUDIT_EVENTS_SCHEMA

MAXIMUM_LINE_CHARACTERS: Final = 262_144
"""Longer lines are quarantined unparsed: the largest event has a few names of at most 64 KiB each."""

KAFKA: Final = "kafka"
"""`source_format` of Kafka's text; `json_grammar` has those of JSON."""

PART: Final = "line_part"
"""The reason for a line of CRI that lacks its last part."""

PARSED_SCHEMA: Final = StructType(
    [
        *ANY_EVENT_SCHEMA.fields,
        *(AUDIT_EVENTS_SCHEMA[name] for name in ("time", "source_format", "source_file", "cluster")),
        *(StructField(name, StringType()) for name in ("line", "reason", "log")),
        StructField("position", LongType()),
    ]
)
"""The result of `read_lines`: the fields of the event or the `reason`, and the line's place."""

PLAIN: Final = ("event_id", "reason", "line", "line_key")
"""Columns of text that have no codes: with nearly no equal values, or nearly none."""

_PARSED: Final = pa.schema(coded_fields(list(to_arrow_schema(PARSED_SCHEMA, timezone="UTC")), PLAIN))


def read_lines(
    lines: pa.RecordBatch,
    time_zone: str = "UTC",
    cluster: DeclaredCluster = UNDECLARED,
) -> pa.RecordBatch:
    """Return lines (INPUT_LINES_SCHEMA, or LINES_SCHEMA) parsed as PARSED_SCHEMA, in their order.

    Texts come as codes (`columns.codes`), but for those of PLAIN.
    `time_zone` (an IANA name) is that of brokers whose log lines have none. A null line is an empty one.
    `cluster` is that of lines which are not declared to be of any.
    """
    text = pc.fill_null(lines["line"].cast(pa.string()), "")
    faults = _faults(text, lines)
    is_read = flags_of(faults.is_null())
    inner, parts = _as_kafkas(text, lines)
    faults = pc.coalesce(faults, parts)
    is_read &= flags_of(parts.is_null())
    is_json = flags_of(pc.starts_with(inner.cast(pa.binary()), b"{")) & is_read
    parsed = _parsed_lines(inner, is_json, is_read, time_zone)
    file = _texts(lines["file"])
    columns = dict(zip((field.name for field in parsed.type), parsed.flatten(), strict=True))
    declared = _column_or_nulls(lines, "cluster", pa.string())
    clusters, foreign = clusters_of(columns["cluster_id"], declared, cluster)
    if foreign is not None:
        columns = {name: _where_null(foreign, column) for name, column in columns.items()}
        columns["reason"] = pc.coalesce(columns["reason"], foreign)
    columns["cluster"] = clusters
    columns["time"] = columns["time_ms"].cast(pa.timestamp("ms")).cast(pa.timestamp("us", "UTC"))
    columns["reason"] = pc.coalesce(faults, columns["reason"])
    columns |= {"source_file": file, "line": text, "log": _log(lines, file)}
    columns["position"] = _column_or_nulls(lines, "position", pa.int64())
    arrays = [as_coded(columns[field.name], field.type) for field in _PARSED]
    return pa.RecordBatch.from_arrays(arrays, schema=_PARSED)


def _where_null(reasons: pa.Array, column: pa.Array) -> pa.Array:
    """Return a column with nulls where there is a reason."""
    rows = pa.array(np.arange(len(column)), mask=flags_of(reasons.is_valid()))
    return column.take(rows)


def _as_kafkas(text: pa.Array, lines: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """Return the lines of a layout in that of Kafka, all others as they are; and why a part is no line."""
    layouts = _column_or_nulls(lines, "layout", pa.string())
    parts = pa.nulls(len(text), pa.string())
    for pattern in pc.unique(layouts.drop_null()).to_pylist():
        layout = compiled(pattern)
        is_of = pc.fill_null(pc.equal(layouts, pattern), False)
        # as bytes: not every line is UTF-8, and one that is not is quarantined
        raw = text.filter(is_of).cast(pa.binary()).to_pylist()
        texts = [_as_kafkas_line(layout, line) for line in raw]
        if is_cri(pattern):
            are_parts = _where(np.array([is_part(line) for line in raw], dtype=bool), PART)
            parts = pc.replace_with_mask(parts, is_of, are_parts)
        text = pc.replace_with_mask(text, is_of, pa.array(texts, pa.binary()).view(pa.string()))
    return text, parts


def _as_kafkas_line(layout: Layout, line: bytes) -> bytes:
    if len(line) > MAXIMUM_LINE_CHARACTERS or not _is_utf8(line):
        return line
    found = layout.as_kafkas(line.decode().rstrip("\r"))
    return line if found is None else found.encode()


def _faults(text: pa.Array, lines: pa.RecordBatch) -> pa.Array:
    """Return why a line cannot be read, null if it can."""
    faults = _column_or_nulls(lines, "fault", pa.string())
    binary = text.cast(pa.binary())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        is_utf8 = [_is_utf8(line) for line in binary.to_pylist()]
        faults = pc.coalesce(faults, _where(~np.array(is_utf8), "not_utf8"))
    # no line has more characters than bytes, which need not be counted
    may_be_long = flags_of(pc.greater(pc.binary_length(binary), MAXIMUM_LINE_CHARACTERS)) & flags_of(
        faults.is_null()
    )
    if may_be_long.any():
        rows = np.flatnonzero(may_be_long)
        lengths = pc.utf8_length(text.take(pa.array(rows))).to_numpy()
        may_be_long[rows] = lengths > MAXIMUM_LINE_CHARACTERS
        faults = pc.coalesce(faults, _where(may_be_long, "line_too_long"))
    return faults


def _parsed_lines(text: pa.Array, is_json: Numbers, is_read: Numbers, time_zone: str) -> pa.StructArray:
    """Return the parsed lines, null for those that cannot be read."""
    if is_json.all():
        return json_columns.read_lines(text)
    others = np.flatnonzero(~is_json)
    is_text = pa.array(is_read[others])
    # Kafka's parser returns null for a null
    kafka = _as_parsed_type(
        kafka_columns.read_lines(_masked(text.take(pa.array(others)), is_text), time_zone)
    )
    if not is_json.any():
        return kafka
    rows = np.flatnonzero(is_json)
    return in_order(rows, json_columns.read_lines(text.take(pa.array(rows))), others, kafka)


def _masked(text: pa.Array, is_kept: pa.Array) -> pa.Array:
    return text if pc.all(is_kept).as_py() else pc.if_else(is_kept, text, pa.scalar(None, pa.string()))


def _as_parsed_type(kafka: pa.StructArray) -> pa.StructArray:
    """Return Kafka's parsed lines with the columns of parsed lines of JSON."""
    parsed = dict(zip((field.name for field in kafka.type), kafka.flatten(), strict=True))
    is_event = parsed["time_ms"].is_valid()
    parsed["source_format"] = pc.if_else(is_event, KAFKA, pa.scalar(None, pa.string()))
    fields = list(json_columns.PARSED_TYPE)
    arrays = [
        as_coded(parsed[f.name], f.type) if f.name in parsed else pa.nulls(len(kafka), f.type) for f in fields
    ]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _log(lines: pa.RecordBatch, file: pa.Array) -> pa.Array:
    """Return the log of each line; if the input has none, the file, without `.gz` of a compressed copy."""
    if "log" in lines.schema.names and not lines["log"].null_count:
        return _texts(lines["log"])
    log = _column_or_nulls(lines, "log", pa.string())
    return pc.coalesce(log, pc.replace_substring_regex(file, r"\.gz$", ""))


def _texts(column: pa.Array) -> pa.Array:
    """Return a column of texts of any type as texts, or codes as they are."""
    return column if column.type == CODED else column.cast(pa.string())


def _column_or_nulls(lines: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    if lines.schema.get_field_index(name) < 0:
        return pa.nulls(lines.num_rows, kind)
    return lines[name].cast(kind)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _where(flags: Numbers, word: str) -> pa.Array:
    return pc.if_else(pa.array(flags), word, pa.scalar(None, pa.string()))
