"""Where the ACLs are: one grammar for every command, and a sentence for what names no source."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kustos.acl.forms import AclForm, write_acls
from kustos.cli.acl_source import AclSource
from kustos.cli.failures import ExitCode
from kustos.cli.reference import commands
from kustos.metadata.directory.format import format_directory
from tests.unit.cli.cli_sets import Said, acl

OLD, NEW = [acl("orders")], [acl("orders"), acl("payments", who="User:bob")]
SUBJECTS = {"lint", "minimize", "diff", "acls convert"}
QUESTIONS = {"explain", "decide", "who-can", "what-can", "verify", "acls list"}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text(write_acls(OLD, AclForm.YAML))
    (tmp_path / "new.yaml").write_text(write_acls(NEW, AclForm.YAML))
    format_directory(tmp_path / "meta", metadata_version=33, acls=NEW)
    return tmp_path


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def test_every_command_that_reads_acls_has_the_same_options() -> None:
    functions = {command.path: command.function for command in commands()}
    for path in SUBJECTS | QUESTIONS:
        annotations = functions[path].__annotations__
        assert {"acls", "form", "bootstrap_server", "metadata_dir", "command_config"} <= annotations.keys()
        assert ("acls_argument" in annotations) == (path in SUBJECTS), path


def test_a_directory_at_a_moment_is_one_word(here: Path, kustos: Said) -> None:
    moments = (("--acls", "meta@2100-01-01"), ("--acls", "meta", "--at", "2100-01-01"))
    answers = [kustos.document("acls", "list", *words) for words in moments]
    assert answers[0] == answers[1]
    assert len(answers[0][1]["acls"]) == len(NEW)
    exit_code, _, err = kustos("acls", "list", "--acls", "meta@2100-01-01", "--at", "1")
    assert (exit_code, "both name a moment" in err) == (ExitCode.USAGE, True)


def test_a_file_with_an_at_sign_in_its_name_is_that_file(here: Path) -> None:
    (here / "meta@1").write_text(write_acls(OLD, AclForm.YAML))
    assert AclSource(text="meta@1").load().bindings == OLD


def test_a_path_before_the_name_reads_a_file_that_looks_like_another_source(here: Path) -> None:
    for name in ("git:main:old.yaml", "kafka:", "-", "-c", "meta@1", "~absent"):
        (here / name).write_text(write_acls(OLD, AclForm.YAML))
        assert AclSource(text=f"./{name}").load().bindings == OLD


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "the source of ACLs is missing"),
        ("~absent/acls.yaml", "cannot read the file `~absent/acls.yaml`: no such file"),
        ("~absent@1", "cannot read the file `~absent@1`: no such file"),
        ("meta@", "is neither an offset nor a time"),
        ("broken", "cannot read the file `broken`: no such file"),
        ("circle", "cannot read the file `circle`: too many levels"),
        ("empty", "the text is blank"),
        ("/dev/zero", "is larger than"),
    ],
)
def test_what_cannot_be_a_source_is_a_usage_error(source: str, said: str, here: Path, kustos: Said) -> None:
    (here / "broken").symlink_to("nowhere")
    (here / "circle").symlink_to("circle")
    (here / "empty").touch()
    for words in (("lint", source), ("lint", f"--acls={source}"), ("acls", "list", "--acls", source)):
        exit_code, out, err = kustos(*words)
        assert (exit_code, out) == (ExitCode.USAGE, ""), err
        assert said in err


def test_a_pipe_is_a_source(here: Path) -> None:
    os.mkfifo(here / "pipe")
    with ThreadPoolExecutor() as pool:
        writing = pool.submit((here / "pipe").write_text, write_acls(OLD, AclForm.YAML))
        assert AclSource(text="pipe").load().bindings == OLD
        writing.result()


@pytest.mark.parametrize(
    "words",
    [
        ("old.yaml", "new.yaml"),
        ("--acls", "old.yaml", "new.yaml"),
        ("new.yaml", "--acls", "old.yaml"),
        ("--acls=old.yaml", "--", "new.yaml"),
        ("--", "old.yaml", "new.yaml"),
        ("--acls", "-c", "new.yaml"),
        ("--acls", "old.yaml", "--", "-n.yaml"),
        ("old.yaml", "--", "-n.yaml"),
    ],
)
def test_arguments_and_the_option_come_in_any_order(words: tuple[str, ...], here: Path, kustos: Said) -> None:
    (here / "-c").write_text(write_acls(OLD, AclForm.YAML))
    (here / "-n.yaml").write_text(write_acls(NEW, AclForm.YAML))
    exit_code, out, err = kustos.piped("diff", "--exit-code", "-o", "json", *words)
    assert exit_code == ExitCode.NO, err
    assert [change["direction"] for change in json.loads(out)["changes"]] == ["GAINED"]


def test_a_file_of_a_git_revision_is_a_source(here: Path, kustos: Said) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", "old.yaml")
    git("commit", "-m", "first")
    (here / "old.yaml").write_text(write_acls(NEW, AclForm.YAML))
    exit_code, document = kustos.document("diff", "git:main:old.yaml", "old.yaml", "--exit-code")
    assert exit_code == ExitCode.NO
    assert [change["direction"] for change in document["changes"]] == ["GAINED"]
    for source, said in (
        ("git:old.yaml", "write `git:REVISION:PATH`"),
        ("git:main:absent.yaml", "git has no `main:./absent.yaml`"),
        ("git:--help:old.yaml", "names no git revision"),
    ):
        exit_code, _, err = kustos("lint", source)
        assert (exit_code, said in err) == (ExitCode.USAGE, True), err


def test_the_option_takes_the_place_of_the_first_argument(here: Path, kustos: Said) -> None:
    assert kustos.document("diff", "old.yaml", "new.yaml") == kustos.document(
        "diff", "new.yaml", "--acls", "old.yaml"
    )
    assert kustos("acls", "convert", "--acls", "old.yaml", "copy.csv")[0] == ExitCode.OK
    assert AclSource(text="copy.csv").load().bindings == OLD
    exit_code, _, err = kustos("lint", "old.yaml", "--acls", "new.yaml")
    assert (exit_code, "`old.yaml` is more than the command takes" in err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the source of ACLs is missing, give `--acls`"),
        (["--acls", "old.yaml", "--metadata-dir", "meta"], "`old.yaml` and `meta` both name the source"),
        (["--acls", "old.yaml", "--at", "1"], "`old.yaml` is not a directory"),
        (["--acls", "meta", "--bootstrap-server", "h:1"], "`meta` and `kafka://h:1` both name the source"),
        (["--acls", "absent@1"], "cannot read"),
    ],
)
def test_what_names_no_source_is_a_usage_error(words: list[str], said: str, here: Path, kustos: Said) -> None:
    for command in (["what-can", "--principal", "User:a"], ["lint"], ["acls", "list"]):
        exit_code, out, err = kustos(*command, *words)
        assert (exit_code, out) == (ExitCode.USAGE, "")
        assert said in err


def test_the_principal_is_an_option_as_everywhere(here: Path, kustos: Said) -> None:
    asked = ("what-can", "--acls", "new.yaml")
    assert kustos.document(*asked, "--principal", "User:bob") == kustos.document(*asked, "User:bob")
    for principals in ((), ("User:a", "--principal", "User:b")):
        exit_code, _, err = kustos(*asked, *principals)
        assert (exit_code, "name one principal: `--principal User:NAME`" in err) == (ExitCode.USAGE, True)


def test_a_new_directory_takes_its_first_acls_from_any_source(here: Path, kustos: Said) -> None:
    format_directory(here / "other", metadata_version=33)
    for number, source in enumerate(("new.yaml", "meta", "meta@2100-01-01")):
        exit_code, _, err = kustos("storage", "format", "-t", "random", "-d", f"d{number}", "--acls", source)
        assert exit_code == ExitCode.OK, err
        assert set(AclSource(text=f"d{number}").load().bindings) == set(NEW)


def test_export_and_shell_take_a_directory_at_a_moment(here: Path, kustos: Said) -> None:
    for words in (
        ("metadata", "export", "{}", "--out", "-"),
        ("metadata", "shell", "-d", "{}", "ls", "/acl"),
    ):
        now, then = ([word.format(place) for word in words] for place in ("meta", "meta@2100-01-01"))
        (exit_code, out, _), past = kustos.piped(*now), kustos.piped(*then)
        assert exit_code == past[0] == ExitCode.OK, past
        assert out == past[1] != ""
