"""Kafka's audit log: our line and level are those that its own authorizer prints."""

from collections.abc import Iterator

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
from kustos.authorizer import (
    Action,
    AuthorizableRequestContext,
    StandardAuthorizer,
    audit_level,
    audit_line,
)
from kustos.wire.api_keys import api_name
from kustos.wire.schemas import APIS
from testkit.differential.oracle import Oracle
from testkit.differential.worlds import Add, Start, to_lines

ACLS = [
    ("orders", PatternType.PREFIXED, "User:alice", "10.0.0.0/8", AclOperation.READ, AclPermissionType.ALLOW),
    ("orders.eu", PatternType.LITERAL, "User:*", "*", AclOperation.ALTER_CONFIGS, AclPermissionType.DENY),
    ("*", PatternType.LITERAL, "User:a:b", "*", AclOperation.ALL, AclPermissionType.ALLOW),
]
BINDINGS = [
    AclBinding(
        ResourcePattern(kind, name, pattern), AccessControlEntry(principal, host, operation, permission)
    )
    for name, pattern, principal, host, operation, permission in ACLS
    for kind in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID, ResourceType.DELEGATION_TOKEN)
]
PRINCIPALS = [
    *[KafkaPrincipal("User", name) for name in ("alice", "a:b", "root", "Zoë, of = 日本", "")],
    *[KafkaPrincipal("User:a", "b"), KafkaPrincipal("Group", "ops"), KafkaPrincipal("User:root", "")],
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        running.answers(list(to_lines([Start("User:root", default_allow=True)])))
        running.answers(list(to_lines([Add(number, binding) for number, binding in enumerate(BINDINGS)])))
        yield running


@pytest.fixture(scope="module")
def authorizer() -> StandardAuthorizer:
    return StandardAuthorizer.of(
        BINDINGS, super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=True
    )


Question = tuple[AuthorizableRequestContext, Action]


def theirs(oracle: Oracle, questions: list[Question]) -> list[str]:
    lines = []
    for context, action in questions:
        who = (context.principal.principal_type, context.principal.name, context.host)
        what = (action.operation, action.resource_type, action.resource_name, context.request_type)
        flags = (str(flag).lower() for flag in (action.log_if_allowed, action.log_if_denied))
        lines.append(
            "\t".join(str(field) for field in ("audit", *who, *what, action.reference_count, *flags))
        )
    return oracle.answers(lines)


def ours(authorizer: StandardAuthorizer, questions: list[Question]) -> list[str]:
    lines = []
    for context, action in questions:
        [decision] = authorizer.authorize(context, [action])
        line = audit_line(context, action, decision, api_name=api_name(context.request_type))
        lines.append(f"{audit_level(action, decision).value}\t{line}")
    return lines


@pytest.mark.behaviour("B005", "B020", "B021", "B075", "B076")
def test_line_and_level_are_kafkas(oracle: Oracle, authorizer: StandardAuthorizer) -> None:
    questions = [
        (
            AuthorizableRequestContext(principal, host, request_type=3),
            Action(kind, name, operation, count, log_if_allowed=count % 2 == 0, log_if_denied=count < 3),
        )
        for principal in PRINCIPALS
        for host in ("10.0.0.1", "0:0:0:0:0:0:0:1")
        for kind in ResourceType
        if kind > ResourceType.ANY
        for name in ("orders.eu", "orders", "other", "")
        for operation in (AclOperation.READ, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS)
        for count in (1, 2, 3, 4)
    ]
    expected = theirs(oracle, questions)
    assert ours(authorizer, questions) == expected
    assert {line.split("\t")[0] for line in expected} == {"INFO", "DEBUG", "TRACE"}
    rules = {line.split(" based on rule ")[1].split("(")[0] for line in expected}
    assert rules == {"SuperUser", "DefaultAllow", "DefaultDeny", "MatchingAcl"}


def test_apis_have_kafkas_names(oracle: Oracle, authorizer: StandardAuthorizer) -> None:
    alice = KafkaPrincipal("User", "alice")
    questions = [
        (
            AuthorizableRequestContext(alice, "10.0.0.1", request_type=key),
            Action(ResourceType.TOPIC, "a", AclOperation.READ),
        )
        for key in sorted(APIS)
    ]
    assert ours(authorizer, questions) == theirs(oracle, questions)
