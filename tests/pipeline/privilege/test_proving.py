"""The whole answer on a small record: ACLs, numbers, replay, difference, texts."""

import json
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.acl.forms import AclForm, read_acls
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.privilege import DEFAULT_OPTIONS, HostChoice, PrivilegeOptions, RecommendedAcl, proof
from kustos.pipeline.privilege.granted_names import granted_on_known_names
from kustos.pipeline.privilege.legitimate import Legitimate
from kustos.pipeline.privilege.proof import RECOMMEND_STEPS, Recommendation, recommendation
from kustos.pipeline.privilege.recommendations import (
    recommended_acls,
    recommended_commands,
    recommended_yaml,
)
from tests.pipeline.privilege.rows import denied, rollup, used

ROWS = [
    *[used(f"pay.orders-{letter}", count=10) for letter in "abcd"],
    used("pay.refunds", principal="User:b", count=5),
    used("hidden", resource_type="GROUP", principal="User:b", count=5),
    used("", resource_type="GROUP", principal="User:b", count=5),
    used("rare", principal="User:b", count=1),
    used("t", "WRITE", principal="User:c", host="10.0.0.1", count=3),
    denied("t", "WRITE", principal="User:c", host="10.0.0.2"),
    denied("pay.orders-a", "WRITE"),
    denied(None, "READ", hours=1),
]


def acl(
    principal: str, name: str, operation: str = "ALL", how: str = "PREFIXED", host: str = "*"
) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType.TOPIC, name, PatternType[how]),
        AccessControlEntry(principal, host, AclOperation[operation], AclPermissionType.ALLOW),
    )


TODAY = AclsInForce.of("today", [acl("User:app", "pay."), acl("User:b", "*", "READ", "LITERAL")])


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Recommendation:
    steps: list[str] = []
    legitimate = Legitimate(uses_min=2)
    made = recommendation(
        spark, rollup(spark, *ROWS), DEFAULT_OPTIONS, legitimate, today=TODAY, progress=steps.append
    )
    assert tuple(steps) == RECOMMEND_STEPS
    return made


def test_a_replay_proves_it_and_tells_what_is_lost(found: Recommendation) -> None:
    numbers = found.numbers
    assert numbers.is_proven
    assert (numbers.needed_accesses, numbers.needed_events) == (8, 58)
    # only the group without a name has no ACL
    assert (numbers.lost_accesses, numbers.lost_events, numbers.unserved) == (1, 5, 1)
    assert (numbers.left_out_accesses, numbers.left_out_events) == (1, 1)
    assert (numbers.denied_accesses, numbers.opened_accesses, numbers.overruled) == (3, 1, 1)
    assert numbers.coverage == pytest.approx(53 / 59)
    assert numbers.principals == 3


def test_its_acls_are_counted_and_compared_with_todays(found: Recommendation) -> None:
    numbers = found.numbers
    texts = {
        (str(a.binding.entry.operation), a.binding.pattern.name, a.binding.entry.host) for a in found.acls
    }
    assert texts == {
        ("READ", "pay.orders-", "*"),
        ("READ", "pay.refunds", "*"),
        ("READ", "hidden", "*"),
        ("WRITE", "t", "10.0.0.1"),
    }
    assert (numbers.acls, numbers.prefixes, numbers.wildcards, numbers.denies) == (4, 1, 0, 0)
    # a prefix READ and DESCRIBE on 4, twice READ and DESCRIBE, once WRITE and DESCRIBE
    assert numbers.granted_names == 14
    # eight operations on the 5 names under `pay.`, READ and DESCRIBE on all 7 topics
    assert (numbers.acls_today, numbers.granted_names_today) == (2, 54)
    assert numbers.regions_lost
    assert numbers.regions_gained
    assert found.difference is not None
    said = json.loads(found.to_json())
    assert said["is_proven"]
    assert len(said["difference"]["changes"]) == numbers.regions_lost + numbers.regions_gained


def test_hosts_that_never_used_an_acl_are_counted_like_such_names(spark: SparkSession) -> None:
    rows = [
        used("t", host="10.0.0.1"),
        used("t", "WRITE", host="10.0.0.2"),
        used("u", principal="User:b", host="10.0.0.3"),
        denied("t", host="10.0.0.9"),
    ]
    # of three known hosts each ACL for every host serves one; READ of `t` is for one address alone
    found = recommendation(spark, rollup(spark, *rows))
    assert {(acl.binding.entry.host, acl.host_count) for acl in found.acls} == {("*", 1), ("10.0.0.1", 1)}
    assert (found.numbers.acls, found.numbers.over_granted_hosts) == (3, 4)
    exact = recommendation(spark, rollup(spark, *rows), PrivilegeOptions(hosts=HostChoice.EXACT))
    assert exact.numbers.over_granted_hosts == 0


def test_of_odd_values_the_proof_holds_and_what_has_no_acl_is_said(spark: SparkSession) -> None:
    rows = [
        *[used(f"pay.{text}", host="10.0.0.1") for text in ("a", "b", "c", "x" * 40_000)],
        used("pay.a", host="*"),
        used("late", host="10.0.0.0/24"),
        used("nowhere", host=None),
        used("", principal="User:b"),
        used("x", principal="nobody"),
        used("x", principal=None),
        used("x", "Read", principal="User:b"),
    ]
    numbers = recommendation(spark, rollup(spark, *rows)).numbers
    # the long name and the host `*` need no ACL of their own: the prefix allows them from everywhere
    assert (numbers.is_proven, numbers.lost_accesses, numbers.unserved) == (True, 5, 5)


def test_a_proof_that_fails_says_for_which_access(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others(table: DataFrame) -> list[RecommendedAcl]:
        acls = [acl for acl in recommended_acls(table) if acl.binding.pattern.name != "a"]
        return [*acls, replace(acls[0], binding=acl("User:c", "c", "READ", "LITERAL"))]

    monkeypatch.setattr(proof, "recommended_acls", others)
    # as many are lost as are unserved, and are not the same
    rows = [used("a"), used("b"), used("", principal="User:b"), denied("c", principal="User:c")]
    found = recommendation(spark, rollup(spark, *rows))
    assert not found.numbers.is_proven
    assert [(row["outcome"], row["principal"], row["resource_name"]) for row in found.unproven] == [
        ("LOST", "User:app", "a"),
        ("OPENED", "User:c", "c"),
    ]


def test_what_is_gained_is_found_however_much_is_lost(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "REGIONS_SHOWN_MAX", 2)
    many = [acl(f"User:{number}", f"a{number}", "READ", "LITERAL") for number in range(9)]
    found = recommendation(
        spark, rollup(spark, used("z", principal="User:z")), today=AclsInForce.of("today", many)
    )
    assert (found.numbers.regions_gained, found.numbers.is_difference_cut) == (1, True)


def test_the_yaml_is_read_back_the_same(found: Recommendation) -> None:
    text = recommended_yaml(found.acls)
    assert [each.binding for each in read_acls(text, AclForm.YAML, "x")] == [a.binding for a in found.acls]
    assert "  # used on 4 names that begin so, of 4 known\n" in text
    dated = recommended_yaml(found.acls, found.record)
    assert dated.removesuffix(text).startswith("# the record: 1 of the 90 days up to ")
    assert dated.removesuffix(text).endswith(": too early to say what is unused\n")
    bindings = [[each.binding for each in read_acls(one, AclForm.YAML, "x")] for one in (dated, text)]
    assert bindings[0] == bindings[1]
    assert read_acls(recommended_yaml([]), AclForm.YAML, "x") == []


def test_the_commands_are_those_of_kafkas_tool(found: Recommendation) -> None:
    commands = recommended_commands(found.acls)
    assert len(commands) == 4
    assert (
        'kafka-acls.sh --bootstrap-server "$BOOTSTRAP_SERVER" --add --topic=pay.orders- '
        "--resource-pattern-type=prefixed --operation=Read --allow-principal=User:app --allow-host='*'"
    ) in commands


def test_grants_on_known_names_are_counted_once() -> None:
    names = {ResourceType.TOPIC: ["a", "b", "ba", "*", "*x"]}
    everybody = {"User:a", "User:b"}
    assert granted_on_known_names([acl("User:a", "b", "CREATE")], names, everybody) == 2
    twice = [acl("User:a", "b", "CREATE"), acl("User:a", "ba", "CREATE", "LITERAL")]
    assert granted_on_known_names(twice, names, everybody) == 2
    # the wildcard does not stand for `*x`; READ implies DESCRIBE; `User:*` is both of them
    assert granted_on_known_names([acl("User:*", "*", "READ", "LITERAL")], names, everybody) == 2 * 2 * 4
    deny = AclBinding(
        ResourcePattern(ResourceType.TOPIC, "ba"),
        AccessControlEntry("User:a", "*", AclOperation.ALL, AclPermissionType.DENY),
    )
    assert granted_on_known_names([acl("User:a", "b", "CREATE"), deny], names, everybody) == 1
