"""The table of recommendations: on small records row by row, and beside the optimiser without Spark."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, find, settings
from pyspark.sql import DataFrame, SparkSession

from kustos.acl import PatternType, ResourcePattern, ResourceType
from kustos.pipeline.privilege import Denial, PrivilegeOptions, Problem, Use, least_privilege
from kustos.pipeline.privilege.group import solved_group
from kustos.pipeline.privilege.legitimate import Legitimate, distinct_accesses, known_names
from kustos.pipeline.privilege.names import cutter
from kustos.pipeline.privilege.recommending import recommend, recommended_bindings
from kustos.pipeline.schemas import RECOMMENDATIONS_SCHEMA
from tests.pipeline.privilege.rows import START, denied, rollup, used
from tests.pipeline.privilege.worlds import problems

FAMILY = [used(f"pay.orders-{letter}", count=10) for letter in "abcd"]


def granted(recommendations: DataFrame) -> set[tuple[str, ...]]:
    return {
        (binding.entry.principal, binding.entry.operation.name, binding.pattern.pattern_type.name)
        + (binding.pattern.name, binding.entry.host)
        for binding in recommended_bindings(recommendations)
    }


def test_a_family_of_names_becomes_one_prefix_with_its_evidence(spark: SparkSession) -> None:
    others = [used("pay.orders-z", principal="User:b"), used("x", "WRITE", count=3), used("x", "DESCRIBE")]
    found = rollup(spark, *FAMILY, *others).transform(recommend)
    assert found.schema == RECOMMENDATIONS_SCHEMA
    rows = {(row["principal"], row["operation"], row["resource_name"]): row for row in found.collect()}
    assert rows.keys() == {
        ("User:app", "READ", "pay.orders-"),
        ("User:app", "WRITE", "x"),
        ("User:b", "READ", "pay.orders-z"),
    }
    prefix = rows["User:app", "READ", "pay.orders-"]
    assert prefix["pattern_type"] == "PREFIXED"
    assert (prefix["access_count"], prefix["event_count"], prefix["name_count"]) == (4, 40, 4)
    assert (prefix["known_count"], prefix["over_grant_count"]) == (5, 1)
    assert prefix["examples"] == ["pay.orders-a", "pay.orders-b", "pay.orders-c"]
    literal = rows["User:app", "WRITE", "x"]  # which implies DESCRIBE
    assert (literal["access_count"], literal["event_count"], literal["pattern_type"]) == (2, 4, "LITERAL")


def test_a_denied_name_keeps_its_family_literal(spark: SparkSession) -> None:
    found = granted(rollup(spark, *FAMILY, denied("pay.orders-secret")).transform(recommend))
    assert found == {("User:app", "READ", "LITERAL", f"pay.orders-{letter}", "*") for letter in "abcd"}


def test_the_newest_answer_counts(spark: SparkSession) -> None:
    found = rollup(
        spark,
        used("withdrawn", hours=1),
        denied("withdrawn", hours=2),
        denied("granted", hours=1),
        used("granted", hours=2),
        used("at-once", hours=3),
        denied("at-once", hours=3),
        used("erred", hours=1),
        used("erred", decision="ERROR", hours=2),
    ).transform(recommend)
    assert {name for _, _, _, name, _ in granted(found)} == {"granted", "erred"}


def test_what_is_no_need_gets_no_acl(spark: SparkSession) -> None:
    rows = rollup(
        spark,
        used("listed", "DESCRIBE", access="LISTING"),
        used("by-root", principal="User:root", kind="SuperUser"),
        used("rare", count=1),
        used("often", count=2),
        used("secret.often", count=9),
        used("late", count=9, hours=48),
        used("x", principal="User:gone", count=9),
    )
    legitimate = Legitimate(
        uses_min=2,
        to_day=START.date(),
        principals_excluded=("User:gone",),
        resources_excluded=(ResourcePattern(ResourceType.TOPIC, "secret.", PatternType.PREFIXED),),
    )
    assert {row[3] for row in granted(recommend(rows, legitimate=legitimate))} == {"often"}
    everything = recommend(rows, legitimate=Legitimate(with_listing=True, with_super_users=True))
    assert {row[3] for row in granted(everything)} == {
        *("listed", "by-root", "rare", "often", "secret.often", "late", "x")
    }


def test_coverage_leaves_out_the_rarest(spark: SparkSession) -> None:
    rows = rollup(spark, used("a", count=90), used("b", count=9), used("c", count=1))
    assert {row[3] for row in granted(recommend(rows, legitimate=Legitimate(coverage=0.99)))} == {"a", "b"}
    assert {row[3] for row in granted(recommend(rows, legitimate=Legitimate(coverage=0.9)))} == {"a"}


def test_an_exclusion_is_a_denial_for_prefixes(spark: SparkSession) -> None:
    secret = ResourcePattern(ResourceType.TOPIC, "pay.orders-d")
    found = recommend(rollup(spark, *FAMILY), legitimate=Legitimate(resources_excluded=(secret,)))
    assert {row[2:4] for row in granted(found)} == {("LITERAL", f"pay.orders-{letter}") for letter in "abc"}


def test_names_that_are_only_denied_are_not_known(spark: SparkSession) -> None:
    rows = rollup(spark, used("a"), denied("b"), denied("c", access="LISTING"), used(None, "WRITE"))
    assert {row["resource_name"] for row in known_names(rows).collect()} == {"a", "c"}


def test_what_cannot_be_served_is_told(spark: SparkSession) -> None:
    rows = rollup(
        spark,
        used("", resource_type="GROUP", count=7),
        used("t", principal="User:*"),
        used("t", "SING", principal="User:b"),
        used("t", "READ"),
        denied(None, "READ", hours=1),
    )
    found = {
        (row["outcome"], row["principal"], row["operation"], row["resource_name"]): row
        for row in recommend(rows).collect()
    }
    assert found.keys() == {
        ("UNSERVED", "User:app", "READ", ""),
        ("UNSERVED", "User:*", "READ", "t"),
        ("UNSERVED", "User:b", "UNKNOWN", "t"),
        ("RECOMMENDED", "User:app", "READ", "t"),
        ("OVERRULED", "User:app", "READ", None),
    }
    assert found["UNSERVED", "User:app", "READ", ""]["event_count"] == 7
    assert "every principal" in found["UNSERVED", "User:*", "READ", "t"]["reason"]


def test_a_principal_in_parts_gets_the_same_acls(spark: SparkSession) -> None:
    rows = [used(f"{family}.{letter}") for family in ("pay1", "pay2", "pay3", "pay4") for letter in "abcd"]
    rows += [used("single"), denied("pay2.x"), denied(None, "WRITE"), used(None, "READ")]
    frame = rollup(spark, *rows)
    whole = granted(recommend(frame))
    assert {row[2] for row in whole} == {"LITERAL", "PREFIXED"}
    assert granted(recommend(frame, group_accesses=3)) == whole


def test_a_group_over_its_limit_is_told_as_a_whole(spark: SparkSession) -> None:
    from kustos.pipeline.privilege.grouping import grouped_rows

    frame = rollup(spark, *FAMILY)
    rows = grouped_rows(distinct_accesses(frame), known_names(frame), PrivilegeOptions())
    batch = solved_group("User:app", rows.toArrow().to_batches(), PrivilegeOptions(), rows_max=3)
    found = batch.to_pylist()
    assert {row["outcome"] for row in found} == {"UNSERVED"}
    assert sum(row["access_count"] for row in found) == 4
    assert sum(row["event_count"] for row in found) == 40


WORLDS = 24


def drawn(count: int) -> list[Problem]:
    """Return problems as hypothesis draws them, always the same ones."""
    found: list[Problem] = []
    quiet = settings(max_examples=count * 4, database=None, derandomize=True, phases=(Phase.generate,))

    def keep(problem: Problem) -> bool:
        found.append(problem)
        return len(found) > count

    find(problems(hosts=2), keep, settings=quiet)
    return found[:count]


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


@pytest.mark.parametrize("group_accesses", [200_000, 7])
def test_spark_recommends_what_the_optimiser_does(spark: SparkSession, group_accesses: int) -> None:
    """One frame holds many random records; parts change nothing but wildcards, which are off."""
    options = PrivilegeOptions(wildcard_share=None, prefix_members_min=2, prefix_length_min=2)
    worlds = drawn(WORLDS)
    known: Counter[tuple[ResourceType, str]] = Counter()
    names = {(use.resource_type, use.name) for world in worlds for use in world.uses if use.name is not None}
    for resource_type, name in names:
        known.update({(resource_type, beginning) for beginning in ("", *cutter(options)(name))})
    expected = set()
    for number, world in enumerate(worlds):
        answer = least_privilege(Problem(f"User:w{number}", world.uses, world.denials, known), options)
        expected |= {acl.binding for acl in answer.acls}
    frame = rollup(spark, *[row for number, world in enumerate(worlds) for row in rows_of(number, world)])
    found = set(recommended_bindings(recommend(frame, options, group_accesses=group_accesses)))
    if group_accesses > WORLDS:
        assert found == expected
    else:  # a question for any resource is answered in one part, whatever the others have
        assert expected - found == {acl for acl in expected if acl not in found}
        assert {acl for acl in found if acl.pattern.pattern_type is PatternType.PREFIXED} == {
            acl for acl in expected if acl.pattern.pattern_type is PatternType.PREFIXED
        }
