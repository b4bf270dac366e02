"""Reviewers decide on one file: none loses a verdict, and only rows that were named are decided."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.signoff.document import review_document, write_review
from testkit.review_documents import ACLS, entitlement_row
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
            "the other choices leave out row `{0}`",
        ),
        (["--principal", ""], "the principal is empty"),
        (["--operation", ""], "the operation is empty"),
        (["--team", ""], "the team is empty"),
        (["--resource-name", ""], "the resource name is empty"),
        (["--resource-type", ""], "the resource type is empty"),
        (["--pattern-type", ""], "the pattern type is empty"),
        (["--principal", "User:nobody"], "no such row"),
        (["--undecided"], "choose rows"),
        ([], "choose rows"),
        (["--all", "--row", "{0}"], "`--all` takes every row"),
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
