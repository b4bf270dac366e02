"""`kustos storage` and `kustos explain --metadata-dir` on directories of their own making."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from kustos.cli.explain import java_host
from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.run import run
from kustos.cli.storage.bootstrap import metadata_level, scram_users
from kustos.metadata.directory.format import format_directory
from kustos.metadata.features import DEFAULT_LEVEL, metadata_version_name
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.metadata.store.store import MetadataStore

ACL = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission_type": "ALLOW",
}
DENY = {**ACL, "resource_name": "*", "host": "0:0:0:0:0:0:0:1", "operation": "ALL", "permission_type": "DENY"}


def documents(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, Any]:
    capsys.readouterr()
    exit_code = run([*arguments, "-o", "json"])
    said = capsys.readouterr()
    document, error = (json.loads(text) if text else None for text in said)
    return exit_code, document, error


@pytest.fixture
def formatted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    directory = tmp_path / "meta"
    (tmp_path / "kustos.properties").write_text(
        f"node.id=7\nmetadata.log.dir={directory}\nlog.dirs=/nowhere\n"
    )
    (tmp_path / "acls.jsonl").write_text(f"{json.dumps(ACL)}\n\n{json.dumps(DENY)}\n{json.dumps(ACL)}\n")
    (tmp_path / "password").write_text("admin-secret\n")
    user = f'SCRAM-SHA-512=[name="ad,min",iterations=8192,password-file={tmp_path}/password]'
    command = ["storage", "format", "-t", "4L6g3nShT-eMCtK--X86sw", "-c", f"{tmp_path}/kustos.properties"]
    command += [
        "--add-scram",
        user,
        "--acls",
        f"{tmp_path}/acls.jsonl",
        "--feature",
        "metadata.version=4.4-IV2",
    ]
    exit_code, document, error = documents(capsys, *command)
    assert (exit_code, error) == (ExitCode.OK, None)
    assert document["formatted"] is True
    return directory


def test_what_was_formatted_is_described(formatted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code, document, _ = documents(capsys, "storage", "info", "-d", str(formatted))
    assert exit_code == ExitCode.OK
    expected = {
        "cluster_id": "4L6g3nShT-eMCtK--X86sw",
        "node_id": 7,
        "metadata_version": "4.4-IV2",
        "acls": 2,
        "scram_users": 1,
        "torn_tail_bytes": 0,
    }
    assert expected.items() <= document.items()


def test_references_to_the_environment_and_to_files_are_resolved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "where").write_text(f"{tmp_path}/meta\n")
    config = tmp_path / "kustos.properties"
    config.write_text(f"node.id=${{env:POD_INDEX}}\nmetadata.log.dir=${{file:{tmp_path}/where}}\n")
    command = ["storage", "format", "-t", "random", "-c", str(config)]
    monkeypatch.delenv("POD_INDEX", raising=False)
    exit_code, _, error = documents(capsys, *command)
    assert exit_code != ExitCode.OK
    assert "`node.id`" in error["error"]["message"]
    assert "the environment variable `POD_INDEX` is not set" in error["error"]["message"]
    monkeypatch.setenv("POD_INDEX", "4002")
    assert documents(capsys, *command)[0] == ExitCode.OK
    assert documents(capsys, "storage", "info", "-c", str(config))[1]["node_id"] == 4002


def test_formatting_twice_fails_unless_it_is_to_be_ignored(
    formatted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = ["storage", "format", "-t", "random", "-d", str(formatted)]
    exit_code, _, error = documents(capsys, *again)
    assert (exit_code, error["error"]["code"]) == (ExitCode.FAILED, "METADATA")
    exit_code, document, _ = documents(capsys, *again, "--ignore-formatted")
    assert (exit_code, document["formatted"]) == (ExitCode.OK, False)


def test_a_directory_that_is_not_formatted_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exit_code, _, error = documents(capsys, "storage", "info", "-d", str(tmp_path))
    assert (exit_code, error["error"]["code"]) == (ExitCode.USAGE, "METADATA")
    assert "kustos storage format" in error["error"]["message"]


def test_explain_reads_a_directory(formatted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = ["explain", "--metadata-dir", str(formatted), "--principal", "User:alice"]
    question += ["--operation", "Describe", "--topic", "orders"]
    exit_code, document, _ = documents(capsys, *question)
    assert (exit_code, document["result"], document["rule"]) == (ExitCode.OK, "PARTLY", None)
    assert document["matching"] == [ACL, DENY]
    exit_code, document, _ = documents(capsys, *question, "--host", "127.0.0.1")
    assert (exit_code, document["result"]) == (ExitCode.OK, "ALLOWED")
    assert document["rule"] == {"kind": "MatchingAcl", "acl": ACL}
    assert document["unmatched"] == [{"differs_in": ["host"], "acl": DENY}]
    exit_code, document, _ = documents(capsys, *question, "--host", "::1", "--exit-code")
    assert (exit_code, document["result"]) == (ExitCode.NO, "DENIED")
    assert document["matching"] == [ACL, DENY]
    assert document["overruled"] == [ACL]
    assert document["overruled_by"] == [DENY]
    change = document["change"]
    assert (change["edits"], change["remove"], change["add"]) == (1, [DENY], None)
    exit_code, document, _ = documents(capsys, *question, "--host", "::1", "--super-users", "User:alice")
    assert document["rule"] == {"kind": "SuperUser", "acl": None}


def test_explain_says_why_in_words(formatted: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = ["explain", "--metadata-dir", str(formatted), "--principal", "User:bob"]
    assert run([*question, "--operation", "Read", "--topic", "t", "--allow-everyone-if-no-acl-found"]) == 0
    assert "the only ACL on the resource does not allow it" in capsys.readouterr().out
    assert run([*question, "--operation", "Read", "--group", "g", "--allow-everyone-if-no-acl-found"]) == 0
    assert "the default then is to allow" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--topic", "t", "--group", "g"],
        ["--topic", "t", "--host", "localhost"],
        ["--topic", "t", "--bootstrap-server", "h:1"],
        ["--topic", "t", "--principal", "User:*"],
        ["--topic", "t", "--operation", "any"],
    ],
)
def test_a_question_without_meaning_is_a_usage_error(
    arguments: list[str], formatted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["explain", "--metadata-dir", str(formatted), "--principal", "User:a", "--operation", "Read"]
    exit_code, _, error = documents(capsys, *base, *arguments)
    assert (exit_code, error["error"]["code"]) == (ExitCode.USAGE, "USAGE")


@pytest.mark.parametrize(
    "text",
    [
        "SCRAM-SHA-256=[name=a,password=topsecret]",
        "SCRAM-SHA-256=[name=a,saltedpassword=topsecret]",
        "SCRAM-SHA-1=[name=a]",
        "[name=a,password=topsecret]",
        "SCRAM-SHA-256=[password-env=topsecret]",
        "SCRAM-SHA-256=[name=a,iterations=1]",
        "SCRAM-SHA-256=[name=a,name=b]",
        "SCRAM-SHA-256=[name=a,color=topsecret]",
        'SCRAM-SHA-256=[name=a,"topsecret"]',
    ],
)
def test_a_user_in_another_form_is_refused_and_no_secret_shown(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        scram_users([text])
    assert caught.value.failure.exit_code is ExitCode.USAGE
    assert "topsecret" not in str(caught.value)


def test_the_credential_is_that_of_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_PASSWORD", "p,w")
    (user,) = scram_users(["SCRAM-SHA-256=[name=a,password-env=THE_PASSWORD]"])
    salt = user.credential.salt
    assert user.credential == scram_credential(ScramMechanism.SCRAM_SHA_256, "p,w", salt, 4096)


def test_the_metadata_version_is_a_name_a_release_or_a_level() -> None:
    assert metadata_level(["metadata.version=33"], None) == metadata_level([], "4.4-IV2") == 33
    assert metadata_level([], "4.4") == 33
    for features, release in ((["group.version=1"], None), (["metadata.version=99"], None), ([], "5.0")):
        with pytest.raises(CommandError):
            metadata_level(features, release)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (json.dumps({**ACL, "operation": "FLY"}), "ACL_FORMAT"),
        (json.dumps({**ACL, "principal": "alice"}), "ACL_FORMAT"),
        ("[" * 10, "ACL_FORMAT"),
        ("\xff", "USAGE"),
    ],
)
def test_a_file_with_one_wrong_acl_makes_nothing(
    line: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, directory = tmp_path / "acls.jsonl", tmp_path / "meta"
    file.write_bytes(f"{json.dumps(DENY)}\n{line}\n".encode("latin-1"))
    exit_code, _, error = documents(
        capsys, "storage", "format", "-t", "random", "-d", str(directory), "--acls", str(file)
    )
    assert (exit_code, error["error"]["code"]) == (ExitCode.USAGE, code)
    assert f"{file}, line 2: " in error["error"]["message"]
    assert not directory.exists()


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::a", "2001:db8:0:0:0:0:0:a"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
    ],
)
def test_hosts_are_asked_for_in_javas_form(text: str, host: str) -> None:
    assert java_host(text) == host


def test_the_level_of_a_directory_is_raised_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "fresh"
    format_directory(directory)
    where = ("-d", str(directory))

    def level() -> str:
        _, document, _ = documents(capsys, "features", "describe", *where)
        (shown,) = document["features"]
        return str(shown["finalized_version_level"])

    upgrade = ("features", "upgrade", *where, "--release-version", "4.4")
    assert documents(capsys, *upgrade, "--dry-run")[0] == ExitCode.OK
    assert level() == metadata_version_name(DEFAULT_LEVEL)
    exit_code, document, _ = documents(capsys, *upgrade)
    assert (exit_code, document["level"], level()) == (ExitCode.OK, "4.4-IV2", "4.4-IV2")
    exit_code, _, error = documents(capsys, "features", "upgrade", *where, "--feature", "metadata.version=30")
    assert (exit_code, error["error"]["code"]) == (ExitCode.FAILED, "INVALID_UPDATE_VERSION")
    assert documents(capsys, "features", "upgrade", *where)[0] == ExitCode.USAGE
    assert documents(capsys, "features", "describe")[0] == ExitCode.USAGE
    with contextlib.closing(MetadataStore.open(directory)):
        exit_code, _, error = documents(capsys, *upgrade)
    assert (exit_code, error["error"]["code"]) == (ExitCode.FAILED, "LOCKED")


def test_the_level_of_a_directory_is_lowered_only_where_nothing_can_be_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "fresh"
    format_directory(directory, metadata_version=31)
    lower = ("features", "downgrade", "-d", str(directory), "--feature")

    def level() -> str:
        _, document, _ = documents(capsys, "features", "describe", "-d", str(directory))
        return str(document["features"][0]["finalized_version_level"])

    for flags in ([], ["--unsafe"], ["--dry-run"], ["--unsafe", "--dry-run"]):
        exit_code, document, error = documents(capsys, *lower, "metadata.version=29", *flags)
        assert (exit_code, document, error["error"]["code"]) == (
            ExitCode.FAILED,
            None,
            "INVALID_UPDATE_VERSION",
        )
        assert error["error"]["message"] == "Unsupported metadata.version downgrade from 31 to 29. " + (
            "Unsafe metadata downgrade is not supported in this version."
            if "--unsafe" in flags
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        assert level() == "4.4-IV0"
    assert documents(capsys, *lower, "metadata.version=30", "--dry-run")[1]["done"] is False
    assert level() == "4.4-IV0"
    assert documents(capsys, *lower, "metadata.version=30")[1]["done"] is True
    assert level() == "4.3-IV0"
    assert documents(capsys, *lower, "metadata.version=31")[0] == ExitCode.FAILED, "that is no downgrade"
    assert documents(capsys, "features", "downgrade", "-d", str(directory))[0] == ExitCode.USAGE


@pytest.mark.parametrize(
    ("action", "option"),
    [
        ("describe", "--unsafe"),
        ("upgrade", "--unsafe"),
        ("describe", "--dry-run"),
        ("describe", "--feature=metadata.version=33"),
        ("describe", "--release-version=4.4"),
        ("upgrade", "--output=csv"),
        ("downgrade", "--output=name"),
    ],
)
def test_an_action_on_features_refuses_the_options_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str, option: str
) -> None:
    format_directory(tmp_path / "fresh")
    assert run(["features", action, "-d", str(tmp_path / "fresh"), option]) == ExitCode.USAGE
    name, _, value = option.partition("=")
    message = capsys.readouterr().err
    assert f"`{value if name == '--output' else name}`" in message


def test_a_range_of_addresses_wants_a_level_that_knows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "acls.json").write_text(json.dumps([{**ACL, "host": "10.0.0.0/8"}]))
    line = [
        "storage",
        "format",
        "-t",
        "random",
        "-d",
        str(tmp_path / "m"),
        "--acls",
        str(tmp_path / "acls.json"),
    ]
    exit_code, _, error = documents(capsys, *line)
    assert exit_code == ExitCode.USAGE
    assert "give `--release-version 4.4-IV2`" in error["error"]["message"]
    assert documents(capsys, *line, "--release-version", "4.4-IV2")[0] == ExitCode.OK


def test_serve_tells_of_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(tmp_path / "absent")]) == ExitCode.USAGE
    assert "there is no properties file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-t", "!!"],
            "`--cluster-id`: `!!` is not a UUID in 22 characters of URL-safe Base64, or give `random`",
        ),
        (["-t", ""], "`--cluster-id`: `` is not a UUID"),
        (["-t", "random", "--node-id", str(2**31)], "`--node-id`"),
    ],
)
def test_ids_that_no_directory_can_have_are_wrong_usage(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["storage", "format", *words, "-d", str(tmp_path / "metadata")]) == ExitCode.USAGE
    assert said in capsys.readouterr().err
    assert not (tmp_path / "metadata").exists()
