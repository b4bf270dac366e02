"""`kustos metadata shell` on a running controller of Kafka, by the protocol of its followers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from testkit.kafka.listeners import SCRAM_MODULE
from testkit.kafka.tools import write_properties
from testkit.ports import LOOPBACK, free_port
from testkit.quorum.controllers import SCRAM_FOR_CONTROLLERS, Quorum
from testkit.waiting import PATIENCE_S, wait_until

NOBODY = {"nobody": "nobody-secret"}
SHELL = ("metadata", "shell", "--bootstrap-controller")


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    properties = {"metadata.log.max.record.bytes.between.snapshots": "2000"} | SCRAM_FOR_CONTROLLERS
    folder = tmp_path_factory.mktemp("quorum")
    with Quorum(folder, count=1, broker=False, properties=properties, users=NOBODY) as running:
        yield running


@pytest.fixture(scope="module")
def login(quorum: Quorum, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The login of an administrator, once the controller takes changes: it listens before it leads."""
    file = tmp_path_factory.mktemp("login") / "client.properties"
    write_properties(file, quorum.client_properties())
    options = "--command-config", str(file)
    wait_until(lambda: is_added(quorum, options, "User:u0"), what="the controller takes changes")
    return options


def is_added(quorum: Quorum, login: tuple[str, str], principal: str) -> bool:
    arguments = ["acls", "add", "--bootstrap-server", quorum.bootstrap, *login, "--topic", "orders"]
    return run([*arguments, "--allow-principal", principal, "--operation", "Read"]) == ExitCode.OK


def test_what_is_committed_is_shown(
    quorum: Quorum, login: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    # enough for a snapshot: a follower is then sent to it first
    for number in range(30):
        assert is_added(quorum, login, f"User:u{number}")
    capsys.readouterr()
    assert run([*SHELL, quorum.bootstrap, *login, "ls", "/acl/by-principal"]) == ExitCode.OK
    assert set(capsys.readouterr().out.split()) == {f"User:u{number}/" for number in range(30)}
    assert run([*SHELL, quorum.bootstrap, *login, "cat", "/acl/by-principal/User:u7/*"]) == ExitCode.OK
    acl = json.loads(capsys.readouterr().out)
    assert (acl["resource_name"], acl["operation"]) == ("orders", "READ")


def test_each_command_sees_what_was_committed_before_it(quorum: Quorum, login: tuple[str, str]) -> None:
    command = [sys.executable, "-m", "kustos", *SHELL, quorum.bootstrap, *login]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write("pwd\n")
        assert shell.stdout.readline() == "/\n"
        assert is_added(quorum, login, "User:late")
        shell.stdin.write("find /acl/by-principal -name User:late\n")
        assert shell.stdout.readline() == "/acl/by-principal/User:late\n"
        shell.stdin.write("exit\n")
        assert shell.wait(PATIENCE_S) == ExitCode.OK


def test_controllers_that_do_not_answer_are_told(
    quorum: Quorum, login: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    impatient = tmp_path / "impatient.properties"
    properties = quorum.client_properties() | {"request.timeout.ms": "300"}
    write_properties(impatient, properties)
    nobody = f"{LOOPBACK}:{free_port()}"
    assert run([*SHELL, nobody, "--command-config", str(impatient), "ls"]) == ExitCode.UNREACHABLE
    assert nobody in capsys.readouterr().err


def test_who_may_not_follow_is_told_so(
    quorum: Quorum, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "nobody.properties"
    jaas = f'{SCRAM_MODULE} required username="nobody" password="{NOBODY["nobody"]}";'
    properties = quorum.client_properties("SCRAM-SHA-256") | {"sasl.jaas.config": jaas}
    write_properties(file, properties)
    arguments = [*SHELL, quorum.bootstrap, "--command-config", str(file), "ls"]
    assert run(arguments) == ExitCode.NOT_AUTHORIZED
    assert "CLUSTER_AUTHORIZATION_FAILED" in capsys.readouterr().err
