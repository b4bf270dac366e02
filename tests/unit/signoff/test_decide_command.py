"""Reviewers decide on one file: none loses a verdict, and only rows that were named are decided."""

import errno
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.runtime import DEFAULT_FILE_MODE, FileSystemStorage
from kustos.signoff.document import review_document, write_review
from testkit.review_documents import ACLS, entitlement_row, keys
from testkit.review_rows import AS_OF

REVIEWERS = 6
ROWS = [entitlement_row(f"User:{number}", "READ", f"topic-{number}") for number in range(REVIEWERS)]


@pytest.fixture
def review(tmp_path: Path) -> Path:
    made = review_document(
        ROWS, ACLS, as_of=AS_OF, dormant_days=90, created_at=datetime(2026, 12, 1, tzinfo=UTC)
    )
    path = tmp_path / "q3.json"
    path.write_text(write_review(made))
    return path


def ids_of(review: Path) -> list[str]:
    return [row["row_id"] for row in json.loads(review.read_text())["review"]["rows"]]


def verdicts(review: Path) -> dict[str, tuple[str, str]]:
    """Return the verdict and the reviewer by row."""
    decisions: dict[str, Any] = json.loads(review.read_text())["decisions"]
    return {row_id: (one["verdict"], one["by"]) for row_id, one in decisions.items()}


def decide(review: Path, verdict: str, by: str, *options: str) -> int:
    command = ["pipeline", "signoff", "decide", str(review), verdict, "--by", by, "--reason", "seen"]
    return run([*command, *options])


DECIDE_EACH = """
import sys
from kustos.cli.run import run
review, by, *rows = sys.argv[1:]
for row in rows:
    for verdict in ("ask", "keep") * 10:
        options = ["--by", by, "--reason", "seen", "--row", row]
        assert run(["pipeline", "signoff", "decide", review, verdict, *options]) == 0
"""


def test_reviewers_in_several_processes_lose_no_verdict(review: Path) -> None:
    ids = ids_of(review)
    of_reviewer = {"alice": ids[:3], "bob": ids[3:]}
    running = [
        subprocess.Popen([sys.executable, "-c", DECIDE_EACH, review, by, *rows], stdout=subprocess.DEVNULL)
        for by, rows in of_reviewer.items()
    ]
    assert [each.wait(120) for each in running] == [0, 0]
    assert verdicts(review) == {row_id: ("keep", by) for by, rows in of_reviewer.items() for row_id in rows}
    assert [each.name for each in review.parent.iterdir()] == [review.name]


def test_a_verdict_that_came_during_the_question_stays(
    review: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, *_ = ids_of(review)
    principal = next(
        row["principal"] for row in json.loads(review.read_text())["review"]["rows"] if row["row_id"] == one
    )

    def while_bob_decides(row_id: str, verdict: str) -> int:
        monkeypatch.setattr(
            "kustos.cli.terminal.confirm", lambda *_: decide(review, verdict, "bob", "--row", row_id)
        )
        return decide(review, "revoke", "alice", "--principal", principal)

    assert while_bob_decides(other, "keep") == ExitCode.OK
    assert verdicts(review) == {one: ("revoke", "alice"), other: ("keep", "bob")}
    assert decide(review, "ask", "alice", "--row", one) == ExitCode.OK
    capsys.readouterr()
    # even what anybody may answer, a question, is not taken from a reviewer who did not see it
    assert while_bob_decides(one, "ask") == ExitCode.FAILED
    assert f"`bob` has decided `ask` on row `{one}` meanwhile" in capsys.readouterr().err
    assert verdicts(review)[one] == ("ask", "bob")


def test_the_verdict_of_another_reviewer_is_replaced_only_on_request(
    review: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other, *_ = ids_of(review)
    assert decide(review, "keep", "bob", "--row", one) == ExitCode.OK
    assert decide(review, "ask", "bob", "--row", other) == ExitCode.OK
    before = review.read_text()
    assert decide(review, "revoke", "alice", "--row", one, "--row", other) == ExitCode.FAILED
    assert f"`bob` has decided `keep` on row `{one}`" in capsys.readouterr().err
    assert review.read_text() == before
    assert decide(review, "keep", "alice", "--row", other) == ExitCode.OK, (
        "a question is there to be answered"
    )
    assert decide(review, "revoke", "bob", "--row", one) == ExitCode.OK, "reviewers may change their minds"
    assert decide(review, "keep", "alice", "--row", one, "--overrule") == ExitCode.OK
    assert verdicts(review) == {one: ("keep", "alice"), other: ("keep", "alice")}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--row", "{0}", "--row", "typo-typo"],
            "of the rows no id begins with `typo-typo`, see the document",
        ),
        (["--row", "{0}", "--row", "{swapped}"], "did you mean `{1}`"),
        (["--row", ""], "`` is too short, give 6 characters of the id or more"),
        (["--row", "{0}", "--row", ""], "`` is too short"),
        (
            ["--row", "{0}", "--row", "{1}", "--principal", "User:nobody"],
            "the other options do not select row `{0}`",
        ),
        (["--principal", ""], "the principal is empty"),
        (["--operation", ""], "the operation is empty"),
        (["--team", ""], "the team is empty"),
        (["--resource", ""], "the resource type is empty"),
        (["--resource", "TOPIC:"], "`--resource TOPIC:` has no name"),
        (["--resource", "SHELF:x"], "`SHELF` is not a type of resources"),
        (["--principal", "User:nobody"], "no row of the review is selected"),
        (["--undecided"], "select rows"),
        ([], "select rows"),
        (["--all", "--row", "{0}"], "`--all` selects every row"),
    ],
)
def test_an_empty_or_unknown_selector_decides_nothing(
    review: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    ids = ids_of(review)
    swapped = ids[1][:10] + ids[1][11] + ids[1][10] + ids[1][12:]
    before = review.read_text()
    given = [option.format(*ids, swapped=swapped) for option in options]
    assert decide(review, "revoke", "alice", "--yes", *given) in (ExitCode.USAGE, ExitCode.FAILED)
    assert said.format(*ids) in capsys.readouterr().err
    assert review.read_text() == before


def test_everything_is_decided_if_that_is_said(review: Path) -> None:
    one, *others = ids_of(review)
    assert decide(review, "revoke", "bob", "--row", one[:6]) == ExitCode.OK
    assert decide(review, "keep", "alice", "--all", "--yes") == ExitCode.FAILED
    assert decide(review, "keep", "alice", "--all", "--undecided", "--yes") == ExitCode.OK
    assert verdicts(review) == {one: ("revoke", "bob"), **dict.fromkeys(others, ("keep", "alice"))}


def test_rows_are_selected_by_resource_as_the_acl_names_it(tmp_path: Path) -> None:
    rows = [
        entitlement_row("User:a", "READ", "pay"),
        entitlement_row("User:b", "READ", "other"),
        entitlement_row("User:c", "READ", "pay-", pattern_type="PREFIXED"),
    ]
    made = review_document(
        rows, ACLS, as_of=AS_OF, dormant_days=90, created_at=datetime(2026, 12, 1, tzinfo=UTC)
    )
    principals = {row["row_id"]: row["principal"] for row in made["review"]["rows"]}
    path = tmp_path / "q3.json"
    for resource, selected in (
        ("TOPIC:pay", {"User:a"}),
        ("any:pay", {"User:a"}),
        ("topic", {"User:a", "User:b", "User:c"}),
        ("TOPIC:LITERAL:", {"User:a", "User:b"}),
        ("TOPIC:PREFIXED:pay-", {"User:c"}),
    ):
        path.write_text(write_review(made))
        assert decide(path, "keep", "alice", "--resource", resource, "--yes") == ExitCode.OK
        assert {principals[row_id] for row_id in verdicts(path)} == selected, resource


def test_a_review_is_closed_and_signed_by_one_command(
    review: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = keys("Ed25519")
    (tmp_path / "private.pem").write_bytes(private)
    (tmp_path / "public.pem").write_bytes(public)
    signed = tmp_path / "q3.jws"
    close = ["pipeline", "signoff", "close", str(review)]
    by_key = ["--key", str(tmp_path / "private.pem"), "--out", str(signed)]
    for words, message in (
        ([], "use `--by` to sign off"),
        (["--by", "alice", *by_key[:2]], "`--key` and `--out` go together"),
        (["--by", "alice", *by_key[2:]], "`--key` and `--out` go together"),
    ):
        assert run([*close, *words]) == ExitCode.USAGE
        assert message in capsys.readouterr().err
    assert run([*close, "--by", "alice", *by_key]) == ExitCode.FAILED, "rows are undecided"
    assert not signed.exists()
    assert decide(review, "keep", "alice", "--all", "--yes") == ExitCode.OK
    assert run([*close, "--by", "alice", *by_key]) == ExitCode.OK
    assert json.loads(review.read_text())["sign_off"]["by"] == "alice"
    check = ["pipeline", "signoff", "check", str(signed), "--key", str(tmp_path / "public.pem")]
    assert run([*check, "--exit-code"]) == ExitCode.OK
    # an auditor signs again, without the right to close
    signed.unlink()
    assert run([*close, *by_key]) == ExitCode.OK
    assert run([*check, "--exit-code"]) == ExitCode.OK


@pytest.mark.parametrize("fault", ["public key", "no key", "password", "extra"])
def test_a_key_that_cannot_sign_leaves_the_review_open(
    fault: str,
    review: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    private, public = keys("Ed25519")
    key, out, password = tmp_path / "key.pem", tmp_path / "q3.jws", tmp_path / "password"
    key.write_bytes({"public key": public, "no key": b"none"}.get(fault, private))
    password.write_text("secret" * 1_000)
    options = ["--key-password-file", str(password)] if fault == "password" else []
    if fault == "extra":
        monkeypatch.setitem(sys.modules, "joserfc", None)
    assert decide(review, "keep", "alice", "--all", "--yes") == ExitCode.OK
    before = review.read_text()
    close = ["pipeline", "signoff", "close", str(review), "--by", "alice"]
    assert run([*close, "--key", str(key), "--out", str(out), *options]) != ExitCode.OK
    assert capsys.readouterr().err != ""
    assert review.read_text() == before
    assert not out.exists()


def test_a_signature_that_cannot_be_written_tells_how_to_write_it_later(
    review: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    private, _ = keys("Ed25519")
    (tmp_path / "key.pem").write_bytes(private)
    assert decide(review, "keep", "alice", "--all", "--yes") == ExitCode.OK
    close = ["pipeline", "signoff", "close", str(review), "--key", str(tmp_path / "key.pem"), "--out"]
    before = review.read_text()
    assert run([*close, str(tmp_path / "." / review.name), "--by", "alice"]) == ExitCode.USAGE
    assert "`--out` would replace the review" in capsys.readouterr().err
    assert review.read_text() == before

    write = FileSystemStorage.write

    def full(self: FileSystemStorage, path: Path, data: bytes, mode: int = DEFAULT_FILE_MODE) -> None:
        if path.suffix == ".jws":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, path, data, mode)

    out = tmp_path / "q3.jws"
    with monkeypatch.context() as patch:
        patch.setattr(FileSystemStorage, "write", full)
        assert run([*close, str(out), "--by", "alice"]) == ExitCode.FAILED
    error = " ".join(capsys.readouterr().err.split())
    assert "no space left on device; the review is signed off: repeat the command without `--by`" in error
    assert json.loads(review.read_text())["sign_off"]["by"] == "alice"
    assert not out.exists()
    assert run([*close, str(out)]) == ExitCode.OK


CLOSE = """
import sys
from kustos.cli.run import run
review, by, key, out = sys.argv[1:]
sys.exit(run(["pipeline", "signoff", "close", review, "--by", by, "--key", key, "--out", out]))
"""


def test_of_two_that_close_at_the_same_time_one_signs(review: Path, tmp_path: Path) -> None:
    private, public = keys("Ed25519")
    key, check = tmp_path / "key.pem", tmp_path / "public.pem"
    key.write_bytes(private)
    check.write_bytes(public)
    assert decide(review, "keep", "alice", "--all", "--yes") == ExitCode.OK
    names = ("alice", "bob")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CLOSE, str(review), name, str(key), str(tmp_path / f"{name}.jws")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in names
    ]
    ended = dict(zip(names, [each.wait(120) for each in running], strict=True))
    assert sorted(ended.values()) == [ExitCode.OK, ExitCode.FAILED]
    winner = next(name for name, code in ended.items() if code == ExitCode.OK)
    assert json.loads(review.read_text())["sign_off"]["by"] == winner
    assert [each.name for each in tmp_path.glob("*.jws")] == [f"{winner}.jws"]
