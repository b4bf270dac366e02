"""`kustos users` against a real broker and `kafka-configs`; how every command says that it failed."""

import json
import re
import shlex
from pathlib import Path

import pytest

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from testkit.cli import SETTINGS, USERS, Cli, login, run_program
from testkit.kafka import KafkaNode, KafkaTools, NodeFactory
from testkit.ports import LOOPBACK, free_port
from testkit.waiting import wait_until

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(SETTINGS)


@pytest.fixture
def cli(node: KafkaNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(node, tmp_path, capsys)


class KafkaConfigs:
    """Kafka's own tool for SCRAM users against the same broker."""

    def __init__(self, node: KafkaNode, tools: KafkaTools) -> None:
        self._node, self._tools = node, tools

    def __call__(self, *arguments: str) -> str:
        arguments = (*arguments, "--bootstrap-server", self._node.bootstrap, "--entity-type", "users")
        properties = login("admin", USERS["admin"])
        return self._tools.run("ConfigCommand", *arguments, client_properties=properties).require()


@pytest.fixture
def kafka_configs(node: KafkaNode, kafka_tools: KafkaTools) -> KafkaConfigs:
    return KafkaConfigs(node, kafka_tools)


def users_of(cli: Cli, *arguments: str) -> dict[str, dict[str, int]]:
    outcome = cli("users", *(arguments or ("list",)))
    assert outcome.exit_code == 0, outcome
    return {
        user["name"]: {item["mechanism"]: item["iterations"] for item in user["credentials"]}
        for user in outcome.document["users"]
    }


def kafka_users_of(text: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, configs in re.findall(r"SCRAM credential configs for user-principal '(.*)' are (.*)", text):
        pairs = (item.strip().split("=", 1) for item in configs.split(", "))
        found[name] = {key: int(value.removeprefix("iterations=")) for key, value in pairs}
    return found


def add(cli: Cli, name: str, password: str, mechanism: str = SHA_256, iterations: int = 4096) -> None:
    file = cli.directory / "password"
    file.write_text(password + "\n")
    options = ("--mechanism", mechanism, "--iterations", str(iterations), "--password-file", str(file))
    assert cli("users", "add", name, *options).exit_code == 0


def can_log_in(cli: Cli, user: str, password: str, mechanism: str) -> bool:
    outcome = cli("users", "list", properties=login(user, password, mechanism))
    if outcome.error_code == "AUTHENTICATION_FAILED":
        assert outcome.exit_code == ExitCode.UNREACHABLE
        return False
    # logged in, though not allowed to ask
    assert outcome.error_code == "CLUSTER_AUTHORIZATION_FAILED"
    return True


def wait_login(cli: Cli, user: str, password: str, mechanism: str, *, works: bool = True) -> None:
    """Return once it works, or does not: a broker answers a change before it has read it from the log."""
    what = f"`{user}` {'can' if works else 'cannot'} log in"
    wait_until(lambda: can_log_in(cli, user, password, mechanism) is works, what=what)


@pytest.mark.behaviour("B355")
def test_both_tools_list_the_same_users(cli: Cli, kafka_configs: KafkaConfigs) -> None:
    add(cli, "listed", "one", SHA_256, 4097)
    add(cli, "listed", "two", SHA_512, 8192)
    wait_until(lambda: len(users_of(cli).get("listed", ())) == 2, what="both are listed")
    ours = users_of(cli)
    assert ours["listed"] == {SHA_256: 4097, SHA_512: 8192}
    assert ours == kafka_users_of(kafka_configs("--describe"))
    assert users_of(cli, "describe", "listed") == {"listed": ours["listed"]}


@pytest.mark.behaviour("B355")
@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_a_user_added_here_logs_in_and_kafkas_tool_removes_it(
    cli: Cli, kafka_configs: KafkaConfigs, mechanism: str
) -> None:
    add(cli, "carol", "pass,word=1", mechanism)
    wait_login(cli, "carol", "pass,word=1", mechanism)
    assert not can_log_in(cli, "carol", "other", mechanism)
    kafka_configs("--alter", "--entity-name", "carol", "--delete-config", mechanism)
    wait_login(cli, "carol", "pass,word=1", mechanism, works=False)
    assert "carol" not in users_of(cli)


@pytest.mark.behaviour("B355")
def test_a_user_added_by_kafkas_tool_is_removed_here(cli: Cli, kafka_configs: KafkaConfigs) -> None:
    config = f"{SHA_512}=[iterations=8192,password=dave-secret]"
    kafka_configs("--alter", "--entity-name", "dave", "--add-config", config)
    wait_login(cli, "dave", "dave-secret", SHA_512)
    assert users_of(cli)["dave"] == {SHA_512: 8192}
    assert cli("users", "remove", "dave", "--mechanism", SHA_512, "--force").exit_code == 0
    wait_login(cli, "dave", "dave-secret", SHA_512, works=False)
    again = cli("users", "remove", "dave", "--mechanism", SHA_512, "--force")
    assert (again.exit_code, again.error_code) == (ExitCode.FAILED, "RESOURCE_NOT_FOUND")


@pytest.mark.parametrize(
    ("name", "words"),
    [("Zoë", "only ASCII characters"), ("*", "`User:*` means everybody"), ("a=b,c", None)],
)
def test_only_a_user_who_can_log_in_is_said_to(
    cli: Cli,
    node: KafkaNode,
    kafka_tools: KafkaTools,
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: str | None,
) -> None:
    file = cli.directory / "password"
    file.write_text("a-secret\n")
    *as_text, _, _ = cli.arguments("users", "add", name, "--password-file", str(file))
    assert run(as_text) == 0
    said = capsys.readouterr().out
    if words is None:
        assert "can log in" in said
        wait_login(cli, name, "a-secret", SHA_256)
        return
    assert "cannot log in" in said
    assert words in said
    assert name in users_of(cli), "as with Kafka's own tool"
    refused = kafka_tools.run(
        "ConfigCommand", "--describe", "--bootstrap-server", node.bootstrap, "--entity-type", "users",
        client_properties=login(name, "a-secret", SHA_256),
    )  # fmt: skip
    assert refused.exit_code != 0


def test_the_password_comes_from_the_environment_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERIN_PASSWORD", "erin-secret")
    assert cli("users", "add", "erin", "--password-env", "ERIN_PASSWORD").exit_code == 0
    wait_login(cli, "erin", "erin-secret", SHA_256)


@pytest.mark.behaviour("B355")
def test_an_empty_password_makes_no_user(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    monkeypatch.setenv("EMPTY_PASSWORD", "")
    for how in (("--password-file", str(empty)), ("--password-env", "EMPTY_PASSWORD")):
        refused = cli("users", "add", "frank", *how)
        assert refused.exit_code == ExitCode.USAGE
    assert "frank" not in users_of(cli)


def test_an_unknown_user_is_a_failure_that_names_it(cli: Cli) -> None:
    outcome = cli("users", "describe", "nobody-1", "admin", "nobody-2")
    assert (outcome.exit_code, outcome.error_code) == (ExitCode.FAILED, "RESOURCE_NOT_FOUND")
    assert "`nobody-1`, `nobody-2`" in outcome.stderr
    assert [user["name"] for user in outcome.document["users"]] == ["admin"]


@pytest.mark.parametrize("mechanism", ["PLAIN", SHA_256, SHA_512])
def test_a_wrong_password_is_told_from_an_unreachable_host(cli: Cli, mechanism: str) -> None:
    outcome = cli("acls", "list", properties=login("admin", "wrong-secret", mechanism))
    assert (outcome.exit_code, outcome.error_code) == (ExitCode.UNREACHABLE, "AUTHENTICATION_FAILED")
    assert "wrong-secret" not in outcome.stderr
    good = cli("acls", "list", properties=login("admin", USERS["admin"], mechanism))
    assert good.exit_code == ExitCode.OK


def test_who_may_not_is_told_so(cli: Cli) -> None:
    alice = login("alice", USERS["alice"])
    remedies: list[str] = []
    acl = ("--topic", "t", "--allow-principal", "User:alice")
    for command in (
        ("acls", "list"),
        ("acls", "add", *acl),
        ("acls", "remove", *acl, "--force"),
        ("users", "list"),
        ("users", "remove", "alice", "--force"),
        ("explain", "--principal", "User:a", "--operation", "Read", "--topic", "t"),
    ):
        outcome = cli(*command, properties=alice)
        assert (outcome.exit_code, outcome.error_code) == (
            ExitCode.NOT_AUTHORIZED,
            "CLUSTER_AUTHORIZATION_FAILED",
        ), command
        message = json.loads(outcome.stderr)["error"]["message"]
        needed = "ALTER" if command[1] in {"add", "remove"} else "DESCRIBE"
        assert f"you are `User:alice`, without `{needed}` on the cluster" in message
        remedy = re.search(r"`(kustos [^`]+)`", message)
        assert remedy is not None
        remedies.append(remedy[1])
    # the administrator may run what was proposed, and then the same is allowed
    admin = str(cli.properties(login("admin", USERS["admin"])))
    for each in dict.fromkeys(remedies):
        assert run([admin if word == "admin.properties" else word for word in shlex.split(each)[1:]]) == 0
    wait_until(
        lambda: cli("acls", "list", properties=alice).exit_code == ExitCode.OK,
        what="alice may list the ACLs",
    )
    cli.clear()


def test_as_a_program_it_exits_as_documented(cli: Cli, node: KafkaNode) -> None:
    good = run_program(*cli.arguments("acls", "list"))
    assert good.exit_code == ExitCode.OK, good
    nobody = run_program("acls", "list", "--bootstrap-server", f"{LOOPBACK}:{free_port()}", "-o", "json")
    assert (nobody.exit_code, nobody.error_code) == (ExitCode.UNREACHABLE, "CANNOT_CONNECT")
    plain = run_program("acls", "list", "--bootstrap-server", node.bootstrap, "-o", "json")
    assert (plain.exit_code, plain.error_code) == (ExitCode.UNREACHABLE, "CONNECTION_CLOSED")
    usage = run_program("acls", "add", "--bootstrap-server", node.bootstrap, "--topic", "t", "-o", "json")
    assert (usage.exit_code, usage.error_code) == (ExitCode.USAGE, "USAGE")


def test_the_next_bootstrap_server_is_asked_where_the_first_is_gone(cli: Cli, node: KafkaNode) -> None:
    arguments = cli.arguments("acls", "list")
    at = arguments.index("--bootstrap-server") + 1
    arguments[at] = f"{LOOPBACK}:{free_port()},{node.bootstrap}"
    assert run_program(*arguments).exit_code == ExitCode.OK
