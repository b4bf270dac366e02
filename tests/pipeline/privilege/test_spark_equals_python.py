"""Spark groups, cuts and counts; what it recommends is what the optimiser says of each principal alone."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import DataFrame, SparkSession

from kustos.acl import AclBinding, PatternType, ResourceType
from kustos.pipeline.privilege import Denial, PrivilegeOptions, Problem, Use, least_privilege
from kustos.pipeline.privilege.options import cutter
from kustos.pipeline.privilege.recommendations import recommend, recommended_acls
from tests.pipeline.privilege.rows import rollup, used
from tests.pipeline.privilege.worlds import problems

pytestmark = pytest.mark.usefixtures("users_plans")

WORLDS = 40
OPTIONS = PrivilegeOptions(wildcard_share=None, prefix_members_min=2, prefix_length_min=2)


def drawn() -> list[Problem]:
    """Return problems as hypothesis draws them, the same ones in every run."""
    found: list[Problem] = []

    @settings(max_examples=WORLDS, database=None, derandomize=True, phases=(Phase.generate,))
    @given(problem=problems(hosts=2))
    def draw(problem: Problem) -> None:
        found.append(problem)

    draw()
    return found


def rows_of(number: int, problem: Problem) -> list[dict[str, Any]]:
    """Return a problem as rows of the roll-up, its principal named after a number."""

    def row(asked: Use | Denial, decision: str) -> dict[str, Any]:
        return used(
            asked.name,
            asked.operation.name,
            principal=f"User:w{number}",
            host=asked.host,
            resource_type=asked.resource_type.name,
            decision=decision,
            count=2,
        )

    uses = [row(use, "ALLOWED") for use in problem.uses]
    return uses + [row(denial, "DENIED") for denial in problem.denials]


def expected_of(worlds: list[Problem]) -> set[AclBinding]:
    known: Counter[tuple[ResourceType, str]] = Counter()
    for resource_type, name in {(use.resource_type, use.name) for world in worlds for use in world.uses}:
        if name is not None:
            known.update({(resource_type, beginning) for beginning in ("", *cutter(OPTIONS)(name))})
    answers = [
        least_privilege(Problem(f"User:w{number}", world.uses, world.denials, known), OPTIONS)
        for number, world in enumerate(worlds)
    ]
    return {acl.binding for answer in answers for acl in answer.acls}


def bindings(recommendations: DataFrame) -> set[AclBinding]:
    return {acl.binding for acl in recommended_acls(recommendations)}


@pytest.mark.parametrize("group_accesses", [200_000, 7])
def test_every_record_gets_the_same_acls(spark: SparkSession, group_accesses: int) -> None:
    """Parts of a large principal change no prefix and no literal, but may add an ACL for a question."""
    worlds = drawn()
    if group_accesses < WORLDS:
        # a question for any resource is answered in one part, which does not know what the others grant
        worlds = [without_questions(world) for world in worlds]
    frame = rollup(spark, *[row for number, world in enumerate(worlds) for row in rows_of(number, world)])
    found = bindings(recommend(frame, OPTIONS, group_accesses=group_accesses))
    assert found == expected_of(worlds)
    assert {binding.pattern.pattern_type for binding in found} == {PatternType.LITERAL, PatternType.PREFIXED}


def without_questions(problem: Problem) -> Problem:
    return Problem(
        problem.principal,
        tuple(use for use in problem.uses if use.name is not None),
        tuple(denial for denial in problem.denials if denial.name is not None),
        problem.known,
    )
