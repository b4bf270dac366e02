"""Which names Kafka's own authorizer fails upon, asked of itself: those that lint tells of, and no others."""

from random import Random

import pytest

from kustos.analysis.lint.entries import unanswerable_name
from testkit.differential.oracle import STUCK, Oracle

LOW = [chr(code) for code in range(1, 0x2A) if chr(code) not in "\t\n\r"]
PATTERN_TYPES = ["LITERAL", "PREFIXED"]


def world(names: list[tuple[str, str]], asked: list[str]) -> list[str]:
    lines = ["start\tUser:root\tfalse"]
    for number, (name, pattern_type) in enumerate(names, start=1):
        lines.append(f"add\t{number}\tGROUP\t{name}\t{pattern_type}\tUser:a\t*\tREAD\tALLOW")
    return lines + [f"ask\tUser:a\t10.0.0.1\tREAD\tGROUP\t{name}" for name in asked]


@pytest.mark.parametrize(
    ("name", "pattern_type"),
    [("#abc", "LITERAL"), (" b", "PREFIXED"), ("\x01~", "LITERAL"), ("!\uffe0", "PREFIXED")],
)
def test_kafka_never_answers_about_the_name_that_the_finding_gives(name: str, pattern_type: str) -> None:
    asked = unanswerable_name(name)
    assert asked is not None
    with Oracle() as oracle:
        assert oracle.answers(world([(name, pattern_type)], [asked])) == [STUCK]


def test_with_any_other_names_kafka_answers_every_question() -> None:
    """Names of one character below `*`, and names that begin with `*` or above it, in any mixture."""
    random = Random(20_261_121)
    fine = [*LOW, *(f"*{low}a" for low in LOW[:3]), "*", "**", "+a", "+#", "a#", "orders", "é", "\U0001d518"]
    questions = [first + rest for first in [*LOW, "*", "+", "a"] for rest in ("", "a", "~", "#", "\uffff")]
    assert [name for name in fine if unanswerable_name(name)] == []
    with Oracle() as oracle:
        for _ in range(40):
            names = {
                (random.choice(fine), random.choice(PATTERN_TYPES)) for _ in range(random.randint(1, 12))
            }
            answers = oracle.answers(world(sorted(names), questions))
            assert len(answers) == len(questions)
            assert [answer for answer in answers if not answer.startswith(("ALLOWED", "DENIED"))] == []
