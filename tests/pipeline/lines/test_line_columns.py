"""Lines read in columns say what each says alone, whatever stands beside it and however a batch was cut."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.pipeline.lines import json_columns, line_columns
from kustos.pipeline.lines.line_columns import MAXIMUM_LINE_CHARACTERS, read_lines
from kustos.pipeline.tables.deduplication.keys import IDENTIFIED, identified
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.lines.test_confluent_events import cloud_event

LIMIT = 1_200
"""Of characters, in the property test: an event is a little shorter."""

GOOD = event_line().encode()
KAFKA = kafka_line().encode()
LINES = (
    None,
    b"",
    b"{",
    b"{}",
    b"junk",
    b"\r",
    b"\x00",
    GOOD,
    GOOD + b"\r",
    GOOD + b"\x00",
    b" " + GOOD,
    b"\xef\xbb\xbf" + GOOD,
    GOOD[:-9],
    GOOD.replace(b"bob", b"\xff"),
    GOOD.replace(b"bob", b"\xed\xa0\x80"),
    GOOD.replace(b"bob", "ü☕".encode() * 100),
    GOOD.replace(b"1795233600123", b"0"),
    GOOD.replace(b"1795233600123", b"253402300799999"),
    GOOD.replace(b"1795233600123", b"253402300800000"),
    json.dumps(cloud_event()).encode(),
    KAFKA,
    KAFKA + b"\r",
    KAFKA + b"\x00",
    b"\xef\xbb\xbf" + KAFKA,
    KAFKA.replace(b"bob", b"b\xffb"),
    KAFKA.replace(b"2026-11-21 04:00:00,123", b"9999-12-31 23:59:59,999"),
    "é".encode() * (LIMIT // 2 + 1),
    "é".encode() * (LIMIT + 1),
    b"{" + b"\xff" * LIMIT,
    b"{" * (LIMIT + 1),
)
SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.string()),
        ("log", pa.string()),
        ("position", pa.int64()),
        ("fault", pa.string()),
    ]
)

rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b.gz"]),
        st.sampled_from(LINES),
        st.sampled_from([None, None, "topic:t-0"]),
        st.sampled_from([None, 0, 7]),
        st.sampled_from([None, None, None, "unreadable"]),
    ),
    max_size=14,
)


def batch_of(told: list[Any]) -> pa.RecordBatch:
    """Return lines as Spark hands them on: text of which nobody has looked whether it is."""
    columns = list(zip(*told, strict=True)) or [()] * len(SCHEMA)
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(columns, SCHEMA, strict=True)
        if field.name != "line"
    ]
    unchecked = pa.array(columns[1], pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(unchecked), unchecked.buffers(), unchecked.null_count)
    arrays.insert(1, text)
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def said(lines: pa.RecordBatch) -> list[Any]:
    """Return what lines say and are known by; what may be no text as bytes."""
    found = identified(read_lines(lines))
    found.drop_columns(["line"]).validate(full=True)
    assert found.schema.equals(IDENTIFIED)
    place = found.schema.get_field_index("line")
    return found.set_column(place, "line", found["line"].cast(pa.binary())).to_pylist()  # type: ignore[no-any-return]


@given(rows, st.integers(0, 14), st.integers(0, 14))
@settings(max_examples=300, deadline=None)
def test_lines_say_together_what_each_says_alone(told: list[Any], first: int, count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_columns, "MAXIMUM_LINE_CHARACTERS", LIMIT)
        patch.setattr(json_columns, "HALVED_LINES_MIN", 1)
        alone = [said(batch_of([one]))[0] for one in told]
        whole = batch_of(told)
        assert said(whole) == alone
        assert said(whole.slice(first, count)) == alone[first : first + count]
    for (file, line, log, position, fault), found in zip(told, alone, strict=True):
        assert (found["source_file"], found["line"], found["position"]) == (file, line or b"", position)
        assert found["log"] == (log or file.removesuffix(".gz"))
        assert fault is None or found["reason"] == fault
        assert (found["reason"] is None) == (found["time_ms"] is not None) == (found["day"] is not None)
        assert found["brings_id"] == (found["line_key"] is None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD, None),
        (KAFKA, None),
        (b" " + GOOD, "format_unknown"),
        (b"\xef\xbb\xbf" + GOOD, "format_unknown"),
        (GOOD.replace(b"bob", b"\xff"), "not_utf8"),
        (b"\xff" * (MAXIMUM_LINE_CHARACTERS + 1), "not_utf8"),
        (b"{" + b" " * MAXIMUM_LINE_CHARACTERS, "line_too_long"),
        ("é".encode() * (MAXIMUM_LINE_CHARACTERS + 1), "line_too_long"),
        ("é".encode() * MAXIMUM_LINE_CHARACTERS, "format_unknown"),
        (GOOD + b" " * (MAXIMUM_LINE_CHARACTERS - len(GOOD)), None),
        (GOOD + b" " * (MAXIMUM_LINE_CHARACTERS - len(GOOD) + 1), "line_too_long"),
        (None, "blank"),
    ],
)
def test_a_line_that_says_nothing_says_why(line: bytes | None, reason: str | None) -> None:
    (found,) = said(batch_of([("f", line, None, None, None)]))
    assert found["reason"] == reason
