"""Every way to name a set of ACLs ends in the same set, or in one sentence."""

import subprocess
from pathlib import Path

import pytest

from kustos.acl.forms import AclForm, write_acls
from kustos.metadata.directory.acl_files import encode_acl_snapshot
from kustos.pipeline.deciding import AclsInForce, read_acl_set, read_acl_set_at_revision
from kustos.pipeline.errors import AclSetError
from testkit.acls.one_line import acls

OLD = acls(["ALLOW READ User:alice TOPIC orders", "DENY WRITE User:* TOPIC prefix ord from 10.0.0.2"])
NEW = acls(["ALLOW READ User:bob TOPIC orders"])
EXTENSIONS = {
    AclForm.YAML: "yaml",
    AclForm.JSON: "json",
    AclForm.JSON_LINES: "jsonl",
    AclForm.CSV: "csv",
    AclForm.KAFKA_ACLS: "txt",
}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a folder inside a repository whose `acls.yaml` was another one before."""
    git(tmp_path, "init", "--initial-branch=main")
    folder = tmp_path / "security acls"
    folder.mkdir()
    for number, bindings in enumerate((OLD, NEW)):
        (folder / "acls.yaml").write_text(write_acls(bindings, AclForm.YAML), encoding="utf-8")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-m", f"change {number}")
    git(tmp_path, "tag", "v1", "HEAD~1")
    return folder


@pytest.mark.parametrize("form", AclForm)
def test_every_form_of_a_file_is_the_same_set(form: AclForm, tmp_path: Path) -> None:
    path = tmp_path / f"acls.{EXTENSIONS[form]}"
    path.write_text(write_acls(OLD, form), encoding="utf-8")
    found = read_acl_set(path, super_users="User:root")
    assert found.digest == AclsInForce.of("", OLD, super_users="User:root").digest
    assert found.name == str(path)


def test_a_snapshot_of_kafkas_is_a_set(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000009-0000000001.checkpoint"
    path.write_bytes(encode_acl_snapshot(OLD))
    assert read_acl_set(path).digest == AclsInForce.of("", OLD).digest


@pytest.mark.parametrize(
    ("revision", "expected"),
    [("HEAD", NEW), ("main", NEW), ("HEAD~1", OLD), ("v1", OLD), ("v1^{commit}", OLD)],
)
def test_a_revision_is_the_file_as_it_was(repository: Path, revision: str, expected: list[object]) -> None:
    (repository / "acls.yaml").write_text("edited since", encoding="utf-8")
    found = read_acl_set_at_revision(repository / "acls.yaml", revision, allow_everyone_if_no_acl_found=True)
    assert set(found.bindings) == set(expected)
    assert found.allow_everyone_if_no_acl_found
    assert found.name.endswith(f"acls.yaml at {revision}")


def test_a_file_that_is_gone_is_found_in_its_revision(repository: Path) -> None:
    (repository / "acls.yaml").unlink()
    assert set(read_acl_set_at_revision(repository / "acls.yaml", "HEAD").bindings) == set(NEW)


@pytest.mark.parametrize(
    "revision", ["", "--output=/tmp/x", "-p", "HEAD:other", "HEAD\n", "HEAD;ls", "$(ls)", "`ls`", "a b", "é"]
)
def test_what_is_no_revision_never_reaches_git(repository: Path, revision: str) -> None:
    with pytest.raises(AclSetError, match="names no git revision"):
        read_acl_set_at_revision(repository / "acls.yaml", revision)


def test_a_name_like_an_option_is_a_name(repository: Path) -> None:
    with pytest.raises(AclSetError, match=r"git has no `HEAD:\./--help`"):
        read_acl_set_at_revision(repository / "--help", "HEAD")


def test_every_fault_is_one_sentence(tmp_path: Path, repository: Path) -> None:
    blank, wrong, binary = tmp_path / "blank", tmp_path / "wrong.json", tmp_path / "binary.yaml"
    blank.write_text(" \n", encoding="utf-8")
    wrong.write_text('[{"resourceType": "TOPIC"}]', encoding="utf-8")
    binary.write_bytes(b"a: 1\n\xff\xfe")
    for path, said in (
        (tmp_path / "absent.yaml", "cannot read the ACLs `"),
        (tmp_path, "is not a metadata directory"),
        (blank, "is blank"),
        (wrong, "wrong.json, line 1"),
        (binary, "line 2: this is not text in UTF-8"),
        (tmp_path / "absent.checkpoint", "absent.checkpoint` cannot be read"),
    ):
        with pytest.raises(AclSetError) as caught:
            read_acl_set(path)
        assert said in str(caught.value)
    with pytest.raises(AclSetError, match="is not a directory"):
        read_acl_set(wrong, at="2026-11-03")
    for path, revision, said in (
        (repository / "acls.yaml", "nowhere", "git has no `nowhere:./acls.yaml`"),
        (repository / "absent" / "acls.yaml", "HEAD", "there is no folder"),
        (Path("/", "acls.yaml"), "HEAD", "git has no `HEAD:./acls.yaml`"),
    ):
        with pytest.raises(AclSetError) as caught:
            read_acl_set_at_revision(path, revision)
        assert said in str(caught.value)
