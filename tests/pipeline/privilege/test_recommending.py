"""The table of recommendations: on small records row by row, all of them in one frame."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.acl import PatternType, ResourcePattern, ResourceType
from kustos.pipeline.privilege import PrivilegeOptionError, PrivilegeOptions
from kustos.pipeline.privilege.group import solved_group
from kustos.pipeline.privilege.group_rows import grouped_rows
from kustos.pipeline.privilege.legitimate import Legitimate, distinct_accesses, known_names
from kustos.pipeline.privilege.recommendations import recommend
from kustos.pipeline.schemas import RECOMMENDATIONS_SCHEMA
from tests.pipeline.privilege.rows import START, denied, rollup, used

Rows = list[dict[str, Any]]


def family(principal: str, letters: str = "abcd") -> Rows:
    return [
        used(f"{principal}.orders-{letter}", principal=f"User:{principal}", count=10) for letter in letters
    ]


SCENARIOS: Rows = [
    *family("family"),
    used("family.orders-z", principal="User:other"),
    used("family-x", "WRITE", principal="User:family", count=3),
    used("family-x", "DESCRIBE", principal="User:family"),
    *family("refused"),
    denied("refused.orders-secret", principal="User:refused"),
    used("withdrawn", principal="User:newest", hours=1),
    denied("withdrawn", principal="User:newest", hours=2),
    denied("granted", principal="User:newest", hours=1),
    used("granted", principal="User:newest", hours=2),
    used("at-once", principal="User:newest", hours=3),
    denied("at-once", principal="User:newest", hours=3),
    used("erred", principal="User:newest", hours=1),
    used("erred", principal="User:newest", decision="ERROR", hours=2),
    used("listed", "DESCRIBE", principal="User:idle", access="LISTING"),
    used("by-root", principal="User:root", kind="SuperUser"),
    used("", principal="User:nameless", resource_type="GROUP", count=7),
    used("t", principal="User:*"),
    used("t", "SING", principal="User:singer"),
    used("t", principal="User:overruling"),
    denied(None, principal="User:overruling", hours=1),
]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Rows:
    recommended = rollup(spark, *SCENARIOS).transform(recommend)
    assert recommended.schema == RECOMMENDATIONS_SCHEMA
    return [row.asDict() for row in recommended.collect()]


def of(found: Rows, principal: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = [row for row in found if row["principal"] == f"User:{principal}"]
    return {(row["outcome"], row["operation"], row["resource_name"]): row for row in rows}


def test_a_family_of_names_becomes_one_prefix_with_its_evidence(found: Rows) -> None:
    rows = of(found, "family")
    assert rows.keys() == {
        ("RECOMMENDED", "READ", "family.orders-"),
        ("RECOMMENDED", "WRITE", "family-x"),
    }
    prefix = rows["RECOMMENDED", "READ", "family.orders-"]
    assert prefix["pattern_type"] == "PREFIXED"
    assert (prefix["access_count"], prefix["event_count"], prefix["name_count"]) == (4, 40, 4)
    assert (prefix["known_count"], prefix["over_grant_count"]) == (5, 1)
    assert prefix["examples"] == ["family.orders-a", "family.orders-b", "family.orders-c"]
    literal = rows["RECOMMENDED", "WRITE", "family-x"]  # which implies DESCRIBE
    assert (literal["access_count"], literal["event_count"], literal["pattern_type"]) == (2, 4, "LITERAL")
    assert of(found, "other").keys() == {("RECOMMENDED", "READ", "family.orders-z")}


def test_a_denied_name_keeps_its_family_literal(found: Rows) -> None:
    rows = of(found, "refused")
    assert rows.keys() == {("RECOMMENDED", "READ", f"refused.orders-{letter}") for letter in "abcd"}
    assert {row["pattern_type"] for row in rows.values()} == {"LITERAL"}


def test_the_newest_answer_counts(found: Rows) -> None:
    assert {name for _, _, name in of(found, "newest")} == {"granted", "erred"}


def test_a_filtered_list_and_a_super_user_are_no_need(found: Rows) -> None:
    assert of(found, "idle") == of(found, "root") == {}


def test_what_cannot_be_served_is_told(found: Rows) -> None:
    nameless = of(found, "nameless")
    assert nameless.keys() == {("UNSERVED", "READ", "")}
    assert nameless["UNSERVED", "READ", ""]["event_count"] == 7
    everybody = of(found, "*")
    assert everybody.keys() == {("UNSERVED", "READ", "t")}
    assert "every principal" in everybody["UNSERVED", "READ", "t"]["reason"]
    assert of(found, "singer").keys() == {("UNSERVED", "UNKNOWN", "t")}
    assert of(found, "overruling").keys() == {("RECOMMENDED", "READ", "t"), ("OVERRULED", "READ", None)}


LEGITIMATE: Rows = [
    used("listed", "DESCRIBE", access="LISTING", count=9),
    used("by-root", kind="SuperUser", count=9),
    used("rare", count=1),
    used("often", count=90),
    used("secret.often", count=9),
    used("late", count=9, hours=48),
    used("gone", principal="User:gone", count=9),
]
SECRET = ResourcePattern(ResourceType.TOPIC, "secret.", PatternType.PREFIXED)


@pytest.mark.parametrize(
    ("legitimate", "needs"),
    [
        (Legitimate(), {"rare", "often", "secret.often", "late", "gone"}),
        (Legitimate(uses_min=2), {"often", "secret.often", "late", "gone"}),
        (Legitimate(to_day=START.date()), {"rare", "often", "secret.often", "gone"}),
        (Legitimate(from_day=START.date().replace(day=2)), {"late"}),
        (Legitimate(principals_excluded=("User:gone",)), {"rare", "often", "secret.often", "late"}),
        (Legitimate(resources_excluded=(SECRET,)), {"rare", "often", "late", "gone"}),
        (
            Legitimate(with_listing=True, with_super_users=True),
            {"listed", "by-root", "rare", "often", "secret.often", "late", "gone"},
        ),
        (Legitimate(coverage=0.99), {"often", "secret.often", "late", "gone"}),
        (Legitimate(coverage=0.8), {"often", "gone"}),
    ],
)
def test_what_counts_as_a_need(spark: SparkSession, legitimate: Legitimate, needs: set[str]) -> None:
    accesses = distinct_accesses(rollup(spark, *LEGITIMATE), legitimate)
    rows = {row["resource_name"]: row for row in accesses.collect()}
    assert {name for name, row in rows.items() if row["is_need"]} == needs
    excluded = {name for name, row in rows.items() if row["is_excluded"]}
    assert excluded == ({"secret.often"} if legitimate.resources_excluded else set())
    assert not any(row["is_denied"] for row in rows.values())


def test_a_super_user_whose_event_names_no_rule_needs_no_acl(spark: SparkSession) -> None:
    rows = [used("old", kind=None), used("new", kind="SuperUser"), used("by-acl")]
    for super_users, needs in ((frozenset[str](), {"old", "by-acl"}), (frozenset({"User:app"}), {"by-acl"})):
        accesses = distinct_accesses(rollup(spark, *rows), Legitimate(super_users=super_users))
        assert {row["resource_name"] for row in accesses.collect()} == needs


def test_a_name_left_out_of_a_list_is_a_denial_by_choice(spark: SparkSession) -> None:
    rows = rollup(spark, denied("hidden", "DESCRIBE", access="LISTING"), denied("tried", "DESCRIBE"))
    for keeps_hidden, names in ((True, {"hidden", "tried"}), (False, {"tried"})):
        accesses = distinct_accesses(rows, Legitimate(keeps_hidden=keeps_hidden))
        assert {row["resource_name"] for row in accesses.filter("is_denied").collect()} == names


def test_a_probe_keeps_what_acls_denied_denied(spark: SparkSession) -> None:
    once = used("kafka-cluster", "IDEMPOTENT_WRITE", resource_type="CLUSTER", hours=1)
    probe = denied("kafka-cluster", "IDEMPOTENT_WRITE", resource_type="CLUSTER", hours=2, access="PROBE")
    [row] = rollup(spark, once, probe).transform(distinct_accesses).collect()
    assert (row["is_need"], row["is_denied"]) == (False, True), "the right was taken away, and is not missed"


def test_names_that_are_only_denied_are_not_known(spark: SparkSession) -> None:
    rows = rollup(spark, used("a"), denied("b"), denied("c", access="LISTING"), used(None, "WRITE"))
    assert {row["resource_name"] for row in known_names(rows).collect()} == {"a", "c"}


def test_a_group_over_its_limit_is_told_as_a_whole(spark: SparkSession) -> None:
    frame = rollup(spark, *family("app"))
    rows = grouped_rows(distinct_accesses(frame), known_names(frame), PrivilegeOptions())
    batches = rows.toArrow().to_batches()
    found = solved_group("User:app", batches, PrivilegeOptions(), rows_max=3).to_pylist()
    assert {row["outcome"] for row in found} == {"UNSERVED"}
    assert sum(row["access_count"] for row in found) == 4
    assert sum(row["event_count"] for row in found) == 40


@pytest.mark.parametrize("bad", [{"coverage": 0.0}, {"coverage": 1.5}, {"uses_min": 0}])
def test_a_choice_that_means_nothing_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(PrivilegeOptionError, match=next(iter(bad))):
        Legitimate(**bad)
