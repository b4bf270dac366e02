"""The commands that a review prints, run by Kafka's own tool: they add and remove just the ACLs they name."""

import shlex

import pytest

from kustos.acl import AclBinding
from kustos.acl.forms import AclAction, AclForm, kafka_acls_commands, read_acls
from testkit.cli import SETTINGS, USERS, login
from testkit.kafka import KafkaNode, KafkaTools, NodeFactory
from testkit.review_rows import acl
from testkit.waiting import wait_until

KEPT = acl("User:CN=x, O=$(y)", "READ", "GROUP", "-a'b\"\\ `c", prefixed=True, host="10.0.0.1")
GONE = [
    acl("User:CN=x, O=$(y)", "READ", "GROUP", "-a'b\"\\ `c", host="10.0.0.1"),
    acl("User:*", "ALL", "TOPIC", "*", deny=True),
    acl("User:ops", "ALTER", "CLUSTER", "kafka-cluster"),
    acl("User:ops", "CREATE_TOKENS", "USER", "User:ci"),
]


@pytest.fixture(scope="module")
def node(kafka_node: NodeFactory) -> KafkaNode:
    return kafka_node(SETTINGS)


@pytest.mark.timeout(600)
def test_what_is_printed_adds_and_removes_just_that(node: KafkaNode, kafka_tools: KafkaTools) -> None:
    properties = login("admin", USERS["admin"])

    def held() -> set[AclBinding]:
        arguments = ("--list", "--bootstrap-server", node.bootstrap)
        text = kafka_tools.run("AclCommand", *arguments, client_properties=properties).require()
        return {located.binding for located in read_acls(text, AclForm.KAFKA_ACLS, "list")}

    def run(bindings: list[AclBinding], action: AclAction) -> None:
        for line in kafka_acls_commands(bindings, action, bootstrap_server=node.bootstrap):
            _, *arguments = shlex.split(line)
            kafka_tools.run("AclCommand", *arguments, client_properties=properties).require()

    run([KEPT, *GONE], AclAction.ADD)
    wait_until(lambda: held() == {KEPT, *GONE}, timeout_s=120, what="the broker lists what was added")
    run(GONE, AclAction.REMOVE)
    wait_until(lambda: held() == {KEPT}, timeout_s=120, what="the broker lists what was left")
