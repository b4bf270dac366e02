"""A replay finds exactly what plain Python finds, whether from events or from the roll-up."""

from collections import defaultdict
from datetime import UTC, timedelta
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.replay import (
    decisions,
    flips_by_kind,
    flips_by_principal,
    flips_by_resource,
    flips_of_rows,
    replay,
    top_flips,
    verdict_on_each_event,
)
from kustos.pipeline.schemas import (
    DECISIONS_SCHEMA,
    FLIPS_BY_KIND_SCHEMA,
    FLIPS_BY_PRINCIPAL_SCHEMA,
    FLIPS_BY_RESOURCE_SCHEMA,
    FLIPS_SCHEMA,
    QUESTION_COLUMNS,
    relaxed,
)
from testkit.acls.one_line import acl, acls
from tests.pipeline.deciding.worlds import Question, asked_around, made_world
from tests.pipeline.replay.recorded import (
    START,
    Event,
    answered,
    changed,
    event_frame,
    event_id,
    recorded,
    rollup_frame,
    rule_fields,
)

pytestmark = pytest.mark.usefixtures("users_plans")

BOB: Question = ("User:bob", "10.0.0.1", "READ", "TOPIC", "orders")
ANN: Question = ("User:ann", "10.0.0.1", "WRITE", "TOPIC", "orders")
EVE: Question = ("User:eve", "10.0.0.1", "READ", "TOPIC", "orders")
READS = "ALLOW READ User:bob TOPIC orders"
PREFIX = "ALLOW READ User:bob TOPIC prefix ord"
WRITES = "ALLOW WRITE User:ann TOPIC orders"
NOTHING = rule_fields(None, "DefaultDeny")
EVENTS: list[Event] = [
    (BOB, "ACCESS", "ALLOWED", rule_fields(acl(READS), "MatchingAcl"), 50, 2),
    (ANN, "ACCESS", "ALLOWED", rule_fields(acl(WRITES), "MatchingAcl"), 90_000, 1),
    (ANN, "ACCESS", "ALLOWED", rule_fields(acl(WRITES), "MatchingAcl"), 10, 3),
    (EVE, "LISTING", "DENIED", NOTHING, 20, 1),
    (EVE, "ACCESS", "DENIED", NOTHING, 30, 1),
]
CANDIDATE = AclsInForce.of("candidate", acls([PREFIX, "ALLOW READ User:eve TOPIC *"]))


def audit(text: str) -> str:
    return f"MatchingAcl(acl={acl(text).audit_text()})"


def frame(spark: SparkSession, rows: list[tuple[Any, ...]], schema: StructType) -> DataFrame:
    return spark.createDataFrame(rows, schema)


def test_what_flips_is_told_with_its_evidence(spark: SparkSession) -> None:
    found = replay(spark, rollup_frame(spark, EVENTS), CANDIDATE)
    at = {number: START + timedelta(seconds=event[4]) for number, event in enumerate(EVENTS)}
    star = audit("ALLOW READ User:eve TOPIC *")
    lost = ("ALLOWED", audit(WRITES), "DENIED", "DefaultDeny")
    gained = ("DENIED", "DefaultDeny", "ALLOWED", star)
    changed_rule = ("ALLOWED", audit(READS), "ALLOWED", audit(PREFIX))
    expected = [
        ("LOST", *ANN, "ACCESS", *lost, 2, 4, 2, at[2], at[1], event_id(1)),
        ("GAINED", *EVE, "ACCESS", *gained, 1, 1, 0, at[4], at[4], event_id(4)),
        ("GAINED", *EVE, "LISTING", *gained, 1, 1, 0, at[3], at[3], event_id(3)),
        ("RULE_CHANGED", *BOB, "ACCESS", *changed_rule, 1, 2, 1, at[0], at[0], event_id(0)),
    ]
    assertDataFrameEqual(found.flips, frame(spark, expected, FLIPS_SCHEMA))
    by_principal = [
        ("User:ann", 1, 2, 0, 0, 0, 0, at[2], at[1], event_id(1)),
        ("User:bob", 1, 0, 0, 1, 0, 0, at[0], at[0], event_id(0)),
        ("User:eve", 1, 0, 1, 0, 0, 1, at[3], at[4], event_id(4)),
    ]
    assertDataFrameEqual(found.by_principal, frame(spark, by_principal, FLIPS_BY_PRINCIPAL_SCHEMA))
    by_resource = [("TOPIC", "orders", 3, 2, 1, 1, 0, 1, at[2], at[1], event_id(1))]
    assertDataFrameEqual(found.by_resource, frame(spark, by_resource, FLIPS_BY_RESOURCE_SCHEMA))
    by_kind = [
        ("LOST", "ACCESS", 1, 1, 1, 2, 4, 2, at[2], at[1], event_id(1)),
        ("GAINED", "ACCESS", 1, 1, 1, 1, 1, 0, at[4], at[4], event_id(4)),
        ("GAINED", "LISTING", 1, 1, 1, 1, 1, 0, at[3], at[3], event_id(3)),
        ("RULE_CHANGED", "ACCESS", 1, 1, 1, 1, 2, 1, at[0], at[0], event_id(0)),
    ]
    assertDataFrameEqual(found.by_kind, frame(spark, by_kind, FLIPS_BY_KIND_SCHEMA))
    top = [(row["kind"], row["access"]) for row in found.top(3).collect()]
    assert top == [("LOST", "ACCESS"), ("GAINED", "ACCESS"), ("GAINED", "LISTING")]


def test_a_change_made_since_is_not_the_candidates(spark: SparkSession) -> None:
    # eve was granted her topic yesterday; the candidate keeps that and takes bob's literal for a prefix
    today = AclsInForce.of("today", acls([READS, WRITES, "ALLOW READ User:eve TOPIC *"]))
    candidate = today.with_bindings("candidate", acls([PREFIX, WRITES, "ALLOW READ User:eve TOPIC *"]))
    rollup = rollup_frame(spark, EVENTS)
    found = replay(spark, rollup, candidate, today).flips.collect()
    assert [(row["kind"], row["principal"], row["from_rule"]) for row in found] == [
        ("RULE_CHANGED", "User:bob", audit(READS))
    ]
    assert replay(spark, rollup, candidate, today, rule_changes=False).flips.collect() == []
    assert replay(spark, rollup, today, today).flips.collect() == []
    # and what the past denied, the recorded past denies still
    gained = replay(spark, rollup, today, rule_changes=False).by_kind.collect()
    assert {(row["kind"], row["access"], row["event_count"]) for row in gained} == {
        ("GAINED", "ACCESS", 1),
        ("GAINED", "LISTING", 1),
    }


def test_each_event_has_its_verdict_in_its_place(spark: SparkSession) -> None:
    events = event_frame(spark, EVENTS)
    rows = events.transform(verdict_on_each_event, ship(spark, CANDIDATE), with_rule=True).collect()
    assert [row["event_id"] for row in rows] == [event_id(number) for number in range(len(EVENTS))]
    assert [(row["to_decision"], row["flip"]) for row in rows] == [
        ("ALLOWED", None),
        ("DENIED", "LOST"),
        ("DENIED", "LOST"),
        ("ALLOWED", "GAINED"),
        ("ALLOWED", "GAINED"),
    ]
    assert rows[0]["to_rule"] == audit(PREFIX)
    assert rows[0]["decision"] == "ALLOWED"


def expected_flips(
    events: list[Event], now: dict[Question, tuple[str, str]], before: dict[Question, tuple[str, str]] | None
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return in plain Python the counts of each flip, by what identifies it."""
    groups: dict[tuple[Any, ...], list[tuple[int, Event]]] = defaultdict(list)
    for number, event in enumerate(events):
        question, access, decision, rule, _, _ = event
        binding = "MatchingAcl(acl=StandardAcl[" + ", ".join(
            f"{key}={rule[field]}"
            for key, field in (
                ("resourceType", "resource_type"),
                ("resourceName", "resource_name"),
                ("patternType", "pattern_type"),
                ("principal", "principal"),
                ("host", "host"),
                ("operation", "operation"),
                ("permissionType", "permission_type"),
            )
        )
        said = f"{binding}])" if rule["kind"] == "MatchingAcl" else rule["kind"]
        was = (decision, said) if before is None else before[question]
        is_now = now[question]
        if was[0] == "ALLOWED" != is_now[0]:
            kind = "LOST"
        elif is_now[0] == "ALLOWED" != was[0]:
            kind = "GAINED"
        elif was[0] == is_now[0] and was[1] != is_now[1] and question[-1] is not None:
            kind = "RULE_CHANGED"
        else:
            continue
        groups[kind, *question, access, *was, *is_now].append((number, event))
    return {
        key: (
            len(members),
            sum(event[5] for _, event in members),
            sum(event[2] == "ALLOWED" for _, event in members),
            START + timedelta(seconds=min(event[4] for _, event in members)),
            START + timedelta(seconds=max(event[4] for _, event in members)),
            event_id(min(number for number, _ in members)),
        )
        for key, members in groups.items()
    }


def found_flips(found: DataFrame) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    keys = FLIPS_SCHEMA.fieldNames()[:11]
    assert relaxed(found.schema) == relaxed(FLIPS_SCHEMA)
    rows = found.collect()
    assert len({tuple(row[key] for key in keys) for row in rows}) == len(rows)
    return {
        tuple(row[key] for key in keys): (
            row["event_count"],
            row["reference_count"],
            row["recorded_allowed_count"],
            row["first_time"].astimezone(UTC),
            row["last_time"].astimezone(UTC),
            row["sample_event_id"],
        )
        for row in rows
    }


@pytest.mark.parametrize("nth", range(2))
def test_flips_are_those_of_plain_python(spark: SparkSession, seed: int, nth: int) -> None:
    seed += nth
    today, asks = made_world(seed)
    candidate = changed(today, seed)
    questions = [q for q in asked_around(asks, seed) if q[0] is not None and ":" in q[0]]
    events = recorded(changed(today, seed + 1), questions, 400, seed)
    now = answered(candidate.authorizer(), questions)
    before = answered(today.authorizer(), questions)
    shipped = ship(spark, candidate)
    of_events, of_rollup = event_frame(spark, events), rollup_frame(spark, events)
    told = found_flips(of_events.transform(flips_of_rows, "audit_events", shipped))
    assert told == expected_flips(events, now, None)
    assert found_flips(replay(spark, of_rollup, candidate).flips) == expected_flips(events, now, None)
    without = replay(spark, rollup_frame(spark, events), candidate, today, rule_changes=False).flips
    against_today = expected_flips(events, now, before)
    assert found_flips(without) == {k: v for k, v in against_today.items() if k[0] != "RULE_CHANGED"}
    assert found_flips(replay(spark, of_rollup, candidate, today).flips) == against_today
    decided = of_rollup.transform(decisions, shipped)
    assert relaxed(decided.schema) == relaxed(DECISIONS_SCHEMA)
    rows = decided.collect()
    assert sum(row["event_count"] for row in rows) == len(events)
    for row in rows:
        question = tuple(row[name] for name in QUESTION_COLUMNS)
        assert (row["decision"], row["rule"]) == now[question]


SUMS = """
    sum(event_count) FILTER (kind = 'LOST' AND access = 'ACCESS'),
    sum(event_count) FILTER (kind = 'GAINED' AND access IN ('ACCESS', 'PROBE')),
    sum(event_count) FILTER (kind = 'RULE_CHANGED' AND access = 'ACCESS'),
    sum(event_count) FILTER (kind = 'LOST' AND access = 'LISTING'),
    sum(event_count) FILTER (kind = 'GAINED' AND access = 'LISTING'),
    min(first_time), max(last_time)"""


@pytest.mark.parametrize("seed", [3])
def test_sums_are_those_of_duckdb(spark: SparkSession, seed: int) -> None:
    today, asks = made_world(seed, acl_count=300)
    questions = [q for q in asked_around(asks, seed) if q[0] is not None and ":" in q[0]]
    events = recorded(today, questions, 2000, seed)
    kept = replay(spark, rollup_frame(spark, events), changed(today, seed)).flips
    said = kept.toArrow()
    assert said.num_rows > 20
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for stage, keys, counted in (
        (
            flips_by_principal,
            ("principal",),
            "count(DISTINCT (resource_type, coalesce(resource_name, '\u2205')))",
        ),
        (flips_by_resource, ("resource_type", "resource_name"), "count(DISTINCT principal)"),
    ):
        names = ", ".join(keys)
        theirs = database.execute(f"SELECT {names}, {counted}, {SUMS} FROM said GROUP BY {names}")
        expected = {
            tuple(value or 0 if i > len(keys) else value for i, value in enumerate(row))
            for row in theirs.fetchall()
        }
        ours = {tuple(row)[:-1] for row in kept.transform(stage).collect()}
        assert {_untimed(row) for row in ours} == {_untimed(row) for row in expected}
    theirs = database.execute(
        "SELECT kind, access, count(*), count(DISTINCT principal), sum(event_count), sum(reference_count) "
        "FROM said GROUP BY kind, access"
    )
    ours_by_kind = {
        (
            r["kind"],
            r["access"],
            r["flip_count"],
            r["principal_count"],
            r["event_count"],
            r["reference_count"],
        )
        for r in kept.transform(flips_by_kind).collect()
    }
    assert ours_by_kind == set(theirs.fetchall())
    top = kept.transform(top_flips, 10).collect()
    weights = [(r["kind"], r["access"], -r["event_count"]) for r in top]
    order = {("LOST", "ACCESS"): 0, ("GAINED", "ACCESS"): 1, ("LOST", "LISTING"): 2, ("GAINED", "LISTING"): 3}
    order["GAINED", "PROBE"] = 1
    ranks = [(order.get((kind, access), 4), count) for kind, access, count in weights]
    assert ranks == sorted(ranks)


def _untimed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with its times as seconds."""
    return tuple(value.timestamp() if hasattr(value, "timestamp") else value for value in row)
