"""Questions about the ACLs of a running Kafka: the same answers as from a file of its own list."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import AclBinding
from kustos.cli.acl_source import AclSource
from kustos.cli.run import run
from kustos.metadata.directory.format import format_directory
from testkit.cli import SETTINGS, USERS, Cli, Outcome, login
from testkit.kafka import KafkaNode, KafkaTools, NodeFactory

STOCK = [
    ["--allow-principal", "User:alice", "--operation", "Read", "--operation", "Write", "--topic", "orders"],
    ["--deny-principal", "User:bob", "--operation", "Read", "--topic", "orders", "--deny-host", "10.0.0.9"],
    ["--allow-principal", "User:bob", "--topic", "ord", "--resource-pattern-type", "prefixed"],
    ["--allow-principal", "User:carol", "--operation", "Describe", "--topic", "*", "--group", "pay-*"],
]
STOCK_ACLS = 6

QUESTIONS: dict[str, list[str]] = {
    "who-can": ["--operation", "Write", "--topic", "ord", "--resource-pattern-type", "prefixed"],
    "what-can": ["User:bob"],
    "explain": ["--principal", "User:bob", "--operation", "Read", "--topic", "orders", "--host", "10.0.0.9"],
}


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(SETTINGS)


@pytest.fixture
def cli(node: KafkaNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    fresh = Cli(node, tmp_path, capsys)
    fresh.clear()
    for arguments in STOCK:
        assert fresh("acls", "add", *arguments).exit_code == 0
    assert len(fresh.settled_acls()) == STOCK_ACLS
    return fresh


@pytest.fixture
def listing(cli: Cli, kafka_tools: KafkaTools, tmp_path: Path) -> str:
    """The file that an administrator makes with Kafka's own tool."""
    arguments = ("--list", "--bootstrap-server", cli.node.bootstrap)
    said = kafka_tools.run("AclCommand", *arguments, client_properties=login("admin", USERS["admin"]))
    file = tmp_path / "listing.txt"
    file.write_text(said.require())
    return str(file)


Kustos = Callable[..., Outcome]


@pytest.fixture
def kustos(cli: Cli, capsys: pytest.CaptureFixture[str]) -> Kustos:
    """The command line without an address, but with a login for those that stand in its arguments."""
    config = cli.properties(login("admin", USERS["admin"]))

    def ask(*arguments: str) -> Outcome:
        capsys.readouterr()
        exit_code = run([*arguments, "--command-config", str(config), "-o", "json"])
        said = capsys.readouterr()
        return Outcome(exit_code, said.out, said.err)

    return ask


def acls_of(file: str) -> list[AclBinding]:
    return AclSource(text=file).load().bindings


def answer_of(outcome: Outcome) -> Any:
    """The document without what says where the answer comes from: the settings, and whom commands address."""
    document = outcome.document
    del document["settings"]
    if document.get("change") is not None:
        del document["change"]["commands"]
    return document


def test_requests_are_decided_alike_by_a_cluster_and_by_its_list(
    cli: Cli, kustos: Kustos, listing: str, tmp_path: Path
) -> None:
    file = tmp_path / "asked.csv"
    asked = [
        f"User:{who},10.0.0.{host},{operation},TOPIC,{topic}"
        for who in ("alice", "bob", "carol")
        for host in (8, 9)
        for operation in ("READ", "WRITE", "DESCRIBE")
        for topic in ("orders", "ord", "else")
    ]
    file.write_text("\n".join(["principal,host,operation,resource_type,resource_name", *asked, ""]))
    of_cluster = cli("decide", "--requests", str(file))
    of_list = kustos("decide", "--requests", str(file), "--acls", listing)
    assert (of_cluster.exit_code, of_list.exit_code) == (0, 0)
    assert of_cluster.document == of_list.document
    results = [answer["result"] for answer in of_cluster.document["answers"]]
    assert len(results) == len(asked)
    assert {*results} == {"ALLOWED", "DENIED"}
    assert "super.users and allow.everyone.if.no.acl.found are unknown because" in of_cluster.stderr


def test_a_cluster_and_its_list_give_the_same_answers(cli: Cli, kustos: Kustos, listing: str) -> None:
    for command, arguments in QUESTIONS.items():
        asked = cli(command, *arguments)
        read = kustos(command, *arguments, "--acls", listing)
        assert asked.exit_code == read.exit_code == 0, (asked, read)
        assert answer_of(asked) == answer_of(read)
    assert cli("explain", *QUESTIONS["explain"]).document["change"]["edits"] == 1


SET_COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "lint": ([], []),
    "minimize": ([], []),
    "diff": ([], ["empty.yaml"]),
    "acls convert": ([], ["-", "--to", "json"]),
    "acls list": ([], []),
    "verify": (["policy.yaml"], []),
    "decide": (["--requests", "asked.csv"], []),
    **{name: ([], arguments) for name, arguments in QUESTIONS.items()},
}
"""Command → its words before and after the ACLs."""


def without_source(outcome: Outcome) -> Any:
    """Return the answer without the name of the source and the settings that only some sources have."""
    document = outcome.document
    document = {key: value for key, value in document.items() if key not in {"settings", "source"}}
    if document.get("change") is not None:
        document["change"].pop("commands")
    for finding in document.get("findings", ()):
        finding.pop("line")
        for each in finding["related"]:
            each.pop("line")
    return in_order(document)


def in_order(value: Any) -> Any:
    """Return the value with every list sorted: sources list ACLs in different orders."""
    if isinstance(value, dict):
        return {key: in_order(each) for key, each in value.items()}
    return sorted(map(in_order, value), key=json.dumps) if isinstance(value, list) else value


@pytest.mark.parametrize("command", SET_COMMANDS)
def test_every_command_takes_every_source_of_acls(
    command: str,
    cli: Cli,
    kustos: Kustos,
    listing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.yaml").write_text(
        "version: 1\nstatements:\n- never: anyone but User:alice WRITE topics under ord\n"
    )
    (tmp_path / "asked.csv").write_text(
        "principal,host,operation,resource_type,resource_name\nUser:bob,10.0.0.9,READ,TOPIC,orders\n"
    )
    (tmp_path / "empty.yaml").write_text("acls: []\n")
    format_directory(tmp_path / "meta", metadata_version=33, acls=acls_of(listing))
    before, after = SET_COMMANDS[command]
    words = [*command.split(), *before]
    cluster = f"kafka://{cli.node.bootstrap}"
    answers = {}
    for source in (listing, cluster, "meta", "meta@2100-01-01"):
        outcome = kustos(*words, "--acls", source, *after)
        assert outcome.exit_code in {0, 5}, (source, outcome)
        answers[source] = outcome.exit_code, without_source(outcome)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(listing).read_bytes())))
    outcome = kustos(*words, "--acls", "-", *after)
    answers["-"] = outcome.exit_code, without_source(outcome)
    assert all(answer == answers[listing] for answer in answers.values()), answers


def test_a_metadata_directory_of_kafka_is_a_source(cli: Cli, kustos: Kustos) -> None:
    cluster, directory = f"kafka://{cli.node.bootstrap}", str(cli.node.log_dir)
    same = kustos("diff", "--acls", cluster, directory, "--ignore-torn-tail", "--exit-code")
    assert (same.exit_code, same.document["same"]) == (0, True)


def test_a_cluster_and_its_list_mean_the_same(cli: Cli, kustos: Kustos, listing: str) -> None:
    cluster = f"kafka://{cli.node.bootstrap}"
    same = kustos("diff", cluster, listing, "--exit-code")
    assert (same.exit_code, same.document["same"]) == (0, True)
    assert cli("acls", "remove", "--force", *STOCK[0]).exit_code == 0
    assert len(cli.settled_acls()) == STOCK_ACLS - 2
    changed = kustos("diff", cluster, listing, "--exit-code")
    assert changed.exit_code == 5
    assert {each["direction"] for each in changed.document["changes"]} == {"GAINED"}


def test_what_lint_finds_in_a_cluster_is_what_it_finds_in_its_list(
    cli: Cli, kustos: Kustos, listing: str
) -> None:
    asked = kustos("lint", f"kafka://{cli.node.bootstrap}")
    read = kustos("lint", listing)
    assert asked.exit_code == read.exit_code == 5
    found = [
        {(each["code"], each["message"]) for each in outcome.document["findings"]}
        for outcome in (asked, read)
    ]
    assert found[0] == found[1]
    assert {"KUS203"} <= {code for code, _ in found[0]}
    assert kustos("lint", "kafka://127.0.0.1:1").exit_code == 3


def test_a_cluster_is_converted_and_verified(cli: Cli, kustos: Kustos, tmp_path: Path) -> None:
    target = tmp_path / "acls.yaml"
    written = kustos("acls", "convert", f"kafka://{cli.node.bootstrap}", str(target))
    assert written.document == {"target": str(target), "form": "yaml", "acls": len(cli.acls())}
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nstatements:\n- never: anyone but User:alice WRITE topics under ord\n")
    broken = cli("verify", str(policy))
    assert broken.exit_code == 5
    assert broken.document["statements"][0]["counter_examples"][0]["probe"]["principal"] == "User:bob"


def test_brokers_of_kafka_do_not_tell_who_their_super_users_are(cli: Cli) -> None:
    outcome = cli("what-can", "User:admin")
    assert outcome.exit_code == 0
    assert {name: each["known"] for name, each in outcome.document["settings"].items()} == {
        "super.users": False,
        "allow.everyone.if.no.acl.found": False,
    }
    assert "does not show" in outcome.document["settings"]["super.users"]["from"]
