"""The commands that answer, over one set of tables: review, sign-off, recommendation, anomalies, flows."""

import io
import json
import shutil
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.deciding import read_acl_set
from kustos.pipeline.privilege import proof
from kustos.pipeline.tables import Tables
from tests.pipeline.events import NOW, NOW_MS, event_line

ACLS = """Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=payments, patternType=LITERAL)`:
 \t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)
 \t(principal=User:eve, host=*, operation=READ, permissionType=ALLOW)
"""
BY_BOB = {
    "rule__kind": "MatchingAcl",
    "rule__resource_type": "TOPIC",
    "rule__resource_name": "payments",
    "rule__pattern_type": "LITERAL",
    "rule__principal": "User:bob",
    "rule__host": "*",
    "rule__operation": "READ",
    "rule__permission_type": "ALLOW",
}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the last month: bob reads, mallory is denied, a writer feeds bob."""
    folder = tmp_path_factory.mktemp("answers")
    (folder / "audit").mkdir()
    (folder / "acls.txt").write_text(ACLS)
    (folder / "pipeline.yml").write_text(
        "version: 1\ntables: {path: tables}\ninputs:\n  - files: audit\nacls: {source: acls.txt}\n"
        "review: {dormant_days: 7, teams: {'User:b*': basics}}\n"
    )
    with_super_users = (folder / "pipeline.yml").read_text() + "recommend: {with_super_users: true}\n"
    (folder / "super-users.yml").write_text(with_super_users)
    day = 86_400_000
    denied = {"principal_name": "mallory", "decision": "DENIED", "rule__kind": "DefaultDeny"}
    lines = [event_line(n, time_ms=NOW_MS - n * day, **BY_BOB) for n in range(30)]
    lines += [event_line(40 + n, time_ms=NOW_MS, **denied) for n in range(3)]
    lines += [event_line(50, time_ms=NOW_MS, principal_name="feed", operation="WRITE")]
    (folder / "audit" / "a.jsonl").write_text("\n".join(lines))
    assert run(["pipeline", "run", "--config", str(folder / "pipeline.yml"), "--output", "json"]) == 0
    return folder


def said(capsys: pytest.CaptureFixture[str], place: Path, *words: str, config: str = "pipeline.yml") -> Any:
    capsys.readouterr()
    command = ["pipeline", *words, "--config", str(place / config), "--output", "json"]
    assert run(command) == ExitCode.OK, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@dataclass(frozen=True)
class Reviewed:
    """What a review said, and what it wrote; tests copy the document if they change it."""

    counts: Any
    findings: list[dict[str, Any]]
    document: Path
    csv: Path


@pytest.fixture(scope="module")
def reviewed(spark: SparkSession, place: Path) -> Reviewed:
    """The review that the tests share."""
    document, csv, told = place / "reviewed.json", place / "reviewed.csv", io.StringIO()
    files = ["--sign-off", str(document), "--csv", str(csv)]
    with redirect_stdout(told):
        command = ["pipeline", "review", *files, "--config", str(place / "pipeline.yml"), "--output", "json"]
        assert run(command) == ExitCode.OK
    return Reviewed(
        json.loads(told.getvalue()), Tables(place / "tables").read_small("findings"), document, csv
    )


def test_a_review_finds_the_unused_grant_and_is_signed_off(
    reviewed: Reviewed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts, document = reviewed.counts, tmp_path / "review.json"
    shutil.copy(reviewed.document, document)
    assert counts["accesses"]["used"] == 2
    named = {one["breadth"]: one for one in counts["entitlements"]}["NAMED"]
    # READ implies DESCRIBE, which nobody used by itself
    assert (named["rows"], named["used"], named["unused"], named["void"]) == (4, 1, 3, 0)
    unused = [row for row in reviewed.findings if row["kind"] == "UNUSED_ACL"]
    assert [(row["principal"], row["is_safe_to_remove"]) for row in unused] == [("User:eve", True)]
    assert reviewed.csv.read_bytes().startswith("\ufeffcluster,as_of,".encode())

    signoff = ["pipeline", "signoff"]
    revoke = [*signoff, "decide", str(document), "revoke", "--by", "alice", "--principal", "User:eve"]
    assert run(revoke) == ExitCode.FAILED
    assert "does not say why" in capsys.readouterr().err
    before = document.read_text()
    assert run([*revoke, "--reason", "left"]) == ExitCode.USAGE, "a choice of rows needs a confirmation"
    assert "give `--yes` to revoke 2 rows of 4 without confirmation" in capsys.readouterr().err
    assert document.read_text() == before
    assert run([*revoke, "--reason", "left", "--yes"]) == ExitCode.OK
    assert "decided 2 rows of 4\n" in capsys.readouterr().out
    keep = [*signoff, "decide", str(document), "keep", "--by", "alice", "--yes", "--undecided", "--principal"]
    for principal in sorted({row["principal"] for row in json.loads(document.read_text())["review"]["rows"]}):
        if principal != "User:eve":
            assert run([*keep, principal]) == ExitCode.OK
    assert run([*signoff, "check", str(document), "--exit-code"]) == ExitCode.NO
    assert run([*signoff, "close", str(document), "--by", "alice"]) == ExitCode.OK
    assert run([*signoff, "check", str(document), "--exit-code"]) == ExitCode.OK
    capsys.readouterr()
    assert run([*signoff, "changes", str(document), "--commands"]) == ExitCode.OK
    changes = capsys.readouterr().out
    assert "--remove" in changes
    assert "User:eve" in changes
    assert "User:bob" not in changes
    document.write_text(document.read_text().replace("left", "stays"))
    assert run([*signoff, "check", str(document)]) == ExitCode.FAILED


def test_who_may_read_payments_and_what_is_new_since_the_former_review(
    spark: SparkSession, place: Path, reviewed: Reviewed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mallory gets an ACL on everything, bob's is taken out of payments by a DENY, and eve loses hers."""
    former, csv, details = reviewed.document, place / "now.csv", place / "details.csv"
    head, bobs = ACLS.splitlines()[:2]
    denied, mallorys = bobs.replace("ALLOW", "DENY"), bobs.replace("bob", "mallory").replace("READ", "ALL")
    now = [head, bobs, denied, head.replace("payments", "*"), mallorys]
    (place / "acls.txt").write_text("\n".join([*now, ""]))
    try:
        asked = ["--operation", "read", "--resource", "any:payments", "--details", str(details)]
        found = said(capsys, place, "review", *asked, "--csv", str(csv), "--former", str(former))
        rows = {(row["principal"], row["change"]): row for row in found["rows"]}
        assert {who: row["effect"] for who, row in rows.items()} == {
            ("User:bob", "CHANGED"): "VOID",
            ("User:mallory", "NEW"): "WHOLE",
            ("User:eve", "GONE"): "WHOLE",
        }
        assert rows["User:bob", "CHANGED"]["use_count"] == 30
        assert details.read_text().count("User:bob") > 0
        everything = said(capsys, place, "review", "--csv", str(csv), "--former", str(former))
        whole = everything["since"]
        # of eve READ and DESCRIBE are gone; of bob READ is denied now; ALL is each operation on topics
        assert (whole["NEW"], whole["GONE"], whole["CHANGED"], whole["SAME"]) == (8, 2, 1, 1)
        assert Counter(row["change"] for row in everything["rows"]) == {
            name: whole[name] for name in ("NEW", "GONE", "CHANGED", "SAME")
        }
        unused = said(capsys, place, "review", "--team", "basics", "--unused", "--resource", "topic:literal:")
        assert [(row["operation"], row["change"]) for row in unused["rows"]] == [("DESCRIBE", None)]
        lines = csv.read_text(encoding="utf-8-sig").splitlines()
        assert sum(",GONE," in line for line in lines) == 2
        command = ["pipeline", "review", "--config", str(place / "pipeline.yml"), "--principal", "User:bob"]
        assert run([*command, "--sign-off", str(former)]) == ExitCode.USAGE
        capsys.readouterr()
        assert run([*command, "--former", str(former)]) == ExitCode.OK
        shown = capsys.readouterr().out
        assert "denied" in shown
        assert "changed: effect, denies" in shown
        assert "User:mallory" not in shown
    finally:
        (place / "acls.txt").write_text(ACLS)


def test_the_recommended_acls_allow_what_was_used_and_no_more(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = place / "least.yaml"
    numbers = said(capsys, place, "recommend", "--out", str(out), "--beyond-today")
    assert numbers["is_proven"]
    assert numbers["acls_today"] == 2
    entries = {(str(b.entry.principal), b.entry.operation.name) for b in read_acl_set(out).bindings}
    assert ("User:bob", "READ") in entries
    assert not {who for who, _ in entries} & {"User:mallory", "User:eve"}
    # today's ACLs do not allow what `feed` did as a super user
    within = said(capsys, place, "recommend", "--out", str(out), config="super-users.yml")
    assert (within["is_proven"], within["unserved"], within["regions_gained"]) == (True, 1, 0)
    entries = {(str(b.entry.principal), b.entry.operation.name) for b in read_acl_set(out).bindings}
    assert entries == {("User:bob", "READ")}


def test_what_is_beyond_todays_acls_is_on_the_screen(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["pipeline", "recommend", "--config", str(place / "super-users.yml")]
    assert run([*command, "--beyond-today"]) == ExitCode.OK
    shown = " ".join(capsys.readouterr().out.split())
    assert "parts beyond today's ACLs 1" in shown
    assert "beyond today's ACLs (`kustos diff` shows all): " in shown
    assert "User:feed" in shown
    assert run(command) == ExitCode.OK
    assert "User:feed" not in capsys.readouterr().out


def test_a_recommendation_that_is_not_proven_is_not_written(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, commands = place / "unproven.yaml", place / "unproven.sh"
    monkeypatch.setattr(proof, "recommended_acls", lambda _: [])
    command = ["pipeline", "recommend", "--out", str(out), "--commands", str(commands)]
    assert run([*command, "--config", str(place / "pipeline.yml")]) == ExitCode.FAILED
    shown = capsys.readouterr()
    assert "the proof fails, so no file was written" in shown.err
    said = " ".join(shown.out.split())
    assert "proven by a replay NO" in said
    assert "lost User:bob 10.0.0.7 READ TOPIC payments" in said
    assert not out.exists()
    assert not commands.exists()


def test_flows_and_anomalies_answer(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dot = place / "flows.dot"
    flows = said(capsys, place, "flows", "--out", str(dot), "--from", "User:feed")
    assert flows["paths"] == [
        {
            "source": "User:feed",
            "target": "User:bob",
            "hops": 1,
            "path": ["User:feed", "payments", "User:bob"],
        }
    ]
    assert dot.read_text().startswith("digraph")
    found = said(capsys, place, "anomalies", "find", "--until", f"{NOW:%F}", "--days", "5")
    assert found["period"] == f"{NOW - timedelta(days=4):%F} to {NOW:%F}"
    assert set(found) == {"cluster", "period", "record", "kinds", "states", "new", "anomalies"}


def test_changes_that_would_take_a_use_that_nobody_revoked_are_held_back(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eve's prefix was without use when it was reviewed; since then somebody may have come to need it."""
    config, document = ["--config", str(place / "pipeline.yml")], place / "broad.json"
    broad = ACLS + ACLS.replace("LITERAL", "PREFIXED").replace("payments", "pay").replace("bob", "mallory")
    (place / "acls.txt").write_text(broad)
    signoff = ["pipeline", "signoff"]
    try:
        said(capsys, place, "review", "--sign-off", str(document))
        why = ["revoke", "--by", "alice", "--reason", "unused", "--principal", "User:eve", "--yes"]
        assert run([*signoff, "decide", str(document), *why]) == ExitCode.OK
        changes = [*signoff, "changes", str(document), "--replay", "--exit-code", *config]
        capsys.readouterr()
        assert run(changes) == ExitCode.OK
        shown = capsys.readouterr()
        assert "replay: without 2 ACLs only revoked uses are lost\n" in shown.err
        assert shown.out.count("User:eve") == 2
        (place / "audit" / "b.jsonl").write_text(
            event_line(60, time_ms=NOW_MS, principal_name="eve", resource_name="pay.in")
        )
        said(capsys, place, "run")
        assert run(changes) == ExitCode.NO
        shown = capsys.readouterr()
        assert "lost: User:eve READ TOPIC pay.in\n" in shown.err
        assert shown.out == ""
    finally:
        (place / "acls.txt").write_text(ACLS)
    assert run(changes) == ExitCode.FAILED
    assert "are not those that were reviewed" in capsys.readouterr().err
    assert run([*signoff, "changes", str(document), "--exit-code"]) == ExitCode.USAGE
