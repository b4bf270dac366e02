"""Lines of JSON parsed in columns: the results of `json_grammar.read_line`, several times faster.

Lines of one form are read by it (`json_forms`), all others by Arrow.

Theory of operation. Arrow's reader of JSON takes a batch of values of a known schema and refuses the whole
batch for anything else: an unknown or repeated name, a value of another kind, half a value. Each line is put
into an envelope of its own, `{"event":LINE,"end":true}`. A torn line would have to end within the next one's
envelope, and there neither `end` nor a line break is allowed; so no line can hide in another's value, and if
there are as many values as lines, each line is one value. A refused batch is parsed in halves, down to a few
lines, which `read_line` parses one by one; it also parses lines that are not valid decisions, and security
events, of which there are few. A property test compares the results of both.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json
from pyspark.sql.pandas.types import to_arrow_schema

from kustos.authorizer.audit import AUDIT_SCHEMA_VERSION, SECURITY_SCHEMA_VERSION
from kustos.pipeline.columns.codes import CODED, as_coded, coded_fields, repeated
from kustos.pipeline.lines.generated_ids import EVENT_ID_BEGIN
from kustos.pipeline.lines.json_forms import DISTINCT, EVENT, PLAIN_EVENT, LineForm
from kustos.pipeline.lines.json_grammar import JSON, read_line
from kustos.pipeline.lines.kafka_grammar import MAXIMUM_TIME_MS
from kustos.pipeline.lines.known_values import LEAST, PATTERNS, WORDS
from kustos.pipeline.lines.text_pieces import Numbers, flags_of, in_order
from kustos.pipeline.schemas import ANY_EVENT_SCHEMA, REQUIRED_FIELDS

_PLAIN_TYPE: Final = pa.struct(
    [*to_arrow_schema(ANY_EVENT_SCHEMA), ("source_format", pa.string()), ("reason", pa.string())]
)
PARSED_TYPE: Final = pa.struct(coded_fields(list(_PLAIN_TYPE), (*DISTINCT, "reason")))
"""The result for each line: the fields of its event and `source_format`, or the `reason` why it is none.

Texts are codes, but for ids and reasons."""

_ENVELOPE: Final = json.ParseOptions(
    explicit_schema=pa.schema([("event", PLAIN_EVENT), ("end", pa.bool_())]),
    unexpected_field_behavior="error",
)
_SECURITY_BEGIN: Final = f'{{"schema_version":{SECURITY_SCHEMA_VERSION},'
"""The beginning of a security event as kustos writes it; others only take more time."""

_HEAD, _TAIL = '{"event":', ',"end":true}\n'

FORMS_MAX: Final = 4
"""Forms that are tried for a batch, each that of the first line that has none of the others."""

FORM_LINES_MIN: Final = 64
"""Fewer lines of a form are not worth a look."""

HALVED_LINES_MIN: Final = 64
"""Fewer lines are faster one by one than in halves."""


def read_lines(texts: pa.Array) -> pa.StructArray:
    """Return the parsed lines, as PARSED_TYPE.

    `texts` is of strings, valid UTF-8, none of them null, each beginning with `{`.
    """
    texts = texts.cast(pa.string())
    is_security = flags_of(pc.starts_with(texts, _SECURITY_BEGIN))
    if is_security.any():
        rows, others = np.flatnonzero(is_security), np.flatnonzero(~is_security)
        security = _one_by_one(texts.take(pa.array(rows)))
        return in_order(rows, security, others, _read_decisions(texts.take(pa.array(others))))
    return _read_decisions(texts)


def _read_decisions(texts: pa.Array, forms: int = FORMS_MAX) -> pa.StructArray:
    if not forms or len(texts) < FORM_LINES_MIN:
        return _read_by_arrow(texts)
    form = LineForm.of(texts[0].as_py())
    if form is None:
        return _read_by_arrow(texts)
    rows, events = form.read(texts)
    if len(rows) == len(texts):
        return _checked(texts, events)
    found = _checked(texts.take(pa.array(rows)), events)
    others = np.setdiff1d(np.arange(len(texts)), rows, assume_unique=True)
    return in_order(rows, found, others, _read_decisions(texts.take(pa.array(others)), forms - 1))


def _read_by_arrow(texts: pa.Array) -> pa.StructArray:
    pieces = list(_pieces(texts))
    return pa.concat_arrays(pieces) if pieces else pa.array([], PARSED_TYPE)


def _pieces(texts: pa.Array) -> Iterator[pa.StructArray]:
    events = _values(texts)
    if events is not None:
        yield _checked(texts, as_coded(events, EVENT))
    elif len(texts) <= HALVED_LINES_MIN:
        yield _one_by_one(texts)
    else:
        half = len(texts) // 2
        yield from _pieces(texts[:half])
        yield from _pieces(texts[half:])


def _one_by_one(texts: pa.Array) -> pa.StructArray:
    return as_coded(pa.array([read_line(text) for text in texts.to_pylist()], _PLAIN_TYPE), PARSED_TYPE)


def _values(texts: pa.Array) -> pa.StructArray | None:
    """Return the values of lines (PLAIN_EVENT) if each is of kustos' schema, None if one may not be."""
    if not len(texts):
        return pa.array([], PLAIN_EVENT)
    try:
        joined = pc.binary_join_element_wise(_HEAD, texts, _TAIL, "")
        _, offsets, values = joined.buffers()
        buffer = values[: np.frombuffer(offsets, np.int32)[len(joined)]]
        # one block, since a value may lie in one only
        read = json.ReadOptions(use_threads=False, block_size=buffer.size)
        table = json.read_json(pa.BufferReader(buffer), read_options=read, parse_options=_ENVELOPE)
    except (pa.ArrowException, UnicodeDecodeError):  # the latter from Arrow's own error message
        return None
    events = table["event"].combine_chunks()
    is_whole = table.num_rows == len(texts) and not events.null_count and not table["end"].null_count
    return events if is_whole else None


def _checked(texts: pa.Array, events: pa.StructArray) -> pa.StructArray:
    """Return the events of values with the right types, or the reasons why they are invalid."""
    count = len(events)
    found = dict(zip((field.name for field in events.type), events.flatten(), strict=True))
    found["source_format"] = repeated(JSON, CODED, count)
    fields = [found.get(field.name, pa.nulls(count, field.type)) for field in PARSED_TYPE]
    parsed = pa.StructArray.from_arrays(fields, fields=list(PARSED_TYPE))
    is_valid = _are_valid(events)
    if is_valid.all():
        return parsed
    rows, others = np.flatnonzero(is_valid), np.flatnonzero(~is_valid)
    return in_order(rows, parsed.take(pa.array(rows)), others, _one_by_one(texts.take(pa.array(others))))


def _are_valid(events: pa.StructArray) -> Numbers:
    """Return which values are valid decisions; `read_line` must parse all others."""
    is_valid: Numbers = np.ones(len(events), dtype=bool)
    for name in REQUIRED_FIELDS:
        column = _field(events, name)
        if column.null_count:
            is_valid &= flags_of(column.is_valid())
    time_ms = _field(events, "time_ms")
    for passed in (
        pc.equal(_field(events, "schema_version"), AUDIT_SCHEMA_VERSION),
        pc.invert(pc.starts_with(_field(events, "event_id"), EVENT_ID_BEGIN)),
        pc.and_(pc.greater_equal(time_ms, 0), pc.less_equal(time_ms, MAXIMUM_TIME_MS)),
    ):
        is_valid &= flags_of(passed.fill_null(False))
    for name, words in WORDS.items():
        column = _field(events, name)
        _take_in(is_valid, pc.is_in(column.dictionary, value_set=pa.array(words)), column.indices)
    for name, pattern in PATTERNS.items():
        column = _field(events, name)
        has_form = pc.match_substring_regex(column.dictionary, f"^(?:{pattern})$")
        _take_in(is_valid, has_form, column.indices)
    for name, least in LEAST.items():
        column = _field(events, name)
        if (smallest := pc.min(column).as_py()) is not None and smallest < least:
            is_valid &= flags_of(pc.greater_equal(column, least).fill_null(True))
    return is_valid


def _take_in(is_valid: Numbers, passed: pa.Array, codes: pa.Array) -> None:
    """Take the codes whose text did not pass out of the valid rows; nearly always all passed."""
    if not pc.all(passed).as_py():
        is_valid &= flags_of(passed.take(codes).fill_null(True))


def _field(events: pa.StructArray, dotted_name: str) -> pa.Array:
    return pc.struct_field(events, dotted_name.split("."))
