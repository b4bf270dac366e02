"""Kafka's audit lines read a batch at a time: no line tells anything else than when it is read by itself."""

from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.pipeline.lines import kafka_columns
from kustos.pipeline.lines.kafka_columns import PARSED_TYPE, read_lines
from kustos.pipeline.lines.kafka_grammar import ParsedLine, read_line
from tests.pipeline.events import kafka_line
from tests.pipeline.lines import lines, reference

LINES = 400
ACL = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=pay, patternType=PREFIXED, "
    "principal=User:*, host=10.0.0.0/8, operation=ALL, permissionType=DENY])"
)
COMMON = (
    kafka_line(),
    kafka_line(level="INFO ", result="Denied", rule="DefaultDeny"),
    kafka_line(level="TRACE", resource="Group:LITERAL:a:b"),
    kafka_line(principal="User:CN=Ännchen von Tharau,O=\u2028☕", rule=ACL),
    kafka_line(resource="TransactionalId:LITERAL: a", rule=ACL.replace("[", "(").replace("]", ")")),
    kafka_line(principal="User:", resource="Cluster:LITERAL:kafka-cluster", count=999_999_999),
    kafka_line().removesuffix(" (kafka.authorizer.logger)"),
    kafka_line().partition(" based on")[0].replace("operation = READ", "Operation = DescribeConfigs"),
)


def by_itself(text: str | None, zone: ZoneInfo | None = None) -> dict[str, object]:
    """Return what a line tells that is read by itself."""
    told = None if text is None else read_line(text, zone)
    if isinstance(told, ParsedLine):
        return {**told._asdict(), "rule": told.rule._asdict(), "reason": None}
    return {**dict.fromkeys(ParsedLine._fields), "reason": told}


def nearly_common(random: Random) -> str:
    """Return a common line in which one thing may be otherwise."""
    text = random.choice(COMMON)
    place = random.randint(0, len(text))
    fate = random.randrange(5)
    if fate == 0:
        return text[:place] + random.choice(lines.FRAGMENTS) + text[place:]
    if fate == 1:
        return text[:place] + random.choice("09aZ :=,([_-\x1f") + text[place + 1 :]
    if fate == 2:
        return text[:place] + text[place + random.randint(1, 9) :]
    if fate == 3:
        word = random.choice(lines.FRAGMENTS)
        return text.replace(random.choice(("bob", "Topic", "1", "pay", "User", "Fetch")), word, 1)
    return text


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]))
def test_a_batch_tells_of_every_line_what_it_tells_by_itself(seed: int, zone: str) -> None:
    random = Random(seed)
    texts = [None, *(random.choice((lines.line, nearly_common))(random) for _ in range(LINES))]
    time_zone = None if zone == "UTC" else ZoneInfo(zone)
    for text, found in zip(texts, read_lines(pa.array(texts), zone).to_pylist(), strict=True):
        assert found == by_itself(text, time_zone), text


def test_a_time_that_comes_twice_is_the_first_and_one_that_is_skipped_goes_on() -> None:
    wanted = {
        "2026-10-25 02:30:00,000": 1_792_888_200_000,
        "2026-03-29 02:30:00,000": 1_774_747_800_000,
        "1970-01-01 00:30:00,000": None,
    }
    told = read_lines(pa.array([kafka_line(time=moment) for moment in wanted]), "Europe/Berlin")
    assert told.field("time_ms").to_pylist() == list(wanted.values())
    by_themselves = [by_itself(kafka_line(time=moment), ZoneInfo("Europe/Berlin")) for moment in wanted]
    assert told.to_pylist() == by_themselves


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_a_line_is_read_as_the_slow_version_reads_it(seed: int) -> None:
    random = Random(seed)
    texts = [random.choice((lines.line, nearly_common))(random) for _ in range(LINES)]
    for text, found in zip(texts, read_lines(pa.array(texts)).to_pylist(), strict=True):
        wanted = reference.parse(text)
        told = {name: found[name] for name in wanted or ParsedLine._fields}
        assert told == (wanted or dict.fromkeys(ParsedLine._fields)), text
        assert (found["reason"] is None) == (wanted is not None), text


def test_common_lines_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [by_itself(text) for text in COMMON]

    def refuse(text: str, zone: ZoneInfo | None) -> ParsedLine | str:
        raise AssertionError(text)

    monkeypatch.setattr(kafka_columns, "read_line", refuse)
    assert read_lines(pa.array(COMMON)).to_pylist() == wanted
    assert all(found["reason"] is None for found in wanted)


@pytest.mark.parametrize("text", [*COMMON, "junk " * 40, "junk" * 40])
def test_a_batch_may_lack_any_of_the_marks(text: str) -> None:
    assert read_lines(pa.array([text])).to_pylist() == [by_itself(text)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_no_lines_nulls_and_parts_of_a_batch_are_read(kind: pa.DataType) -> None:
    texts = pa.array([None, "", *COMMON, None, "junk", *COMMON], kind)
    told = read_lines(texts)
    assert told.type == PARSED_TYPE
    for first in range(0, len(texts), 3):
        assert read_lines(texts.slice(first, 7)).equals(told.slice(first, 7))
    assert read_lines(texts.slice(0, 0)).equals(told.slice(0, 0))
    assert [one["reason"] for one in read_lines(texts.slice(0, 2)).to_pylist()] == [None, "blank"]
    only_nulls = read_lines(pa.nulls(2, kind))
    assert only_nulls.to_pylist() == [dict.fromkeys((*ParsedLine._fields, "reason"))] * 2
