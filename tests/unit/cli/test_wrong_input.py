"""Every command, given what is wrong: our words and an exit code that says so."""

import inspect
import io
import json
import re
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from typer.models import ArgumentInfo, ParameterInfo

from kustos.cli.failures import ExitCode
from kustos.cli.reference import Command, commands
from kustos.cli.requests import FIELDS
from kustos.client import SettingsError, parse_address
from kustos.client.errors import reason_in_words
from kustos.runtime import naming_the_setting, words_of
from testkit.ports import LOOPBACK
from tests.unit.cli.cli_sets import Said

FOREIGN = re.compile(
    r"Traceback|pydantic|Input should|Value error|Errno|<class|object at 0x|Multiple exceptions|"
    r"\b[A-Za-z]+(?:Error|Exception)\b|\bNone\b(?! of)|\\x[0-9a-f]{2}|\w+Parameter\b"
)
"""Words of Python, pydantic and click that mean nothing to a person."""

WRONG = (
    "no-such-file",
    "http://127.0.0.1:9092",
    "127.0.0.1:999999",
    "127.0.0.1:1",
    "folder",
    "binary",
    "words.txt",
    "empty.json",
    "wrong.properties",
    "-1",
    "",
    "10.0.0.0/33",
)
"""A file that is not there, addresses, a directory, files of other content, a number, a host."""

LEAVES = {command.path: command for command in commands()}
USABLE = {
    ("trial", "empty.json"),
}
"""What is no mistake: no ACLs, and a log whose first event is still being written."""


@pytest.fixture
def kustos(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 4)
    (tmp_path / "words.txt").write_text("hello\nworld\n")
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "wrong.properties").write_text("security.protocol=SSLL\nlisteners=x\n")
    return tmp_path


def parameters(command: Command) -> Iterator[tuple[inspect.Parameter, ParameterInfo]]:
    for parameter in inspect.signature(command.function).parameters.values():
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(info, ParameterInfo):
                yield parameter, info


def flag_of(parameter: inspect.Parameter, info: Any) -> str:
    return next(iter(info.param_decls or ()), f"--{parameter.name.replace('_', '-')}").partition("/")[0]


def takes_value(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation.__origin__
    return kind is not bool and kind != bool | None


def required_of(command: Command, wrong: str) -> list[str]:
    """A command line with a wrong value for each parameter that must be given."""
    words = command.path.split()
    for parameter, info in parameters(command):
        if isinstance(info, ArgumentInfo):
            words.append(wrong)
        elif takes_value(parameter) and parameter.default is inspect.Parameter.empty:
            words += [flag_of(parameter, info), wrong]
    return words


def lines_of(command: Command) -> Iterator[list[str]]:
    """Each wrong value where one must be given, and one besides for each option, in turn."""
    wrong = cycle(WRONG)
    yield from (required_of(command, value) for value in WRONG)
    for parameter, info in parameters(command):
        if not isinstance(info, ArgumentInfo) and takes_value(parameter):
            value = next(wrong)
            yield [*required_of(command, value), flag_of(parameter, info), value]


def in_own_process(*arguments: str) -> tuple[int, str, str]:
    """Do what `Said.piped` does in a process of its own."""
    command = [sys.executable, "-m", "kustos", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(LEAVES))
def test_wrong_input_is_told_in_our_words(
    path: str, here: Path, kustos: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    # a node takes over the standard error of its process
    said = in_own_process if path == "serve" else kustos.piped
    for line in lines_of(LEAVES[path]):
        exit_code, _, err = said(*line)
        if (path, line[-1]) not in USABLE:
            assert exit_code not in {ExitCode.OK, ExitCode.NO}, line
            assert err, line
        assert FOREIGN.search(err) is None, (line, err)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["acls", "list", "-o", "jsn"], "`jsn` is not one of .*`yaml`; did you mean `json`; see"),
        (["acls", "list", "--to", "x"], "no such option `--to`"),
        (
            ["acls", "list", "--metadata-di", "x"],
            "no such option `--metadata-di`, did you mean `--metadata-dir`",
        ),
        (["acls", "ad"], "no such command `ad`, did you mean `add`; see `kustos acls --help`"),
        (["users", "list", "--form"], "no such option `--form`"),
        (["serve"], "missing argument `FILE`; see `kustos serve --help`"),
        (["diff", "a", "b", "c"], "`c` is more than the command takes, leave it out"),
        (["diff", "a", "b", "--regions-max", "0"], "`0` is below 1, use 1 or more"),
        (["users", "add", "--iterations", "20000"], "`20000` is above 16384, use 16384 or less"),
        (["diff", "a", "b", "--regions-max", "x"], "`x` is not a whole number"),
        (["diff", "a", "b", "--regions-max"], "option `--regions-max` has no value, give one"),
        (["serve", "folder"], "`folder` is a directory, name the properties file in it"),
        (
            [
                "acls",
                "add",
                "--bootstrap-server",
                "127.0.0.1:1",
                "--topic",
                "t",
                "--deny-principal",
                "User:a",
                "--deny-host",
                "10.0.0.0/33",
            ],
            "host `10.0.0.0/33` is not an address range, write it as `10.0.0.0/8`",
        ),
        (["migrate", "zookeeper://localhost:999999", "."], "has the port `999999`"),
        (["migrate", "http://zk:2181", "."], "`http://zk:2181` does not exist; use `kafka://HOST:PORT`"),
        (["migrate", "kafka://a:1", "b:2"], "directory `b:2` does not exist; create it with `kustos storage"),
        (["migrate", "words.txt", ".", "--kip-11"], "`--kip-11` applies to a source `zookeeper://"),
        (["migrate", "words.txt", ".", "--snapshot", "x"], "`--snapshot` adds users to a source `kafka://"),
        (["migrate", "words.txt", ".", "--source-config", "x"], "does not apply to the file or directory"),
        (["migrate", "words.txt", ".", "--command-config", "x"], "does not apply to the directory `.`"),
    ],
)
def test_wrong_arguments_are_told_with_their_cure(
    line: list[str], told: str, here: Path, kustos: Said
) -> None:
    exit_code, out, err = kustos(*line)
    assert (exit_code, out) == (ExitCode.USAGE, "")
    assert re.search(told, err), err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://broker:9092", "begins with `http://`, write only `broker:9092`; `security.protocol` says"),
        ("SASL_SSL://broker:9092/", "begins with `SASL_SSL://`, write only `broker:9092`"),
        ("broker:999999", "has the port `999999`, a port is a number from 1 to 65535"),
        ("broker:0", "has the port `0`, a port is a number"),
        ("broker:kafka", "has the port `kafka`, a port is a number"),
        ("broker", "`broker` has no port, write it as `host:port`"),
        ("::1", "write the IPv6 address `::1` in brackets"),
        ("::1:9092", "write the IPv6 address `::1:9092` in brackets"),
        ("a:1;b:2", "is not an address of a node, write it as `host:port`, with commas between several"),
        ("a:1 b:2", "is not an address of a node"),
        (":9092", "is not an address of a node"),
    ],
)
def test_a_wrong_address_is_told_its_cause(text: str, told: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(told)):
        parse_address(text)


@pytest.mark.parametrize("text", ["[::1]:9092", "[fe80::1%eth0]:1", "a_b-c.d:65535", "bücher.example:1"])
def test_addresses_of_nodes_are_read(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.fixture
def resetting() -> Iterator[str]:
    """The address of a peer that resets a connection after its first bytes, as a broker may without TLS."""

    def serve(server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                peer, _ = server.accept()
                peer.recv(4)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()

    with socket.create_server((LOOPBACK, 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield f"{LOOPBACK}:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_tls_to_a_port_without_it_is_told_so(resetting: str, here: Path, kustos: Said) -> None:
    (here / "tls.properties").write_text("security.protocol=SSL\n")
    options = ("--bootstrap-server", resetting, "--command-config", "tls.properties")
    exit_code, _, err = kustos("acls", "list", *options)
    assert exit_code == ExitCode.UNREACHABLE
    assert (
        f"`{resetting}` ended the connection during the TLS handshake; check that `security.protocol`" in err
    )


def test_a_host_with_several_addresses_is_told_one_reason() -> None:
    joined = OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] x")
    assert reason_in_words(joined) == "connection refused"
    assert reason_in_words(ConnectionResetError()) == "the connection was lost"


@pytest.mark.parametrize("text", ["hello\nworld\n", "{}\n", "[]\n"])
def test_requests_that_are_none_end_in_an_error(text: str, here: Path, kustos: Said) -> None:
    (here / "acls.json").write_text("[]")
    (here / "requests").write_text(text)
    line = ("decide", "--acls", "acls.json", "--requests", "requests")
    exit_code, out, err = kustos.piped(*line)
    assert exit_code == ExitCode.USAGE
    count = text.count("\n")
    assert out.count("ERROR") == count, "every request has its answer"
    assert "error: `requests` has no valid request: request 1: " in err
    assert kustos.piped(*line, "--exit-code")[0] == ExitCode.NO
    valid = json.dumps(dict(zip(FIELDS, ("User:a", "10.0.0.1", "READ", "TOPIC", "x"), strict=True)))
    (here / "requests").write_text(f"{text}{valid}\n")
    assert kustos.piped(*line)[0] == ExitCode.OK, "the rest goes on"


def test_a_port_in_use_names_the_setting(here: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        told = f"cannot listen on `{LOOPBACK}:{port}`: address already in use"
        with pytest.raises(OSError, match=told) as caught, naming_the_setting(LOOPBACK, port, "listeners"):
            socket.create_server((LOOPBACK, port))
    assert words_of(caught.value).endswith(", see `listeners`")
