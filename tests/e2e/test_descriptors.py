"""A node with few file descriptors: strangers get some, and never those that the node itself needs."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from kustos.gateway.listener import connections_within
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.ports import LOOPBACK
from testkit.waiting import wait_until

SOFT_LIMIT, HARD_LIMIT = 100, 300
STRANGERS = 200
REJECTED = "kustos_connections_rejected_total"


@pytest.fixture
def node(kafka: KafkaNode, tmp_path: Path) -> Iterator[KustosNode]:
    settings = KustosSettings(protocol="PLAINTEXT", super_users=("ANONYMOUS",))
    made = KustosNode(tmp_path / "kustos", kafka.bootstrap, settings)
    made.before_command = ("prlimit", f"--nofile={SOFT_LIMIT}:{HARD_LIMIT}")
    with made:
        yield made


def rejected(node: KustosNode) -> float:
    return next(float(line.split()[1]) for line in node.metrics().splitlines() if line.startswith(REJECTED))


def test_strangers_leave_the_node_its_own(node: KustosNode) -> None:
    served = connections_within(HARD_LIMIT)
    strangers = [socket.create_connection((LOOPBACK, node.port)) for _ in range(STRANGERS)]
    wait_until(lambda: rejected(node) >= STRANGERS - served, what="the rest is turned away")
    assert node.is_ready()
    log = (node.directory / "kustos.log").read_text()
    assert f'"limit": {HARD_LIMIT}, "former_limit": {SOFT_LIMIT}' in log
    assert log.count("connections are rejected") < STRANGERS - served
    assert "Too many open files" not in log
    for each in strangers:
        each.close()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    for made in admin.create_acls([acl]).values():
        made.result(30)
