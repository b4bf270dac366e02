"""`kustos metadata shell`: a tree that is walked like a file system, without secrets."""

import base64
import json
import os
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.image import image_of
from kustos.metadata.inspection.shell import COMMANDS, MetadataShell, ShellError
from kustos.metadata.inspection.tree import Folder, Leaf, node_name, tree_of
from kustos.metadata.records import (
    AccessControlEntryRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from kustos.wire import uuid_text
from tests.unit.cli.test_terminal import converse
from tests.unit.metadata.inspection_support import (
    BATCHES,
    SECRETS,
    acl,
    directory_with,
    log_bytes,
    snapshot_bytes,
    token,
    user,
)

SECRET_SETTING = ConfigRecord(4, "1", "listener.name.x.plain.sasl.jaas.config", "password=hidden")
RECORDS: list[MetadataRecord] = [
    FeatureLevelRecord("metadata.version", 30),
    user("alice"),
    user("a/b"),
    acl(1),
    acl(2, "User:bob", 2),
    AccessControlEntryRecord(UUID(int=3), 2, "../x", 4, "User:bob", "*", 4, 3),
    token(),
    ConfigRecord(2, "orders", "retention.ms", "1000"),
    SECRET_SETTING,
]
ONE, TWO, THREE = (uuid_text(UUID(int=number)) for number in (1, 2, 3))


def shell_of(records: Iterable[MetadataRecord] = RECORDS) -> MetadataShell:
    return MetadataShell(tree_of(image_of(records, 9, 1), "1.0"))


def said(line: str, shell: MetadataShell | None = None) -> list[str]:
    return list((shell or shell_of()).run_line(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "ls",
            ["acl/", "configs/", "delegationToken/", "features/", "local/", "provenance", "scram/"],
        ),
        ("ls /acl", ["by-principal/", "by-resource/", "id/"]),
        ("ls /acl/id", [ONE, TWO, THREE]),
        ("ls acl/by-principal", ["User:alice/", "User:bob/"]),
        ("ls acl/by-principal/User:bob", [TWO, THREE]),
        ("ls /acl/by-resource/TOPIC/LITERAL", ["t1/", "t2/"]),
        ("ls /acl/by-resource/TOPIC/PREFIXED", ["..%2Fx/"]),
        ("ls /scram/SCRAM-SHA-256", ["a%2Fb", "alice"]),
        ("ls /acl/by-*/User:alice", ["/acl/by-principal/User:alice:", ONE]),
        ("ls /provenance", ["/provenance"]),
        ("pwd", ["/"]),
        (
            "find /acl/by-principal/User:alice",
            [f"/acl/by-principal/User:alice{end}" for end in ("", f"/{ONE}")],
        ),
        ("find / -name alice", ["/scram/SCRAM-SHA-256/alice"]),
        ("find / -name ''", ["/"]),
        ("find /acl -name 'User:?ob'", ["/acl/by-principal/User:bob"]),
        ("tree /features", ["features/", "  metadata.version: 30 (4.3-IV0)"]),
        ("tree /scram/SCRAM-SHA-256/alice", ["alice: 4096 iterations"]),
        (f"tree /acl/id/{TWO}", [f"{TWO}: DENY READ to User:bob from * on TOPIC t2"]),
        ("# a remark", []),
        ("", []),
    ],
)
def test_the_tree_is_walked_like_a_file_system(line: str, expected: list[str]) -> None:
    assert said(line) == expected


def test_where_one_stands_is_where_paths_begin() -> None:
    shell = shell_of()
    assert said("cd acl/by-principal", shell) == []
    assert said("pwd", shell) == ["/acl/by-principal"]
    assert said("ls User:alice", shell) == [ONE]
    assert said("cd ../id/.", shell) == []
    assert said("ls ../..", shell) == said("ls /")
    assert said("cd ../../../../..", shell) == []
    assert said("pwd", shell) == ["/"]
    said("cd /acl", shell)
    assert said("cd", shell) == []
    assert shell.path == "/"


def test_an_acl_is_shown_as_json() -> None:
    assert json.loads("\n".join(said(f"cat /acl/id/{ONE}"))) == {
        "resource_type": "TOPIC",
        "resource_name": "t1",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permission_type": "ALLOW",
    }
    assert said(f"cat /acl/by-principal/User:alice/{ONE}") == said(f"cat /acl/id/{ONE}")
    assert json.loads("\n".join(said("cat /delegationToken/token-1")))["renewers"] == ["User:c"]
    assert json.loads("\n".join(said("cat /provenance"))) == {"offset": 9, "epoch": 1}


def test_contents_are_searched() -> None:
    found = said("grep DENY /acl/id")
    assert [line.partition(": ")[0] for line in found] == [f"/acl/id/{TWO}"]
    assert said("grep 'ALLOW|DENY' /acl/id") == said("grep . /acl/id")
    assert said("grep nothing") == []


def test_no_node_shows_a_secret() -> None:
    everything = "\n".join(
        [*said("grep ."), *said("tree /"), *said("cat /scram/*/*"), *said("cat /configs/*/*/*")]
    )
    for secret in (*SECRETS, b"password=hidden"):
        for form in (secret.decode(), secret.hex(), base64.b64encode(secret).decode()):
            assert form not in everything
    assert "retention.ms" in everything
    assert "1000" in everything


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("fly", "there is no command `fly`"),
        ("ls nothing", "there is no `nothing` here"),
        ("ls /provenance/more", "there is no `/provenance/more` here"),
        ("ls /no*", "nothing matches `/no*`"),
        ("cat", "takes one path or more"),
        ("cat /acl", "`/acl` is a folder"),
        ("cd /provenance", "`/provenance` is not a folder"),
        ("cd a b", "`cd` takes one path"),
        ("pwd x", "`pwd` takes nothing"),
        ("exit x", "`exit` takes nothing"),
        ("help x", "`help` takes nothing"),
        ("find -name", "`-name` takes a pattern"),
        ("grep", "takes a regular expression"),
        ("grep [ /", "`[` is not a regular expression"),
        ("ls 'x", "a quote that does not end"),
    ],
)
def test_what_means_nothing_is_told(line: str, why: str) -> None:
    with pytest.raises(ShellError) as caught:
        said(line)
    assert why in str(caught.value)


def test_an_option_without_its_pattern_is_told_with_an_example() -> None:
    with pytest.raises(ShellError) as caught:
        said("find -name")
    assert str(caught.value) == "`-name` takes a pattern, as `-name 'User:a*'`"


def test_the_version_is_a_leaf_like_all_others() -> None:
    (version,) = said("ls /local")
    assert (version, json.loads("\n".join(said("cat /local/version")))) == ("version", {"version": "1.0"})


def test_help_names_every_command() -> None:
    lines = said("help")
    assert [line.split()[0] for line in lines[:-1]] == list(COMMANDS)
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", list(COMMANDS)),
        ("c", ["cd", "cat"]),
        ("ls f", ["features/"]),
        ("ls /acl/by", ["/acl/by-principal/", "/acl/by-resource/"]),
        ("cat pro", ["provenance"]),
        ("cat provenance/", []),
        ("ls nothing/", []),
        ("ls acl/ ", ["acl/", "configs/", "delegationToken/", "features/", "local/", "provenance", "scram/"]),
    ],
)
def test_names_are_completed(line: str, expected: list[str]) -> None:
    assert shell_of().completions(line) == expected


names = st.text(st.sampled_from("./%a*"), max_size=5)


@given(names, names)
def test_names_of_nodes_are_paths_to_one_node_each(one: str, other: str) -> None:
    assert (node_name(one) == node_name(other)) == (one == other)
    assert "/" not in node_name(one)
    assert node_name(one) not in {"", ".", ".."}
    root = Folder(lambda: {node_name(one): Leaf({"is": one}, ""), "": Leaf({}, "")})
    assert json.loads("".join(MetadataShell(root).run(["cat", f"/{node_name(one)}"]))) == {"is": one}


@given(st.integers(0, 12))
def test_every_acl_is_found_in_each_way(count: int) -> None:
    shell = shell_of([acl(n, f"User:u{n % 3}") for n in range(1, count + 1)])
    ids = set(said("ls /acl/id", shell))
    assert len(ids) == count
    for way in ("/acl/by-principal", "/acl/by-resource"):
        leaves = [path.rpartition("/")[2] for path in said(f"find {way} -name 'A*'", shell)]
        assert len(leaves) == count
        assert set(leaves) == ids


def test_one_command_is_run_on_a_directory_and_on_a_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    assert run(["metadata", "shell", "--directory", str(directory), "ls", "/acl/id"]) == ExitCode.OK
    assert len(capsys.readouterr().out.split()) == 3
    other = directory_with(tmp_path / "other", snapshot_11_1=snapshot_bytes(*RECORDS))
    snapshot = other / "__cluster_metadata-0" / f"{11:020d}-{1:010d}.checkpoint"
    assert run(["metadata", "shell", "-s", str(snapshot), "cat", "/provenance"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"offset": 10, "epoch": 1}
    assert run(["metadata", "shell", "-s", str(snapshot), "find", "/", "-name", "alice"]) == ExitCode.OK
    assert capsys.readouterr().out == "/scram/SCRAM-SHA-256/alice\n"
    assert run(["metadata", "shell", "-s", str(snapshot), "cat", "/nothing"]) == ExitCode.FAILED
    assert capsys.readouterr().err.startswith("error: there is no `/nothing` here")


def test_the_first_segment_of_kafka_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    segment = directory / "__cluster_metadata-0" / f"{0:020d}.log"
    assert run(["metadata", "shell", "-s", str(segment), "cat", "/provenance"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"offset": sum(map(len, BATCHES)), "epoch": 1}


def test_an_earlier_state_is_walked_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    shell = ["metadata", "shell", "-d", str(directory)]
    assert run([*shell, "--at", "6", "ls", "/acl/id"]) == ExitCode.OK
    assert len(capsys.readouterr().out.split()) == 3
    assert run([*shell, "--at", "2023-11-14T22:13:21Z", "cat", "/provenance"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["offset"] == 3
    assert run([*shell, "--at", "99", "ls"]) == ExitCode.FAILED
    assert run([*shell, "--at", "soon", "ls"]) == ExitCode.USAGE
    assert run(["metadata", "shell", "-s", "a.checkpoint", "--at", "6", "ls"]) == ExitCode.USAGE


@pytest.mark.parametrize("arguments", [[], ["-d", "a", "-s", "b"]])
def test_one_source_is_asked_for(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metadata", "shell", *arguments]) == ExitCode.USAGE
    assert "`--directory`, `--snapshot` and `--bootstrap-controller`" in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminal_has_a_prompt_completion_and_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = directory_with(tmp_path, log_0=log_bytes())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TERM", "dumb")
    prompts = [
        (b"/> ", b"cd acl/by-p\t\n"),
        (b"/acl/by-principal> ", b"ls\n"),
        (b"User:bob/", b"nonsense\n"),
        (b"no command `nonsense`", b"exit\n"),
    ]
    exit_code, screen = converse(["metadata", "shell", "-d", str(directory)], prompts)
    assert exit_code == ExitCode.OK, screen
    history = tmp_path / "state" / "kustos" / "metadata-shell.history"
    assert history.read_text().splitlines()[-1] == "exit"
    assert history.stat().st_mode & 0o777 == 0o600
    exit_code, screen = converse(["metadata", "shell", "-d", str(directory)], [(b"/> ", b"\x04")])
    assert exit_code == ExitCode.OK, screen


def test_lines_of_a_pipe_are_commands(tmp_path: Path) -> None:
    import subprocess
    import sys

    directory = directory_with(tmp_path, log_0=log_bytes())
    command = [sys.executable, "-m", "kustos", "metadata", "shell", "-d", str(directory)]
    done = subprocess.run(
        command, input="cd acl\npwd\nnonsense\nexit\npwd\n", capture_output=True, text=True,
        check=False, env=dict(os.environ),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (ExitCode.FAILED, "/acl\n")
    assert "nonsense" in done.stderr
