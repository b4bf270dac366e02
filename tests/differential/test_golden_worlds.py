"""Without Java: worlds with Kafka's recorded answers, and some that are only specified."""

from pathlib import Path

import pytest

from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.replay import answers_of_kustos, answers_of_spec, first_difference
from testkit.differential.worlds import to_lines
from tests.differential.golden import GOLDEN, read

RECORDED = sorted(GOLDEN.glob("*.golden"))
SPECIFIED = 24


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_answers_are_those_that_kafka_gave(path: Path) -> None:
    steps, answers = read(path)
    assert answers
    assert first_difference(steps, answers_of_kustos(steps), answers) is None


@pytest.mark.parametrize("number", range(SPECIFIED))
def test_answers_are_those_that_are_specified(number: int) -> None:
    shape = Shape(acl_count=60, question_count=120, low_names=number % 3 == 0)
    steps = list(WorldMaker(number, shape).steps())
    assert first_difference(steps, answers_of_kustos(steps), answers_of_spec(steps)) is None


def test_recorded_worlds_read_back() -> None:
    for path in RECORDED:
        steps, _ = read(path)
        lines = path.read_text(encoding="utf-8").split("\n")
        assert list(to_lines(steps)) == [line for line in lines if line and not line.startswith("= ")]
