"""`kustos acls convert` and `kustos diff` on files of every form, directories and what is none."""

import io
import sys
from pathlib import Path

import pytest

from kustos.acl import AclOperation, AclPermissionType, PatternType
from kustos.acl.forms import AclForm, write_acls
from kustos.cli.acl_source import AclSource
from kustos.cli.failures import ExitCode
from kustos.metadata.directory.format import format_directory
from tests.unit.cli.cli_sets import Said, acl

OLD = [acl("orders"), acl("pay-", pattern_type=PatternType.PREFIXED)]
NEW = [*OLD, acl("pay-secret", permission=AclPermissionType.DENY), acl("orders", who="User:bob")]
SAME = [*OLD, acl("pay-1"), acl("orders", operation=AclOperation.DESCRIBE)]
FILES = {"a.json": "json", "a.jsonl": "json-lines", "a.yaml": "yaml", "a.csv": "csv"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name, acls in (("old", OLD), ("new", NEW), ("same", SAME)):
        (tmp_path / f"{name}.yaml").write_text(write_acls(acls, AclForm.YAML))
    (tmp_path / "list.txt").write_text(write_acls(NEW, AclForm.KAFKA_ACLS))
    format_directory(tmp_path / "meta", acls=OLD)
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.mark.parametrize("source", ["new.yaml", "list.txt"])
def test_every_form_is_converted_to_every_other(here: Path, kustos: Said, source: str) -> None:
    for name, form in {**FILES, "a.txt": "kafka-acls", "a.checkpoint": "metadata"}.items():
        arguments = ("acls", "convert", source, name, *(() if name != "a.txt" else ("--to", form)), "--force")
        exit_code, out, _ = kustos(*arguments)
        assert (exit_code, out) == (ExitCode.OK, f"wrote 4 ACLs to {name} as {form}\n")
        assert set(AclSource(text=name).load().bindings) == set(NEW)
        assert kustos.document("diff", source, name, "--exit-code")[0] == ExitCode.OK
        source = name


def test_a_set_comes_from_standard_input_and_goes_to_standard_output(
    here: Path, kustos: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (here / "list.txt").read_bytes()
    for form in ("json", "csv", "kafka-acls"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        exit_code, out, _ = kustos("acls", "convert", "-", "--to", form)
        assert exit_code == ExitCode.OK
        text = out.encode()
    assert text == (here / "list.txt").read_bytes()


def test_a_target_that_exists_stays_unless_forced(here: Path, kustos: Said) -> None:
    before = (here / "new.yaml").read_bytes()
    exit_code, _, err = kustos("acls", "convert", "old.yaml", "new.yaml")
    assert exit_code == ExitCode.USAGE
    assert "exists already" in err
    assert (here / "new.yaml").read_bytes() == before
    assert kustos("acls", "convert", "old.yaml", "new.yaml", "--force")[0] == ExitCode.OK
    assert (here / "new.yaml").read_bytes() == (here / "old.yaml").read_bytes()


def test_what_a_form_cannot_say_leaves_no_target(here: Path, kustos: Said) -> None:
    (here / "lines.json").write_text(write_acls([acl("two\nlines")], AclForm.JSON))
    exit_code, document = kustos.document("acls", "convert", "lines.json", "x.txt", "--to", "kafka-acls")
    assert (exit_code, document["error"]["code"]) == (ExitCode.USAGE, "ACL_FORMAT")
    assert not (here / "x.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.yaml", "new.yaml"], "cannot read the file `absent.yaml`: no such file"),
        (["broken.yaml", "new.yaml"], "broken.yaml, line 3: `FLY` is not an operation"),
        (["blank.txt", "new.yaml"], "blank.txt, line 1: the text is blank"),
        (["latin.csv", "new.yaml"], "latin.csv, line 2: this is not text in UTF-8"),
        (["-", "-"], "only one of the two"),
        (["old.yaml", "."], "is not a metadata directory"),
        (["old.yaml", "new.yaml", "--super-users", "User:*"], "would be everybody"),
        (["old.yaml", "new.yaml", "--form", "csv"], "is not a field of an ACL"),
    ],
)
def test_what_is_no_set_of_acls_is_refused(
    here: Path, kustos: Said, arguments: list[str], words: str
) -> None:
    (here / "blank.txt").write_text(" \n")
    (here / "latin.csv").write_bytes(b"resource_type\nn\xe4me\n")
    text = (here / "old.yaml").read_text().replace("READ", "FLY")
    (here / "broken.yaml").write_text(f"---\n{text}")
    exit_code, out, err = kustos("diff", *arguments)
    assert exit_code in {ExitCode.USAGE, ExitCode.FAILED}
    assert words in err
    assert out == ""


def test_a_difference_is_told_by_regions(here: Path, kustos: Said) -> None:
    exit_code, document = kustos.document("diff", "meta", "new.yaml", "--exit-code")
    assert exit_code == ExitCode.NO
    assert (document["same"], document["acls"]) == (False, {"added": 2, "removed": 0, "kept": 2})
    directions = {(each["direction"], each["principals"]["in"][0]) for each in document["changes"]}
    assert directions == {("LOST", "User:alice"), ("GAINED", "User:bob")}
    exit_code, out, _ = kustos("diff", "meta", "new.yaml")
    assert exit_code == ExitCode.OK, "without `--exit-code` a difference is no failure"
    assert "topic `pay-secret`" in out
    assert all(len(line) <= 80 for line in out.splitlines()), out


def test_sets_that_mean_the_same_are_the_same(here: Path, kustos: Said) -> None:
    exit_code, out, _ = kustos("diff", "old.yaml", "same.yaml", "--exit-code")
    assert exit_code == ExitCode.OK
    assert out == "no decision changes: both sets mean the same\n(2 ACLs added, 0 removed, 2 kept)\n"


def test_super_users_do_not_differ(here: Path, kustos: Said) -> None:
    arguments = ("diff", "old.yaml", "new.yaml", "--exit-code")
    assert kustos(*arguments, "--super-users", "User:alice;User:bob")[0] == ExitCode.OK
    assert kustos(*arguments, "--super-users", "User:alice")[0] == ExitCode.NO
