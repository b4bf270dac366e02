"""Rules that events do not name: no ACL that decided is unused, on older brokers and Confluent's."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.authorizer import Decision, Questioner
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.review.candidates import decided, held_acls
from kustos.pipeline.review.deciding_acls import with_deciding_acls
from kustos.pipeline.review.existing_names import NOTHING_KNOWN
from kustos.pipeline.review.findings import acl_findings
from kustos.pipeline.schemas import LINES_SCHEMA
from kustos.pipeline.tables import Tables, ingest
from testkit.review_rows import AS_OF, Row, acl, history, large_world, rollup, row, whole_record
from tests.pipeline.lines.test_confluent_events import cloud_event

LOG = Path(__file__).parent.parent / "data" / "kafka-2.8.2-authorizer.log"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def rollup_of(spark: SparkSession, lines: list[str], folder: Path) -> DataFrame:
    tables = Tables(folder)
    ingest(spark, spark.createDataFrame([("some.log", line) for line in lines], LINES_SCHEMA), tables, "run")
    return tables.read(spark, "audit_rollup")


def unused(found: DataFrame) -> set[tuple[str, ...]]:
    rows = found.filter("kind = 'UNUSED_ACL'").select("acl").collect()
    return {tuple(one.acl) for one in rows}


def test_no_acl_that_decided_on_an_older_broker_is_unused(spark: SparkSession, tmp_path: Path) -> None:
    deciding = [
        acl("User:alice", "READ", "GROUP", "g"),
        acl("User:alice", "READ", "TOPIC", "ord", prefixed=True),
        acl("User:alice", "WRITE", "TOPIC", "orders"),
        acl("User:alice", "ALL", "TRANSACTIONAL_ID", "*"),
        acl("User:eve", "DELETE", "TOPIC", "orders", deny=True),
    ]
    idle = [
        acl("User:alice", "READ", "TOPIC", "invoices"),
        acl("User:eve", "ALTER", "CLUSTER", "kafka-cluster"),
    ]
    held = AclsInForce.of("t", [*deciding, *idle], super_users="User:admin")
    table = acl_findings(
        spark,
        rollup_of(spark, LOG.read_text().splitlines(), tmp_path),
        held,
        as_of=NOW,
        record=whole_record(NOW),
    )
    assert unused(table) == {tuple(texts_of(one).values()) for one in idle}


def test_an_event_of_confluent_that_does_not_name_the_operation_uses_its_acl(
    spark: SparkSession, tmp_path: Path
) -> None:
    everybodys = acl("User:*", "ALTER_CONFIGS", "TOPIC", "ord", prefixed=True)
    idle = acl("User:CN=bob:x", "DESCRIBE_CONFIGS", "TOPIC", "orders")
    held = AclsInForce.of("t", [everybodys, idle])
    table = acl_findings(
        spark,
        rollup_of(spark, [json.dumps(cloud_event())], tmp_path),
        held,
        as_of=NOW,
        record=whole_record(NOW),
    )
    assert unused(table) == {tuple(texts_of(idle).values())}


def counts(spark: SparkSession, rows: list[Row], acls: list[AclBinding]) -> dict[int, tuple[Any, ...]]:
    held = AclsInForce.of("t", acls, super_users="User:root")
    recorded = rollup(spark, rows)
    worked_out = with_deciding_acls(spark, recorded, held)
    table = decided(recorded, held_acls(spark, held, NOTHING_KNOWN), worked_out)
    return {each.number: tuple(each)[1:5] for each in table.collect()}


@pytest.mark.parametrize("missing", ["all", "some"])
def test_each_acl_decided_the_same_with_its_rule_or_worked_out(
    spark: SparkSession, seed: int, missing: str
) -> None:
    drawn, acls = large_world(seed)
    asked = Questioner(AclsInForce.of("t", acls, super_users="User:root").authorizer())
    names = ("principal", "host", "operation", "resource_type", "resource_name")
    told: list[Row] = []
    bare: list[Row] = []
    random = Random(seed)
    for each in drawn:
        decision = asked.ask(*(each[name] for name in names))
        if each["resource_name"] is None or not isinstance(decision, Decision):
            continue
        rule = decision.rule
        whole = row("User:a", "READ", "a", rule=rule.binding or rule.kind.value)["rule"]
        made = each | {"decision": decision.result.value, "rule": whole}
        told.append(made)
        if missing == "all":
            fields = dict.fromkeys(whole)
        else:  # what does not name it may have any field but its kind
            gone = random.choice(["operation", "host", "pattern_type", "permission_type"])
            fields = whole | {gone: None}
        bare.append(made | {"rule": fields})
    assert len(told) > 100
    if missing == "all":
        assert counts(spark, bare, acls) == counts(spark, told, acls)
        return
    # a rule that lacks a field may be another one that differs in it alone
    worked_out, known = ([*counts(spark, rows, acls).values()] for rows in (bare, told))
    assert sum(one[2] + one[3] for one in worked_out) == sum(one[2] + one[3] for one in known)


def test_with_a_history_the_acls_of_the_time_decided(spark: SparkSession) -> None:
    prefix = acl("User:alice", "READ", "TOPIC", "pay.", prefixed=True)
    literal = acl("User:alice", "READ", "TOPIC", "pay.in")
    denied = acl("User:*", "ALL", "TOPIC", "pay.in", deny=True)
    # of both, Kafka's scan ends with the shorter name
    past = history(spark, [(literal, 0, None), (prefix, 0, 50), (prefix, 90, None), (denied, 115, None)])
    rows = [row("User:alice", "READ", "pay.in", day=day, count=day) for day in (10, 50, 60, 95, 110)]
    rows.append(row("User:alice", "READ", "pay.in", day=118, count=118, decision="DENIED"))
    recorded = rollup(spark, [one | {"rule": None} for one in rows])
    held = AclsInForce.of("t", [prefix, literal, denied])
    numbers = {
        acl.resource_name + acl.permission_type: number
        for number, acl in ((one.number, one.acl) for one in held_acls(spark, held, NOTHING_KNOWN).collect())
    }
    found = with_deciding_acls(spark, recorded, held, past).collect()
    days = {(one.number, one.event_count) for one in found}
    assert days == {
        *((numbers["pay.ALLOW"], day) for day in (10, 95, 110)),
        *((numbers["pay.inALLOW"], day) for day in (50, 60)),
        (numbers["pay.inDENY"], 118),
    }
    known = whole_record(AS_OF, 65)
    table = acl_findings(spark, recorded, held, as_of=AS_OF, history=past, unused_days=65, record=known)
    assert unused(table) == set(), "the literal decided on day 60 alone"
    today = acl_findings(spark, recorded, held, as_of=AS_OF, unused_days=65, record=known)
    assert unused(today) == set(), "without a history a DENY of today leaves every ALLOW that matches"
