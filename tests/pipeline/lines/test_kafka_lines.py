"""Kafka's audit text: each line of every form is read as the slow version reads it, none slowly."""

import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.lines import lines, reference
from tests.pipeline.lines.parsing import parsed

LINES = 1500
"""Of a random world."""

TOLD = (
    *("time_ms", "principal_type", "principal_name", "host", "api_name", "resource_type", "resource_name"),
    *("operation", "decision", "rule", "reference_count", "log_if_allowed", "log_if_denied", "access"),
)


@settings(max_examples=3)
@given(seed=st.integers(0, 2**32))
def test_every_line_is_read_as_the_slow_version_reads_it(seed: int) -> None:
    random = Random(seed)
    texts = [lines.line(random) for _ in range(LINES)]
    for text, found in zip(texts, parsed(texts), strict=True):
        wanted = reference.parse(text)
        if wanted is None:
            assert found["reason"] is not None, text
            assert all(found[field] is None for field in TOLD), text
        else:
            assert found["reason"] is None, (text, found["reason"])
            assert {field: found[field] for field in TOLD} == wanted, text


OLD = "[2019-01-31 23:59:59,001] INFO Principal = User:CN=bob,OU=x is Denied Operation = "
FORMS = {
    "SimpleAclAuthorizer of 1.1": OLD
    + "DescribeConfigs from host = 10.0.0.7 on resource = Topic:foo (kafka.authorizer.logger)",
    "SimpleAclAuthorizer of 2.0": OLD
    + "DescribeConfigs from host = 10.0.0.7 on resource = Topic:LITERAL:foo (kafka.authorizer.logger)",
    "AclAuthorizer": OLD + "DescribeConfigs from host = 10.0.0.7 on resource = Topic:LITERAL:foo "
    "for request = Metadata with resourceRefCount = 3 (kafka.authorizer.logger)",
    "AclAuthorizer, no logger": OLD + "DescribeConfigs from host = 10.0.0.7 on resource = Topic:LITERAL:foo "
    "for request = Metadata with resourceRefCount = 3",
}


def test_the_older_authorizers_say_no_rule_and_the_oldest_no_request() -> None:
    for form, found in zip(FORMS, parsed(list(FORMS.values())), strict=True):
        assert found["reason"] is None, form
        assert (found["principal_name"], found["host"]) == ("CN=bob,OU=x", "10.0.0.7")
        assert (found["operation"], found["resource_type"]) == ("DESCRIBE_CONFIGS", "TOPIC")
        assert (found["resource_name"], found["decision"]) == ("foo", "DENIED")
        asked = ("Metadata", 3) if form.startswith("AclAuthorizer") else (None, None)
        assert (found["api_name"], found["reference_count"]) == asked
        assert set(found["rule"].values()) == {None}


def test_a_name_cut_at_a_line_break_is_no_line_of_an_older_kafka() -> None:
    cut = FORMS["AclAuthorizer"].partition(" for request")[0]
    standard = cut.replace("Operation", "operation")
    reasons = [found["reason"] for found in parsed([cut, standard, f"{standard} (kafka.authorizer.logger)"])]
    assert reasons == ["kafka_line_incomplete"] * 3


def test_a_time_zone_in_the_line_counts_and_else_the_brokers() -> None:
    rest = FORMS["AclAuthorizer"].partition("]")[2]
    moments = ["2026-07-01 12:00:00,000", "2026-07-01T12:00:00,000+0530", "2026-07-01T12:00:00.000Z"]
    found = parsed([f"[{moment}]{rest}" for moment in moments], "Europe/Berlin")
    hour = 3_600_000
    noon = 1_782_907_200_000
    assert [row["time_ms"] for row in found] == [noon - 2 * hour, noon - 5.5 * hour, noon]


def test_what_an_authorizer_says_beside_its_decision_is_told_apart() -> None:
    notes = [
        "principal = User:admin is a super user, allowing operation without checking acls.",
        "operation = Read on resource = Topic:LITERAL:x from host = 1.1.1.1 is Allow based on acl = y",
        "No acl found for resource ResourcePattern(x), authorized = false",
    ]
    texts = [f"[2026-07-01 12:00:00,000] DEBUG {note} (kafka.authorizer.logger)" for note in notes]
    assert {found["reason"] for found in parsed(texts)} == {"kafka_note"}


@pytest.mark.parametrize(
    "filler", [" is Allowed operation = READ from host = 1 on resource = Topic:L:", ", host="]
)
def test_no_name_makes_a_line_take_longer_than_its_length(filler: str) -> None:
    hostile = [
        FORMS["AclAuthorizer"].replace("foo", filler * (size // len(filler))) + tail
        for size in (30_000, 120_000)
        for tail in ("", " based on rule MatchingAcl(acl=StandardAcl[resourceType=T, resourceName=x", "x")
    ]
    before = time.monotonic()
    found = parsed(hostile)
    assert all(row["reason"] is not None for row in found)
    assert time.monotonic() - before < 60  # a matcher that goes back and tries again takes days
