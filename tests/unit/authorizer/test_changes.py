"""Changes of one cell and of the whole set: the remaining ACLs decide."""

from itertools import permutations
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
from kustos.authorizer import StandardAuthorizer
from kustos.authorizer.replacement import LINKED_EARLY_MIN, dismantle, prepared, put_in_force

TOPIC, ALLOW = ResourceType.TOPIC, AclPermissionType.ALLOW
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE)
ALICE = KafkaPrincipal("User", "alice")


def acl(
    name: str,
    operation: AclOperation = AclOperation.READ,
    pattern_type: PatternType = LITERAL,
    host: str = "*",
) -> AclBinding:
    pattern = ResourcePattern(TOPIC, name, pattern_type)
    return AclBinding(pattern, AccessControlEntry("User:alice", host, operation, ALLOW))


def ready() -> StandardAuthorizer:
    authorizer = StandardAuthorizer()
    authorizer.complete_initial_load()
    return authorizer


@pytest.mark.parametrize("host", ["*", "10.0.0.0/8"])
@pytest.mark.parametrize(("name", "pattern_type"), [("ab", LITERAL), ("*", LITERAL), ("a", PREFIXED)])
def test_the_remaining_acls_of_a_cell_decide(name: str, pattern_type: PatternType, host: str) -> None:
    for order in permutations(range(len(OPERATIONS))):
        authorizer = ready()
        session = authorizer.session(ALICE, "10.0.0.1")
        for number, operation in enumerate(OPERATIONS):
            authorizer.add_acl(UUID(int=number), acl(name, operation, pattern_type, host))
        left = set(OPERATIONS)
        for number in order:
            assert {each for each in OPERATIONS if session.decide(each, TOPIC, "ab").allowed} == left
            authorizer.remove_acl(UUID(int=number))
            left.discard(OPERATIONS[number])
        assert not any(session.decide(each, TOPIC, "ab").allowed for each in OPERATIONS)


def test_a_prepared_set_takes_effect_atomically() -> None:
    authorizer = ready()
    authorizer.add_acl(UUID(int=1), acl("old"))
    session = authorizer.session(ALICE, "10.0.0.1")
    assert session.decide(AclOperation.READ, TOPIC, "old").allowed
    names = [f"team-{number}." for number in range(LINKED_EARLY_MIN + 10)]
    before = authorizer.version
    fresh = prepared(
        authorizer,
        ((UUID(int=number), acl(name, pattern_type=PREFIXED)) for number, name in enumerate(names)),
    )
    assert session.decide(AclOperation.READ, TOPIC, "old").allowed
    assert put_in_force(authorizer, fresh)
    assert authorizer.version > before
    assert not session.decide(AclOperation.READ, TOPIC, "old").allowed
    assert all(session.decide(AclOperation.READ, TOPIC, f"{name}x").allowed for name in names)
    assert authorizer.acl_count == len(names)
    dismantle(fresh)
    assert session.decide(AclOperation.READ, TOPIC, "team-0.y").allowed
    assert list(fresh.acls()) == []


def test_a_set_prepared_for_another_default_does_not_take_effect() -> None:
    authorizer = ready()
    fresh = prepared(authorizer, [(UUID(int=1), acl("new"))])
    authorizer.reconfigure(super_users=frozenset(), allow_everyone_if_no_acl_found=True)
    before = authorizer.version
    assert not put_in_force(authorizer, fresh)
    assert (authorizer.version, authorizer.acl_count) == (before, 0)
    assert put_in_force(authorizer, prepared(authorizer, [(UUID(int=1), acl("new"))]))
    session = authorizer.session(KafkaPrincipal("User", "bob"), "10.0.0.1")
    assert not session.decide(AclOperation.READ, TOPIC, "new").allowed
    assert session.decide(AclOperation.READ, TOPIC, "other").allowed
