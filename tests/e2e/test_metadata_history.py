"""Who asked for it: the log and the audit trail of a node that serves real clients, read while it serves."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until

USERS = {"ann": "ann-secret", "ben": "ben-secret"}
WAIT_S = 60.0


@pytest.fixture(scope="module")
def node(kafka: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KustosNode]:
    settings = KustosSettings(users=USERS, super_users=tuple(USERS))
    with KustosNode(tmp_path_factory.mktemp("kustos"), kafka.bootstrap, settings) as node:
        yield node


def admin(node: KustosNode, user: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": node.bootstrap,
            "client.id": f"tool-of-{user}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": user,
            "sasl.password": USERS[user],
        }
    )


def binding(name: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:eve", "*", AclOperation.READ,
        AclPermissionType.ALLOW,
    )  # fmt: skip


def filter_of(name: str) -> AclBindingFilter:
    anything: Any = None
    return AclBindingFilter(
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, anything, anything, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip


def test_each_change_is_traced_to_who_asked(node: KustosNode, capsys: pytest.CaptureFixture[str]) -> None:
    clients = {user: admin(node, user) for user in USERS}

    def create(user: str, *names: str) -> None:
        for made in clients[user].create_acls([binding(name) for name in names]).values():
            made.result(WAIT_S)

    def delete(user: str, name: str) -> None:
        for gone in clients[user].delete_acls([filter_of(name)]).values():
            gone.result(WAIT_S)

    steps: list[tuple[Callable[..., None], str, tuple[str, ...]]] = [
        (create, "ann", ("a", "b")),
        (create, "ben", ("c",)),
        (delete, "ann", ("c",)),
        (create, "ben", ("c",)),
        (delete, "ben", ("a",)),
    ]
    for step, user, names in steps:
        step(user, *names)
    expected = [
        ("CREATED" if step is create else "DELETED", name, user)
        for step, user, names in steps
        for name in names
    ]
    command = ["metadata", "history", str(node.metadata_directory), "--audit", str(node.audit_directory)]

    def told() -> list[Any] | None:
        capsys.readouterr()
        assert run([*command, "--principal", "User:eve", "-o", "json"]) == ExitCode.OK
        changes: list[Any] = json.loads(capsys.readouterr().out)["changes"]
        # events are written a moment after the answer
        return changes if all(each["requesters"] for each in changes) else None

    changes = wait_until(told, what="the audit trail names who asked") or []
    assert [(each["change"], each["resource_name"]) for each in changes] == [step[:2] for step in expected]
    for each, (_, _, user) in zip(changes, expected, strict=True):
        assert f"User:{user}" in {who["principal"] for who in each["requesters"]}
        assert {who["client_id"] for who in each["requesters"]} <= {f"tool-of-{name}" for name in USERS}
    # the first of its kind cannot have been anybody else, and so it goes on from there
    assert [{who["principal"] for who in each["requesters"]} for each in changes] == [
        {f"User:{user}"} for _, _, user in expected
    ]


def test_a_directory_in_use_is_whole_and_tells_of_earlier_moments(
    node: KustosNode, capsys: pytest.CaptureFixture[str]
) -> None:
    client = admin(node, "ann")
    for made in client.create_acls([binding("later")]).values():
        made.result(WAIT_S)
    assert run(["metadata", "verify", str(node.metadata_directory)]) == ExitCode.OK
    capsys.readouterr()
    source = ["--metadata-dir", str(node.metadata_directory), "--topic", "later", "-o", "json"]
    assert run(["acls", "list", *source]) == ExitCode.OK
    assert len(json.loads(capsys.readouterr().out)["acls"]) == 1
    command = ["metadata", "history", str(node.metadata_directory), "--topic", "later", "-o", "json"]
    assert run(command) == ExitCode.OK
    (created,) = json.loads(capsys.readouterr().out)["changes"]
    assert run(["acls", "list", *source, "--at", str(created["offset"] - 1)]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["acls"] == []
    assert run(["acls", "list", *source, "--at", created["timestamp"]]) == ExitCode.OK
    assert len(json.loads(capsys.readouterr().out)["acls"]) == 1
