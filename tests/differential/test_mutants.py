"""The comparison sees: every seeded fault is found within a bounded number of worlds."""

from functools import cache

import pytest

from kustos.authorizer import StandardAuthorizer
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.replay import answers_of_kustos, answers_of_spec, first_difference
from testkit.differential.worlds import Step
from tests.differential.mutants import MUTANTS, Mutant, seeded

WORLDS_MAX = 60
SHAPE = Shape(acl_count=120, question_count=250)


@cache
def world(number: int) -> tuple[list[Step], list[str]]:
    steps = list(WorldMaker(number, SHAPE).steps())
    return steps, answers_of_spec(steps)


def is_caught(authorizer: type[StandardAuthorizer]) -> bool:
    def make(super_users: frozenset[str], default_allow: bool) -> StandardAuthorizer:
        return authorizer(super_users=super_users, allow_everyone_if_no_acl_found=default_allow)

    for number in range(WORLDS_MAX):
        steps, expected = world(number)
        try:
            answers = answers_of_kustos(steps, make)
        except (IndexError, KeyError, AttributeError):
            return True  # the fault broke the index itself
        if first_difference(steps, answers, expected) is not None:
            return True
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_mutant_is_caught(mutant: Mutant) -> None:
    assert is_caught(seeded(mutant))


def test_real_authorizer_is_not_caught() -> None:
    assert not is_caught(StandardAuthorizer)
    unchanged = Mutant("none", "index", "class Node:", "class Node:")
    assert not is_caught(seeded(unchanged))
