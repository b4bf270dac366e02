"""Reach as rows: which existing resources, over whom, and what of it was used."""

import pytest
from pyspark.sql import SparkSession

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import StandardAuthorizer
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.reach.escalation import Escalation
from kustos.pipeline.reach.frames import (
    REACH_SCHEMA,
    REACHED_RESOURCE_SCHEMA,
    reach,
    reach_by_principal,
    reached_resources,
)
from testkit.review_rows import NAMES, PRINCIPALS, acl, large_world, rollup, row

pytestmark = pytest.mark.usefixtures("users_plans")

LISTING = {ResourceType.TOPIC: frozenset({"pay.in", "pay.out", "logs"}), ResourceType.GROUP: frozenset({"g"})}


def test_reach_is_told_in_words_and_by_resources_that_exist(spark: SparkSession) -> None:
    acls = [
        acl("User:a", "READ", "TOPIC", "pay.", prefixed=True, host="10.0.0.1"),
        acl("User:a", "CREATE_TOKENS", "USER", "User:admin"),
        acl("User:admin", "ALTER", "CLUSTER", "kafka-cluster"),
        acl("User:admin", "WRITE", "TOPIC", "logs"),
        acl("User:b", "DESCRIBE", "TOPIC", "logs"),
    ]
    escalation = Escalation(AclsInForce.of("t", acls))
    table = reach(spark, escalation, ["User:a", "User:none"])
    assert table.schema.fieldNames() == REACH_SCHEMA.fieldNames()
    told = {(one.principal, one.identity, one.resource_type): one for one in table.collect()}
    own = told["User:a", "User:a", "TOPIC"]
    assert (own.operations, own.names, own.hosts) == (
        ["READ", "DESCRIBE"], "topics that begin with `pay-`".replace("-", "."), "10.0.0.1",
    )  # fmt: skip
    assert not own.everything
    assert own.steps == []
    admins = told["User:a", "User:admin", "CLUSTER"]
    assert (admins.everything, len(admins.steps)) == (True, 2)
    assert told["User:none", "User:none", None].names == "nothing"

    rows = [
        row("User:a", "READ", "pay.in", count=3),
        row("User:a", "READ", "pay.in", day=5, decision="DENIED"),
    ]
    reached = reached_resources(spark, escalation, ["User:a", "User:b"], LISTING, rollup(spark, rows))
    assert reached.schema.fieldNames() == REACHED_RESOURCE_SCHEMA.fieldNames()
    found = {
        (one.principal, one.resource_name): (one.identity, one.step_count, one.operations, one.use_count)
        for one in reached.collect()
    }
    assert found == {
        ("User:a", "pay.in"): ("User:a", 0, ["DESCRIBE", "READ"], 3),
        ("User:a", "pay.out"): ("User:a", 0, ["DESCRIBE", "READ"], 0),
        ("User:a", "logs"): ("User:admin", 1, ["DESCRIBE", "WRITE"], 0),
        ("User:a", "g"): ("User:admin", 2, ["ALL"], 0),
        ("User:b", "logs"): ("User:b", 0, ["DESCRIBE"], 0),
    }
    counts = {(one.principal, one.resource_type): one for one in reach_by_principal(reached).collect()}
    topics = counts["User:a", "TOPIC"]
    assert (topics.reached_count, topics.used_count) == (3, 1)


def operations_of(authorizer: StandardAuthorizer, principal: str, topic: str) -> set[str]:
    """Return what the authorizer allows a principal from some host."""
    hosts = ("10.0.0.1", "10.0.0.9", "1.1.1.1")
    sessions = [authorizer.session(KafkaPrincipal.parse(principal), host) for host in hosts]
    return {
        operation.name
        for operation in AclOperation
        if operation > AclOperation.ANY
        for session in sessions
        if session.decide(operation, ResourceType.TOPIC, topic).allowed
    }


def test_reached_resources_are_those_that_the_authorizer_allows(spark: SparkSession, seed: int) -> None:
    rows, acls = large_world(seed)
    is_open = bool(seed % 2)
    held = AclsInForce.of("t", acls, allow_everyone_if_no_acl_found=is_open)
    authorizer = held.authorizer()
    listing = {ResourceType.TOPIC: frozenset(NAMES)}
    everything = [
        who
        for who in PRINCIPALS
        if authorizer.session(KafkaPrincipal.parse(who), "10.0.0.1")
        .decide(AclOperation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
        .allowed
    ]
    expected = {}
    for who in PRINCIPALS:
        # where everybody may do what no ACL is about, everybody may make tokens of everybody
        identities = [identity.principal for identity in Escalation(held).of(who).identities]
        for name in NAMES:
            allowed = (operations_of(authorizer, identity, name) for identity in identities)
            operations = next(filter(None, allowed), set())
            uses = sum(
                each["event_count"]
                for each in rows
                if (each["principal"], each["resource_type"], each["resource_name"]) == (who, "TOPIC", name)
                and (each["decision"], each["access"]) == ("ALLOWED", "ACCESS")
            )
            if operations or who in everything:
                expected[who, name] = (sorted(operations) or ["ALL"], uses)
    reached = reached_resources(spark, Escalation(held), PRINCIPALS, listing, rollup(spark, rows))
    found = {(one.principal, one.resource_name): (one.operations, one.use_count) for one in reached.collect()}
    assert found == expected
