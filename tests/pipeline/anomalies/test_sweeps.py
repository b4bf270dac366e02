"""Denials are not all alike: retries of one thing are a missing right, many names tried once a sweep."""

import json
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from kustos.pipeline.anomalies import Window, find_anomalies, kept
from tests.pipeline.anomalies.rows import START, Use, frame

FIRST, END = 42, 56
WINDOW = Window(START.fromordinal(START.toordinal() + FIRST), START.fromordinal(START.toordinal() + END))
DAY = 50
DENIED: dict[str, Any] = {"decision": "DENIED", "rule": "DefaultDeny"}
TOPICS = 54

ATTACKS = ("SWEEP", "BRUTE_FORCE", "TOPIC_ENUMERATION", "PRIVILEGE_PROBING")


def resident(name: str, **more: Any) -> list[Use]:
    """Return eight weeks of a principal that reads one topic."""
    return [Use(day=day, principal=f"User:{name}", resource_name=f"{name}.own", **more) for day in range(END)]


def retries(name: str, *operations: str, topic: str = "billing.invoices", **more: Any) -> list[Use]:
    """Return 50,000 denials of one name, over a working day."""
    given: dict[str, Any] = {
        "hours": tuple(range(8, 18)),
        "day": DAY,
        "count": 50_000 // len(operations),
    } | more
    return [
        Use(principal=f"User:{name}", operation=operation, resource_name=topic, **given, **DENIED)
        for operation in operations
    ]


def sweep(name: str, operation: str, **more: Any) -> list[Use]:
    """Return one denied attempt at each of 54 topics."""
    given: dict[str, Any] = {"day": DAY, "count": 1, "hours": (9,)} | DENIED | more
    return [
        Use(principal=f"User:{name}", operation=operation, resource_name=f"shop.t{number}", **given)
        for number in range(TOPICS)
    ]


def reader_of_all(name: str) -> list[Use]:
    """Return a principal that has long read all the topics of `sweep`."""
    return [
        Use(day=day, principal=f"User:{name}", resource_name=f"shop.t{number}", count=1)
        for day in range(0, END, 5)
        for number in range(TOPICS)
    ]


def spread_over_hosts(name: str) -> list[Use]:
    return [
        Use(principal=use.principal, operation="ALTER", resource_name=use.resource_name, day=DAY, count=1,
            host=f"10.0.{number % 3}.{number}", hours=(number % 24,), **DENIED)
        for number, use in enumerate(sweep(name, "ALTER"))
    ]  # fmt: skip


def partly_allowed(name: str) -> list[Use]:
    allowed = {"decision": "ALLOWED", "rule": "MatchingAcl"}
    return [
        Use(principal=use.principal, operation="DELETE", resource_name=use.resource_name, day=DAY, count=1,
            **(allowed if number % 3 else DENIED))
        for number, use in enumerate(sweep(name, "DELETE"))
    ]  # fmt: skip


def slowly(name: str) -> list[Use]:
    return [
        Use(principal=use.principal, operation="ALTER_CONFIGS", resource_name=use.resource_name, count=1,
            day=DAY - 3 + number // 9, **DENIED)
        for number, use in enumerate(sweep(name, "ALTER_CONFIGS"))
    ]  # fmt: skip


NAMES, DENIALS = 89, 400


def thin(name: str, kind: str, operation: str = "READ", **more: Any) -> list[Use]:
    """Return 400 denials in two hours, spread over 89 names."""
    given: dict[str, Any] = {"day": DAY, "hours": (9, 10)} | DENIED | more
    return [
        Use(principal=f"User:{name}", operation=operation, resource_type=kind, resource_name=f"s{number}.n",
            count=DENIALS // NAMES + (number < DENIALS % NAMES), **given)
        for number in range(NAMES)
    ]  # fmt: skip


THIN = {
    "groups": [*resident("groups"), *thin("groups", "GROUP")],
    "transactions": [*resident("transactions"), *thin("transactions", "TRANSACTIONAL_ID", "WRITE")],
    "users": [*resident("users"), *thin("users", "USER", "DESCRIBE_TOKENS")],
    "stranger": thin("stranger", "GROUP", "DESCRIBE"),
    "topics again": [
        *resident("topics again"),
        *(use for day in (20, DAY) for use in thin("topics again", "TOPIC", day=day)),
    ],
}
WATCHING = {
    # set to watch all groups in the middle of the window
    "watcher": [
        *resident("watcher"),
        *(use for day in range(DAY, DAY + 5) for use in thin("watcher", "GROUP", day=day)),
    ],
    # looks at whatever there is each week, all year
    "inventory": [
        *resident("inventory"),
        *(
            replace(use, resource_name=f"{use.resource_name}{day}")
            for day in range(1, END, 7)
            for use in thin("inventory", "GROUP", day=day)
        ),
    ],
}
RETRIED = {
    "producer": [*resident("producer"), *retries("producer", "WRITE")],
    "newcomer": retries("newcomer", "WRITE", topic="bilingl.invoices"),
    "consumer": [*resident("consumer"), *retries("consumer", "READ", "DESCRIBE")],
    "drained": [*resident("drained"), *retries("drained", "READ", topic="drained.own")],
    "deleter": [*resident("deleter"), *retries("deleter", "DELETE")],
    "fidgeter": [
        *resident("fidgeter"),
        *retries("fidgeter", "WRITE"),
        *retries("fidgeter", "DESCRIBE", topic="mail.sent", count=3),
    ],
}
PROBED = {
    "prober": [
        *resident("prober"),
        *(
            Use(
                day=DAY + number % 3,
                principal="User:prober",
                operation=operation,
                resource_type="CLUSTER",
                resource_name="kafka-cluster",
                count=1,
                **DENIED,
            )
            for number, operation in enumerate(("ALTER", "CREATE", "ALTER_CONFIGS", "CLUSTER_ACTION"))
        ),
    ],
}
SWEPT = {
    "altering": [*resident("altering"), *sweep("altering", "ALTER")],
    "deleting": [*resident("deleting"), *sweep("deleting", "DELETE")],
    "creating": [*resident("creating"), *sweep("creating", "CREATE")],
    "unknown": sweep("unknown", "ALTER"),
    "insider": [*reader_of_all("insider"), *sweep("insider", "DELETE")],
    "roaming": [*reader_of_all("roaming"), *spread_over_hosts("roaming")],
    "lucky": [*reader_of_all("lucky"), *partly_allowed("lucky")],
    "noisy": [*reader_of_all("noisy"), *sweep("noisy", "ALTER"), *retries("noisy", "WRITE")],
    "patient": [*reader_of_all("patient"), *slowly("patient")],
}
NEITHER = {
    # a tool that creates topics all year, and is denied some of them
    "provisioner": [
        Use(day=day, principal="User:provisioner", operation="CREATE", resource_name=f"made.d{day}.n{number}",
            count=1, **(DENIED if number % 9 == 0 else {}))
        for day in range(END)
        for number in range(20)
    ],
    **WATCHING,
    # a client without any right, which gives up soon
    "rightless": [
        Use(day=DAY, principal="User:rightless", operation=operation, resource_name=f"orders.{operation}",
            count=3, **DENIED)
        for operation in ("READ", "WRITE", "DESCRIBE", "IDEMPOTENT_WRITE", "CREATE")
    ],
    # a deploy that makes its own topics
    "deployed": [
        *resident("deployed"),
        *(
            Use(day=DAY, principal="User:deployed", operation="CREATE", resource_name=f"deployed.n{number}")
            for number in range(30)
        ),
    ],
}  # fmt: skip


LOST = [
    *[replace(use, decision="ALLOWED", day=day) for day in range(40) for use in thin("lost", "GROUP")],
    *thin("lost", "GROUP"),
]
"""A client whose ACLs on its own groups were deleted."""


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> dict[str, list[Row]]:
    """Return the anomalies by principal."""
    stories = RETRIED | SWEPT | PROBED | NEITHER | THIN | {"lost": LOST}
    uses = [use for story in stories.values() for use in story]
    found = defaultdict(list)
    for row in find_anomalies(spark, rollup=frame(spark, uses), window=WINDOW, keep=kept).collect():
        found[row["principal"].removeprefix("User:")].append(row)
    return found


@pytest.mark.parametrize("name", RETRIED)
def test_retries_of_one_name_are_a_missing_right(told: dict[str, list[Row]], name: str) -> None:
    [row] = [row for row in told[name] if row["kind"] != "FIRST_SEEN_ACCESS"]
    assert (row["kind"], row["severity"] in ("LOW", "MEDIUM")) == ("MISSING_RIGHT", True)
    missing = json.loads(row["evidence"])["missing"]
    retried = [use for use in RETRIED[name] if use.decision == "DENIED" and use.count > 100]
    assert missing == sorted({f"{use.operation} TOPIC {use.resource_name}" for use in retried})
    assert missing[0].split()[0] in row["reason"]


@pytest.mark.parametrize("name", THIN)
def test_denials_spread_thin_over_many_names_are_brute_force(told: dict[str, list[Row]], name: str) -> None:
    [row] = [row for row in told[name] if row["kind"] in ATTACKS]
    assert (row["kind"], row["severity"], row["event_count"]) == ("BRUTE_FORCE", "HIGH", DENIALS)
    assert json.loads(row["evidence"])["resources"] == NAMES


def test_lost_acls_on_many_names_are_a_missing_right(told: dict[str, list[Row]]) -> None:
    [row] = told["lost"]
    assert (row["kind"], row["severity"], row["event_count"]) == ("MISSING_RIGHT", "MEDIUM", DENIALS)


@pytest.mark.parametrize("name", WATCHING)
def test_who_is_denied_the_same_or_as_many_names_again_and_again_is_no_news(
    told: dict[str, list[Row]], name: str
) -> None:
    assert not told[name]


@pytest.mark.parametrize("name", SWEPT)
def test_many_names_tried_once_are_an_attack(told: dict[str, list[Row]], name: str) -> None:
    found = [row for row in told[name] if row["kind"] == "SWEEP"]
    assert found, f"only {[(row['kind'], row['reason']) for row in told[name]]}"
    assert {row["severity"] for row in found} == {"HIGH"}
    tried = json.loads(found[-1]["evidence"])
    swept = {use.operation for use in SWEPT[name] if use.decision == "DENIED" and use.count == 1}
    assert set(tried["operations"]) == swept
    assert sum(json.loads(row["evidence"])["tried"] for row in found) >= TOPICS or name == "patient"


def test_a_sweep_behind_retries_is_found_beside_them(told: dict[str, list[Row]]) -> None:
    assert {row["kind"] for row in told["noisy"]} >= {"SWEEP", "MISSING_RIGHT"}


def test_operations_tried_once_each_are_probing(told: dict[str, list[Row]]) -> None:
    *_, row = [row for row in told["prober"] if row["kind"] == "PRIVILEGE_PROBING"]
    assert row["severity"] == "HIGH"
    assert json.loads(row["evidence"])["operations"] == ["ALTER", "ALTER_CONFIGS", "CLUSTER_ACTION", "CREATE"]


@pytest.mark.parametrize("name", NEITHER)
def test_who_makes_topics_or_lacks_rights_is_no_attacker(told: dict[str, list[Row]], name: str) -> None:
    assert not [row for row in told[name] if row["kind"] in ATTACKS]
