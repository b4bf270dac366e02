"""Running `kustos migrate` in this process, and random worlds of ACLs as Kafka 2.8 would take them."""

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.authorizer import Action, AuthorizableRequestContext, StandardAuthorizer
from kustos.cli.run import run
from testkit.cli import Outcome

PRINCIPALS = ("User:alice", "User:bob", "Group:alice", "User:a:b", "user:alice", "User:", "*:*", "User:zoë €")
HOSTS = ("10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1")
OPERATIONS = ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
TYPES = ("TOPIC", "GROUP", "TRANSACTIONAL_ID")
NAMES = ("o", "or", "orders", "orders-1", "!", "é€", "p")
"""None begins with a star: of those today's authorizer decides otherwise, as the pages say."""

Question = tuple[str, str, str, str, str]
"""Principal, host, operation, resource type, resource name."""


class Migrate:
    """`kustos migrate ...`, its answer as JSON."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Outcome:
        self._capsys.readouterr()
        exit_code = run(["migrate", *map(str, arguments), "-o", "json"])
        said = self._capsys.readouterr()
        return Outcome(exit_code, said.out, said.err)


def binding(
    kind: str, name: str, pattern: str, principal: str, host: str, operation: str, permission: str
) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType[kind], name, PatternType[pattern]),
        AccessControlEntry(principal, host, AclOperation[operation], AclPermissionType[permission]),
    )


def random_binding(chance: random.Random, hosts: tuple[str, ...]) -> AclBinding:
    return binding(
        chance.choice(TYPES),
        chance.choice((*NAMES, "*")),
        chance.choice(("LITERAL", "PREFIXED")),
        chance.choice(("User:*", *PRINCIPALS)),
        chance.choice(hosts),
        chance.choice((*OPERATIONS, "ALL")),
        chance.choice(("ALLOW", "ALLOW", "DENY")),
    )


def random_question(chance: random.Random) -> Question:
    return (
        chance.choice((*PRINCIPALS, "User:root")),
        chance.choice(HOSTS),
        chance.choice(OPERATIONS),
        chance.choice(TYPES),
        chance.choice(NAMES),
    )


def decisions(
    bindings: Iterable[AclBinding], questions: Iterable[Question], *, everyone: bool = False
) -> list[bool]:
    """What kustos decides; User:root is the super user."""
    authorizer = StandardAuthorizer.of(
        bindings, super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=everyone
    )
    found = []
    for principal, host, operation, kind, name in questions:
        context = AuthorizableRequestContext(KafkaPrincipal.parse(principal), host)
        action = Action(ResourceType[kind], name, AclOperation[operation])
        found.append(authorizer.authorize(context, [action])[0].allowed)
    return found
