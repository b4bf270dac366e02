"""Which ACLs can go alone and together, against every decision made again without them."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import StandardAuthorizer
from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.review.recorded_questions import numbered, review_questions
from kustos.pipeline.review.supports import carried, chosen_together, safe_together
from testkit.review_rows import AS_OF, Row, acl_worlds, rollup, row_worlds

FEW = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


def verdicts(acls: list[AclBinding], rows: list[Row], *, is_open: bool) -> list[bool]:
    authorizer = StandardAuthorizer.of(
        acls, super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=is_open
    )
    found = []
    for each in rows:
        session = authorizer.session(KafkaPrincipal.parse(each["principal"]), each["host"])
        operation, kind = AclOperation[each["operation"]], ResourceType[each["resource_type"]]
        if each["resource_name"] is None:
            found.append(session.decide_by_resource_type(operation, kind).allowed)
        else:
            found.append(session.decide(operation, kind, each["resource_name"]).allowed)
    return found


@FEW
@given(rows=row_worlds, acls=acl_worlds, is_open=st.booleans())
def test_removals_are_safe_exactly_if_no_recorded_decision_flips(
    spark: SparkSession, rows: list[Row], acls: list[AclBinding], is_open: bool
) -> None:
    held = AclsInForce.of("t", acls, super_users="User:root", allow_everyone_if_no_acl_found=is_open)
    order = list(numbered(acls))
    recorded = [each for each in rows if each["last_time"] <= AS_OF]
    questions = review_questions(rollup(spark, rows), ship(spark, held), AS_OF)
    now = verdicts(order, recorded, is_open=is_open)

    without = [
        verdicts([acl for place, acl in enumerate(order) if place != gone], recorded, is_open=is_open)
        for gone in range(len(order))
    ]
    flipped = {
        gone: sum(
            each["event_count"]
            for each, before, after in zip(recorded, now, some, strict=True)
            if before is not after
        )
        for gone, some in enumerate(without)
    }
    found = {each.number: each for each in carried(questions).collect()}
    assert {gone: count for gone, count in flipped.items() if count} == {
        number: each.needed_event_count for number, each in found.items() if each.needed_event_count
    }

    safe = [number for number, count in flipped.items() if not count]
    candidates = spark.createDataFrame([(number, -number) for number in safe], "number int, rank int")
    told = {each.number: each.is_safe_together for each in safe_together(questions, candidates).collect()}
    assert set(told) == set(safe)
    kept = [acl for place, acl in enumerate(order) if not told.get(place, False)]
    assert verdicts(kept, recorded, is_open=is_open) == now, "what goes together flips nothing"


@given(
    candidates=st.lists(st.integers(0, 9), unique=True, max_size=10),
    resting=st.lists(st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=4), max_size=12),
)
def test_what_is_chosen_leaves_each_set_a_member_and_nothing_more_could_be(
    candidates: list[int], resting: list[list[int]]
) -> None:
    chosen = chosen_together(candidates, resting)
    assert chosen <= set(candidates)
    for number in set(candidates) - chosen | {-1}:
        fits = all(set(some) - chosen - {number} for some in resting)
        assert fits is (number == -1)


def test_of_two_acls_that_stand_in_for_each_other_one_goes() -> None:
    assert chosen_together([7, 3], [[3, 7]]) == {7}
    assert chosen_together([7, 3], [[3, 7, 8]]) == {7, 3}
    assert chosen_together([7, 3], [[3]]) == {7}
