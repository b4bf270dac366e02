"""Conversion between legacy ACLs and current bindings: equivalent, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from kustos.legacy import (
    Acl,
    LegacyRefusalError,
    MemoryAclStore,
    Resource,
    Session,
    SimpleAclAuthorizer,
    acls_of_bindings,
    all_bindings_of,
    bindings_of,
    single_of,
    statements,
)

ALLOW = AclPermissionType.ALLOW
ORDERS = Resource(ResourceType.TOPIC, "orders")
ALICE = KafkaPrincipal("User", "alice")


def test_a_set_becomes_a_binding_for_each_operation_and_host() -> None:
    acl = Acl(ALICE, ALLOW, frozenset({"h1", "h2"}), frozenset({AclOperation.READ, AclOperation.WRITE}))
    found = bindings_of(ORDERS, [acl])
    assert {(binding.entry.operation, binding.entry.host) for binding in found} == {
        (operation, host) for operation in acl.operations for host in acl.hosts
    }
    assert acls_of_bindings(found) == {ORDERS: frozenset({acl})}


def one(principal: KafkaPrincipal = ALICE, host: str = "*") -> Acl:
    return Acl.of(principal, ALLOW, host, AclOperation.READ)


@pytest.mark.parametrize(
    ("resource", "acl", "expected"),
    [
        (ORDERS, one(host="10.0.0.0/8"), "`10.0.0.0/8`"),
        (ORDERS, one(KafkaPrincipal("a:b", "c")), "`a:b:c`"),
        (Resource(ResourceType.TOPIC, ""), one(), "empty name"),
        (Resource(ResourceType.CLUSTER, "mine"), one(), "`mine`"),
    ],
)
def test_what_would_mean_something_else_is_not_converted(resource: Resource, acl: Acl, expected: str) -> None:
    with pytest.raises(LegacyRefusalError, match=expected):
        bindings_of(resource, [acl])


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (AccessControlEntry("User:a", "10.0.0.0/8", AclOperation.READ, ALLOW), ResourceType.TOPIC),
        (AccessControlEntry("alice", "*", AclOperation.READ, ALLOW), ResourceType.TOPIC),
        (AccessControlEntry("User:a", "", AclOperation.READ, ALLOW), ResourceType.TOPIC),
        (AccessControlEntry("User:a", "*", AclOperation.UNKNOWN, ALLOW), ResourceType.TOPIC),
        (AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.UNKNOWN), ResourceType.TOPIC),
        (AccessControlEntry("User:a", "*", AclOperation.READ, ALLOW), ResourceType.UNKNOWN),
    ],
)
def test_bindings_that_the_old_world_could_not_say_are_refused(
    entry: AccessControlEntry, kind: ResourceType
) -> None:
    with pytest.raises(LegacyRefusalError):
        single_of(AclBinding(ResourcePattern(kind, "orders"), entry))


operations = st.sampled_from([o for o in AclOperation if o > AclOperation.ANY])
hosts = st.sampled_from(["*", "10.0.0.1", "10.0.0.2"])
who = st.builds(KafkaPrincipal, st.sampled_from(["User", "Group"]), st.sampled_from(["*", "alice", "bob"]))
permissions = st.sampled_from([ALLOW, AclPermissionType.DENY])
acls = st.builds(
    Acl, who, permissions, st.frozensets(hosts, min_size=1), st.frozensets(operations, min_size=1, max_size=4)
)
names = st.sampled_from(["*", "o", "or", "orders", "p"])
patterns = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
resources = st.builds(Resource, st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]), names, patterns)
trees = st.dictionaries(resources, st.frozensets(acls, min_size=1), max_size=4)
subjects = st.builds(KafkaPrincipal, st.just("User"), st.sampled_from(["alice", "bob", "carol"]))


@given(trees)
def test_there_and_back_says_the_same(tree: dict[Resource, frozenset[Acl]]) -> None:
    assert statements(acls_of_bindings(all_bindings_of(tree))) == statements(tree)


@given(trees, subjects, hosts.filter(lambda host: host != "*"), operations, names, st.booleans())
def test_converted_acls_decide_as_they_did(
    tree: dict[Resource, frozenset[Acl]],
    principal: KafkaPrincipal,
    host: str,
    operation: AclOperation,
    name: str,
    everyone: bool,
) -> None:
    legacy = SimpleAclAuthorizer(MemoryAclStore(tree))
    legacy.configure({"allow.everyone.if.no.acl.found": everyone})
    today = StandardAuthorizer.of(all_bindings_of(tree), allow_everyone_if_no_acl_found=everyone)
    asked = legacy.authorize(Session(principal, host), operation, Resource(ResourceType.TOPIC, name))
    assert asked is today.session(principal, host).decide(operation, ResourceType.TOPIC, name).allowed
