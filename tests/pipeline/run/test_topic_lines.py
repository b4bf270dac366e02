"""Records of a topic are lines with the place of the record, without the end that a layout writes."""

import pyarrow as pa

from kustos.pipeline.run.topic.lines import lines_of_records

LINES: dict[bytes | None, bytes] = {
    b"a": b"a",
    b"a\n": b"a",
    b"a\r\n": b"a",
    b"a\r": b"a\r",
    b"\n": b"",
    b"\r\n": b"",
    b"": b"",
    None: b"",
    b"a\n\n": b"a\n",
    b"a\nb": b"a\nb",
    b"\xff\n": b"\xff",
    b"\xc3": b"\xc3",
    "é\n".encode(): "é".encode(),
}


def test_a_line_has_its_record_s_place_and_not_the_end_that_a_layout_writes() -> None:
    offsets = range(100, 100 + 2 * len(LINES), 2)
    found = lines_of_records("audit-x", 3, offsets, list(LINES))
    assert found.schema.names == ["file", "line", "log", "position"]
    assert found["line"].view(pa.binary()).to_pylist() == list(LINES.values())
    assert set(found["file"].to_pylist()) == {"audit-x-3"}
    assert set(found["log"].to_pylist()) == {"topic:audit-x-3"}
    assert found["position"].to_pylist() == list(offsets)


def test_lines_without_an_end_are_not_copied() -> None:
    values = [b"a" * 1000] * 10
    line = lines_of_records("audit", 0, range(10), values, layout="%m%n")
    assert line["line"].to_pylist() == ["a" * 1000] * 10
    assert line["layout"].to_pylist() == ["%m%n"] * 10
