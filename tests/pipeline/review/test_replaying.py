"""What is used and would be lost, against the authorizer asked row by row."""

from random import Random

from pyspark.sql import SparkSession

from kustos.acl import AclBinding
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.review.access import lost_uses
from testkit.review_rows import AS_OF, Row, large_world, rollup
from tests.pipeline.review.test_supports import verdicts

WORLDS_MAX = 20  # nearly every world has losses
Use = tuple[str, str, str, str]


def losses(rows: list[Row], acls: list[AclBinding], left: list[AclBinding]) -> set[Use]:
    """Return the recorded uses that the ACLs allow and those left do not."""
    used = [
        each
        for each in rows
        if each["last_time"] <= AS_OF and each["access"] == "ACCESS" and each["decision"] == "ALLOWED"
    ]
    before, after = verdicts(acls, used, is_open=False), verdicts(left, used, is_open=False)
    return {
        (each["principal"], each["operation"], each["resource_type"], each["resource_name"])
        for each, was, still in zip(used, before, after, strict=True)
        if was and not still
    }


def test_lost_are_the_uses_that_the_acls_allowed_and_those_left_do_not(
    spark: SparkSession, seed: int
) -> None:
    for world in range(seed, seed + WORLDS_MAX):
        rows, acls = large_world(world)
        left = Random(world).sample(acls, len(acls) // 3)
        if expected := losses(rows, acls, left):
            break
    assert expected, "in a world without losses any answer would do"
    held = AclsInForce.of("t", acls, super_users="User:root")
    replay = lost_uses(spark, rollup(spark, rows), held, as_of=AS_OF)
    assert set(replay(left)) == expected
    assert set(replay(held.bindings)) == set()
