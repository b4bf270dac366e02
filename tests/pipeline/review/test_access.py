"""The access review: an expected table, and a plain reading of the same rows beside it."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.acl import AclBinding, AclOperation, AclPermissionType, ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis import Probe, Rules, explain
from kustos.authorizer import RuleKind
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.errors import ReviewError
from kustos.pipeline.review.access import access_review, of_team, under
from kustos.pipeline.review.period import bindings_of, in_force
from kustos.pipeline.schemas import ACCESS_REVIEW_SCHEMA, ACL_SCHEMA
from testkit.review_rows import (
    AS_OF,
    START,
    Row,
    acl,
    acl_worlds,
    history,
    rollup,
    row,
    row_worlds,
    whole_record,
)

pytestmark = pytest.mark.usefixtures("users_plans")

FEW = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
READ_PAY = acl("User:alice", "READ", "TOPIC", "pay.", prefixed=True)
READ_LOGS = acl("User:*", "READ", "TOPIC", "logs")
WRITE_OLD = acl("User:bob", "WRITE", "TOPIC", "old")
READ_SHADOWED = acl("User:bob", "READ", "TOPIC", "secret")
DENY_SECRET = acl("User:*", "ALL", "TOPIC", "secret", deny=True)
ACLS = [READ_PAY, READ_LOGS, WRITE_OLD, READ_SHADOWED, DENY_SECRET]

Key = tuple[str, str, str, str | None, str | None]


def reviewed(
    spark: SparkSession, rows: list[Row], acls: AclsInForce, as_of: datetime = AS_OF, **named: Any
) -> dict[Key, dict[str, Any]]:
    table = access_review(spark, rollup(spark, rows), acls, as_of=as_of, record=whole_record(as_of), **named)
    assert table.schema.fieldNames() == ACCESS_REVIEW_SCHEMA.fieldNames()
    found = {}
    for each in table.collect():
        key = (each.principal, each.operation, each.resource_type, each.resource_name, each.pattern_type)
        kept = each.asDict(recursive=True)
        kept["granted_by"] = [AclText(**one) for one in kept["granted_by"]]
        marked = (*key[:4], f"{key[4]} {each.hosts}") if each.use_count == 0 and key in found else key
        assert marked not in found, "a row stands once"
        found[marked] = kept
    return found


class AclText(dict[str, str]):
    """An ACL as its seven texts."""


def at(day: int, hour: int = 23) -> datetime:
    return (START + timedelta(days=day, hours=hour)).replace(tzinfo=None)


def test_used_granted_unused_and_super_users_each_have_their_row(spark: SparkSession) -> None:
    rows = [
        row("User:alice", "READ", "pay.in", day=10, count=5),
        row("User:alice", "READ", "pay.in", day=110, count=2, host="10.0.0.9"),
        row("User:alice", "READ", "pay.in", day=111, count=3, decision="DENIED", host="192.168.0.9"),
        row("User:alice", "DESCRIBE", "pay.in", day=12, access="LISTING"),
        row("User:root", "DELETE", "orders", day=3, count=4),
        row("User:bob", "READ", "secret", day=5),
    ]
    acls = AclsInForce.of("t", ACLS, super_users="User:root;User:spare")
    since = history(spark, [(WRITE_OLD, 100, None), (READ_PAY, 2, None), (READ_PAY, 0, 1)])
    teams = {"User:al*": "shops", "User:alice": "payments", "User:*": "others"}
    found = reviewed(spark, rows, acls, teams=teams, history=since)

    used = found["User:alice", "READ", "TOPIC", "pay.in", "LITERAL"]
    assert (used["use_count"], used["denied_count"], used["basis"]) == (7, 3, "MatchingAcl")
    assert (used["hosts"], used["last_used"]) == (["10.0.0.1", "10.0.0.9"], at(110))
    assert (used["granted_by"], used["granted_since"]) == ([texts_of(READ_PAY)], at(2, 0))
    assert (used["dormant_days"], used["is_dormant"], used["team"]) == (10, False, "payments")

    unused = found["User:bob", "WRITE", "TOPIC", "old", "LITERAL"]
    assert (unused["use_count"], unused["last_used"], unused["basis"]) == (0, None, "MatchingAcl")
    assert (unused["dormant_days"], unused["is_dormant"], unused["team"]) == (20, None, "others"), "too early"
    since = history(spark, [(WRITE_OLD, 100, None), (READ_PAY, 115, None)])
    again = reviewed(spark, rows, acls, history=since)["User:alice", "READ", "TOPIC", "pay.in", "LITERAL"]
    assert (again["last_used"], again["dormant_days"]) == (at(110), 5), "granted after its last use"
    everybodys = found["User:*", "READ", "TOPIC", "logs", "LITERAL"]
    assert (everybodys["dormant_days"], everybodys["is_dormant"]) == (None, True)

    shadowed = found["User:bob", "READ", "TOPIC", "secret", "LITERAL"]
    assert (shadowed["basis"], shadowed["granted_by"], shadowed["use_count"]) == ("Denied", [], 1)
    again = found["User:bob", "READ", "TOPIC", "secret", "LITERAL ['*']"]
    assert (again["basis"], again["granted_by"]) == ("Denied", [texts_of(READ_SHADOWED)])

    root = found["User:root", "ALL", "ANY", "*", "ANY"]
    assert (root["basis"], root["use_count"], root["last_used"]) == ("SuperUser", 4, at(3))
    assert found["User:spare", "ALL", "ANY", "*", "ANY"]["hosts"] == []
    assert found["User:root", "DELETE", "TOPIC", "orders", "LITERAL"]["basis"] == "SuperUser"
    assert not any(key[1] == "DESCRIBE" for key in found), "a name in a list is no use"


def test_a_row_that_is_no_acl_is_refused(spark: SparkSession) -> None:
    texts = {**texts_of(READ_PAY), "operation": "FLY"}
    with pytest.raises(ReviewError, match="`FLY`"):
        bindings_of(spark.createDataFrame([texts], ACL_SCHEMA))


def test_a_past_date_knows_what_was_recorded_and_in_force_by_then(spark: SparkSession) -> None:
    rows = [row("User:alice", "READ", "pay.in", day=1), row("User:alice", "READ", "pay.out", day=50)]
    past = history(spark, [(READ_PAY, 0, 40), (WRITE_OLD, 60, None)])
    as_of = START + timedelta(days=20)
    held = bindings_of(in_force(past, as_of))
    assert held == (READ_PAY,)
    found = reviewed(spark, rows, AclsInForce.of("past", held), as_of, history=past)
    assert {key[3] for key in found} == {"pay.in"}
    # on a day that goes on beyond it only the first event is sure
    later = START + timedelta(days=1, hours=12)
    rows = [row("User:alice", "READ", "pay.in", day=1, count=9)]
    half = reviewed(spark, rows, AclsInForce.of("past", held), later)
    (only,) = half.values()
    assert (only["use_count"], only["last_used"]) == (1, at(1, 1))
    with pytest.raises(ReviewError, match="time zone"):
        reviewed(spark, rows, AclsInForce.of("past", held), datetime(2026, 8, 1))  # noqa: DTZ001


def test_a_review_is_cut_by_team_and_by_resources(spark: SparkSession) -> None:
    rows = [row("User:alice", "READ", "pay.in", day=1), row("User:bob", "READ", "orders", day=1)]
    table = access_review(
        spark, rollup(spark, rows), AclsInForce.of("t", ACLS), as_of=AS_OF, teams={"User:alice": "payments"}
    )
    assert {each.principal for each in of_team(table, "payments").collect()} == {"User:alice"}
    assert {each.principal for each in of_team(table, None).collect()} == {"User:bob", "User:*"}
    pay = {(each.resource_name, each.pattern_type) for each in under(table, "TOPIC", "pay.in").collect()}
    assert pay == {("pay.in", "LITERAL")}


def plain_review(
    rows: list[Row], acls: list[AclBinding], rules: Rules
) -> tuple[dict[Key, tuple[Any, ...]], set[AclBinding]]:
    """Return the review by asking about one row after the other, and the ALLOWs that nobody used."""
    ranks = ["Denied", "DefaultAllow", "MatchingAcl", "SuperUser"]
    found: dict[Key, dict[str, Any]] = defaultdict(lambda: {"n": 0, "d": 0, "by": set(), "b": 0})
    used: set[AclBinding] = set()
    for each in rows:
        if each["last_time"] > AS_OF or each["access"] != "ACCESS":
            continue
        key = (each["principal"], each["operation"], each["resource_type"], each["resource_name"], "LITERAL")
        one = found[key]
        if each["decision"] != "ALLOWED":
            one["d"] += each["event_count"]
            continue
        one["n"] += each["event_count"]
        basis, granting = asked(each, acls, rules)
        one["b"] = max(one["b"], ranks.index(basis))
        one["by"] |= granting
        used |= granting
    table = {
        key: (ranks[one["b"]], texts(one["by"]), one["n"], one["d"]) for key, one in found.items() if one["n"]
    }
    return table, {one for one in acls if one.entry.permission_type is AclPermissionType.ALLOW} - used


def texts(some: Iterable[AclBinding]) -> list[tuple[str, ...]]:
    return sorted(tuple(texts_of(one).values()) for one in some)


def asked(each: Row, acls: list[AclBinding], rules: Rules) -> tuple[str, set[AclBinding]]:
    operation, kind = AclOperation[each["operation"]], ResourceType[each["resource_type"]]
    told = explain(
        acls, Probe(each["principal"], each["host"], operation, kind, each["resource_name"]), rules
    )
    if not told.decision.allowed:
        return "Denied", set()
    is_by_acl = told.decision.rule.kind is RuleKind.MATCHING_ACL
    return told.decision.rule.kind.value, set(told.matching) if is_by_acl else set()


@FEW
@given(rows=row_worlds, acls=acl_worlds, is_open=st.booleans())
def test_the_review_equals_one_made_by_asking_about_each_row(
    spark: SparkSession, rows: list[Row], acls: list[AclBinding], is_open: bool
) -> None:
    named = [each for each in rows if each["resource_name"] is not None]
    rules = Rules(super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=is_open)
    expected, unused = plain_review(named, acls, rules)
    held = AclsInForce.of("t", acls, super_users="User:root", allow_everyone_if_no_acl_found=is_open)
    found, idle = {}, []
    for each in access_review(spark, rollup(spark, named), held, as_of=AS_OF).collect():
        granted_by = sorted(tuple(one.asDict().values()) for one in each.granted_by)
        key = (each.principal, each.operation, each.resource_type, each.resource_name, each.pattern_type)
        if each.resource_type == "ANY":
            assert each.principal == "User:root"
        elif each.use_count == 0:
            idle += granted_by
        else:
            found[key] = (each.basis, granted_by, each.use_count, each.denied_count)
    assert sorted(idle) == texts(unused)
    assert found == expected
