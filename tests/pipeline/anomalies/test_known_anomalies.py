"""Anomalies by command: found, listed, acknowledged, suppressed by the configuration, and on the page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from tests.pipeline.events import event_line

pytestmark = pytest.mark.usefixtures("users_plans")

DAY_MS = 86_400_000
NOON_MS = 1_795_262_400_000
"""2026-11-21, 12:00 UTC."""


def denied(day: int, who: str, number: int, topic: str) -> str:
    return event_line(
        day * 10_000 + number + (5_000 if who == "typo" else 0),
        time_ms=NOON_MS - day * DAY_MS + number * 40_000,
        principal_name=who,
        operation="WRITE",
        resource_name=topic,
        decision="DENIED",
        rule__kind="DefaultDeny",
    )


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Path:
    """Tables in which two clients retry a denied right, each for a day."""
    (tmp_path / "audit").mkdir()
    lines = [denied(3, "typo", number, "paymnets") for number in range(150)]
    lines += [denied(1, "poor", number, "ledger") for number in range(150)]
    (tmp_path / "audit" / "a.jsonl").write_text("\n".join(lines) + "\n")
    configure(tmp_path)
    assert run(["pipeline", "run", "--config", str(tmp_path / "pipeline.yml"), "--output", "json"]) == 0
    return tmp_path


def configure(folder: Path, rule: str = "") -> None:
    text = "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\n"
    (folder / "pipeline.yml").write_text(text + (f"anomalies:\n  suppressions: [{rule}]\n" if rule else ""))


def said(capsys: pytest.CaptureFixture[str], place: Path, *words: str) -> Any:
    capsys.readouterr()
    command = ["pipeline", *words, "--config", str(place / "pipeline.yml"), "--output", "json"]
    assert run(command) == ExitCode.OK, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_anomalies_are_kept_acknowledged_suppressed_and_shown(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = ("anomalies", "find", "--until", "2026-11-20", "--days")
    found = said(capsys, place, *judged, "5")
    assert (found["kinds"], found["states"], found["new"]) == ({"MISSING_RIGHT": 2}, {"OPEN": 2}, 2)
    by_name = {row["principal"]: row["anomaly_id"] for row in found["anomalies"]}
    page = place / "page.html"
    said(capsys, place, "report", "--out", str(page))
    assert "<b>2 open</b>" in page.read_text()

    words = ["anomalies", "acknowledge", by_name["User:poor"][:10], "--by", "alice", "--reason", "INC-7"]
    [row] = said(capsys, place, *words)["anomalies"]
    assert (row["state"], row["acknowledged_by"], row["acknowledged_reason"]) == (
        "ACKNOWLEDGED", "alice", "INC-7",
    )  # fmt: skip

    # a run of one day keeps the anomaly of another day and the acknowledgement; a rule hides and counts
    rule = "{kind: MISSING_RIGHT, principal: 'User:ty*', resource: 'TOPIC:paymnets', "
    rule += "until: 2026-11-30, reason: typo}"
    configure(place, rule)
    again = said(capsys, place, *judged, "1")
    assert (again["states"], again["new"]) == ({"ACKNOWLEDGED": 1}, 0)
    listed = said(capsys, place, "anomalies", "list", "--state", "all")
    assert listed["states"] == {"ACKNOWLEDGED": 1, "SUPPRESSED": 1}
    assert {row["anomaly_id"] for row in listed["anomalies"]} == set(by_name.values())
    assert all(row["day_count"] == 1 and row["event_count"] == 150 for row in listed["anomalies"])
    [typo] = said(capsys, place, "anomalies", "list", "--state", "suppressed")["anomalies"]
    assert (typo["principal"], typo["suppressed_by"]) == ("User:typo", "typo")

    said(capsys, place, "report", "--out", str(page))
    [states] = re.findall(r'<p id="anomaly-states">(.*?)</p>', page.read_text())
    text = re.sub(r"<[^>]*>", "", states)
    assert "0 open, 1 acknowledged, 0 resolved; 1 suppressed and not shown" in text
    assert "0 new since the last report" in text
    assert "acknowledged by <bdi>alice</bdi>" in page.read_text()
    assert "paymnets" not in page.read_text().split('id="findings"')[1].split("</section>")[0]

    listing = ["pipeline", "anomalies", "list", "--config", str(place / "pipeline.yml"), "--exit-code"]
    assert run(listing) == ExitCode.OK
    said(capsys, place, "anomalies", "acknowledge", by_name["User:poor"], "--undo")
    assert run(listing) == ExitCode.NO
    assert by_name["User:poor"][:8] in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--reason", "seen"), "use `--by` and `--reason` to acknowledge, or `--undo` to reopen"),
        ((), "use `--by` and `--reason` to acknowledge, or `--undo` to reopen"),
        (("--by", "alice", "--undo"), "`--undo` takes neither `--by` nor `--reason`"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pipeline", "anomalies", "acknowledge", "3fb0a1c9", *words]) == ExitCode.USAGE
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{kind: BRUTE, until: 2026-11-30, reason: r}", "not a kind of anomaly"),
        ("{until: 2026-11-30, reason: r}", "names a `kind`"),
        ("{kind: SWEEP, reason: r}", "`anomalies.suppressions.0.until` is missing"),
        ("{kind: SWEEP, until: 2026-11-30}", "`anomalies.suppressions.0.reason` is missing"),
        ("{resource: secret, until: 2026-11-30, reason: r}", "`secret`"),
    ],
)
def test_a_rule_that_says_too_little_or_nothing_known_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rule: str, message: str
) -> None:
    configure(tmp_path, rule)
    assert run(["pipeline", "anomalies", "find", "--config", str(tmp_path / "pipeline.yml")]) != ExitCode.OK
    assert message in capsys.readouterr().err
