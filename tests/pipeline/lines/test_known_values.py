"""Each field of an event with each kind of value: it is quarantined by name, or no analysis fails."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from kustos.authorizer.audit import AUDIT_FIELDS, SECURITY_FIELDS
from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.records import AccessControlEntryRecord, FeatureLevelRecord
from kustos.pipeline.lines.json_grammar import read_line
from kustos.pipeline.tables import Tables
from tests.pipeline.events import NOW_MS, event, event_line, kafka_line, login
from tests.pipeline.history.worlds import World
from tests.pipeline.lines.parsing import parsed

DAY_MS = 86_400_000
VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 7, 1.5, [], ["READ"], {}, {"kind": "x"}),
    *(2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**63, 10**40),
    *("", " ", ":", "User:", ":x", "a:b", "*", "/", "\\", "%", "_", "1", "-1", "NaN", "null", "None"),
    *("Topic", "topic", "READ", "Read", "ANY", "UNKNOWN", "MATCH", "Frobnicate", "User:CN=a,OU=b"),
    *("10.0.0.0/8", "256.1.1.1", "::1", "fe80::1%eth0", "host.example", "10.0.0.1:9092"),
    *("\ud800", "\x00", "\x1f", "a\nb", "\u202e", "é" * 300, "x" * 70_000, "{}", "<script>", "2026-11-21"),
)
MATCHING = {
    "rule__kind": "MatchingAcl",
    "rule__resource_type": "TOPIC",
    "rule__resource_name": "payments",
    "rule__pattern_type": "LITERAL",
    "rule__principal": "User:bob",
    "rule__host": "*",
    "rule__operation": "READ",
    "rule__permission_type": "ALLOW",
}
KAFKAS = [
    kafka_line().replace("= READ", "= Pause").replace("Topic:", "Connector:"),
    kafka_line().replace("= READ", "= Pause"),
    kafka_line(resource="Environment:LITERAL:e"),
    kafka_line(resource="Any:LITERAL:e"),
    kafka_line(
        rule="MatchingAcl(acl=StandardAcl[resourceType=THING, resourceName=pay, patternType=PREFIXED, "
        "principal=User:*, host=*, operation=ALL, permissionType=DENY])"
    ),
]
"""Lines of Kafka's form whose words are not Kafka's."""


def worlds() -> Iterator[dict[str, Any]]:
    """Yield each field of both kinds of events with each value; ids differ so that none is a copy."""
    number = 0
    for made, fields in ((event(**MATCHING), AUDIT_FIELDS), (login(), SECURITY_FIELDS)):
        for field in fields:
            for value in VALUES:
                number += 1
                changed = json.loads(json.dumps(made))
                changed["event_id"] = f"00000000-0000-0000-0009-{number:012d}"
                changed["time_ms"] = NOW_MS - number
                if "first_time_ms" in changed:
                    changed["first_time_ms"] = NOW_MS - number
                *path, last = field.name.split(".")
                target = changed
                for part in path:
                    target = target[part]
                target[last] = value
                yield changed


def test_an_unknown_word_is_quarantined_by_name() -> None:
    reasons = {
        event_line(resource_type="Topic"): "value_invalid: resource_type Topic",
        event_line(resource_type="ANY"): "value_invalid: resource_type ANY",
        event_line(operation="read"): "value_invalid: operation read",
        event_line(operation="<script>"): "value_invalid: operation",
        event_line(rule__pattern_type="MATCH"): "value_invalid: rule.pattern_type MATCH",
        event_line(rule__permission_type="Allow"): "value_invalid: rule.permission_type Allow",
        event_line(rule__kind="Foo"): "value_invalid: rule.kind Foo",
        event_line(access="PROBE"): "value_invalid: access PROBE",
        event_line(host="10.0.0.0/8"): "value_invalid: host",
        event_line(host=""): "value_invalid: host",
        event_line(principal_type="User:a"): "value_invalid: principal_type",
        event_line(decision_count=0): "value_invalid: decision_count 0",
        event_line(reference_count=-1): "value_invalid: reference_count -1",
        json.dumps(login(result="MAYBE")): "value_invalid: result MAYBE",
        json.dumps(login(first_time_ms=-1)): "value_invalid: first_time_ms -1",
        json.dumps(login(attempt_count=0)): "value_invalid: attempt_count 0",
        json.dumps(login(attempt_count=2**62)): "attempts_impossible",
        KAFKAS[0]: "value_invalid: resource_type Connector",
        KAFKAS[1]: "value_invalid: operation Pause",
        KAFKAS[2]: "value_invalid: resource_type Environment",
        KAFKAS[3]: "value_invalid: resource_type ANY",
        KAFKAS[4]: "value_invalid: rule.resource_type THING",
    }
    found = [row["reason"] for row in parsed(list(reasons))]
    assert found == list(reasons.values())
    assert [row["reason"] for row in parsed([line for line in reasons for _ in range(70)])][::70] == found


def test_every_value_says_in_columns_what_it_says_alone() -> None:
    lines = [json.dumps({**each, "cluster_id": None}) for each in worlds()]  # clusters are a later check
    assert [row["reason"] for row in parsed(lines)] == [read_line(line).get("reason") for line in lines]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of all these events at once, among some of everyday use."""
    folder = tmp_path_factory.mktemp("values")
    (folder / "audit").mkdir()
    grant = AccessControlEntryRecord(UUID(int=1), 2, "payments", 3, "User:bob", "*", 3, 3)
    World(
        ((FeatureLevelRecord("metadata.version", 30),), (grant,)), (NOW_MS - 40 * DAY_MS, NOW_MS - 9 * DAY_MS)
    ).write(folder / "log")
    (folder / "acls.txt").write_text(
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, "
        "patternType=LITERAL)`:\n"
        " \t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)\n"
        " \t(principal=User:eve, host=10.0.0.0/8, operation=ALL, permissionType=DENY)\n"
    )
    (folder / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - {files: audit, cluster: one}\n"
        "metadata: log\nacls: {source: acls.txt}\nreview: {dormant_days: 7}\n"
    )
    lines = [event_line(n, time_ms=NOW_MS - n * DAY_MS, **MATCHING) for n in range(30)]
    lines += [json.dumps(each) for each in worlds()] + KAFKAS
    (folder / "audit" / "a.jsonl").write_text("\n".join(lines))
    assert run(["pipeline", "run", "--config", str(folder / "pipeline.yml")]) == ExitCode.OK
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "{place}/acls.txt"],
        ["review", "--csv", "{place}/review.csv", "--sign-off", "{place}/review.json"],
        ["recommend", "--beyond-today", "--out", "{place}/least.yaml"],
        ["recommend", "--out", "{place}/within.yaml"],
        ["anomalies", "find", "--days", "5"],
        ["flows", "--out", "{place}/flows.dot"],
        ["judge", "--by-rollup"],
        ["judge"],
        ["report", "--out", "{place}/page.html"],
    ],
    ids=lambda words: "-".join(words[:2]),
)
def test_no_analysis_fails_on_any_value(
    place: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = [word.format(place=place) for word in words]
    run(["pipeline", *command, "--config", str(place / "pipeline.yml")])
    said = capsys.readouterr()
    assert said.out
    assert "error:" not in said.err


def test_what_was_quarantined_is_named(spark: SparkSession, place: Path) -> None:
    reasons = {row["reason"] for row in Tables(place / "tables").read(spark, "quarantine").collect()}
    assert {"value_invalid: resource_type Topic", "value_invalid: operation Frobnicate"} <= reasons
