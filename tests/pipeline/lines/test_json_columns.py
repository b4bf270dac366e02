"""Lines of JSON read in columns tell what the reader of one line tells, however they are cut into batches."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.authorizer.audit.fields import AUDIT_FIELDS
from kustos.pipeline.lines import json_columns
from kustos.pipeline.lines.json_columns import PARSED_TYPE, read_lines
from kustos.pipeline.lines.json_grammar import read_line
from tests.pipeline.events import event, event_line, login, login_line
from tests.pipeline.lines.test_confluent_events import cloud_event

GOOD = event_line()
HEAD, TAIL = '{"event":', ',"end":true}\n'
BROKEN = (
    GOOD[:-1],
    GOOD + GOOD,
    GOOD + "\n" + GOOD,
    f"{GOOD}{TAIL}{HEAD}{GOOD}",  # two values that are one line
    GOOD[: GOOD.index('"rule"')] + '"rule":',  # would go on in the next line's value
    GOOD[: GOOD.index("SuperUser")],
    GOOD + ',"end":true',
    f'{GOOD},"event":{GOOD}',
    GOOD + ',"other":1',
    GOOD[:-1] + ',"decision":"DENIED"}',
    GOOD.replace('"kind"', '"kind": "DefaultDeny", "kind"'),
    GOOD.replace('"bob"', '"\\ud800"'),
    GOOD.replace('"bob"', '"a\tb"'),
    GOOD.replace('"bob"', "NaN"),
    GOOD.replace('"bob"', "1"),
    GOOD.replace('"api_key": 1', '"api_key": 1.0'),
    GOOD.replace('"api_key": 1', '"api_key": 01'),
    GOOD.replace('"api_key": 1', '"api_key": ' + "9" * 5_000),
    GOOD[:-1] + ',"x":' + "[" * 100_000,
    GOOD + "\x00",
    f"{GOOD}{TAIL}\x00",
    f"{GOOD}{TAIL}{HEAD}{GOOD}{TAIL}{HEAD}{GOOD}{TAIL}\x00",  # as many values as there are lines
    GOOD.replace(event()["event_id"], "kafka-" + "0a" * 16),  # made for lines that bring none
    GOOD.replace(event()["event_id"], f"kafka-{'0a' * 16}-12"),
    "{",
    "{}",
    "{]",
)
HARMLESS = (
    GOOD,
    f"{GOOD} \r",
    GOOD[:-1] + ', "field_of_tomorrow": {"x": [1, 2.5, null, "y"]}}',
    GOOD.replace('"bob"', '"\\u0000\\ud83d\\ude00\\/"'),
    GOOD.replace('"api_key": 1', '"api_key": -0'),
    GOOD.replace('"api_key"', '"\\u0061pi_key"'),
    json.dumps(dict(reversed(event().items()))),
    json.dumps(cloud_event()),
    GOOD.replace(event()["event_id"], "kafka-prod-1"),
    GOOD.replace(event()["event_id"], ""),
)

LOGIN = login_line()
NO_LOGINS = (
    LOGIN[:-1],
    json.dumps(login(result="MAYBE"), separators=(",", ":")),
    json.dumps(login(), separators=(",", ":"))[:-1],
    LOGIN.replace('"FAILURE"', '"MAYBE"'),
    LOGIN.replace('"attempt_count": 1', '"attempt_count": 0'),
    LOGIN.replace('"attempt_count": 1', '"attempt_count": true'),
    LOGIN.replace('"event_type": "LOGIN"', '"event_type": null'),
    LOGIN.replace('"schema_version": 2', '"schema_version": 3'),
    LOGIN.replace('"first_time_ms": 1', '"first_time_ms": 2'),
    json.dumps(login(event_id="kafka-" + "0a" * 16)),
)
LOGINS = (
    LOGIN,
    json.dumps(login(), separators=(",", ":")),
    json.dumps(login(event_type="OF_TOMORROW", claimed_name=None, host=None)),
    LOGIN[:-1] + ', "api_key": "whatever it is"}',
    json.dumps(login(result="SUCCESS", principal_type="User", principal_name="bob", attempt_count=7)),
)
MIXED = (
    GOOD[:-1] + ', "event_type": "LOGIN", "result": "FAILURE"}',
    GOOD[:-1] + ', "claimed_name": "bob"}',
    GOOD.replace('"schema_version": 1', '"schema_version": 2'),
    json.dumps({**event(), **login()}),
    json.dumps({**login(), **event()}),
)

values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**66), 2**66),
    st.floats(allow_nan=True),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.sampled_from(["kind", "host", "x"]), st.text(max_size=2), max_size=3),
)
changed = st.dictionaries(
    st.sampled_from([*(field.name.replace(".", "__") for field in AUDIT_FIELDS)]), values, max_size=2
).map(lambda changes: json.dumps(_nested(changes)))
cut = st.tuples(st.sampled_from([*BROKEN[:12], GOOD]), st.integers(1, 900)).map(lambda one: one[0][: one[1]])
lines = st.one_of(
    st.sampled_from(BROKEN),
    st.sampled_from(HARMLESS),
    st.sampled_from([*LOGINS, *NO_LOGINS, *MIXED]),
    changed,
    cut,
    st.just(GOOD),
)


def _nested(changes: dict[str, Any]) -> dict[str, Any]:
    made = event()
    for name, value in changes.items():
        *path, last = name.split("__")
        target = made
        for step in path:
            if not isinstance(target.get(step), dict):
                target[step] = {}
            target = target[step]
        target[last] = value
    return made


def one_by_one(texts: list[str]) -> list[Any]:
    return pa.array([read_line(text) for text in texts], PARSED_TYPE).to_pylist()  # type: ignore[no-any-return]


@given(st.lists(lines, max_size=12))
@settings(max_examples=300, deadline=None)
def test_columns_tell_what_the_reader_of_a_line_tells(texts: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_columns, "HALVED_LINES_MIN", 1)
        assert read_lines(pa.array(texts, pa.string())).to_pylist() == one_by_one(texts)


@pytest.mark.parametrize("line", BROKEN)
def test_no_broken_line_is_told_or_changes_its_neighbours(line: str) -> None:
    texts = [GOOD, line, GOOD, line, line, GOOD]
    found = read_lines(pa.array(texts)).to_pylist()
    assert [row["reason"] is None for row in found] == [text == GOOD for text in texts]
    assert found == one_by_one(texts)


@pytest.mark.parametrize("line", HARMLESS)
def test_what_is_written_otherwise_says_the_same(line: str) -> None:
    (found,) = read_lines(pa.array([line])).to_pylist()
    assert (found["reason"], found["decision"], found["api_name"][:5]) == (None, "ALLOWED", "Fetch")


def test_common_lines_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_columns, "read_line", None)
    found = read_lines(pa.array([event_line(number) for number in range(1_000)])).to_pylist()
    assert len({row["event_id"] for row in found}) == 1_000


def test_one_odd_line_leaves_the_others_to_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(line: str) -> dict[str, Any]:
        asked.append(line)
        return read_line(line)

    monkeypatch.setattr(json_columns, "read_line", counted)
    texts = [event_line(number) for number in range(4_000)]
    texts[1_234], texts[2_345] = "{", "{}"
    found = read_lines(pa.array(texts)).to_pylist()
    assert next(row["reason"] for row in found if row["reason"]) == "json_malformed"
    assert len(asked) <= 2 * json_columns.HALVED_LINES_MIN
    assert read_lines(pa.array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize("line", LOGINS)
def test_a_login_among_decisions_is_one_and_changes_none_of_them(line: str) -> None:
    decision, found, other = read_lines(pa.array([GOOD, line, GOOD])).to_pylist()
    assert decision == other == one_by_one([GOOD])[0]
    assert decision["event_type"] is None
    assert found["reason"] is None
    assert found["event_type"] == json.loads(line)["event_type"]
    assert found["decision"] is None


@pytest.mark.parametrize("line", NO_LOGINS)
def test_what_is_no_login_is_none(line: str) -> None:
    (found,) = read_lines(pa.array([line])).to_pylist()
    assert found["reason"] is not None
    assert found["event_type"] is None


@pytest.mark.parametrize("line", MIXED[:2])
def test_a_decision_is_one_whatever_fields_of_a_login_it_has(line: str) -> None:
    (found,) = read_lines(pa.array([line])).to_pylist()
    assert found == one_by_one([GOOD])[0]
