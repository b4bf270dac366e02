"""What goes wrong is said in words: what it is, where, and what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.client.settings import ClientSettings
from kustos.metadata.directory.format import format_directory
from testkit.permissions import held_to_permissions
from tests.unit.cli.cli_sets import Said

READING = (
    ["acls", "list", "--metadata-dir", "{}"],
    ["explain", "--principal", "User:a", "--operation", "Read", "--topic", "t", "--metadata-dir", "{}"],
    ["who-can", "--operation", "Read", "--topic", "t", "--metadata-dir", "{}"],
    ["metadata", "dump", "{}"],
    ["metadata", "verify", "{}"],
    ["metadata", "history", "{}"],
    ["metadata", "export", "{}", "--out", "-"],
    ["metadata", "repair", "{}"],
    ["metadata", "shell", "-d", "{}", "ls"],
    ["storage", "info", "-d", "{}"],
)
"""Commands that read a metadata directory."""


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


def at(arguments: list[str], path: Path) -> list[str]:
    return [each.format(path) for each in arguments]


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: " ".join(arguments[:2]))
def test_a_directory_that_is_not_there_is_absent(arguments: list[str], tmp_path: Path, kustos: Said) -> None:
    exit_code, out, err = kustos(*at(arguments, tmp_path / "none"))
    assert (exit_code, out) == (ExitCode.USAGE, "")
    assert err.startswith(f"error: there is no directory `{tmp_path / 'none'}`; ")


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: " ".join(arguments[:2]))
def test_a_directory_of_other_things_is_no_metadata_directory(
    arguments: list[str], tmp_path: Path, kustos: Said
) -> None:
    exit_code, out, err = kustos(*at(arguments, tmp_path))
    assert (exit_code, out) == (ExitCode.USAGE, "")
    assert "a metadata directory" in err or "is not formatted" in err


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: " ".join(arguments[:2]))
@pytest.mark.slow
def test_a_missing_permission_is_told_in_words(arguments: list[str], tmp_path: Path) -> None:
    directory = tmp_path / "meta"
    format_directory(directory)
    for path in directory.rglob("*"):
        if path.is_file():
            path.chmod(0)
    words = [sys.executable, "-m", "kustos", *at(arguments, directory)]
    done = subprocess.run(held_to_permissions(words), capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == ExitCode.FAILED, said
    assert "permission denied, check its permissions" in said
    assert "Errno" not in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["users", "add", "User:bob", "--bootstrap-server", "nowhere:1", "--password-env", "HOME"],
        ["storage", "format", "-t", "random", "-d", "{}/meta", "-S", "SCRAM-SHA-256=[name=User:bob]"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_principal_is_no_name_of_a_user(arguments: list[str], tmp_path: Path, kustos: Said) -> None:
    exit_code, out, err = kustos(*at(arguments, tmp_path))
    assert (exit_code, out) == (ExitCode.USAGE, "")
    assert "would log in as the principal `User:User:bob`, write `bob`" in err
    assert not (tmp_path / "meta").exists()


PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}


def jaas(options: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return {**PLAIN, "sasl.jaas.config": f"{module} {options};"}


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({}, "`User:ANONYMOUS`"),
        (jaas('username="al" password="x"'), "`User:al`"),
        (jaas('username="t1" password="x" tokenauth="true"'), "the owner of the delegation token `t1`"),
        ({"security.protocol": "SSL"}, "`User:ANONYMOUS`"),
        (
            {"security.protocol": "SSL", "ssl.keystore.type": "PEM", "ssl.keystore.location": "client.pem"},
            "whom your certificate names",
        ),
    ],
)
def test_it_is_known_who_asks(properties: dict[str, str], told: str) -> None:
    assert ClientSettings.from_properties("broker:9092", properties).who == told
