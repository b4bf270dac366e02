"""Judging by command: a metadata log that changed, and a record that does not fit it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.tables import Tables
from tests.pipeline.events import event_line
from tests.pipeline.history.worlds import T0_MS, World

HOUR_MS = 3_600_000
GRANT = UUID(int=1)
RULE = {
    "rule__kind": "MatchingAcl", "rule__resource_type": "TOPIC", "rule__resource_name": "payments",
    "rule__pattern_type": "LITERAL", "rule__principal": "User:bob", "rule__host": "*",
    "rule__operation": "READ", "rule__permission_type": "ALLOW",
}  # fmt: skip


def day_of(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d}"


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bob was given READ at offset 2, an hour in, and lost it at offset 3, two hours in."""
    folder = tmp_path_factory.mktemp("judge")
    grant = AccessControlEntryRecord(GRANT, 2, "payments", 3, "User:bob", "*", 3, 3)
    World(
        ((FeatureLevelRecord("metadata.version", 30),), (grant,), (RemoveAccessControlEntryRecord(GRANT),)),
        (T0_MS, T0_MS + HOUR_MS, T0_MS + 2 * HOUR_MS),
    ).write(folder / "log")
    (folder / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\nmetadata: log\n"
        "acls: {source: log, super_users: 'User:root'}\n"
    )
    denied: dict[str, Any] = {"decision": "DENIED", "rule__kind": "DefaultDeny"}
    lines = [event_line(n, time_ms=T0_MS + HOUR_MS + 1000 * n, acl_offset=2, **RULE) for n in range(1, 6)]
    # refused before the grant: rightly; after it was taken away something still allowed, twice
    lines += [event_line(6, time_ms=T0_MS + 1000, acl_offset=1, **denied)]
    lines += [
        event_line(6 + n, time_ms=T0_MS + 3 * HOUR_MS + 60_000 * n, acl_offset=3, **RULE) for n in (1, 2)
    ]
    lines += [event_line(9, time_ms=T0_MS + HOUR_MS + 9000, acl_offset=2, **denied)]
    lines += [event_line(10, time_ms=T0_MS, principal_name="root", acl_offset=1)]
    lines += [event_line(11, time_ms=T0_MS + 4 * HOUR_MS, acl_offset=99, **denied)]
    (folder / "audit").mkdir()
    (folder / "audit" / "a.jsonl").write_text("\n".join(lines))
    assert run(["pipeline", "run", "--config", str(folder / "pipeline.yml"), "--output", "json"]) == 0
    return folder


def judge(place: Path, *words: str) -> int:
    return run(["pipeline", "judge", "--config", str(place / "pipeline.yml"), *words])


def test_what_the_acls_then_in_force_did_not_say_is_found(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert judge(place, "--output", "json", "--exit-code") == ExitCode.NO
    said = json.loads(capsys.readouterr().out)
    assert (said["history"]["from_offset"], said["history"]["to_offset"]) == (-1, 3)
    assert [(one["verdict"], one["events"]) for one in said["verdicts"]] == [
        ("AGREES", 7),
        ("DIFFERS", 3),
        ("OUT_OF_RANGE", 1),
    ]
    assert said["differ"] == 3
    assert [
        (one["severity"], one["event_count"], one["first_time"], one["last_time"]) for one in said["examples"]
    ] == [
        ("HIGH", 2, "2023-11-15T01:14:20.000Z", "2023-11-15T01:15:20.000Z"),
        ("MEDIUM", 1, "2023-11-14T23:13:29.000Z", "2023-11-14T23:13:29.000Z"),
    ]
    assert said["examples"][0]["reason"] == (
        "recorded as ALLOWED, but the ACLs of offset 3 decide DENIED by DefaultDeny"
    )
    assert said["examples"][0]["evidence"]["sample_event_id"].endswith("000007")
    tables = Tables(place / "tables")
    assert tables.read(spark, "judged").agg({"event_count": "sum"}).collect()[0][0] == 11
    summary = run_tables_report(spark, tables, place / "report.html")
    assert summary.answers == ("discrepancies",)
    assert "the ACLs of offset 3 decide DENIED" in (place / "report.html").read_text()


def test_it_is_shown_for_people(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    assert judge(place, "--limit", "1") == ExitCode.OK
    shown = capsys.readouterr().out
    assert "HIGH  User:bob  READ  TOPIC payments  2 x\n" in shown
    assert "for example 00000000-0000-0000-0000-000000000007\n" in shown
    assert "and 1 more\n" in shown


def test_days_outside_of_the_period_are_not_judged(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    since = day_of(T0_MS + 30 * 24 * HOUR_MS)
    assert judge(place, "--since", since, "--output", "json", "--exit-code") == ExitCode.OK
    said = json.loads(capsys.readouterr().out)
    assert (said["verdicts"], said["discrepancies"], said["examples"]) == ([], [], [])


def test_the_roll_up_is_judged_by_time(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert judge(place, "--by-rollup", "--output", "json") == ExitCode.OK
    said = json.loads(capsys.readouterr().out)
    # its rows are of a day: the answer was right at some moment of it
    assert {one["evidence"]["judged_by"] for one in said["examples"]} <= {"TIME"}
    assert sum(one["events"] for one in said["verdicts"]) == 11


def test_a_dry_run_says_how_far_the_log_goes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert judge(place, "--dry-run", "--end-offset", "3") == ExitCode.OK
    assert "its offsets 0 to 2, 2023-11-14 22:13 to 2023-11-14 23:13 UTC\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (["--metadata", "/nowhere"], ExitCode.USAGE, "there is no directory `/nowhere`"),
        (["--metadata", "{place}", "--dry-run"], ExitCode.USAGE, "is neither a segment"),
        (["--metadata", "{place}"], ExitCode.USAGE, "is neither a segment"),
        (["--since", "2026-11-03", "--until", "2026-11-01"], ExitCode.USAGE, "is before"),
    ],
)
def test_a_log_that_is_none_is_said(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], exit_code: int, message: str
) -> None:
    capsys.readouterr()
    assert judge(place, *(word.format(place=place) for word in words)) == exit_code
    assert message in capsys.readouterr().err


def test_a_review_as_of_a_past_moment_takes_the_acls_of_the_log(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {}
    for moment in ("2023-11-14T23:30:00Z", "2023-11-15T03:00:00Z"):
        capsys.readouterr()
        command = ["pipeline", "review", "--as-of", moment, "--config", str(place / "pipeline.yml")]
        assert run([*command, "--output", "json"]) == ExitCode.OK
        rows = Tables(place / "tables").read(spark, "access_review").where("principal = 'User:bob'")
        held[moment] = [(row["basis"], len(row["granted_by"])) for row in rows.collect()]
    assert held == {"2023-11-14T23:30:00Z": [("MatchingAcl", 1)], "2023-11-15T03:00:00Z": [("Denied", 0)]}
    command[3:4] = ["2020-01-01"]
    assert run(command) == ExitCode.FAILED
    assert "begins" in capsys.readouterr().err
