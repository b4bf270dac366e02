"""Failed logins: guesses, a password tried on many names, the guess that was right; and what is neither."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import DateType, StructField, StructType

from kustos.pipeline.anomalies import AnomalyParameters, Suppression, Window, find_anomalies, kept
from kustos.pipeline.anomalies.activity import ActivityScope
from kustos.pipeline.anomalies.failed_logins import failed_logins
from kustos.pipeline.anomalies.rows import without
from kustos.pipeline.schemas import FOUND_ANOMALIES_SCHEMA, SECURITY_EVENTS_SCHEMA
from tests.pipeline.anomalies.rows import frame

SCHEMA = StructType([*SECURITY_EVENTS_SCHEMA.fields, StructField("day", DateType())])
WINDOW = Window(date(2026, 11, 20), date(2026, 11, 22))
IN_WINDOW, BEFORE = date(2026, 11, 20), date(2026, 11, 10)


def row(name: str | None, host: str | None, day: date = IN_WINDOW, **more: Any) -> dict[str, Any]:
    """Return an event at the minute `at` of the day, which stands for `count` and is `ok` or not."""
    at, count, ok = more.get("at", 0), more.get("count", 1), more.get("ok", False)
    time = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(minutes=at)
    time_ms = int(time.timestamp() * 1000)
    return dict.fromkeys(SCHEMA.fieldNames()) | {
        "event_type": "LOGIN",
        "result": "SUCCESS" if ok else "FAILURE",
        "claimed_name": name,
        "host": host,
        "attempt_count": count,
        "first_time_ms": time_ms,
        "time_ms": time_ms,
        "time": time,
        "day": day,
    }


GUESSES = [row("admin", "10.0.0.1", count=1), row("admin", "10.0.0.1", count=30, at=5)]
RIGHT = [row("root", "10.0.0.2", count=25), row("root", "10.0.0.2", ok=True, at=1)]
SPRAY = [row(f"user-{number}", "10.0.0.3") for number in range(10)] + [row(None, "10.0.0.3", count=90, at=5)]
OLD_PASSWORD = [
    row("batch", "10.0.0.4", day, count=500)
    for day in (*(BEFORE + timedelta(days=n) for n in range(5)), IN_WINDOW)
]
MOVED = [
    row("pods", f"10.7.{place}.4", day, count=500)
    for place, day in enumerate((*(BEFORE + timedelta(days=n) for n in range(5)), IN_WINDOW))
]
"""A service with an old password whose pods move within their wider network."""
HOME = [row("rotated", "10.0.1.1", BEFORE, ok=True), row("rotated", "10.0.1.1", count=900)]
"""A client that retries a new password from where it logged in before, and gets in at last."""
SLOW = [
    row("patient", f"10.0.{2 + n % 3}.1", IN_WINDOW - timedelta(days=6 - n), count=3, at=n) for n in range(7)
]
"""Three guesses a day for a week, from three addresses."""
NOTHING = [
    *HOME,
    row("rotated", "10.0.1.1", ok=True, at=9),
    *(row("mistyped", f"10.0.1.{2 + n % 2}", BEFORE, ok=True) for n in range(2)),
    *(row("mistyped", f"10.0.1.{2 + n % 2}", IN_WINDOW - timedelta(days=6 - n), count=4) for n in range(7)),
    *(row("forgetful", "10.0.0.5", count=19, at=1), row("forgetful", "10.0.0.5", ok=True, at=2)),
    *(row(f"person-{n}", "10.0.0.6") for n in range(40)),
    *(row(f"person-{n}", "10.0.0.6", ok=True, at=1) for n in range(40)),
    *(row("first in", "10.0.0.7", ok=True), row("first in", "10.0.0.7", ok=True, at=9)),
    row("long ago", "10.0.0.8", BEFORE, count=100),
    row(None, None, count=5_000),
    {**row("alice", "10.0.0.9", count=400), "event_type": "USER_CHANGE"},
]


ByWorld = dict[str, list[tuple[str, str | None, str | None, Row]]]
"""Kind, principal and address of the anomalies of each world, and the rows as they are."""
FAR = row("pods", "172.16.1.1", count=500)
NEAR = [row("pods", "10.7.99.1", count=500), row("pods", "10.7.99.1", ok=True, at=1)]
WORLDS: dict[str, list[dict[str, Any]]] = {
    "moved": MOVED,
    "moved far": [*MOVED, FAR],
    "moved near and got in": [*MOVED, *NEAR],
    "slow": SLOW,
    "slow, fewer": SLOW[1:],
    "slow, one address": [{**each, "host": "10.0.2.1"} for each in SLOW],
    "slow and got in": [*SLOW, row("patient", SLOW[-1]["host"], ok=True, at=600)],
    "home": HOME,
    "home of many": [*HOME, *(row(f"person-{n}", "10.0.1.1", BEFORE, ok=True) for n in range(12))],
    "home since today": [HOME[1], row("rotated", "10.0.1.1", ok=True, at=1)],
    "two addresses": [*SPRAY, *({**each, "host": "10.0.0.33"} for each in SPRAY)],
}
"""Logins of clusters that share no name and no address, so that one search is about all: see `apart`."""


def apart(number: int, each: dict[str, Any]) -> dict[str, Any]:
    """Return the row with the name and the address that it has in a world: 10. and 172. begin anew."""
    first, rest = str(each["host"]).split(".", 1)
    name = each["claimed_name"]
    host = f"{11 + 2 * number + (first == '172')}.{rest}"
    return each | {"claimed_name": None if name is None else f"{name}@{number}", "host": host}


def told_of(found: Row) -> tuple[int, str, str | None, str | None]:
    """Return which world an anomaly is about, and its kind, principal and address there: `apart` undone."""
    principal, host = found["principal"], json.loads(found["evidence"]).get("host")
    worlds = set()
    if principal is not None:
        principal, number = principal.split("@")
        worlds.add(int(number))
    if host is not None:
        first, rest = host.split(".", 1)
        number, is_far = divmod(int(first) - 11, 2)
        worlds.add(number)
        host = f"{172 if is_far else 10}.{rest}"
    [world] = worlds
    return world, found["kind"], principal, host


def frame_of(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(each[name] for name in SCHEMA.fieldNames()) for each in rows], SCHEMA)


def found(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return failed_logins(frame_of(spark, rows), ActivityScope(WINDOW, AnomalyParameters(), kept))


@pytest.fixture(scope="module")
def by_world(spark: SparkSession) -> ByWorld:
    rows = [apart(number, each) for number, world in enumerate(WORLDS.values()) for each in world]
    made: ByWorld = {name: [] for name in WORLDS}
    for each in found(spark, rows).collect():
        number, kind, principal, host = told_of(each)
        made[list(WORLDS)[number]].append((kind, principal, host, each))
    return made


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> list[Row]:
    security = frame_of(spark, [*GUESSES, *RIGHT, *SPRAY, *OLD_PASSWORD, *NOTHING])
    made = find_anomalies(spark, window=WINDOW, rollup=frame(spark, []), security_events=security, keep=kept)
    assert made.schema.fieldNames() == FOUND_ANOMALIES_SCHEMA.fieldNames()
    return sorted(made.collect(), key=lambda each: str(each["kind"]))


def test_each_kind_is_found_once_and_nothing_else(told: list[Row]) -> None:
    assert [(each["kind"], each["principal"], each["event_count"], each["severity"]) for each in told] == [
        ("LOGIN_AFTER_FAILURES", "User:root", 25, "HIGH"),
        ("PASSWORD_GUESSING", "User:admin", 31, told[1]["severity"]),
        ("PASSWORD_SPRAYING", None, 100, "HIGH"),
    ]
    assert {each["day"] for each in told} == {IN_WINDOW}
    assert all(0.5 <= each["score"] < 1 for each in told)
    assert len({each["anomaly_id"] for each in told}) == 3


def test_an_anomaly_says_who_from_where_and_how_often(told: list[Row]) -> None:
    right, guessed, sprayed = told
    assert right["reason"] == (
        "25 logins as `root` failed from 10.0.0.2, and then one succeeded: a password that was guessed?"
    )
    assert guessed["reason"].startswith("31 logins as `admin` failed from 10.0.0.1: somebody guesses")
    assert sprayed["reason"].startswith("100 logins from 10.0.0.3 failed, of 10 names or more (`user-0`, ")
    assert json.loads(sprayed["evidence"])["host"] == "10.0.0.3"


def test_an_old_password_may_move_nearby_but_not_far_and_not_get_in(by_world: ByWorld) -> None:
    assert by_world["moved"] == []
    [guessed] = by_world["moved far"]
    assert guessed[:3] == ("PASSWORD_GUESSING", "User:pods", "172.16.1.1")
    [right] = by_world["moved near and got in"]
    assert right[:3] == ("LOGIN_AFTER_FAILURES", "User:pods", "10.7.99.1")


def test_patient_guesses_from_several_addresses_add_up(by_world: ByWorld) -> None:
    [(kind, principal, host, slow)] = by_world["slow"]
    assert (kind, principal, host, slow["day"]) == ("PASSWORD_GUESSING", "User:patient", None, IN_WINDOW)
    evidence = json.loads(slow["evidence"])
    assert (evidence["failed"], evidence["addresses"]) == (21, 3)
    assert by_world["slow, fewer"] == [], "18 in a week are fewer than the least number"
    assert by_world["slow, one address"] == []
    [(kind, *_)] = by_world["slow and got in"]
    assert kind == "LOGIN_AFTER_FAILURES"


def test_an_address_is_a_name_s_own_from_the_day_after_it_got_in_and_unless_many_share_it(
    by_world: ByWorld,
) -> None:
    assert by_world["home"] == []
    assert [kind for kind, *_ in by_world["home of many"]] == ["PASSWORD_GUESSING"]
    assert [kind for kind, *_ in by_world["home since today"]] == ["LOGIN_AFTER_FAILURES"]


def test_two_addresses_of_one_day_are_two_anomalies(by_world: ByWorld) -> None:
    two = by_world["two addresses"]
    assert sorted(str(host) for _, _, host, _ in two) == ["10.0.0.3", "10.0.0.33"]
    assert len({each["anomaly_id"] for *_, each in two}) == 2


def test_a_suppressed_principal_hides_no_address(spark: SparkSession) -> None:
    known = (Suppression(reason="a test", principal="User:admin"),)
    left = without(found(spark, [*GUESSES, *SPRAY]), known)
    assert [each["kind"] for each in left.collect()] == ["PASSWORD_SPRAYING"]
