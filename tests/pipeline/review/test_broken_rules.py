"""Broken rules: by grant they are those of the analysis, by use the recorded ones."""

import json
from typing import Any

from pyspark.sql import SparkSession

from kustos.analysis import DutySide, breaches, parse_policy
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.review.broken_rules import rule_findings
from kustos.pipeline.schemas import FINDINGS_SCHEMA
from testkit.duties import DUTIES
from testkit.review_rows import AS_OF, PRINCIPALS, Row, acl, large_world, rollup, row

POLICY = """
version: 1
statements:
  - id: payers
    never: anyone but User:alice WRITE topics under pay. from 10.0.0.0/24
  - id: readers
    always: User:bob READ topic logs
"""


def plain_uses(rows: list[Row]) -> set[tuple[str, str]]:
    """Return who did both sides of a duty, or what a statement speaks of, by the rows."""
    recorded = [each for each in rows if each["last_time"] <= AS_OF and each["access"] != "LISTING"]
    recorded = [each for each in recorded if each["resource_name"] is not None]
    allowed = [each for each in recorded if each["decision"] == "ALLOWED"]

    def did(principal: str, side: DutySide) -> bool:
        return any(
            each["principal"] == principal
            and each["operation"] in [one.name for one in side.operations]
            and each["resource_type"] == side.resource_type.name
            and any(site.covers(each["resource_name"]) for site in side.sites)
            for each in allowed
        )

    found = set()
    for principal in PRINCIPALS:
        for duty in DUTIES:
            is_let_off = principal in duty.exempt or (
                principal == "User:root" and not duty.counts_super_users
            )
            if not is_let_off and did(principal, duty.who_can) and did(principal, duty.must_not):
                found.add((duty.duty_id, principal))
    for each in recorded:
        key = (each["resource_type"], each["operation"])
        is_pay = (
            key == ("TOPIC", "WRITE")
            and each["resource_name"].startswith("pay.")
            and each["host"][:3] == "10."
        )
        if is_pay and each["decision"] == "ALLOWED" and each["principal"] not in {"User:alice", "User:root"}:
            found.add(("payers", each["principal"]))
        is_logs = (*key, each["resource_name"], each["principal"]) == ("TOPIC", "READ", "logs", "User:bob")
        if is_logs and each["decision"] != "ALLOWED":
            found.add(("readers", "User:bob"))
    return found


def told(one: Any) -> tuple[str, str]:
    return json.loads(one.evidence)["rule_id"], one.principal


def test_breaches_by_use_are_those_recorded(spark: SparkSession, seed: int) -> None:
    rows, acls = large_world(seed)
    assert len(plain_uses(rows)) > 1
    rows += [row("User:bob", "WRITE", "pay.in", day=1), row("User:bob", "ALTER", "orders", day=2)]
    held = AclsInForce.of("t", acls, super_users="User:root")
    table = rule_findings(
        spark, rollup(spark, rows), held, as_of=AS_OF, duties=DUTIES, policy=parse_policy(POLICY, "p")
    )
    assert table.schema.fieldNames() == FINDINGS_SCHEMA.fieldNames()
    by: dict[str, list[Any]] = {"use": [], "grant": []}
    for one in table.collect():
        by[json.loads(one.evidence)["by"]].append(one)
    assert {(json.loads(one.evidence)["rule_id"], one.principal) for one in by["use"]} == plain_uses(rows)
    by_grant = {
        (breach.duty.duty_id, breach.principal) for breach in breaches(held.bindings, DUTIES, held.rules)
    }
    told = {
        (json.loads(one.evidence)["rule_id"], one.principal)
        for one in by["grant"]
        if one.kind == "BROKEN_DUTY"
    }
    assert told == by_grant
    assert len({one.finding_id for one in [*by["use"], *by["grant"]]}) == len(by["use"]) + len(by["grant"])
    bobs = [one for one in by["use"] if (one.principal, one.kind) == ("User:bob", "BROKEN_DUTY")]
    assert {one.severity for one in bobs} == {"HIGH"}


def test_no_rules_find_nothing(spark: SparkSession) -> None:
    held = AclsInForce.of("t", [acl("User:a", "READ", "TOPIC", "a")])
    assert (
        rule_findings(spark, rollup(spark, [row("User:a", "READ", "a")]), held, as_of=AS_OF).collect() == []
    )
