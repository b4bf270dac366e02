"""Lines in layouts of log4j are those of Kafka's own layout; a format that is not known is told."""

import gzip
import io
import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.pipeline.errors import AuditInputError, ConfigurationError
from kustos.pipeline.lines.kafka_grammar import ParsedLine, read_line
from kustos.pipeline.lines.layouts import USUAL_LAYOUTS, compiled
from kustos.pipeline.lines.line_columns import read_lines
from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.run.files.formats import FIRST_LINES_MAX, UnknownFormatError, layout_of
from kustos.pipeline.tables import Tables
from tests.pipeline.events import event_line, kafka_line

STRIMZI = "%d{ISO8601} %p %m (%c) [%t]%n"
VALUES = {
    "L": "42",
    "t": "data-plane-kafka-request-handler-3",
    "c": "kafka.authorizer.logger",
    "M": "logAuditMessage",
}


def written(pattern: str, line: str) -> str:
    """Return a line of Kafka's own layout as log4j would write it with a pattern of single letters."""
    head, _, rest = line.partition("] ")
    level, _, message = rest.partition(" ")
    values = VALUES | {"m": message.removesuffix(" (kafka.authorizer.logger)"), "n": ""}
    text = pattern.replace("%d{ISO8601}", "%d").replace("%d{yyyy-MM-dd HH:mm:ss}", "%d").replace("%-5p", "%p")
    text = text.replace("%p", f"{level:5s}" if "%-5p" in pattern else level)
    text = text.replace("%d", head[1:20] if "HH:mm:ss}" in pattern else head[1:])
    for letter in "nLtcMm":  # the message last: it is a client's, and may have any text
        text = text.replace(f"%{letter}", values[letter])
    return text


NAMES = st.text("ab=%[]() .:-", max_size=12).map(str.strip).filter(bool)


@pytest.mark.parametrize("pattern", USUAL_LAYOUTS)
@given(principal=NAMES, topic=NAMES, level=st.sampled_from(["DEBUG", "INFO", "TRACE"]))
def test_a_line_in_a_usual_layout_is_the_line_in_kafkas(
    pattern: str, principal: str, topic: str, level: str
) -> None:
    line = kafka_line(
        principal=f"User:{principal}",
        resource=f"Topic:LITERAL:{topic}",
        level=level,
        time="2026-11-21 04:00:00,000",
    )
    found = compiled(pattern).as_kafkas(written(pattern, line))
    assert found is not None
    assert read_line(found) == read_line(line)


@pytest.mark.parametrize("pattern", USUAL_LAYOUTS)
def test_a_usual_layout_is_found_behind_a_banner(pattern: str) -> None:
    lines = [f"log.dirs = /data/{at}" for at in range(500)] + [written(pattern, kafka_line())]
    found = layout_of(io.BytesIO("\n".join(lines).encode()), "x", None)
    assert found is not None
    read = compiled(found).as_kafkas(lines[-1])
    assert read is not None
    assert isinstance(read_line(read), ParsedLine)


@pytest.mark.parametrize(
    ("date", "shown"),
    [
        ("%d{dd/MM/yyyy HH:mm:ss.SSS}", "21/11/2026 04:00:00.123"),
        ("%d{DATE}", "21 Nov 2026 04:00:00,123"),
        ("%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}", "2026-11-21T05:30:00.123+01:30"),
        ("%d{yyyy-MM-dd HH:mm:ss,SSS}{UTC}", "2026-11-21 04:00:00,123"),
        ("%date{yyyyMMdd HHmmss.SSSSSS}", "20261121 040000.123456"),
    ],
)
def test_dates_are_read_as_their_pattern_says(date: str, shown: str) -> None:
    line = kafka_line()
    message = line[line.index("Principal") : line.index(" (kafka")]
    found = compiled(f"{date} %level{{x}} %msg%n").as_kafkas(f"{shown} DEBUG {message}")
    assert found is not None
    assert read_line(found) == read_line(line)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("%d{ABSOLUTE} %m", "in its date"),
        ("%d{HH:mm:ss} %m", "without year"),
        ("%p %m", "needs `%d` and `%m`"),
        ("%d %p", "needs `%d` and `%m`"),
        ("%d %m %m", "needs `%d` and `%m`"),
        ("%d %q %m", "not known at `%q %m`"),
        ("%d{ISO8601}{Europe/Berlin} %m", "`time_zone` of the input"),
        ("x" * 501, "at most 500"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        compiled(pattern)


def test_what_no_layout_explains_is_told_with_its_line_and_the_setting() -> None:
    odd = written("%d|%p|%m", kafka_line())
    for text in (f"banner\n{odd}\n", "127.0.0.1 - - [21/Nov/2026:04:00:00 +0000] GET / 200\n"):
        with pytest.raises(UnknownFormatError, match="set `layout` to its pattern") as raised:
            layout_of(io.BytesIO(text.encode()), "x.log", None)
        assert text.splitlines()[-1][:160] in str(raised.value)
    assert layout_of(io.BytesIO(odd.encode()), "x.log", "%d|%p|%m%n") == "%d|%p|%m%n"
    for known in (
        "",
        "junk\n",
        kafka_line(),
        event_line(),
        "[2026-11-21 04:00:00,1",
        "[2026-11-21 04:00:00,123] INFO x",
    ):
        assert layout_of(io.BytesIO(known.encode()), "x.log", None) is None


LOG4J_JSON = '{"instant":{"epochSecond":1795233600,"nanoOfSecond":123000000},"level":"INFO","message":"x"}'


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (LOG4J_JSON, "set `layout` to `json`"),
        ('{"time":"2026-11-21T04:00:00Z","data":{"event_id":"1"}}', "not an event of kustos or Confluent"),
    ],
)
def test_json_of_others_is_told_with_its_line_and_what_to_do(line: str, told: str) -> None:
    for text in (line, f"banner\n{line}\n"):
        with pytest.raises(UnknownFormatError, match=re.escape(line[:160])) as raised:
            layout_of(io.BytesIO(text.encode()), "x.log", None)
        assert told in str(raised.value)
    assert layout_of(io.BytesIO(f"{line}\n{event_line()}\n".encode()), "x.log", None) is None


@pytest.mark.parametrize(
    "line",
    [
        event_line()[:40],
        '{"specversion":"1.0","type":"io.confluent.kafka.server/authentication","time":"2026-11-21T04:00:00Z"}',
        '{"event_id":"1","time":"04:00:00"}',
        '{"starting":"nothing with a time"}',
        "{",
    ],
)
def test_json_that_is_no_event_but_of_a_known_form_or_without_a_time_is_quarantined(line: str) -> None:
    assert layout_of(io.BytesIO(f"{line}\n".encode()), "x.log", None) is None


@pytest.mark.parametrize("pattern", [None, STRIMZI])
def test_a_layout_that_the_first_event_shows_is_found_without_reading_on(pattern: str | None) -> None:
    first = kafka_line() if pattern is None else written("%d %p %m (%c) [%t]%n", kafka_line())
    begin = f"===> banner\n{first}\n"
    content = io.BytesIO(begin.encode() + b"junk\n" * FIRST_LINES_MAX)
    assert layout_of(content, "x", pattern) == pattern
    assert content.tell() == len(begin)


@pytest.mark.parametrize("pattern", [*USUAL_LAYOUTS, None])
def test_a_log_without_an_event_yet_is_in_the_usual_layout_of_its_lines(pattern: str | None) -> None:
    def line(at: int, message: str) -> str:
        own = f"[2026-11-21 04:00:00,{at:03d}] INFO {message} (kafka.server.KafkaServer)"
        said = f"{own[:-27]} (kafka.authorizer.logger)"
        return own if pattern is None else written(pattern, said)

    messages = ["[KafkaServer id=1] started", "x - y", "Registered: 3", "started (again)", "x"]
    texts = ["===> banner"] + [line(at, messages[at % 5]) for at in range(FIRST_LINES_MAX)]
    found = layout_of(io.BytesIO("\n".join(texts).encode()), "x", None)
    event = kafka_line() if pattern is None else written(pattern, kafka_line(time="2026-11-21 04:00:00,000"))
    kafkas = event if found is None else compiled(found).as_kafkas(event)
    assert kafkas is not None
    assert isinstance(read_line(kafkas), ParsedLine)


def test_no_line_makes_matching_slow() -> None:
    # a quadratic one would not come to its end while somebody waits
    for text in (
        "2026-11-21 04:00:00,123 INFO " + " (a" * 80_000,
        "2026-11-21 04:00:00,123 INFO " + "a)" * 100_000,
        "2026-11-21 04:00:00,123 " + " " * 200_000,
    ):
        for pattern in USUAL_LAYOUTS:
            compiled(pattern).as_kafkas(text)


def test_lines_that_are_not_of_the_layout_or_not_utf8_stay_as_they_are() -> None:
    lines = [written(STRIMZI, kafka_line()).encode(), kafka_line().encode(), b"\xff", event_line().encode()]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["f"] * len(lines)),
            pa.array(lines, pa.binary()).view(pa.string()),
            pa.array([STRIMZI] * len(lines)),
        ],
        names=["file", "line", "layout"],
    )
    found = read_lines(batch)
    assert found["reason"].to_pylist() == [None, None, "not_utf8", None]
    assert found["line"].cast(pa.binary()).to_pylist() == lines
    assert found["time_ms"].to_pylist()[0] == found["time_ms"].to_pylist()[1]


def test_a_run_reads_layouts_archives_and_packed_files_by_any_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    audit, tables = tmp_path / "audit", Tables(tmp_path / "tables")
    audit.mkdir()

    def log(node: int) -> bytes:
        times = (f"2026-11-21 04:00:{at:02d},{node:03d}" for at in range(30))
        return "".join(f"{written(STRIMZI, kafka_line(time=time))}\n" for time in times).encode()

    (audit / "strimzi.log").write_bytes(b"===> banner\n" + log(1))
    (audit / "packed.log").write_bytes(gzip.compress(log(2)))
    with zipfile.ZipFile(audit / "logs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b3/server.log", log(3))
        archive.writestr("b4/server.log", log(4))
    summary = run_pipeline(spark, tables=tables, audit=audit)
    assert (summary.files, summary.lines, summary.events, summary.quarantined) == (4, 121, 120, 1)
    assert run_pipeline(spark, tables=tables, audit=audit).new_files == 0
    (audit / "odd.log").write_text(written("%d|%p|%m", kafka_line()) + "\n")
    with pytest.raises(UnknownFormatError, match=r"odd\.log"):
        run_pipeline(spark, tables=tables, audit=audit)
    told = run_pipeline(spark, tables=tables, audit=audit, on_unknown_format="quarantine")
    assert (told.lines, told.quarantined) == (1, 1)
    (audit / "odd.log").write_text(written("%d|%p|%m", kafka_line(time="2026-11-21 05:00:00,000")) + "\n")
    assert run_pipeline(spark, tables=tables, audit=audit, layout="%d|%p|%m%n").events == 1


def test_a_report_on_a_folder_reads_layouts_set_or_found(spark: SparkSession, tmp_path: Path) -> None:
    audit, odd = tmp_path / "audit", "%c|%d{yyyy-MM-dd HH:mm:ss,SSS}|%p|%m%n"
    audit.mkdir()
    lines = [kafka_line(time=f"2026-11-21 04:00:0{n},000") for n in range(6)]
    (audit / "strimzi.log").write_text("".join(f"{written(STRIMZI, line)}\n" for line in lines[:2]))
    (audit / "own.log").write_text("".join(f"{line}\n" for line in lines[2:4]))
    (audit / "events.jsonl").write_text(f"{event_line(1)}\n")
    with pytest.raises(AuditInputError, match=re.escape(f"is in the layout `{odd}`")):
        run_access_report(spark, audit, tmp_path / "out", layout=odd)
    said = [line[32:].removesuffix(" (kafka.authorizer.logger)") for line in lines]
    texts = [f"kafka.authorizer.logger|2026-11-21 04:00:0{n},000|DEBUG|{said[n]}" for n in range(6)]
    (audit / "odd.log").write_text("".join(f"{text}\n" for text in texts[4:]))
    with pytest.raises(UnknownFormatError, match=r"odd\.log.* its line `kafka\.authorizer\.logger\|"):
        run_access_report(spark, audit, tmp_path / "out")
    found = run_access_report(spark, audit, tmp_path / "out", on_unknown_format="quarantine")
    assert (found.events, found.quarantined) == (5, 2), "an unusual layout is not found, but counted"
    found = run_access_report(spark, audit, tmp_path / "out", layout=odd)
    assert (found.events, found.quarantined) == (7, 0)
