"""`kustos acls` and the real `kafka-acls` make, list and remove the same ACLs on a real broker."""

from pathlib import Path

import pytest

from kustos.acl.forms import detect_form, fields_of, read_acls
from kustos.cli.run import run
from testkit.cli import SETTINGS, USERS, Acl, Cli, acls_of, kafka_acls_of, login
from testkit.kafka import KafkaNode, KafkaTools, NodeFactory
from testkit.kafka.legacy import legacy_acl_tool

ALICE, BOB = "User:alice", "User:bob"

ADDITIONS: dict[str, list[str]] = {
    "defaults": ["--allow-principal", ALICE, "--topic", "orders"],
    "repeated": [
        *("--allow-principal", ALICE, "--allow-principal", BOB, "--operation", "Read", "--operation"),
        *("DescribeConfigs", "--topic", "orders", "--topic", "*", "--allow-host", "10.0.0.1"),
        *("--allow-host", "10.0.0.2", "--deny-principal", "User:*", "--deny-host", "10.0.0.9"),
    ],
    "groups-deny": ["--deny-principal", BOB, "--operation", "Read", "--group", "g"],
    "tokens-and-users": [
        *("--allow-principal", ALICE, "--operation", "All", "--delegation-token", "t"),
        *("--user-principal", "User:bob", "--transactional-id", "x"),
    ],
    "cluster": ["--allow-principal", ALICE, "--operation", "ClusterAction", "--cluster"],
    "producer": ["--producer", "--allow-principal", ALICE, "--topic", "orders"],
    "idempotent": [
        *("--producer", "--idempotent", "--allow-principal", ALICE, "--topic", "orders"),
        *("--transactional-id", "tx"),
    ],
    "idempotent-prefixed": [
        *("--producer", "--idempotent", "--allow-principal", ALICE, "--topic", "shop-"),
        *("--resource-pattern-type", "prefixed"),
    ],
    "consumer": ["--consumer", "--allow-principal", ALICE, "--topic", "orders", "--group", "g"],
    "both": [
        *("--producer", "--consumer", "--allow-principal", ALICE, "--topic", "orders", "--group", "g"),
        *("--transactional-id", "tx", "--allow-host", "10.0.0.1"),
    ],
    "prefixed": [
        *("--allow-principal", "Group:ops", "--operation", "Write", "--topic", "shop-", "--cluster"),
        *("--resource-pattern-type", "prefixed"),
    ],
}

STOCK = [
    ["--allow-principal", ALICE, "--operation", "Read", "--operation", "Write", "--topic", "orders"],
    ["--deny-principal", BOB, "--operation", "Read", "--topic", "orders", "--deny-host", "10.0.0.9"],
    [
        "--allow-principal",
        ALICE,
        "--operation",
        "Read",
        "--topic",
        "ord",
        "--resource-pattern-type",
        "prefixed",
    ],
    ["--allow-principal", BOB, "--operation", "Describe", "--topic", "*", "--group", "*"],
    ["--producer", "--idempotent", "--allow-principal", BOB, "--topic", "pay", "--transactional-id", "tx"],
]

REMOVALS: dict[str, list[str]] = {
    "exact": ["--allow-principal", ALICE, "--operation", "Read", "--topic", "orders"],
    "absent": ["--allow-principal", "User:nobody", "--topic", "orders"],
    "whole-resource": ["--topic", "orders"],
    "by-match": ["--topic", "orders", "--resource-pattern-type", "match"],
    "by-any": ["--topic", "ord", "--resource-pattern-type", "any"],
    "match-with-entry": [
        *("--allow-principal", ALICE, "--operation", "Read", "--topic", "orders"),
        *("--resource-pattern-type", "match"),
    ],
    "producer": ["--producer", "--allow-principal", BOB, "--topic", "pay"],
    "cluster-and-group": ["--cluster", "--group", "*"],
}

LISTINGS: list[list[str]] = [
    [],
    ["--topic", "orders"],
    ["--topic", "orders", "--resource-pattern-type", "match"],
    ["--topic", "ord", "--resource-pattern-type", "any"],
    ["--topic", "ord", "--resource-pattern-type", "prefixed"],
    ["--principal", BOB],
    ["--cluster", "--group", "*", "--principal", ALICE, "--principal", BOB],
]


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(SETTINGS)


@pytest.fixture
def cli(node: KafkaNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    fresh = Cli(node, tmp_path, capsys)
    fresh.clear()
    return fresh


class KafkaAcls:
    """Kafka's own tool against the same broker."""

    def __init__(self, node: KafkaNode, tools: KafkaTools) -> None:
        self._node, self._tools = node, tools

    def __call__(self, *arguments: str) -> str:
        arguments = (*arguments, "--bootstrap-server", self._node.bootstrap)
        properties = login("admin", USERS["admin"])
        return self._tools.run("AclCommand", *arguments, client_properties=properties).require()


@pytest.fixture
def kafka_acls(node: KafkaNode, kafka_tools: KafkaTools) -> KafkaAcls:
    return KafkaAcls(node, kafka_tools)


def require_acls(cli: Cli, expected: set[Acl]) -> None:
    """Assert that the broker has these ACLs when it has read all changes."""
    assert cli.settled_acls() == expected


def stocked(cli: Cli) -> set[Acl]:
    stock: set[Acl] = set()
    for arguments in STOCK:
        outcome = cli("acls", "add", *arguments)
        assert outcome.exit_code == 0
        stock |= acls_of([*outcome.document["added"], *outcome.document["existing"]])
    require_acls(cli, stock)
    return stock


@pytest.mark.behaviour("B348", "B349", "B350")
@pytest.mark.parametrize("case", ADDITIONS)
def test_the_same_arguments_add_the_same_acls(cli: Cli, kafka_acls: KafkaAcls, case: str) -> None:
    kafka_acls("--add", *ADDITIONS[case])
    theirs = cli.settled_acls()
    cli.clear()
    assert cli("acls", "add", *ADDITIONS[case]).exit_code == 0
    assert theirs
    require_acls(cli, theirs)


@pytest.mark.behaviour("B348", "B350")
@pytest.mark.parametrize("case", REMOVALS)
def test_the_same_arguments_remove_the_same_acls(cli: Cli, kafka_acls: KafkaAcls, case: str) -> None:
    before = stocked(cli)
    kafka_acls("--remove", "--force", *REMOVALS[case])
    theirs = cli.settled_acls()
    assert stocked(cli) == before
    outcome = cli("acls", "remove", "--force", *REMOVALS[case])
    assert outcome.exit_code == 0
    require_acls(cli, theirs)
    assert {tuple(acl.values()) for acl in outcome.document["removed"]} == before - theirs


@pytest.mark.behaviour("B348", "B350", "B353", "B208")
def test_the_same_arguments_list_the_same_acls(cli: Cli, kafka_acls: KafkaAcls) -> None:
    stocked(cli)
    for arguments in LISTINGS:
        theirs = kafka_acls_of(kafka_acls("--list", *arguments))
        assert theirs, arguments
        assert cli.acls(*arguments) == theirs, arguments


def test_the_list_of_each_release_is_read_as_the_acls_of_the_broker(cli: Cli, kafka_acls: KafkaAcls) -> None:
    acls = stocked(cli)
    file = cli.properties(login("admin", USERS["admin"]))
    old = legacy_acl_tool("--bootstrap-server", cli.node.bootstrap, "--command-config", str(file), "--list")
    assert ") \n" in old, "this release ends the last ACL of a resource with a blank"
    for text in (old, kafka_acls("--list")):
        listed = [each.binding for each in read_acls(text, detect_form(text, "-"), "-")]
        assert {tuple(fields_of(each).values()) for each in listed} == acls


@pytest.mark.behaviour("B352")
def test_adding_what_exists_changes_nothing(cli: Cli, kafka_acls: KafkaAcls) -> None:
    kafka_acls("--add", *STOCK[0])
    before = cli.settled_acls()
    outcome = cli("acls", "add", *STOCK[0])
    assert outcome.exit_code == 0
    require_acls(cli, before)
    assert outcome.document["added"] == []
    assert acls_of(outcome.document["existing"]) == before


def test_what_was_done_is_said_in_numbers(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str) -> str:
        capsys.readouterr()
        assert run([*cli.arguments(*arguments), "-o", "TABLE"]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    some = ("--topic", "orders", "--allow-principal", ALICE, "--operation", "Read")
    assert said("acls", "add", *some) == "created 1 ACL"
    require_acls(cli, {("TOPIC", "orders", "LITERAL", ALICE, "*", "READ", "ALLOW")})
    assert said("acls", "add", *some, "--operation", "Write", "--operation", "Alter") == (
        "created 2 ACLs, 1 was there"
    )
    assert len(cli.settled_acls()) == 3
    assert said("acls", "add", *some) == "created none, 1 ACL was there"
    assert said("acls", "list", "--resource-pattern-type", "LITERAL") == "3 ACLs"
    assert said("acls", "remove", "--force", "--topic", "orders") == "removed 3 ACLs"
    require_acls(cli, set())
    assert said("acls", "remove", "--force", "--topic", "orders") == "no ACL matched, nothing was removed"


def test_an_acl_that_never_does_what_is_meant_is_told_of_when_it_is_made(cli: Cli) -> None:
    told = cli("acls", "add", "--topic", "a/b", "--allow-principal", ALICE, "--allow-host", "foo")
    assert told.exit_code == 0
    assert told.stderr.splitlines() == [
        "warning: no topic can be called `a/b`: it has `/`; correct the name",
        "warning: no client has the host `foo`: host names are never resolved; write the address, or a "
        "range of addresses",
    ]
    assert cli("acls", "add", *STOCK[0]).stderr == ""


@pytest.mark.behaviour("B348")
def test_what_one_tool_adds_the_other_removes(cli: Cli, kafka_acls: KafkaAcls) -> None:
    kafka_acls("--add", *STOCK[4])
    assert cli.settled_acls()
    assert cli("acls", "remove", "--force", *STOCK[4]).exit_code == 0
    require_acls(cli, set())
    assert cli("acls", "add", *STOCK[4]).exit_code == 0
    kafka_acls("--remove", "--force", *STOCK[4])
    require_acls(cli, set())


def test_explain_agrees_with_the_listing(cli: Cli) -> None:
    stocked(cli)
    question = ("--operation", "Read", "--topic", "orders")
    allowed = cli("explain", "--principal", ALICE, *question).document
    assert allowed["result"] == "ALLOWED"
    assert allowed["rule"]["kind"] == "MatchingAcl"
    assert {acl["resource_name"] for acl in allowed["matching"]} == {"ord", "orders"}
    denied = cli("explain", "--principal", BOB, "--host", "10.0.0.9", *question, "--exit-code")
    assert denied.exit_code == 5
    assert denied.document["rule"]["acl"]["permission_type"] == "DENY"
