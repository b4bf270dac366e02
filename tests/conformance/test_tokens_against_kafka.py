"""Delegation tokens against Kafka's own DelegationTokenControlManager, by answers and bytes of records."""

import random

import pytest

from tests.conformance.token_probe import Line, differences, kafkas_replies, random_world

SEED = 48
WORLDS = 120
STEPS = 60


@pytest.mark.behaviour("B069", "B199", "B201", "B205", "B206", "B207")
def test_seven_thousand_requests_are_answered_alike() -> None:
    chance = random.Random(SEED)
    lines = [line for _ in range(WORLDS) for line in random_world(chance, STEPS)]
    assert differences(lines)[:3] == []


def test_the_random_requests_meet_every_outcome() -> None:
    chance = random.Random(SEED)
    lines = [line for _ in range(WORLDS // 4) for line in random_world(chance, STEPS)]
    outcomes = {reply[0] for reply in kafkas_replies(lines)}
    assert outcomes == {
        "NONE",
        "DELEGATION_TOKEN_AUTH_DISABLED",
        "UNSUPPORTED_VERSION",
        "INVALID_PRINCIPAL_TYPE",
        "DELEGATION_TOKEN_NOT_FOUND",
        "DELEGATION_TOKEN_EXPIRED",
        "DELEGATION_TOKEN_OWNER_MISMATCH",
    }


@pytest.mark.behaviour("B068")
def test_a_pass_sweeps_a_thousand_and_levels_lose_tokens_as_in_kafka() -> None:
    lines: list[Line] = [("new", "s3cret", "1000", "100", "30", "0")]
    lines += [("create", "User:alice", "", "", "-1")] * 2100
    lines += [("time", "50"), *[("create", "User:bob", "", "", "-1")] * 20]
    lines += [("time", "100"), ("sweep",), ("time", "101")]
    lines += [("sweep",)] * 4
    lines += [("loss", "13"), ("loss", "14"), ("loss", "7"), ("loss", "30"), ("time", "151"), ("sweep",)]
    lines += [("loss", "13")]
    assert [(line, len(theirs), len(ours)) for line, theirs, ours in differences(lines)] == []


@pytest.mark.behaviour("B205")
def test_kafkas_renewal_overflows_where_ours_is_cut() -> None:
    """The one difference: what an operator sets to the largest number ends Kafka's tokens on renewal."""
    largest = str(2**63 - 1)
    lines: list[Line] = [
        ("new", "s3cret", largest, largest, "30", "1"),
        ("create", "User:alice", "", "", "-1"),
        ("renew", "User:alice", "0", "-1"),
    ]
    ((line, theirs, ours),) = differences(lines)
    assert line[0] == "renew"
    assert theirs[:2] == ["NONE", str(-(2**63))]
    assert ours[:2] == ["NONE", largest]
