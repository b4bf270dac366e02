"""The findings about ACLs: an expected table, plain Python and DuckDB beside it, a replay of what goes."""

import json
from datetime import timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from kustos.acl import AclBinding
from kustos.acl.forms import texts_of
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.review.existing_names import Existing
from kustos.pipeline.review.findings import acl_findings, removable_together
from kustos.pipeline.review.period import bindings_of
from kustos.pipeline.schemas import FINDINGS_SCHEMA, SCRAM_CREDENTIAL_HISTORY_SCHEMA
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
from testkit.seeds import Drawing
from tests.pipeline.review.test_supports import verdicts

pytestmark = pytest.mark.usefixtures("users_plans")

READ_PAY = acl("User:alice", "READ", "TOPIC", "pay.", prefixed=True)
READ_IN = acl("User:alice", "READ", "TOPIC", "pay.in")
WRITE_GONE = acl("User:bob", "WRITE", "TOPIC", "gone")
READ_SECRET = acl("User:carol", "READ", "TOPIC", "secret")
DENY_SECRET = acl("User:*", "ALL", "TOPIC", "secret", deny=True)
YOUNG = acl("User:young", "READ", "TOPIC", "orders")
LEFT = acl("User:left", "READ", "TOPIC", "orders")
ACLS = [READ_PAY, READ_IN, WRITE_GONE, READ_SECRET, DENY_SECRET, YOUNG, LEFT]


def scram_history(spark: SparkSession) -> Any:
    made = dict.fromkeys(SCRAM_CREDENTIAL_HISTORY_SCHEMA.fieldNames())
    rows = [
        made | {"user": "left", "valid_from_time": START, "valid_to_time": START + timedelta(days=60)},
        made | {"user": "alice", "valid_from_time": START, "valid_to_time": START + timedelta(days=1)},
        made | {"user": "alice", "valid_from_time": START + timedelta(days=1), "valid_to_time": None},
    ]
    return spark.createDataFrame(rows, SCRAM_CREDENTIAL_HISTORY_SCHEMA)


def test_each_kind_is_found_with_its_evidence(spark: SparkSession) -> None:
    rows = [
        row("User:alice", "READ", "pay.in", day=110, count=5, rule=READ_PAY),
        row("User:alice", "READ", "pay.in", day=3, count=2, rule=READ_IN),
        row("User:alice", "DESCRIBE", "pay.in", day=118, count=7, rule=READ_IN, access="LISTING"),
        row("User:carol", "READ", "secret", day=111, decision="DENIED", rule=DENY_SECRET),
        row("User:left", "READ", "orders", day=50, rule=LEFT),
    ]
    table = acl_findings(
        spark,
        rollup(spark, rows),
        AclsInForce.of("t", ACLS),
        as_of=AS_OF,
        existing=Existing.of(
            topics=["pay.in", "secret", "orders"], scram_users=["alice", "carol", "young", "left"]
        ),
        history=history(spark, [(YOUNG, 100, None), (READ_PAY, 0, None)]),
        scram_history=scram_history(spark),
        record=whole_record(),
    )
    assert table.schema.fieldNames() == FINDINGS_SCHEMA.fieldNames()
    found = {}
    for each in table.collect():
        evidence = json.loads(each.evidence)
        key = each.kind, evidence["cause"], each.acl.principal, each.acl.resource_name
        assert key not in found
        found[key] = each.asDict() | {"evidence": evidence}

    assert set(found) == {
        ("UNUSED_ACL", "NEVER_DECIDED", "User:alice", "pay.in"),
        ("REDUNDANT_ACL", "SAID_BY_OTHERS", "User:alice", "pay.in"),
        ("UNUSED_ACL", "NEVER_DECIDED", "User:bob", "gone"),
        ("ORPHANED_ACL", "NO_SUCH_RESOURCE", "User:bob", "gone"),
        ("ORPHANED_ACL", "PRINCIPAL_NOT_SEEN", "User:bob", "gone"),
        ("ORPHANED_ACL", "NO_SUCH_USER", "User:bob", "gone"),
        ("UNUSED_ACL", "NEVER_DECIDED", "User:carol", "secret"),
        ("SHADOWED_ACL", "DENIED", "User:carol", "secret"),
        ("ORPHANED_ACL", "USER_DELETED", "User:left", "orders"),
    }
    unused = found["UNUSED_ACL", "NEVER_DECIDED", "User:alice", "pay.in"]
    assert (unused["severity"], unused["score"], unused["event_count"]) == ("MEDIUM", 1.0, 2)
    assert unused["reason"].endswith(
        "on topic `pay.in` decided no use in 90 days; when it was granted is unknown"
    )
    said = unused["evidence"]
    assert (said["decided_event_count"], said["listing_event_count"], said["matching_event_count"]) == (
        2,
        7,
        14,
    )
    assert (said["needed_event_count"], unused["is_safe_to_remove"], said["is_safe_together"]) == (
        0,
        True,
        True,
    )
    assert said["recorded_since"].startswith("2026-08-04T01:00:00")

    left = found["ORPHANED_ACL", "USER_DELETED", "User:left", "orders"]
    assert (left["is_safe_to_remove"], left["evidence"]["needed_event_count"]) == (False, 1)
    assert left["evidence"]["needed_sample_event_id"] == "User:left-READ-orders-50-10.0.0.1"
    assert left["evidence"]["is_safe_together"] is False
    assert found["SHADOWED_ACL", "DENIED", "User:carol", "secret"]["is_safe_to_remove"] is True
    assert left["reason"] == "`User:left` was deleted on 2026-09-30"


@pytest.mark.parametrize("is_open", [False, True])
def test_what_alone_keeps_a_resource_from_being_open_is_not_redundant(
    spark: SparkSession, is_open: bool
) -> None:
    """By `allow.everyone.if.no.acl.found` an ACL of a super user counts, too: without it all may read."""
    acls = [
        acl("User:root", "READ", "TOPIC", "secret"),
        acl("User:root", "READ", "TOPIC", "pay.in"),
        READ_PAY,
    ]
    held = AclsInForce.of("t", acls, super_users="User:root", allow_everyone_if_no_acl_found=is_open)
    found = acl_findings(spark, rollup(spark, [row("User:alice", "READ", "pay.in")]), held, as_of=AS_OF)
    redundant = {each["resource_name"] for each in found.filter("kind = 'REDUNDANT_ACL'").collect()}
    assert redundant == ({"pay.in"} if is_open else {"pay.in", "secret"})


def plain_unused(rows: list[Row], acls: list[AclBinding]) -> tuple[set[int], set[int]]:
    """Return the places of ACLs that decided no use in 90 days, and of those whose principal was not seen."""
    recorded = [each for each in rows if each["last_time"] <= AS_OF]
    recent = [each for each in recorded if each["last_time"] > AS_OF - timedelta(days=90)]
    deciding = [each["rule"] for each in recent if each["access"] != "LISTING"]
    unused = {
        place for place, one in enumerate(acls) if {"kind": "MatchingAcl", **texts_of(one)} not in deciding
    }
    seen = {each["principal"] for each in recent} | {"User:*"}
    return unused, {place for place, one in enumerate(acls) if one.entry.principal not in seen}


@pytest.mark.parametrize("nth", range(2))
def test_findings_equal_those_of_plain_python_and_what_goes_together_flips_nothing(
    spark: SparkSession, seed: int, nth: int
) -> None:
    rows, acls = Drawing(seed + nth)(st.tuples(row_worlds, acl_worlds))
    # half of the rules are those of the set, so that some ACLs did decide
    for number, each in enumerate(rows):
        if number % 2:
            each["rule"] = {"kind": "MatchingAcl", **texts_of(acls[number % len(acls)])}
    rows.append(row("User:alice", "READ", "logs", day=0))
    held = AclsInForce.of("t", acls, super_users="User:root")
    table = acl_findings(spark, rollup(spark, rows), held, as_of=AS_OF, record=whole_record())
    found = table.collect()
    places = {tuple(texts_of(one).values()): place for place, one in enumerate(acls)}

    def places_of(cause: str) -> set[int]:
        return {places[tuple(one.acl)] for one in found if json.loads(one.evidence)["cause"] == cause}

    unused, unseen = plain_unused(rows, acls)
    assert places_of("NEVER_DECIDED") == unused
    assert places_of("PRINCIPAL_NOT_SEEN") == unseen
    assert len({one.finding_id for one in found}) == len(found)

    recorded = [each for each in rows if each["last_time"] <= AS_OF]
    going = set(bindings_of(removable_together(table)))
    kept = [one for one in acls if one not in going]
    assert verdicts(kept, recorded, is_open=False) == verdicts(acls, recorded, is_open=False)
    check_with_duckdb(recorded, found)


def check_with_duckdb(recorded: list[Row], found: list[Any]) -> None:
    """How often and when each ACL decided, as DuckDB counts it."""
    flat = [
        {"acl": json.dumps([each["rule"][name] for name in texts_of(acl("User:a", "READ", "TOPIC", "a"))])}
        | {name: each[name] for name in ("access", "event_count", "first_time", "last_time")}
        for each in recorded
        if each["rule"]["kind"] == "MatchingAcl"
    ]
    events = pa.Table.from_pylist(flat)
    assert events.num_rows
    counted = duckdb.connect().execute(
        "select acl, sum(event_count) filter (access <> 'LISTING'),"
        " max(last_time) filter (access <> 'LISTING'),"
        " sum(event_count) filter (access = 'LISTING') from events group by acl"
    )
    expected = {name: (count or 0, time, listings or 0) for name, count, time, listings in counted.fetchall()}
    for one in found:
        count, time, listings = expected.get(json.dumps(list(one.acl)), (0, None, 0))
        told = json.loads(one.evidence)
        assert (one.event_count, told.get("listing_event_count", 0)) == (count, listings)
        assert one.last_time == (None if time is None else time.astimezone(AS_OF.tzinfo).replace(tzinfo=None))
