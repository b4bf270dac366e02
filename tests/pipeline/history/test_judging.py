"""Events judged by the ACLs in force then, in a session, beside asking the state of each event again."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kustos.pipeline.errors import MetadataHistoryError
from kustos.pipeline.history.judgement import judged_by_history
from kustos.pipeline.history.source import read_history
from kustos.pipeline.history.walk import Settings
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, AUDIT_ROLLUP_SCHEMA, JUDGED_SCHEMA
from tests.pipeline.events import event
from tests.pipeline.history.test_walk import HOST, decided
from tests.pipeline.history.worlds import T0_MS, State, World, random_world
from tests.pipeline.tables.test_rollup import way

pytestmark = pytest.mark.usefixtures("users_plans")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PRINCIPALS = ("User:p", "User:q", "User:s")


def at(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)


def event_row(number: int, **changes: Any) -> dict[str, Any]:
    """A row of AUDIT_EVENTS_SCHEMA."""
    made = event(event_id=str(UUID(int=number)), host=HOST, **changes)
    return {**made, "time": at(made["time_ms"]), "source_format": "KUSTOS", "source_file": "x"}


def random_events(random: Random, world: World, count: int) -> list[dict[str, Any]]:
    """Half of them say which ACLs decided, the others when; what was recorded is a guess."""
    made = []
    last = len(world.states()) - 1
    for number in range(count):
        kind, _, name = random.choice(PRINCIPALS).partition(":")
        made.append(
            event_row(
                number,
                principal_type=kind,
                principal_name=name,
                operation=random.choice(("READ", "DESCRIBE")),
                resource_name=random.choice(("a", "ab", "b")),
                decision=random.choice(("ALLOWED", "DENIED")),
                log_if_denied=number % 3 > 0,
                acl_offset=random.randint(0, last) if number % 2 else None,
                time_ms=random.randint(T0_MS - 3000, max(world.times_ms) + 5000),
                rule__kind=random.choice(("MatchingAcl", "DefaultDeny", "SuperUser", "CustomAuthorizer")),
            )
        )
    return made


def states_by_time(world: World, first_ms: int, last_ms: int) -> list[State]:
    """The states of this span: that of its beginning, and of each time at which one changed."""
    times = {world.latest_ms(number) for number in range(len(world.batches))}
    return [world.state_at(time_ms) for time_ms in (first_ms, *times) if first_ms <= time_ms <= last_ms]


def expected_verdict(world: World, settings: Settings, row: dict[str, Any], tolerance_ms: int) -> str:
    if row["rule"]["kind"] == "CustomAuthorizer":
        return "NOT_JUDGED"
    question = (f"User:{row['principal_name']}", HOST, row["operation"], "TOPIC", row["resource_name"])
    if row["acl_offset"] is not None:
        states = [world.states()[row["acl_offset"]]]
    else:
        if row["time_ms"] < T0_MS:
            return "OUT_OF_RANGE"
        states = states_by_time(world, row["time_ms"] - tolerance_ms, row["time_ms"] + tolerance_ms)
    answers = {decided(state.acls, settings, question) for state in states}
    return "AGREES" if row["decision"] in answers else "DIFFERS"


@pytest.mark.parametrize(("seed", "tolerance_ms", "default_allows"), [(1, 0, False), (2, 1500, True)])
def test_every_event_is_judged_by_the_acls_in_force_then(
    spark: SparkSession, tmp_path: Path, seed: int, tolerance_ms: int, default_allows: bool
) -> None:
    random = Random(seed)
    world = random_world(random, batches=40)
    directory = world.write(tmp_path / "log")
    events = random_events(random, world, 400)
    judged = judged_by_history(
        spark.createDataFrame(events, AUDIT_EVENTS_SCHEMA),
        read_history(spark, directory),
        log_range=read_history(spark, directory, "range"),
        super_users="User:s",
        allow_everyone_if_no_acl_found=default_allows,
        tolerance_ms=tolerance_ms,
        span_ms=1,
        buckets=3,
    )
    assert judged.schema == JUDGED_SCHEMA
    found: Counter[tuple[Any, ...]] = Counter()
    rows = judged.collect()
    for row in rows:
        found[key(row, row["access"], row["recorded_decision"], row["verdict"], row["judged_by"])] += row[
            "event_count"
        ]
        if row["verdict"] in {"AGREES", "DIFFERS"}:
            assert (row["decision"] == row["recorded_decision"]) is (row["verdict"] == "AGREES")
    settings = Settings(frozenset({"User:s"}), default_allows)
    expected: Counter[tuple[Any, ...]] = Counter()
    for each in events:
        verdict = expected_verdict(world, settings, each, tolerance_ms)
        judged_by = "TIME" if each["acl_offset"] is None else "OFFSET"
        named = {**each, "principal": f"User:{each['principal_name']}"}
        expected[key(named, way(each), each["decision"], verdict, judged_by)] += 1
    assert found == expected
    assert {verdict for *_, verdict, _ in found} == {"AGREES", "DIFFERS", "OUT_OF_RANGE", "NOT_JUDGED"}
    assert len(rows) == len(set(rows))


def key(row: Any, *said: str) -> tuple[Any, ...]:
    return (row["principal"], row["operation"], row["resource_name"], *said)


def rollup_row(first_ms: int, last_ms: int, count: int, **changes: Any) -> dict[str, Any]:
    empty = dict.fromkeys(AUDIT_ROLLUP_SCHEMA.fieldNames())
    rule = {**dict.fromkeys(event()["rule"]), "kind": changes.pop("kind", "MatchingAcl")}
    return {
        **empty, "principal": "User:p", "host": HOST, "operation": "READ", "resource_type": "TOPIC",
        "resource_name": "a", "decision": "ALLOWED", "access": "ACCESS", "rule": rule, "event_count": count,
        "reference_count": count, "first_time": at(first_ms), "last_time": at(last_ms),
        "day": at(first_ms).date(), "hours": 1, "sample_event_id": "x", **changes,
    }  # fmt: skip


HISTORY = [
    {
        "acl_id": "AAAAAAAAAAAAAAAAAAAAAQ", "resource_type": "TOPIC", "resource_name": "a",
        "pattern_type": "LITERAL", "principal": "User:p", "host": "*", "operation": "READ",
        "permission_type": "ALLOW", "valid_from_offset": 10, "valid_from_time": at(T0_MS),
        "valid_to_offset": 20, "valid_to_time": at(T0_MS + 60_000), "is_in_first_snapshot": False,
    },
]  # fmt: skip


def verdicts(spark: SparkSession, rows: Sequence[dict[str, Any]], **settings: Any) -> list[Any]:
    from kustos.pipeline.schemas import ACL_HISTORY_SCHEMA

    history = spark.createDataFrame(settings.pop("history", HISTORY), ACL_HISTORY_SCHEMA)
    frame = spark.createDataFrame(list(rows), AUDIT_ROLLUP_SCHEMA)
    judged = judged_by_history(frame, history, tolerance_ms=0, buckets=2, **settings).collect()
    return sorted((row["sample_event_id"], row["verdict"], row["event_count"]) for row in judged)


def test_a_roll_up_agrees_if_its_answer_was_right_at_any_moment(spark: SparkSession) -> None:
    before, within, after = T0_MS - 1000, T0_MS + 30_000, T0_MS + 61_000
    rows = [
        rollup_row(before, before, 1, sample_event_id="a"),
        rollup_row(before, within, 2, sample_event_id="b"),
        rollup_row(within, after, 3, sample_event_id="c", resource_name="a"),
        rollup_row(after, after, 4, sample_event_id="d"),
        rollup_row(before, after, 5, sample_event_id="e", decision="DENIED"),
        rollup_row(within, within, 6, sample_event_id="f", decision="DENIED"),
        rollup_row(within, within, 7, sample_event_id="g", principal="User:root", kind="SuperUser"),
    ]
    assert verdicts(spark, rows) == [
        ("a", "DIFFERS", 5),  # and `d`: the same was asked, recorded and answered
        ("b", "AGREES", 5),
        ("e", "AGREES", 5),
        ("f", "DIFFERS", 6),
        ("g", "NOT_JUDGED", 7),
    ]


def test_who_is_a_super_user_is_not_known_where_neither_the_line_nor_the_settings_say_it(
    spark: SparkSession,
) -> None:
    after = T0_MS + 61_000
    rows = [
        rollup_row(after, after, 1, sample_event_id="a", principal="User:root", kind=None),
        rollup_row(after, after, 2, sample_event_id="b", principal="User:root", rule=None),
        rollup_row(after, after, 3, sample_event_id="c", principal="User:root", kind="DefaultAllow"),
        rollup_row(T0_MS + 1, T0_MS + 1, 4, sample_event_id="d", kind=None),
        rollup_row(T0_MS + 1, T0_MS + 1, 5, sample_event_id="e", kind=None, decision="DENIED"),
    ]
    found = {
        setting: {name: verdict for name, verdict, _ in verdicts(spark, rows, super_users=setting)}
        for setting in (None, "", "User:root")
    }
    of_others = {"c": "DIFFERS", "d": "AGREES", "e": "DIFFERS"}
    assert found == {
        None: {"a": "UNCERTAIN", "b": "UNCERTAIN", **of_others},
        "": {"a": "DIFFERS", "b": "DIFFERS", **of_others},
        "User:root": {"a": "AGREES", "b": "AGREES", **of_others, "c": "AGREES"},
    }


def test_without_a_range_the_first_snapshot_is_the_beginning(spark: SparkSession) -> None:
    history = [{**HISTORY[0], "is_in_first_snapshot": True}]
    rows = [
        rollup_row(T0_MS - 1000, T0_MS + 1000, 1, sample_event_id="a"),
        rollup_row(T0_MS, T0_MS, 2, sample_event_id="b"),
    ]
    found = verdicts(spark, rows, history=history)
    assert found == [("a", "OUT_OF_RANGE", 1), ("b", "AGREES", 2)]


def test_histories_of_two_logs_at_once_fail_the_query(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="is not that of one log"):
        verdicts(spark, [rollup_row(T0_MS, T0_MS, 1)], history=[*HISTORY, *HISTORY])


def test_super_users_that_are_none_are_refused(spark: SparkSession) -> None:
    with pytest.raises(MetadataHistoryError, match="root"):
        verdicts(spark, [rollup_row(T0_MS, T0_MS, 1)], super_users="root")
