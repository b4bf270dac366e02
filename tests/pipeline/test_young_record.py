"""Two days of log: no command, table, file or page says that something is unused or safe to remove."""

import csv
import json
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.tables import Tables
from tests.pipeline.events import NOW, NOW_MS, event_line
from tests.pipeline.test_answers_by_command import ACLS, BY_BOB

DAY_MS = 86_400_000


def test_two_days_of_log_are_too_early_to_say(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ["--config", str(tmp_path / "pipeline.yml")]
    (tmp_path / "audit").mkdir()
    (tmp_path / "acls.txt").write_text(ACLS)
    (tmp_path / "topics.txt").write_text("orders\n")
    (tmp_path / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\nacls: {source: acls.txt}\n"
        "existing: {topics: topics.txt}\n"
    )
    lines = [event_line(n, time_ms=NOW_MS - n * DAY_MS, **BY_BOB) for n in range(2)]
    (tmp_path / "audit" / "a.jsonl").write_text("\n".join(lines))
    assert run(["pipeline", "run", *config]) == ExitCode.OK
    sheet, document, page = (tmp_path / name for name in ("r.csv", "r.json", "page.html"))
    asked = ["--csv", str(sheet), "--sign-off", str(document)]
    capsys.readouterr()
    assert run(["pipeline", "review", *asked, *config]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "2 of the 90 days up to" in shown
    assert "too early to say what is unused" in shown
    assert "never" not in shown
    # both ACLs are of a topic that does not exist, and one is used all the same
    assert "orphaned acl 2 0 1" in shown
    found = Tables(tmp_path / "tables").read_small("findings")
    assert {(row["principal"], row["kind"], row["is_safe_to_remove"]) for row in found} == {
        ("User:bob", "ORPHANED_ACL", False),
        ("User:eve", "ORPHANED_ACL", None),
    }
    assert not any(json.loads(row["evidence"])["is_safe_together"] for row in found)
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        cells = {(row["principal"], row["operation"]): row for row in csv.DictReader(file)}
    assert cells["User:eve", "READ"]["is_dormant"] == "too early to say"
    assert cells["User:bob", "READ"]["is_dormant"] == "false"
    assert {row["recorded_days"] for row in cells.values()} == {"2"}
    review = json.loads(document.read_text())["review"]
    assert (review["record"]["recorded_days"], review["record"]["is_enough"]) == (2, False)
    decide = ["pipeline", "signoff", "decide", str(document), "revoke", "--by", "a", "--reason", "unused"]
    assert run([*decide, "--unused", "--yes"]) == ExitCode.USAGE
    assert "no row of the review is selected" in capsys.readouterr().err
    assert run(["pipeline", "report", "--out", str(page), *config]) == ExitCode.OK
    drawn = page.read_text()
    assert "0 of them dormant" in drawn
    assert "it is too early to say: the record covers the days since" in drawn
    assert "Too early to say whether it is safe to remove." in drawn
    least = tmp_path / "least.yaml"
    capsys.readouterr()
    assert run(["pipeline", "recommend", "--out", str(least), *config]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "days with a record 2, " in shown
    assert "too early to say what is unused" in shown
    assert least.read_text().startswith("# the record: 2 of the 90 days up to ")


def test_two_days_of_log_pass_no_check(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost, found or wrong, and `--exit-code` does not take that for an answer."""
    config, document = ["--config", str(tmp_path / "pipeline.yml")], tmp_path / "r.json"
    (tmp_path / "audit").mkdir()
    (tmp_path / "acls.txt").write_text(ACLS)
    (tmp_path / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\nacls: {source: acls.txt}\n"
    )
    lines = [event_line(n, time_ms=NOW_MS - n * DAY_MS, **BY_BOB) for n in range(2)]
    (tmp_path / "audit" / "a.jsonl").write_text("\n".join(lines))
    assert run(["pipeline", "run", *config]) == ExitCode.OK

    def said(code: ExitCode, *words: str) -> str:
        capsys.readouterr()
        assert run(["pipeline", *words, *config]) == code
        shown = capsys.readouterr()
        return " ".join((shown.out + shown.err).split())

    replay = ["replay", str(tmp_path / "acls.txt")]
    assert "2 of the 90 days up to" in said(ExitCode.OK, *replay)
    shown = said(ExitCode.NO, *replay, "--exit-code")
    assert "decides all recorded access as before" in shown
    assert "too early to say that no use is lost" in shown
    # whoever asks about these days alone gets an answer about them
    since = f"{NOW - timedelta(days=1):%F}"
    said(ExitCode.OK, *replay, "--exit-code", "--since", since, "--until", f"{NOW:%F}")
    replayed = json.loads(said(ExitCode.OK, *replay, "--output", "json"))
    assert (replayed["lost"], replayed["record"]["is_enough"]) == (0, False)
    (tmp_path / "none.yaml").write_text("acls: []\n")
    said(ExitCode.NO, "replay", str(tmp_path / "none.yaml"), "--exit-code")
    table = Tables(tmp_path / "tables")
    flips = table.read(spark, "replay_flips").select("kind", "recorded_days").distinct().collect()
    assert [tuple(row) for row in flips] == [("LOST", 2)]

    said(ExitCode.OK, "review", "--sign-off", str(document))
    changes = ["signoff", "changes", str(document), "--replay"]
    assert "too early to say that no use is lost" in said(ExitCode.OK, *changes)
    said(ExitCode.NO, *changes, "--exit-code")

    until = ["--until", f"{NOW:%F}", "--exit-code"]
    assert "too early to say what else there was" in said(ExitCode.NO, "anomalies", "find", *until)
    assert "2 of the 2 days up to" in said(ExitCode.OK, "anomalies", "find", *until, "--days", "2")
