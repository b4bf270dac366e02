"""Decisions by type: the default of custom authorizers, and the cache of the index."""

from collections.abc import Iterator
from uuid import UUID

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
    StandardAuthorizer,
    parse_super_users,
)
from kustos.authorizer.index.by_type import KEPT_ANSWERS_MAX
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.differential.generator import Shape, WorldMaker
from testkit.differential.specification import Spec
from testkit.differential.worlds import Add, Ask, Remove, Snapshot, Start

READ, WRITE, TOPIC = AclOperation.READ, AclOperation.WRITE, ResourceType.TOPIC
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALICE = KafkaPrincipal("User", "alice")
CONTEXT = AuthorizableRequestContext(ALICE, "10.0.0.1")
SHAPE = Shape(acl_count=50, question_count=60, plain=True)


def acl(
    name: str,
    permission_type: AclPermissionType = ALLOW,
    pattern_type: PatternType = LITERAL,
    *,
    principal: str = "User:alice",
    host: str = "*",
    operation: AclOperation = READ,
) -> AclBinding:
    entry = AccessControlEntry(principal, host, operation, permission_type)
    return AclBinding(ResourcePattern(TOPIC, name, pattern_type), entry)


def answers(authorizer: SpecAuthorizer) -> tuple[bool, bool]:
    """Return the default's decision and the specified one."""
    inherited = authorizer.authorize_by_resource_type(CONTEXT, READ, TOPIC)
    specified = Spec(authorizer.bindings).by_resource_type("User:alice", "10.0.0.1", READ, TOPIC)
    return inherited is AuthorizationResult.ALLOWED, specified


def questions(number: int) -> Iterator[tuple[Start, list[AclBinding], Ask]]:
    acls: dict[int, AclBinding] = {}
    start = Start("", default_allow=False)
    for step in WorldMaker(number, SHAPE).steps():
        match step:
            case Start():
                start = step
            case Add(key, binding):
                acls[key] = binding
            case Remove(key):
                del acls[key]
            case Snapshot(snapshot):
                acls = {each.number: each.binding for each in snapshot}
            case Ask():
                yield start, list(acls.values()), step


@pytest.mark.parametrize("number", range(12))
def test_the_default_decides_as_specified(number: int) -> None:
    for start, bindings, ask in questions(number):
        super_users = parse_super_users(start.super_users)
        authorizer = SpecAuthorizer(bindings, super_users)
        authorizer.default_allow = start.default_allow
        context = AuthorizableRequestContext(KafkaPrincipal.parse(ask.principal), ask.host)
        found = authorizer.authorize_by_resource_type(context, ask.operation, ask.resource_type)
        spec = Spec(bindings, super_users, start.default_allow)
        expected = spec.by_resource_type(ask.principal, ask.host, ask.operation, ask.resource_type)
        assert (found is AuthorizationResult.ALLOWED) is expected


@pytest.mark.parametrize(
    ("bindings", "expected"),
    [
        ([], False),
        ([acl("a")], True),
        ([acl("a"), acl("a", DENY)], False),
        ([acl("a"), acl("a", DENY, PREFIXED)], False),
        ([acl("ab"), acl("a", DENY, PREFIXED)], False),
        ([acl("ab"), acl("a", DENY)], True),
        ([acl("ab", ALLOW, PREFIXED), acl("ab", DENY)], True),
        ([acl("ab", ALLOW, PREFIXED), acl("ab", DENY, PREFIXED)], False),
        ([acl("ab", ALLOW, PREFIXED), acl("abc", DENY, PREFIXED)], True),
        ([acl("a"), acl("", DENY, PREFIXED)], True),
        ([acl("*"), acl("a", DENY, PREFIXED)], True),
        ([acl("*"), acl("*", DENY)], False),
        ([acl("*"), acl("*", DENY, PREFIXED), acl("hard", DENY, PREFIXED)], True),
        ([acl("a"), acl("*", DENY, principal="User:*", operation=AclOperation.ALL)], False),
        ([acl("a"), acl("*", DENY, principal="User:bob")], True),
        ([acl("a"), acl("*", DENY, host="11.0.0.0/8")], True),
        ([acl("a"), acl("*", DENY, host="10.0.0.0/8")], False),
        ([acl("a"), acl("*", DENY, operation=WRITE)], True),
        ([acl("a", operation=AclOperation.ALL)], True),
        ([acl("a", operation=WRITE)], False),
    ],
)
def test_both_ways_decide_as_specified(bindings: list[AclBinding], expected: bool) -> None:
    assert answers(SpecAuthorizer(bindings)) == (expected, expected)
    authorizer = StandardAuthorizer.of(bindings)
    assert authorizer.authorize_by_resource_type(CONTEXT, READ, TOPIC).allowed is expected


def test_implied_operations_apply_only_to_the_probed_name() -> None:
    authorizer = SpecAuthorizer([acl("a", operation=WRITE)])
    assert authorizer.authorize_by_resource_type(CONTEXT, AclOperation.DESCRIBE, TOPIC).value == "DENIED"
    authorizer.bindings.append(acl("hard", ALLOW, PREFIXED, operation=WRITE))
    assert authorizer.authorize_by_resource_type(CONTEXT, AclOperation.DESCRIBE, TOPIC).value == "ALLOWED"


def test_the_probe_is_kafkas() -> None:
    authorizer = SpecAuthorizer()
    authorizer.authorize_by_resource_type(CONTEXT, READ, TOPIC)
    [[probe]] = authorizer.asked
    assert (probe.resource_type, probe.resource_name, probe.operation) == (TOPIC, "hardcode", READ)
    assert (probe.reference_count, probe.log_if_allowed, probe.log_if_denied) == (0, True, False)
    assert authorizer.contexts == [CONTEXT]


@pytest.mark.parametrize("number", [0, 1])
def test_unspecific_arguments_are_rejected_by_name(number: int) -> None:
    authorizer, operation, kind = SpecAuthorizer(), AclOperation(number), ResourceType(number)
    for asked, of in ((operation, TOPIC), (READ, kind)):
        with pytest.raises(InvalidActionError) as raised:
            authorizer.authorize_by_resource_type(CONTEXT, asked, of)
        assert str(raised.value) == f"cannot decide `{asked}` on `{of}`, name both"


def test_a_cached_decision_is_dropped_when_the_acls_change() -> None:
    authorizer = StandardAuthorizer()
    authorizer.complete_initial_load()
    session = authorizer.session(ALICE, "10.0.0.1")

    def allowed() -> bool:
        return session.decide_by_resource_type(READ, TOPIC).allowed

    authorizer.load_snapshot([(UUID(int=1), acl("a"))])
    assert allowed()
    authorizer.add_acl(UUID(int=2), acl("a", DENY))
    assert not allowed()
    authorizer.add_acl(UUID(int=3), acl("b", principal="User:*"))
    assert allowed()
    authorizer.add_acl(UUID(int=4), acl("b", DENY, PREFIXED))
    assert not allowed()
    authorizer.remove_acl(UUID(int=4))
    assert allowed()
    authorizer.load_snapshot([(UUID(int=1), acl("a")), (UUID(int=2), acl("a", DENY))])
    assert not allowed()
    authorizer.remove_acl(UUID(int=2))
    assert allowed()
    authorizer.remove_acl(UUID(int=1))
    assert not allowed()
    authorizer.add_acl(UUID(int=5), acl("a", principal="User:*"))
    assert allowed()


def test_decisions_of_many_hosts_are_right_with_a_small_cache() -> None:
    authorizer = StandardAuthorizer()
    authorizer.load_snapshot([(UUID(int=1), acl("a", host="10.0.0.0/31"))])
    authorizer.complete_initial_load()
    for _ in range(2):
        for number in range(KEPT_ANSWERS_MAX + 10):
            session = authorizer.session(ALICE, f"10.0.{number // 256}.{number % 256}")
            assert session.decide_by_resource_type(READ, TOPIC).allowed is (number < 2)
