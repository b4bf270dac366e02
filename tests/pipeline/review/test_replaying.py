"""What is used and would be lost, against the authorizer asked row by row."""

from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.review.access import lost_uses
from testkit.review_rows import AS_OF, acl_worlds, rollup, row_worlds
from testkit.seeds import Drawing
from tests.pipeline.findings.test_supports import verdicts


def test_lost_are_the_uses_that_the_acls_allowed_and_those_left_do_not(
    spark: SparkSession, drawing: Drawing
) -> None:
    places = st.sets(st.integers(0, 23), min_size=1)
    rows, acls, gone = drawing(st.tuples(row_worlds, acl_worlds, places))
    left = [one for place, one in enumerate(acls) if place not in gone]
    used = [
        each
        for each in rows
        if each["last_time"] <= AS_OF and each["access"] == "ACCESS" and each["decision"] == "ALLOWED"
    ]
    before, after = verdicts(acls, used, is_open=False), verdicts(left, used, is_open=False)
    expected = {
        (each["principal"], each["operation"], each["resource_type"], each["resource_name"])
        for each, was, still in zip(used, before, after, strict=True)
        if was and not still
    }
    held = AclsInForce.of("t", acls, super_users="User:root")
    replay = lost_uses(spark, rollup(spark, rows), held, as_of=AS_OF)
    assert set(replay(held.with_bindings("left", left))) == expected
    assert set(replay(held)) == set()
