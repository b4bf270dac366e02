"""The table of entitlements: an expected one, and its counts against plain Python and the authorizer."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.acl import SUPPORTED_OPERATIONS, AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.acl.forms import texts_of
from kustos.analysis.entitlements import operations_of_grant
from kustos.authorizer import StandardAuthorizer
from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.review.access import chosen_rows
from kustos.pipeline.review.entitled import entitlement_rows
from kustos.pipeline.review.recorded_questions import review_questions
from kustos.pipeline.schemas import ENTITLEMENTS_SCHEMA
from kustos.signoff import RowChoice, SignoffError
from testkit.review_rows import AS_OF, Row, acl, history, large_world, rollup, row, whole_record

DELETE_PAY = acl("User:bob", "DELETE", "TOPIC", "pay.", prefixed=True)
ALL_LOGS = acl("User:*", "ALL", "TOPIC", "logs")
READ_ALL = acl("User:eve", "READ", "TOPIC", "*")
DENY_DELETE = acl("User:*", "DELETE", "TOPIC", "pay.in", deny=True)
DENY_EVE = acl("User:eve", "READ", "TOPIC", "*", deny=True)
ACLS = [DELETE_PAY, ALL_LOGS, READ_ALL, DENY_DELETE, DENY_EVE]
ROWS = [
    row("User:bob", "DELETE", "pay.out", day=100, count=3),
    row("User:bob", "DESCRIBE", "pay.in", day=110, count=2),
    row("User:bob", "DELETE", "pay.in", day=10, count=9),
    row("User:bob", "DELETE", "pay.in", day=112, decision="DENIED"),
    *(row(f"User:u{number}", "READ", "logs", day=1, count=1) for number in range(5)),
    row("User:eve", "READ", "old", day=1),
    row("User:root", "ALTER", "kafka-cluster", kind="CLUSTER", day=1, count=7),
    row("User:u1", "DESCRIBE", "pay.eu", access="LISTING", decision="DENIED"),
    row("User:mallory", "READ", "pay.guess", decision="DENIED"),
]


def table(spark: SparkSession, rows: list[Row], acls: AclsInForce, **named: Any) -> list[dict[str, Any]]:
    recorded, shipped = rollup(spark, rows), ship(spark, acls)
    questions = review_questions(recorded, shipped, AS_OF)
    found = entitlement_rows(
        spark, recorded, acls, shipped, as_of=AS_OF, questions=questions, record=whole_record(), **named
    )
    assert found.schema.fieldNames() == ENTITLEMENTS_SCHEMA.fieldNames()
    return [each.asDict(recursive=True) for each in found.collect()]


def by_operation(rows: list[dict[str, Any]], binding: AclBinding) -> dict[str, dict[str, Any]]:
    return {each["operation"]: each for each in rows if each["granted_by"] == [texts_of(binding)]}


HELD = AclsInForce.of("t", ACLS, super_users="User:root;User:spare")


def test_each_grant_is_what_it_entitles_to_with_its_counts(spark: SparkSession) -> None:
    since = history(spark, [(DELETE_PAY, 2, None)])
    rows = table(spark, ROWS, HELD, teams={"User:bob": "payments"}, history=since)
    assert len(rows) == 2 + 8 + 2 + 2

    bobs = by_operation(rows, DELETE_PAY)
    assert set(bobs) == {"DELETE", "DESCRIBE"}
    delete, describe = bobs["DELETE"], bobs["DESCRIBE"]
    assert (delete["breadth"], delete["effect"], delete["deny_count"]) == ("PREFIXED", "PARTLY_DENIED", 1)
    assert delete["denied_by"] == [texts_of(DENY_DELETE)]
    # pay.in, pay.out, and pay.eu, which a list checked; pay.guess was only denied
    assert (delete["principal_count"], delete["name_count"]) == (1, 3)
    assert (delete["use_count"], delete["used_by_count"], delete["used_name_count"]) == (12, 1, 2)
    assert (delete["team"], delete["is_implied"], delete["is_dormant"]) == ("payments", False, False)
    assert (describe["effect"], describe["is_implied"], describe["use_count"]) == ("WHOLE", True, 2)
    assert delete["granted_since"] == describe["granted_since"] is not None

    logs = by_operation(rows, ALL_LOGS)
    assert len(logs) == 8
    read = logs["READ"]
    assert (read["breadth"], read["use_count"], read["used_by_count"]) == ("EVERYONE", 5, 5)
    # those recorded, those of ACLs, and the super users
    assert read["principal_count"] == len({"bob", "eve", "root", "spare", "mallory", *"01234"})
    assert (logs["ALTER"]["use_count"], logs["ALTER"]["last_used"]) == (0, None)
    assert logs["ALTER"]["is_dormant"]

    void = by_operation(rows, READ_ALL)["READ"]
    assert (void["effect"], void["breadth"], void["use_count"]) == ("VOID", "WILDCARD", 1)

    beyond = {each["principal"]: each for each in rows if not each["granted_by"]}
    assert beyond.keys() == {"User:root", "User:spare"}
    assert (beyond["User:root"]["use_count"], beyond["User:root"]["operation"]) == (7, "ALL")
    assert beyond["User:spare"]["use_count"] == 0


@pytest.mark.parametrize("names", [1, 40])
def test_rows_are_grants_by_operations_however_many_names_are_used(spark: SparkSession, names: int) -> None:
    """80 principals that may each read what begins so, and everyone one topic: 160 rows and eight."""
    who = [f"User:u{number:02}" for number in range(80)]
    grants = [acl(each, "READ", "TOPIC", f"{each[5:]}.", prefixed=True) for each in who]
    used = [row(each, "READ", f"{each[5:]}.{name}", day=1) for each in who for name in range(names)]
    rows = table(spark, used, AclsInForce.of("t", [*grants, ALL_LOGS]))
    assert len(rows) == 80 * len(("READ", "DESCRIBE")) + len(SUPPORTED_OPERATIONS[ResourceType.TOPIC]) == 168
    assert sum(each["used_name_count"] for each in rows if each["operation"] == "READ") == 80 * names


def test_names_that_exist_count_instead_of_the_recorded_ones(spark: SparkSession) -> None:
    listed = {"TOPIC": ["pay.a", "pay.b", "x"]}
    rows = table(spark, ROWS, HELD, names=listed, principals=["User:new"])
    assert by_operation(rows, DELETE_PAY)["DELETE"]["name_count"] == 2
    assert by_operation(rows, READ_ALL)["READ"]["name_count"] == 3
    assert by_operation(rows, ALL_LOGS)["READ"]["name_count"] == 0
    assert by_operation(rows, ALL_LOGS)["READ"]["principal_count"] == 11


def test_what_only_the_default_allows_has_a_row(spark: SparkSession) -> None:
    acls = AclsInForce.of("t", [DELETE_PAY], allow_everyone_if_no_acl_found=True)
    (default,) = [each for each in table(spark, ROWS, acls) if not each["granted_by"]]
    assert (default["basis"], default["principal"], default["breadth"]) == (
        "DefaultAllow",
        "User:*",
        "EVERYONE",
    )
    assert (default["use_count"], default["used_by_count"]) == (5 + 1 + 7, 7)


def chosen(spark: SparkSession, **named: Any) -> dict[tuple[str, str], str]:
    choice = RowChoice.of(**named)
    recorded, shipped = rollup(spark, ROWS), ship(spark, HELD)
    questions = review_questions(recorded, shipped, AS_OF)
    rows = entitlement_rows(spark, recorded, HELD, shipped, as_of=AS_OF, questions=questions)
    found = choice.narrowed(
        (each.asDict(recursive=True) for each in chosen_rows(rows, choice).collect()), HELD
    )
    return {(each["principal"], each["resource_name"]): each["effect"] for each in found}


def test_who_may_delete_payments(spark: SparkSession) -> None:
    root = {("User:root", "*"): "WHOLE", ("User:spare", "*"): "WHOLE"}
    assert chosen(spark, operation="delete", resource_name="pay.out") == {
        ("User:bob", "pay."): "WHOLE",
        **root,
    }
    assert chosen(spark, operation="DELETE", resource_name="pay.in") == {("User:bob", "pay."): "VOID", **root}
    logs = chosen(spark, operation="DELETE", resource_type="TOPIC", resource_name="logs")
    assert logs == {("User:*", "logs"): "WHOLE", **root}
    of_eve = chosen(spark, principal="User:eve", operation="READ")
    assert of_eve == {("User:*", "logs"): "VOID", ("User:eve", "*"): "VOID"}
    with pytest.raises(SignoffError, match="`ALL` is not an operation"):
        RowChoice.of(operation="ALL")
    with pytest.raises(SignoffError, match="`MOON` is not a type"):
        RowChoice.of(resource_type="MOON")


def test_several_denies_void_a_grant_for_the_chosen_name_and_principal(spark: SparkSession) -> None:
    halves = [
        acl("User:*", "DELETE", "TOPIC", "pay.", prefixed=True, host="10.0.0.0/9", deny=True),
        acl("User:bob", "ALL", "TOPIC", "pay.in", host="10.128.0.0/9", deny=True),
    ]
    grant = acl("User:*", "DELETE", "TOPIC", "p", prefixed=True, host="10.0.0.0/8")
    held = AclsInForce.of("t", [grant, *halves])
    (row,) = [each for each in table(spark, ROWS, held) if each["operation"] == "DELETE"]
    assert row["effect"] == "PARTLY_DENIED"

    def effect(**named: Any) -> str:
        (one,) = RowChoice.of(operation="DELETE", **named).narrowed([row], held)
        return str(one["effect"])

    assert effect(resource_name="pay.in", principal="User:bob") == "VOID"
    assert effect(resource_name="pay.in", principal="User:eve") == "PARTLY_DENIED"
    assert effect(resource_name="pay.out", principal="User:bob") == "PARTLY_DENIED"
    assert effect(resource_name="p") == "WHOLE"


@pytest.mark.parametrize("nth", range(2))
def test_each_count_of_uses_is_that_of_asking_the_acl_alone(spark: SparkSession, seed: int, nth: int) -> None:
    drawn, acls = large_world(seed + nth, row_count=300)
    held = AclsInForce.of("t", acls, super_users="User:root")
    named = [each for each in drawn if each["resource_name"] is not None]
    found = {
        (tuple(each["granted_by"][0].values()), each["operation"]): each
        for each in table(spark, named, held)
        if each["granted_by"]
    }
    for binding in acls:
        texts = texts_of(binding)
        if texts["permission_type"] != "ALLOW":
            continue
        alone = StandardAuthorizer.of([binding])
        # the world also asks what Kafka never does, such as WRITE of a group: no ACL entitles to that
        asked = {each.name for each in operations_of_grant(binding)}
        for operation in asked & {"READ", "DESCRIBE", "WRITE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"}:
            uses = [
                each
                for each in named
                if each["operation"] == operation
                and (each["access"], each["decision"]) == ("ACCESS", "ALLOWED")
                and each["last_time"] <= AS_OF
                and each["principal"] != "User:root"
                and alone.session(KafkaPrincipal.parse(each["principal"]), each["host"])
                .decide(AclOperation[operation], ResourceType[each["resource_type"]], each["resource_name"])
                .allowed
            ]
            one = found.get((tuple(texts.values()), operation))
            assert (one["use_count"] if one else 0) == sum(each["event_count"] for each in uses)
            assert (one["used_by_count"] if one else 0) == len({each["principal"] for each in uses})
            assert (one["used_name_count"] if one else 0) == len({each["resource_name"] for each in uses})
