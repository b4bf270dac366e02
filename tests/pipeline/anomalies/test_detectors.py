"""The detectors find what the story says and no more, and the same as plain Python, in whatever order."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kustos.pipeline.anomalies import AnomalyParameters, Suppression, Window, find_anomalies, kept
from kustos.pipeline.errors import AnomalyInputError
from kustos.pipeline.schemas import FINDINGS_SCHEMA
from tests.pipeline.anomalies import plain, story
from tests.pipeline.anomalies.rows import START, Use, frame, random_uses

LENIENT = AnomalyParameters(
    history_days=60, learning_days=5, settled_days=3, habit_days=4, first_seen_surprise=1.0,
    new_host_surprise=0.5, company_surprise=0.4, known_range_surprise=0.8, denials_min=10,
    denials_deviations=1.0, denials_lasting_deviations=0.5, enumerated_topics=2, enumeration_surprise=0.2,
    attempts_per_name=200.0, swept_names=2, swept_names_denied=1, hours_surprise=1.5, dormant_days=3,
    leave_days=6, dormant_surprise=0.5,
)  # fmt: skip
"""So that random uses hold findings of every kind."""
DAYS, FIRST = 60, 40


def key(row: Row, start_ordinal: int = START.toordinal()) -> tuple[str, str, int]:
    return row["kind"], row["principal"], row["day"].toordinal() - start_ordinal


def window_of(first: int, end: int) -> Window:
    return Window(START + timedelta(days=first), START + timedelta(days=end))


def halves(use: Use) -> list[Use]:
    """Return the use as two rows, as a roll-up holds it where late events came."""
    return [replace(use, count=use.count // 2), replace(use, count=use.count - use.count // 2)]


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> list[Row]:
    """Return the story's findings: told out of order, each row in two, a principal doubled by a twin."""
    uses = [*story.ordinary(), *story.look_alikes(), *story.sleeper()]
    for more in story.anomalies().values():
        uses += more
    uses += [replace(use, principal="User:twin") for use in uses if use.principal == "User:team2-2"]
    rows = [half for use in uses for half in halves(use)]
    Random(5).shuffle(rows)
    found: list[Row] = find_anomalies(
        spark, rollup=frame(spark, rows), window=story.WINDOW, keep=kept
    ).collect()
    return found


def test_each_anomaly_is_found_once_and_no_look_alike(told: list[Row]) -> None:
    """In whatever order and pieces the roll-up comes; a copy of somebody's behaviour adds nothing."""
    assert sorted(map(key, told)) == sorted(story.anomalies())


def test_a_finding_has_a_score_a_severity_a_reason_and_its_evidence(told: list[Row]) -> None:
    assert told
    for row in told:
        assert row.asDict().keys() == set(FINDINGS_SCHEMA.fieldNames())
        assert 0.5 <= row["score"] < 1
        assert row["severity"] in ("HIGH", "MEDIUM", "LOW")
        assert not row["reason"][0].isupper()
        assert json.loads(row["evidence"])["surprise"] > 0
        assert row["first_time"] <= row["last_time"]
        assert row["event_count"] > 0
    assert len({row["finding_id"] for row in told}) == len(told)


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
    """The victims have few days of habits, so that chance alone makes their findings LOW."""
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


def expected_findings(uses: list[Use], parameters: AnomalyParameters) -> Iterator[plain.Finding]:
    known = plain.Plain(uses, FIRST, parameters)
    pairs = known.pairs()
    thresholds = {
        "DORMANT_WAKING": parameters.dormant_surprise,
        "SUPER_USER_USE": parameters.super_user_surprise,
        "NEW_HOST": parameters.new_host_surprise,
        "UNUSUAL_HOURS": parameters.hours_surprise,
        "SWEEP": parameters.enumeration_surprise,
        "TOPIC_ENUMERATION": parameters.enumeration_surprise,
        "FIRST_SEEN_ACCESS": parameters.first_seen_surprise,
    }
    tours = [one for one in pairs.enumeration() if one[3] >= parameters.enumeration_surprise]
    met = [one for one in pairs.first_seen() if one[1:3] not in {tour[1:3] for tour in tours}]
    sweeps = [one for one in known.sweeps() if one[3] >= parameters.enumeration_surprise]
    for one in (
        *known.dormant(),
        *known.super_users(),
        *known.hosts(),
        *known.hours(),
        *tours,
        *met,
        *sweeps,
    ):
        if one[3] >= thresholds[one[0]]:
            yield one
    for principal, day, deviations in plain.denials(known, {one[1:3] for one in (*tours, *sweeps)}):
        yield "BURST", principal, day, deviations**2 / 2


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


def test_random_uses_have_the_findings_of_plain_python(spark: SparkSession) -> None:
    uses = random_uses(3, DAYS, 30)
    found = find_anomalies(
        spark, rollup=frame(spark, uses), window=window_of(FIRST, DAYS), parameters=LENIENT, keep=kept
    ).collect()
    kinds = {row["kind"] for row in found}
    assert len(kinds) >= 7, f"random uses should hold most kinds, not only {sorted(kinds)}"
    actual: dict[tuple[str, str, int], float] = {}
    for row in found:
        kind, principal, day = key(row)
        kind = "BURST" if kind in ("BRUTE_FORCE", "MISSING_RIGHT") else kind
        actual[kind, principal, day] = json.loads(row["evidence"])["surprise"]
    expected: dict[tuple[str, str, int], float] = {}
    for kind, principal, day, surprise in expected_findings(uses, LENIENT):
        place = kind, principal, day
        expected[place] = max(surprise, expected.get(place, -1.0))
    assert actual == pytest.approx(expected, abs=2e-3)


def test_what_is_known_is_suppressed_and_nothing_else(spark: SparkSession, told: list[Row]) -> None:
    from kustos.pipeline.anomalies.findings import without

    day = datetime.combine(START, datetime.min.time(), UTC)
    known = [
        Suppression(reason="penetration test", kind="BRUTE_FORCE", principal="User:team0-2"),
        Suppression(reason="other kind", kind="NEW_HOST", principal="User:team0-2"),
        Suppression(
            reason="maintenance", since=day + timedelta(days=51), until=day + timedelta(days=52, hours=2)
        ),
    ]
    rows = without(spark.createDataFrame(told, FINDINGS_SCHEMA), known).collect()
    gone = {key(row) for row in told} - {key(row) for row in rows}
    assert gone == {("BRUTE_FORCE", "User:team0-2", 50), ("UNUSUAL_HOURS", "User:office", 51)}


def test_questions_that_make_no_sense_are_refused(spark: SparkSession) -> None:
    with pytest.raises(AnomalyInputError, match="either a roll-up or events"):
        find_anomalies(spark, window=story.WINDOW)
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
        find_anomalies(
            spark, rollup=frame(spark, [Use(day=0)]), window=story.WINDOW, suppressions=[known] * 1001
        )


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
