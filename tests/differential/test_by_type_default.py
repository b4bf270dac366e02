"""What custom authorizers inherit decides as Kafka's own default `authorizeByResourceType` does."""

import os
from typing import Any

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
    AuthorizableRequestContext,
    AuthorizationResult,
    InvalidActionError,
    parse_super_users,
)
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.oracle import Oracle
from testkit.differential.replay import answers_of_spec
from testkit.differential.worlds import Add, Ask, Remove, Snapshot, Start, Step, principal_of, to_lines
from testkit.seeds import seed_of_run

SHAPE = Shape(acl_count=60, question_count=120, plain=True)
WORLDS = int(os.environ.get("KUSTOS_CHECKS") or 20_000) // 400
READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALICE = AuthorizableRequestContext(KafkaPrincipal("User", "alice"), "10.0.0.1")


def answers_of_default(steps: list[Step]) -> list[str]:
    """Return what an authorizer says that has the world's ACLs and only the default for types."""
    authorizer = SpecAuthorizer()
    acls: dict[int, AclBinding] = {}
    answers = []
    for step in steps:
        match step:
            case Start(super_users, default_allow):
                acls = {}
                authorizer.super_users = parse_super_users(super_users)
                authorizer.default_allow = default_allow
            case Add(number, binding):
                acls[number] = binding
            case Remove(number):
                del acls[number]
            case Snapshot(snapshot):
                acls = {acl.number: acl.binding for acl in snapshot}
            case Ask(principal, host, operation, resource_type, None):
                authorizer.bindings = list(acls.values())
                context = AuthorizableRequestContext(principal_of(principal), host)
                answers.append(authorizer.authorize_by_resource_type(context, operation, resource_type).value)
    return answers


def only_by_type(steps: list[Step]) -> list[Step]:
    """Return the world with each question asked of the type, whatever name it was about."""
    return [
        Ask(step.principal, step.host, step.operation, step.resource_type, None)
        if isinstance(step, Ask)
        else step
        for step in steps
    ]


def test_the_default_decides_as_kafkas_own() -> None:
    seed = seed_of_run()
    counts = {"ALLOWED": 0, "DENIED": 0}
    with Oracle() as oracle:
        for number in range(WORLDS):
            steps = only_by_type(list(WorldMaker(seed * 1_000_000 + number, SHAPE).steps()))
            ours, theirs = answers_of_default(steps), oracle.answers(list(to_lines(steps)))
            asks = [step for step in steps if isinstance(step, Ask)]
            differing = [
                (ask, mine, their)
                for ask, mine, their in zip(asks, ours, theirs, strict=True)
                if mine != their
            ]
            assert not differing, f"seed {seed}, world {number}: {differing[0]}"
            assert ours == answers_of_spec(steps)
            for answer in ours:
                counts[answer] += 1
    assert min(counts.values()) > sum(counts.values()) / 10, counts


def test_the_probe_is_kafkas() -> None:
    authorizer = SpecAuthorizer()
    assert authorizer.authorize_by_resource_type(ALICE, READ, TOPIC) is AuthorizationResult.DENIED
    [[probe]] = authorizer.asked
    assert (probe.resource_name, probe.operation, probe.resource_type) == ("hardcode", READ, TOPIC)
    assert (probe.reference_count, probe.log_if_allowed, probe.log_if_denied) == (0, True, False)


@pytest.mark.parametrize(
    ("operation", "resource_type"),
    [
        (AclOperation.ANY, TOPIC),
        (AclOperation.UNKNOWN, TOPIC),
        (READ, ResourceType.ANY),
        (READ, ResourceType.UNKNOWN),
    ],
)
def test_nothing_in_particular_cannot_be_asked_about(
    operation: AclOperation, resource_type: ResourceType
) -> None:
    authorizer = SpecAuthorizer()
    with pytest.raises(InvalidActionError):
        authorizer.authorize_by_resource_type(ALICE, operation, resource_type)
    assert authorizer.asked == []


def test_a_denied_prefix_of_no_characters_dominates_nothing() -> None:
    """No ACL can have it in Kafka's log, but an authorizer of its own may list one; Kafka's walk skips it."""
    everything = ResourcePattern(TOPIC, "", PatternType.PREFIXED)
    allow, deny = (
        AclBinding(everything, AccessControlEntry("User:alice", "*", READ, permission))
        for permission in (AclPermissionType.ALLOW, AclPermissionType.DENY)
    )
    authorizer: Any = SpecAuthorizer([allow, deny])
    authorizer.authorize = lambda *_: [AuthorizationResult.DENIED]
    assert authorizer.authorize_by_resource_type(ALICE, READ, TOPIC) is AuthorizationResult.ALLOWED
