"""Every command that reads a metadata directory refuses half a log: what is missing may be a denial."""

import json
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from kustos.metadata.store.store import MetadataStore
from testkit.metadata_logs import acl, segment

ASKED = ("--operation", "Read", "--topic", "t")
COMMANDS: dict[str, list[str]] = {
    "acls list": ["acls", "list", "--metadata-dir", "DIR"],
    "acls list at": ["acls", "list", "--metadata-dir", "DIR", "--at", "2100-01-01"],
    "acls convert": ["acls", "convert", "DIR", "-", "--to", "json"],
    "explain": ["explain", "--metadata-dir", "DIR", "--principal", "User:a", *ASKED],
    "explain acls": ["explain", "--acls", "DIR", "--principal", "User:a", *ASKED],
    "who-can": ["who-can", "--metadata-dir", "DIR", *ASKED],
    "what-can": ["what-can", "User:a", "--metadata-dir", "DIR"],
    "verify": ["verify", "POLICY", "--metadata-dir", "DIR"],
    "diff": ["diff", "DIR", "ACLS"],
    "diff new": ["diff", "ACLS", "DIR"],
    "diff at": ["diff", "DIR", "--at", "1"],
    "lint": ["lint", "DIR"],
    "minimize": ["minimize", "DIR"],
    "decide": ["decide", "--acls", "DIR", "--requests", "REQUESTS"],
    "metadata export": ["metadata", "export", "DIR", "--out", "-"],
    "metadata export at": ["metadata", "export", "DIR", "--out", "-", "--at", "2100-01-01"],
    "metadata history": ["metadata", "history", "DIR"],
    "metadata shell": ["metadata", "shell", "--directory", "DIR", "ls"],
    "metadata shell at": ["metadata", "shell", "-d", "DIR", "--at", "2100-01-01", "ls"],
    "migrate": ["migrate", "DIR", "TARGET"],
    "storage info": ["storage", "info", "-d", "DIR"],
}


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """A directory whose last acknowledged ACL is followed by a piece of a write."""
    directory = tmp_path / "torn"
    format_directory(directory, acls=[acl("t")])
    store = MetadataStore.open(directory)
    store.create_acls([acl("second")])
    size = segment(directory, 0).stat().st_size
    store.create_acls([acl("third")])
    store.close()
    point = directory / "__cluster_metadata-0" / "kustos.recovery-point"
    point.write_bytes(b"%020d\n" % (int(point.read_bytes()) - 1))
    data = segment(directory, 0).read_bytes()
    segment(directory, 0).write_bytes(data[: size + 80])
    return directory


def spelled(command: str, torn: Path) -> list[str]:
    folder = torn.parent
    (folder / "policy").write_text(
        "version: 1\nstatements:\n  - never: anyone but User:a READ topics under t.\n"
    )
    (folder / "acls.yaml").write_text("[]\n")
    request = {"principal": "User:a", "host": "1.1.1.1", "operation": "READ"}
    request |= {"resource_type": "TOPIC", "resource_name": "t"}
    (folder / "requests.jsonl").write_text(json.dumps(request) + "\n")
    if not (folder / "target").exists():
        format_directory(folder / "target")
    places = {
        "DIR": torn,
        "POLICY": folder / "policy",
        "ACLS": folder / "acls.yaml",
        "REQUESTS": folder / "requests.jsonl",
        "TARGET": folder / "target",
    }
    return [str(places.get(word, word)) for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_torn_tail_is_told_and_refused_unless_it_is_ignored(
    command: str, torn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = spelled(command, torn)
    before = segment(torn, 0).read_bytes()
    assert run(words) == ExitCode.FAILED
    said = capsys.readouterr().err
    assert (
        f"`{segment(torn, 0)}` ends in 80 bytes of an unfinished write after offset 1: a crash left" in said
    )
    position = words.index("ls") if "ls" in words else len(words)
    ignoring = [*words[:position], "--ignore-torn-tail", *words[position:]]
    assert run(ignoring) in {ExitCode.OK, ExitCode.NO}
    assert "unfinished" not in capsys.readouterr().err
    data = bytearray(before)
    data[100] ^= 0xFF
    segment(torn, 0).write_bytes(data)
    # damage is not passed over
    assert run(ignoring) == ExitCode.FAILED
    assert "is damaged at offset" in capsys.readouterr().err


def test_programs_can_tell_a_torn_tail(torn: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["acls", "list", "--metadata-dir", str(torn), "-o", "json"]) == ExitCode.FAILED
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "TORN_TAIL"


def test_verify_tells_of_a_torn_tail_apart_from_damage(
    torn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["metadata", "verify", str(torn)]
    assert run(command) == ExitCode.FAILED
    said = " ".join(capsys.readouterr().out.split())
    assert "torn: `" in said
    assert said.endswith("whole, except an unfinished write at the end")
    assert run([*command, "--ignore-torn-tail", "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    torn_bytes = [{"file": str(segment(torn, 0)), "offset": 2, "size_bytes": 80}]
    assert (document["whole"], document["damage"], document["torn"]) == (False, [], torn_bytes)


def test_the_state_before_the_torn_tail_can_be_asked_for(
    torn: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["acls", "list", "--metadata-dir", str(torn), "--at", "0"]) == ExitCode.OK
    assert "topic" in capsys.readouterr().out.lower()
