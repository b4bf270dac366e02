"""`kustos blast-radius` on files, with and without Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from kustos.acl import AclOperation, ResourceType
from kustos.acl.forms import AclForm, write_acls
from kustos.cli.failures import ExitCode
from testkit.imports import WITHOUT_SPARK
from tests.unit.cli.cli_sets import Said, acl

ACLS = [
    acl("User:boss", who="User:clerk", operation=AclOperation.CREATE_TOKENS, kind=ResourceType.USER),
    acl("kafka-cluster", who="User:boss", operation=AclOperation.ALTER, kind=ResourceType.CLUSTER),
    acl("payments", who="User:clerk"),
]


@pytest.fixture
def acls(tmp_path: Path) -> str:
    path = tmp_path / "acls.yaml"
    path.write_text(write_acls(ACLS, AclForm.YAML))
    return str(path)


def test_a_token_of_an_administrator_reaches_everything(
    acls: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exit_code, out, _ = Said(capsys)("blast-radius", "User:clerk", "--acls", acls, "--exit-code")
    assert exit_code == ExitCode.NO
    assert out.startswith("User:clerk reaches everything:\n")
    exit_code, document = Said(capsys).document("blast-radius", "User:clerk", "--acls", acls)
    assert exit_code == ExitCode.OK
    assert [step["means"] for step in document["everything"]] == ["CREATE_TOKENS", "ALTER_CLUSTER"]


def test_principals_that_no_acl_names_are_read_from_a_file(
    acls: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    any_user = acl("*", who="User:clerk", operation=AclOperation.CREATE_TOKENS, kind=ResourceType.USER)
    Path(acls).write_text(write_acls([any_user], AclForm.YAML))
    (tmp_path / "known.txt").write_text("User:ci\n\n")
    words = ("blast-radius", "User:clerk", "--acls", acls, "--known", str(tmp_path / "known.txt"))
    _, document = Said(capsys).document(*words)
    assert [one["principal"] for one in document["identities"]] == ["User:clerk", "User:ci"]
    _, document = Said(capsys).document(*words, "--no-tokens")
    assert [one["principal"] for one in document["identities"]] == ["User:clerk"]


def test_it_needs_no_spark(acls: str) -> None:
    program = WITHOUT_SPARK + "from kustos.cli.run import run; sys.exit(run(sys.argv[1:]))"
    words = ["blast-radius", "User:clerk", "--acls", acls]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert "User:clerk reaches everything" in done.stdout
