"""Lines of one form, read in columns, say what the reader of one line says, whatever stands for a value."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.authorizer.audit.fields import AUDIT_FIELDS
from kustos.pipeline.lines import json_columns, json_forms
from kustos.pipeline.lines.json_columns import PARSED_TYPE, read_lines
from kustos.pipeline.lines.json_forms import LineForm
from kustos.pipeline.lines.json_grammar import read_line
from kustos.pipeline.lines.text_pieces import Text
from tests.pipeline.events import event

MARK = "@here@"
FRAGMENTS = (
    *("null", "true", "false", "nul", "NULL", "nullx", "truefalse", ""),
    *("0", "1", "-1", "-0", "01", "00", "+1", "1.0", "1e3", "0x1F", "1_000", "\u0661", "NaN"),
    *("999999999", "2147483647", "2147483648", "-2147483648", "99999999999", str(2**63 - 1), str(2**63)),
    *('"a"', '""', '"', '"a', 'a"', '"a"b"', '"a" "b"', '"a\\n"', '"\\u00e9"', '"\\ud800"', '"\\"', "'a'"),
    *('"é"', '"😀"', '"\x7f"', '"a\tb"', '"a\x1fb"', '"\x00"', '"a\nb"', '"null"', '"1"', '"{"', '"}"'),
    *('"a,b"', '"a, b"', '"a, "', '", "', '",', '"x": 1', '", "b": "', '","b":"', '"a","b":1', '"a", "b": 1'),
    *(" 1", "1 ", ' "a"', '"a" ', " null ", "\t1", "1\t", "\u00a01"),
    *("{}", "[]", "[1]", "[1, 2]", '{"kind": "SuperUser"}', '{"x":1}', '{"x": 1, "y": 2}', "1}", "1]", "{"),
    *('1,"x":2', '1, "x": 2', '1,"node_id":2', '1, "node_id": 2', "1,", "1, ", ",1", "1 2"),
)
NAMES = [field.name for field in AUDIT_FIELDS]
ENUMS = ("SuperUser", "MatchingAcl", "DefaultDeny")


def written(changes: dict[str, str], *, is_compact: bool) -> str:
    """Return a line in which these fields have these texts for values."""
    marks = {name.replace(".", "__"): f"{MARK}{number}" for number, name in enumerate(changes)}
    line = json.dumps(event(**marks), separators=(",", ":") if is_compact else None)
    for number, fragment in enumerate(changes.values()):
        line = line.replace(f'"{MARK}{number}"', fragment)
    return line


fields = st.sampled_from(NAMES)
fragments = st.one_of(
    st.sampled_from(FRAGMENTS),
    st.text(max_size=3),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.integers(-(2**64), 2**64).map(str),
)
changed = st.dictionaries(fields, fragments, max_size=3)


def one_by_one(texts: list[str]) -> list[Any]:
    return pa.array([read_line(text) for text in texts], PARSED_TYPE).to_pylist()  # type: ignore[no-any-return]


@pytest.fixture(params=[1, 10**9], ids=["few values", "many values"])
def any_lines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read lines by their form also where there are few, values as if there were few different or many."""
    monkeypatch.setattr(json_columns, "FORM_LINES_MIN", 1)
    monkeypatch.setattr(json_forms, "DISTINCT_SHARE", request.param)


@given(st.lists(changed, min_size=1, max_size=8), st.booleans(), st.sampled_from([1, 10**9]))
@settings(max_examples=300, deadline=None)
def test_what_stands_for_a_value_means_in_columns_what_it_means_alone(
    told: list[dict[str, str]], is_compact: bool, share: int
) -> None:
    texts = [written(changes, is_compact=is_compact) for changes in [{}, *told]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_columns, "FORM_LINES_MIN", 1)
        patch.setattr(json_forms, "DISTINCT_SHARE", share)
        assert read_lines(pa.array(texts)).to_pylist() == one_by_one(texts)


@pytest.mark.usefixtures("any_lines")
@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_fragment_in_place_of_each_value(fragment: str) -> None:
    for is_compact in (False, True):
        changes = [{}, *({name: fragment} for name in NAMES), {}]
        texts = [written(each, is_compact=is_compact) for each in changes]
        found = read_lines(pa.array(texts))
        found.validate(full=True)
        assert found.to_pylist() == one_by_one(texts)


def test_lines_of_one_form_are_read_without_a_parser_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_columns, "_read_by_arrow", None)
    texts = [
        json.dumps(
            event(
                event_id=f"id-{number}",
                time_ms=1_000_000_000_000 + number,
                client_id=None if number % 3 else f"client-{number}, of é",
                latency_us=None if number % 5 else number,
                principal_name=f"CN=a{number % 7},OU=b",
                token_authenticated=number % 2 == 0,
                rule__kind=ENUMS[number % 3],
            ),
            ensure_ascii=False,
        )
        for number in range(1_000)
    ]
    assert read_lines(pa.array(texts)).to_pylist() == one_by_one(texts)


def test_lines_of_several_forms_are_each_read_by_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_columns, "_read_by_arrow", None)
    monkeypatch.setattr(json_columns, "FORM_LINES_MIN", 1)
    short = {name: value for name, value in event().items() if name not in ("client_id", "latency_us")}
    without_rule = {**event(), "rule": None}
    of_forms = [
        json.dumps(event()),
        json.dumps(event(), separators=(",", ":")),
        json.dumps(short),
        json.dumps(without_rule),
    ]
    texts = [of_forms[number % 4] for number in range(200)]
    found = read_lines(pa.array(texts)).to_pylist()
    assert found == one_by_one(texts)
    assert found[3]["reason"] == "field_missing: rule.kind"


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "{",
        '{"x": 1}',
        json.dumps({**event(), "field_of_tomorrow": 1}),
        json.dumps({**event(), "host": "a\\b"}),
        json.dumps({**event(), "host": "a\u2028b"}, ensure_ascii=False),
        json.dumps({**event(), "host": {"kind": "x"}}),
        json.dumps({**event(), "host": 'a, "b'}),
        json.dumps({**event(), "host": "a" * json_forms.MODEL_CHARACTERS_MAX}),
    ],
)
def test_a_line_of_another_kind_has_no_form(line: str) -> None:
    assert LineForm.of(line) is None


def test_bytes_are_found_at_places_also_past_one_block() -> None:
    count = 40_000
    text = Text.of(pa.array([f"{number % 2}bcdefgh" for number in range(count)]))
    places = np.arange(count) * 8
    assert text.has(places, b"0bcdefgh").tolist() == [number % 2 == 0 for number in range(count)]
    assert text.has(places + 1, b"bcdefgh").all()
    assert not text.has(places[:3], b"x" * (8 * count + 1)).any()
    assert text.has(places[:0], b"b").tolist() == []
    assert text.has(places[:2], b"").tolist() == [True, True]
