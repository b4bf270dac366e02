"""A line in an envelope is the line within: with the broker's time, or with the envelope's if it has none."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.pipeline.lines import envelopes
from kustos.pipeline.lines.envelopes import joined_parts
from kustos.pipeline.lines.kafka_grammar import ParsedLine, read_line
from kustos.pipeline.lines.layouts import compiled
from kustos.pipeline.lines.line_columns import read_lines
from kustos.pipeline.run.files.compression import Packing
from kustos.pipeline.run.files.formats import layout_of
from kustos.pipeline.run.files.pieces import Piece, Readable, lines_of, tasks_of, whole_bytes
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.lines.test_layouts import NAMES, STRIMZI, written

TIME = "2026-11-21T04:00:09.987654321Z"
"""Of the envelope: later than the broker's."""


def fields(line: str) -> tuple[str, str, str]:
    """Return level, message and logger of a line in Kafka's layout."""
    level, _, message = line.partition("] ")[2].partition(" ")
    return level, message.removesuffix(" (kafka.authorizer.logger)"), "kafka.authorizer.logger"


def docker(line: str) -> str:
    return json.dumps({"log": f"{line}\n", "stream": "stdout", "time": TIME})


def ecs(line: str) -> str:
    level, message, logger = fields(line)
    return json.dumps(
        {
            "@timestamp": "2026-11-21T04:00:00.123Z",
            "log.level": level,
            "message": message,
            "ecs.version": "1.2.0",
            "process.thread.name": "data-plane-kafka-request-handler-0",
            "log.logger": logger,
        }
    )


def nested_ecs(line: str) -> str:
    level, message, logger = fields(line)
    time = "2026-11-21T04:00:00.123+00:00"
    return json.dumps({"@timestamp": time, "log": {"level": level, "logger": logger}, "message": message})


def logstash(line: str) -> str:
    level, message, logger = fields(line)
    time = "2026-11-21T04:00:00.123Z"
    return json.dumps({"level": level, "logger": logger, "message": message, "mdc": {}, "@timestamp": time})


def log4j(line: str) -> str:
    level, message, logger = fields(line)
    instant = {"epochSecond": 1_795_233_600, "nanoOfSecond": 123_000_000}
    return json.dumps({"instant": instant, "level": level, "loggerName": logger, "message": message})


def old_log4j(line: str) -> str:
    level, message, logger = fields(line)
    return json.dumps({"timeMillis": 1_795_233_600_123, "level": level, "logger": logger, "message": message})


def filebeat(line: str) -> str:
    path = {"offset": 0, "file": {"path": "/var/log/kafka/kafka-authorizer.log"}}
    return json.dumps({"@timestamp": TIME, "log": path, "message": line, "host": {"name": "kafka-0"}})


PREFIXES: dict[str, Callable[[str], str]] = {
    "cri": lambda line: f"{TIME} stdout F {line}",
    "kubectl": lambda line: f"{TIME} {line}",
    "kubectl --prefix": lambda line: f"[pod/kafka-0/kafka] {line}",
    "kubectl --prefix --timestamps": lambda line: f"[pod/kafka-0/kafka] {TIME} {line}",
    "compose": lambda line: f"kafka-1  | {line}",
    "compose --timestamps": lambda line: f"kafka-1  | {TIME} {line}",
    "stern": lambda line: f"kafka-0 kafka {line}",
    "stern --timestamps": lambda line: f"kafka-0 kafka {TIME} {line}",
    "stern --all-namespaces": lambda line: f"streams kafka-0 kafka {line}",
}
JSONS = (docker, ecs, nested_ecs, logstash, log4j, old_log4j, filebeat)


def layout_of_lines(*lines: str) -> str | None:
    return layout_of(io.BytesIO("".join(f"{line}\n" for line in lines).encode()), "x", None)


def read(layout: str | None, line: str) -> ParsedLine | str:
    assert layout is not None
    found = compiled(layout).as_kafkas(line)
    assert found is not None
    return read_line(found)


ALL = {**PREFIXES, **{f"json {put.__name__}": put for put in JSONS}}


@pytest.mark.parametrize("name", ALL)
@given(principal=NAMES, topic=NAMES, level=st.sampled_from(["DEBUG", "INFO", "TRACE"]))
def test_a_line_in_an_envelope_is_the_line_with_the_brokers_time(
    name: str, principal: str, topic: str, level: str
) -> None:
    line = kafka_line(principal=f"User:{principal}", resource=f"Topic:LITERAL:{topic}", level=level)
    assert read(name.partition(" ")[0], ALL[name](line)) == read_line(line)


@pytest.mark.parametrize("name", ALL)
def test_an_envelope_is_found_in_the_first_lines(name: str) -> None:
    put, word = ALL[name], name.partition(" ")[0]
    quiet = [
        put(f"[2026-11-21 04:00:00,{at:03d}] INFO [BrokerServer id=1] started (kafka.server.BrokerServer)")
        for at in range(20)
    ]
    assert layout_of_lines(*quiet, put(kafka_line())) == word
    assert layout_of_lines(*quiet) == word
    assert layout_of_lines(put(kafka_line(resource="Connector:LITERAL:c"))) == word


@pytest.mark.parametrize("name", [*PREFIXES, "json docker", "json filebeat"])
def test_another_layout_and_other_json_are_found_within_an_envelope(name: str) -> None:
    put, word = ALL[name], name.partition(" ")[0]
    strimzi = put(written(STRIMZI, kafka_line()))
    assert layout_of_lines(strimzi) == f"{word} {STRIMZI}"
    assert read(layout_of_lines(strimzi), strimzi) == read_line(kafka_line())
    assert layout_of_lines(put(ecs(kafka_line()))) == f"{word} json"
    assert read(f"{word} json", put(ecs(kafka_line()))) == read_line(kafka_line())
    own = put(event_line())
    assert layout_of_lines(own) == word
    assert compiled(word).as_kafkas(own) == event_line()


def test_the_time_of_the_envelope_counts_if_the_line_has_none() -> None:
    line = "Principal" + kafka_line().partition("Principal")[2]
    found = read("cri", PREFIXES["cri"](line))
    assert isinstance(found, ParsedLine)
    assert found.time_ms == 1_795_233_609_987


@pytest.mark.parametrize(
    "line",
    [
        '{"message":"x","@timestamp":"2026-11-21T04:00:00Z","event_id":"1"}',
        '{"message":"\\ud800","@timestamp":"2026-11-21T04:00:00Z"}',
        '{"message":1}',
        '{"message":"x","message":"y"}',
        "{",
        "[]",
        "",
        f"{TIME} stdout P x",
        f"{TIME} stdin F x",
        "x" * 100_000,
        "a " * 50_000,
        "a-" * 50_000,
        "|" * 100_000,
    ],
)
def test_what_is_no_envelope_stays_as_it_is(line: str) -> None:
    for name in envelopes.ENVELOPES:
        found = compiled(name).as_kafkas(line)
        assert found is None or isinstance(read_line(found), str)


@pytest.mark.parametrize(
    "time", ["", "x", None, True, 1, -795_233_600, 10**11, [], {}, {"epochSecond": "x"}, {"nanoOfSecond": 1}]
)
def test_a_json_time_that_is_none_leaves_the_line_without_one(time: object) -> None:
    line = json.dumps({"message": "Principal = x", "instant": time, "level": "INFO"})
    found = compiled("json").as_kafkas(line)
    assert found is None or isinstance(read_line(found), str)


@pytest.mark.parametrize("forged", [kafka_line(), event_line()])
def test_a_message_of_another_logger_is_no_line(forged: str) -> None:
    said = {"@timestamp": TIME, "log.level": "INFO", "log.logger": "kafka.server.KafkaApis"}
    layout = compiled("json")
    for line in (json.dumps({**said, "message": forged}), json.dumps({"message": forged, "logger": "x"})):
        found = layout.as_kafkas(line)
        assert found is None or (found.startswith("[") and isinstance(read_line(found), str))


def batch(lines: list[bytes], layout: str) -> pa.RecordBatch:
    text = pa.array(lines, pa.binary()).view(pa.string())
    columns = {"file": ["f"] * len(lines), "line": text, "layout": [layout] * len(lines)}
    return pa.RecordBatch.from_pydict(columns)


@given(st.data())
def test_parts_are_joined_and_every_line_counts_once(data: st.DataObject) -> None:
    """However lines are cut, and however the two streams are mixed."""
    written_lines: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    for number in range(data.draw(st.integers(1, 6))):
        stream = data.draw(st.sampled_from(["stdout", "stderr"]))
        line = kafka_line(principal=f"User:{number}").encode()
        written_lines[stream].append(line)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(line)), max_size=3)))
        pieces = [line[a:b] for a, b in zip([0, *cuts], [*cuts, len(line)], strict=True)]
        for at, piece in enumerate(pieces):
            tag = "F" if at == len(pieces) - 1 else "P"
            parts[stream].append(f"{TIME} {stream} {tag} ".encode() + piece)
    mixed: list[bytes] = []
    while any(parts.values()):
        stream = data.draw(st.sampled_from([name for name, left in parts.items() if left]))
        mixed.append(parts[stream].pop(0))
    joined = [line for _, line in joined_parts(enumerate(mixed))]
    for stream, lines in written_lines.items():
        begin = f"{TIME} {stream} F ".encode()
        assert [line for line in joined if line.startswith(begin)] == [begin + line for line in lines]
    assert len(joined) == sum(map(len, written_lines.values()))
    found = read_lines(batch(joined, "cri")).to_pylist()
    assert sorted(row["principal_name"] for row in found) == [str(n) for n in range(len(joined))]


def test_a_line_that_lacks_a_part_is_quarantined_by_name() -> None:
    head, line = f"{TIME} stdout ".encode(), kafka_line().encode()
    mixed = [head + b"F " + line[60:], head + b"P " + line[:40], head + b"P " + line[40:60]]
    joined = [line for _, line in joined_parts(enumerate(mixed))]
    assert joined == [mixed[0], head + b"P " + line[:60]]
    found = read_lines(batch(joined, "cri")).to_pylist()
    assert [row["reason"] for row in found] == ["format_unknown", "line_part"]


def test_endless_parts_take_no_more_memory_than_a_line_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelopes, "JOINED_BYTES_MAX", 10)
    parts = [f"{TIME} stdout P 123456".encode()] * 1_000 + [f"{TIME} stdout F x".encode()]
    assert list(joined_parts(enumerate(parts))) == [(0, f"{TIME} stdout F 123456123456".encode())]


def test_parts_that_go_on_are_read_later_and_together(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    whole = f"{TIME} stdout F x\n".encode()
    part = f"{TIME} stdout P y\n".encode()
    for text, size in (
        (whole + part, len(whole)),
        (whole + part + part, len(whole)),
        (whole + part + part[:-5], len(whole)),
        (part, 0),
        (part + whole, len(part + whole)),
    ):
        path.write_bytes(text)
        assert whole_bytes(path, len(text), is_closed=False) == size
        assert whole_bytes(path, len(text), is_closed=True) == len(text)
    big = 1 << 28
    file = Readable("0.log", "0.log", None, Packing.PLAIN, big, big, layout="cri json")
    assert tasks_of([file]) == [[Piece(file, 0, big)]], "a cut could part the parts"
    assert list(lines_of(io.BytesIO(whole + part), 0, None, None))[1] == (len(whole), part[:-1])
