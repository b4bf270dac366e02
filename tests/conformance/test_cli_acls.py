"""`kustos acls` and the real `kafka-acls` make, list and remove the same ACLs on a real broker."""

from pathlib import Path

import pytest

from testkit.kafka import KafkaNode, KafkaTools
from tests.conformance.cli_support import SETTINGS, USERS, Acl, Cli, kafka_acls_of, login
from tests.conftest import NodeFactory

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


def stocked(cli: Cli) -> set[Acl]:
    for arguments in STOCK:
        assert cli("acls", "add", *arguments).exit_code == 0
    return cli.acls()


@pytest.mark.behaviour("B348", "B349", "B350")
@pytest.mark.parametrize("case", ADDITIONS)
def test_the_same_arguments_add_the_same_acls(cli: Cli, kafka_acls: KafkaAcls, case: str) -> None:
    kafka_acls("--add", *ADDITIONS[case])
    theirs = cli.acls()
    cli.clear()
    assert cli("acls", "add", *ADDITIONS[case]).exit_code == 0
    assert theirs
    assert cli.acls() == theirs


@pytest.mark.behaviour("B348", "B350")
@pytest.mark.parametrize("case", REMOVALS)
def test_the_same_arguments_remove_the_same_acls(cli: Cli, kafka_acls: KafkaAcls, case: str) -> None:
    before = stocked(cli)
    kafka_acls("--remove", "--force", *REMOVALS[case])
    theirs = cli.acls()
    assert stocked(cli) == before
    outcome = cli("acls", "remove", "--force", *REMOVALS[case])
    assert outcome.exit_code == 0
    assert cli.acls() == theirs
    assert {tuple(acl.values()) for acl in outcome.document["removed"]} == before - theirs


@pytest.mark.behaviour("B348", "B350", "B353", "B208")
def test_the_same_arguments_list_the_same_acls(cli: Cli, kafka_acls: KafkaAcls) -> None:
    stocked(cli)
    for arguments in LISTINGS:
        theirs = kafka_acls_of(kafka_acls("--list", *arguments))
        assert theirs, arguments
        assert cli.acls(*arguments) == theirs, arguments


@pytest.mark.behaviour("B352")
def test_adding_what_exists_changes_nothing(cli: Cli, kafka_acls: KafkaAcls) -> None:
    kafka_acls("--add", *STOCK[0])
    before = cli.acls()
    outcome = cli("acls", "add", *STOCK[0])
    assert outcome.exit_code == 0
    assert cli.acls() == before
    assert {tuple(acl.values()) for acl in outcome.document["added"]} == before


@pytest.mark.behaviour("B348")
def test_what_one_tool_adds_the_other_removes(cli: Cli, kafka_acls: KafkaAcls) -> None:
    kafka_acls("--add", *STOCK[4])
    assert cli.acls()
    assert cli("acls", "remove", "--force", *STOCK[4]).exit_code == 0
    assert cli.acls() == set()
    assert cli("acls", "add", *STOCK[4]).exit_code == 0
    kafka_acls("--remove", "--force", *STOCK[4])
    assert cli.acls() == set()


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
