"""The legacy authorizer and its wrapper give the recorded answers of Kafka 2.8's classes to two long
scenarios."""

from testkit.legacy_plays import (
    KAFKAS_DECISIONS,
    KAFKAS_WRAPPER,
    decisions_play,
    wrapped_play,
)
from testkit.legacy_probe import Ours, digest


def test_decisions_changes_and_listings_are_kafkas() -> None:
    assert digest(Ours().answers(decisions_play())) == KAFKAS_DECISIONS


def test_the_wrappers_answers_are_kafkas() -> None:
    assert digest(Ours().answers(wrapped_play())) == KAFKAS_WRAPPER
