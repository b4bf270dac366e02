"""The detectors find what the reference page says and no more, in whatever order."""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kustos.pipeline.anomalies import AnomalyParameters, Suppression, Window, find_anomalies, kept
from kustos.pipeline.errors import AnomalyInputError
from kustos.pipeline.schemas import AUDIT_ROLLUP_SCHEMA, FOUND_ANOMALIES_SCHEMA
from testkit.seeds import seed_of_run
from tests.pipeline.anomalies.rows import START, Use, decided, frame, rolled_up
from tests.pipeline.plain_anomalies import PlainAnomalies
from tests.pipeline.plain_uses import Expected, Habits, check_anomalies, day_of
from tests.pipeline.rich_oddities import DAYS as DAYS_TOLD
from tests.pipeline.rich_oddities import FIRST_DAY, JUDGED, Told
from tests.pipeline.rich_oddities import told as stories

LENIENT = AnomalyParameters(
    history_days=60, learning_days=5, settled_days=3, habit_days=4, first_seen_surprise=1.0,
    new_host_surprise=0.5, company_surprise=0.4, known_range_surprise=0.8, denials_min=10,
    denials_deviations=1.0, denials_lasting_deviations=0.5, enumerated_topics=2, enumeration_surprise=0.2,
    attempts_per_name=200.0, swept_names=2, swept_names_denied=1, hours_surprise=1.5, dormant_days=3,
    leave_days=6, dormant_surprise=0.5,
)  # fmt: skip
"""So that stories hold more anomalies."""
DAYS, FIRST = 60, 40

WINDOW = Window(*(FIRST_DAY.date() + timedelta(days=day) for day in (JUDGED.start, DAYS_TOLD)))
SEED = 75
"""Stories that hold anomalies of all kinds about access."""
KINDS_TOLD = {
    "BRUTE_FORCE", "DORMANT_WAKING", "FIRST_SEEN_ACCESS", "MISSING_RIGHT", "NEW_HOST", "PRIVILEGE_PROBING",
    "SUPER_USER_USE", "SWEEP", "TOPIC_ENUMERATION", "UNUSUAL_HOURS",
}  # fmt: skip


def key(row: Row, start_ordinal: int = START.toordinal()) -> tuple[str, str, int]:
    return row["kind"], row["principal"], row["day"].toordinal() - start_ordinal


def window_of(first: int, end: int) -> Window:
    return Window(START + timedelta(days=first), START + timedelta(days=end))


def expected_anomalies(decisions: Iterable[Told], limits: AnomalyParameters) -> list[Expected]:
    """Return the anomalies that there must be, by the words of the reference page."""
    rows = [decided(one) for one in decisions]
    habits = Habits(rows, day_of(WINDOW.start), day_of(WINDOW.end), super_users=(), limits=asdict(limits))
    return PlainAnomalies(habits).all()


def search(spark: SparkSession, decisions: Iterable[Told], limits: AnomalyParameters) -> list[Row]:
    """Return the anomalies, from rows of the roll-up in any order."""
    rows = list(rolled_up(decisions))
    Random(5).shuffle(rows)
    rollup = spark.createDataFrame(rows, AUDIT_ROLLUP_SCHEMA)
    found: list[Row] = find_anomalies(
        spark, rollup=rollup, window=WINDOW, parameters=limits, keep=kept
    ).collect()
    return found


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> list[Row]:
    return search(spark, stories(Random(SEED)), AnomalyParameters())


def test_the_anomalies_of_stories_are_those_of_the_page(told: list[Row]) -> None:
    """In whatever order and pieces the roll-up comes."""
    assert {row["kind"] for row in told} == KINDS_TOLD
    expected = expected_anomalies(stories(Random(SEED)), AnomalyParameters())
    check_anomalies([row.asDict() for row in told], expected)


def test_a_copy_of_a_behaviour_has_anomalies_of_its_own(spark: SparkSession) -> None:
    decisions = stories(Random(SEED))
    decisions += [replace(one, who="User:twin") for one in decisions if one.who == "User:clerk-0"]
    expected = expected_anomalies(decisions, AnomalyParameters())
    found = search(spark, decisions, AnomalyParameters())
    check_anomalies([row.asDict() for row in found], expected)


def test_the_anomalies_follow_the_parameters(spark: SparkSession) -> None:
    """Each run searches other stories."""
    decisions = stories(Random(f"{seed_of_run()} lenient"))
    found = search(spark, decisions, LENIENT)
    check_anomalies([row.asDict() for row in found], expected_anomalies(decisions, LENIENT))


def test_an_anomaly_has_a_score_a_severity_a_reason_and_its_evidence(told: list[Row]) -> None:
    assert told
    for row in told:
        assert row.asDict().keys() == set(FOUND_ANOMALIES_SCHEMA.fieldNames())
        assert 0.5 <= row["score"] < 1
        assert row["severity"] in ("HIGH", "MEDIUM", "LOW")
        assert not row["reason"][0].isupper()
        assert json.loads(row["evidence"])["surprise"] > 0
        assert row["first_time"] <= row["last_time"]
        assert row["event_count"] > 0
    assert len({(row["anomaly_id"], row["day"]) for row in told}) == len(told)


def test_a_burst_is_an_anomaly_if_it_was_refused_and_none_if_it_was_probes(spark: SparkSession) -> None:
    probes = Use(
        day=FIRST, operation="IDEMPOTENT_WRITE", resource_type="CLUSTER", resource_name="kafka-cluster",
        decision="DENIED", rule="DefaultDeny", access="PROBE", count=300, hours=(9,),
    )  # fmt: skip
    rows = [probes, replace(probes, principal="User:refused", access="ACCESS")]
    found = find_anomalies(spark, rollup=frame(spark, rows), window=window_of(FIRST, DAYS)).collect()
    assert [(row["kind"], row["principal"], row["severity"]) for row in found] == [
        ("MISSING_RIGHT", "User:refused", "MEDIUM")
    ]


def test_a_credential_that_works_from_a_foreign_network_is_high(spark: SparkSession) -> None:
    """The victims have few days of habits, so that chance alone makes their anomalies LOW."""
    victims = {"home": "10.9.1.1", "stolen": "203.1.113.9", "refused": "203.2.113.9", "mate": "10.1.9.9"}
    began = FIRST - AnomalyParameters().learning_days - 4
    usual = [
        Use(day=day, principal=f"User:{name}", host=f"10.{range_of}.2.7")
        for range_of, name in zip((9, 1, 2, 3), victims, strict=True)
        for day in range(began, FIRST + 1)
    ]
    away = [
        Use(
            day=FIRST + 1, principal=f"User:{name}", host=host, count=1,
            decision="DENIED" if name == "refused" else "ALLOWED",
        )
        for name, host in victims.items()
    ]  # fmt: skip
    rows = find_anomalies(
        spark, rollup=frame(spark, [*usual, *away]), window=window_of(FIRST, DAYS)
    ).collect()
    found = {row["principal"]: row for row in rows if row["kind"] == "NEW_HOST"}
    assert {name: row["severity"] for name, row in found.items()} == {
        "User:stolen": "HIGH", "User:refused": "LOW", "User:mate": "LOW",
    }  # fmt: skip
    foreign = {name: json.loads(row["evidence"])["foreign_uses"] for name, row in found.items()}
    assert foreign == {"User:stolen": 1, "User:refused": 0, "User:mate": 0}


def test_super_users_are_told_by_the_settings_where_no_rule_is_recorded(spark: SparkSession) -> None:
    """Lines of brokers before rules were in them: daily uses of a topic, and ALTER on the last day."""
    names = ("User:root", "User:bob", "User:eve")
    daily = [Use(day=day, principal=name, rule=None) for name in names for day in range(DAYS)]
    altering = Use(day=DAYS - 1, operation="ALTER", resource_name="shop.paid", rule=None)
    last = [replace(altering, principal=name) for name in names]
    last[2] = replace(last[2], decision="DENIED")
    found = {}
    for super_users in ((), names[::2]):
        rows = find_anomalies(
            spark, rollup=frame(spark, [*daily, *last]), window=window_of(FIRST, DAYS),
            super_users=super_users, keep=kept,
        ).collect()  # fmt: skip
        found[super_users] = {key(row) for row in rows if row["kind"] == "SUPER_USER_USE"}
    assert found == {(): set(), names[::2]: {("SUPER_USER_USE", "User:root", DAYS - 1)}}


def test_what_is_known_is_suppressed_and_nothing_else(spark: SparkSession, told: list[Row]) -> None:
    from kustos.pipeline.anomalies.rows import without

    sweep, hours = (next(row for row in told if row["kind"] == kind) for kind in ("SWEEP", "UNUSUAL_HOURS"))
    midnight = datetime.combine(hours["day"], datetime.min.time(), UTC)
    known = [
        Suppression(reason="penetration test", kind="SWEEP", principal=sweep["principal"]),
        Suppression(reason="other kind", kind="NEW_HOST", principal=sweep["principal"]),
        Suppression(
            reason="maintenance",
            kind="UNUSUAL_HOURS",
            principal=hours["principal"],
            since=midnight,
            until=midnight + timedelta(days=1),
        ),
    ]
    rows = without(spark.createDataFrame(told, FOUND_ANOMALIES_SCHEMA), known).collect()
    left = {(row["anomaly_id"], row["day"]) for row in rows}
    gone = {key for row in told if (key := (row["anomaly_id"], row["day"])) not in left}
    swept = {(row["anomaly_id"], row["day"]) for row in told if row["kind"] == "SWEEP"}
    assert gone == {*swept, (hours["anomaly_id"], hours["day"])}


def test_questions_that_make_no_sense_are_refused(spark: SparkSession) -> None:
    with pytest.raises(AnomalyInputError, match="either a roll-up or events"):
        find_anomalies(spark, window=WINDOW)
    with pytest.raises(AnomalyInputError, match="is not after"):
        Window(START, START)
    with pytest.raises(AnomalyInputError, match="`learning_days`"):
        AnomalyParameters(history_days=7)
    with pytest.raises(AnomalyInputError, match="would hide all"):
        Suppression(reason="everything")
    with pytest.raises(AnomalyInputError, match="no time zone"):
        Suppression(reason="naive", kind="NEW_HOST", since=datetime(2026, 8, 3))  # noqa: DTZ001
    known = Suppression(reason="many", kind="NEW_HOST")
    with pytest.raises(AnomalyInputError, match="more than"):
        find_anomalies(spark, rollup=frame(spark, [Use(day=0)]), window=WINDOW, suppressions=[known] * 1001)


def test_a_silence_while_the_log_was_off_is_no_dormancy(spark: SparkSession) -> None:
    before, woken = range(25), Use(day=55, principal="User:sleeper")
    sleeper = [*(Use(day=day, principal="User:sleeper") for day in before), woken]

    def found(recorded: Iterable[int]) -> list[Any]:
        uses = sleeper + [Use(day=day, principal="User:other", host="10.0.0.8") for day in recorded]
        rows = find_anomalies(spark, rollup=frame(spark, uses), window=window_of(50, 60)).collect()
        return [row for row in rows if row["kind"] == "DORMANT_WAKING"]

    assert found((*before, 55)) == []
    [waking] = found(range(60))
    assert json.loads(waking["evidence"])["recorded_days"] == 30
    # some of the days are enough, and weigh as much as they are
    [less] = found((*before, *range(25, 40), 55))
    evidence = json.loads(less["evidence"])
    assert (evidence["silent_days"], evidence["recorded_days"]) == (30, 15)
    assert less["score"] < waking["score"]
    assert "silent for 30 days since 2026-08-27, of which 15 have a record" in less["reason"]
