"""Words of the legacy package: how resources are written, what errors and its log say."""

import logging

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
from kustos.legacy import (
    Acl,
    LegacyFormatError,
    LegacyRefusalError,
    MemoryAclStore,
    Resource,
    Session,
    SimpleAclAuthorizer,
    UnsupportedChangeError,
)
from kustos.legacy.conversion import single_of
from kustos.legacy.tree import kip_11_path_of, read_tree, write_tree
from kustos.legacy.vocabulary import kip_11_principal_of, resource_type_of

TOPIC, READ = ResourceType.TOPIC, AclOperation.READ
ALICE = KafkaPrincipal("User", "alice")
ACL = Acl.of(ALICE, AclPermissionType.ALLOW, "*", READ)
ORDERS = Resource(TOPIC, "orders")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Topic:orders", ORDERS),
        ("Topic:LITERAL:orders", ORDERS),
        ("Topic:PREFIXED:ord", Resource(TOPIC, "ord", PatternType.PREFIXED)),
        ("Group:a:b", Resource(ResourceType.GROUP, "a:b")),
        ("Topic:LITERAL:a:b:c", Resource(TOPIC, "a:b:c")),
        ("Topic:LITERAL", Resource(TOPIC, "LITERAL")),
        ("TransactionalId:tx", Resource(ResourceType.TRANSACTIONAL_ID, "tx")),
    ],
)
def test_a_resource_is_read_as_it_is_written(text: str, expected: Resource) -> None:
    assert Resource.parse(text) == expected
    assert Resource.parse(str(expected)) == expected


def test_what_is_no_resource_is_refused_by_name() -> None:
    with pytest.raises(LegacyFormatError) as no_colon:
        Resource.parse("orders")
    assert str(no_colon.value) == "`orders` is not a resource, write it as `Topic:LITERAL:name`"
    with pytest.raises(LegacyFormatError) as no_type:
        Resource.parse("Topik:orders")
    assert str(no_type.value) == (
        "`Topik` is not a resource type, use one of Topic, Group, Cluster, TransactionalId, "
        "DelegationToken, User"
    )
    with pytest.raises(LegacyFormatError):
        resource_type_of("")


def test_kip_11_has_paths_for_topics_and_the_cluster() -> None:
    assert kip_11_path_of(ORDERS) == "/kafka-acls/orders"
    assert kip_11_path_of(Resource(ResourceType.CLUSTER, "kafka-cluster")) == "/kafka-acls/kafka-cluster"
    for refused in (
        Resource(TOPIC, ""),
        Resource(TOPIC, "kafka-cluster"),
        Resource(ResourceType.GROUP, "g"),
        Resource(TOPIC, "ord", PatternType.PREFIXED),
    ):
        with pytest.raises(LegacyRefusalError) as raised:
            kip_11_path_of(refused)
        assert str(raised.value) == (
            f"KIP-11 has no place for ACLs of `{refused}`, only for topics and the cluster"
        )


def test_a_tree_is_written_for_people_and_only_an_object_is_read() -> None:
    text = write_tree({Resource(TOPIC, "zoë"): frozenset({ACL}), ORDERS: frozenset({ACL})})
    assert text.startswith('{\n  "/kafka-acl/Topic/orders": {\n')
    assert text.endswith("}\n")
    assert "/kafka-acl/Topic/zoë" in text
    with pytest.raises(LegacyFormatError, match=r"^the document is not an object of paths$"):
        read_tree("[]")


def test_a_host_that_would_become_a_range_is_refused_with_its_resource() -> None:
    binding = AclBinding(
        ResourcePattern(TOPIC, "orders"),
        AccessControlEntry("User:alice", "10.0.0.0/8", READ, AclPermissionType.ALLOW),
    )
    with pytest.raises(LegacyRefusalError) as raised:
        single_of(binding)
    assert str(raised.value) == (
        "host `10.0.0.0/8` of `TOPIC:LITERAL:orders` is a range of addresses now, but matched no "
        "client before, name addresses or `*`"
    )


def test_a_decision_is_logged_as_the_old_class_did(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    authorizer.add_acls({ACL}, ORDERS)
    with caplog.at_level(logging.DEBUG):
        assert authorizer.authorize(Session(ALICE, "10.0.0.1"), READ, ORDERS)
        assert not authorizer.authorize(Session(ALICE, "10.0.0.1"), AclOperation.WRITE, ORDERS)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "DEBUG",
            "Principal = User:alice is Allowed Operation = Read from host = 10.0.0.1 "
            "on resource = Topic:LITERAL:orders",
        ),
        (
            "INFO",
            "Principal = User:alice is Denied Operation = Write from host = 10.0.0.1 "
            "on resource = Topic:LITERAL:orders",
        ),
    ]


def test_removing_tells_whether_anything_was_there() -> None:
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    assert authorizer.remove_acls(ORDERS) is False
    authorizer.add_acls({ACL}, ORDERS)
    assert authorizer.remove_acls({Acl.of(ALICE, AclPermissionType.DENY, "*", READ)}, ORDERS) is False
    assert authorizer.remove_acls({ACL}, ORDERS) is True
    assert authorizer.get_acls(ORDERS) == frozenset()


def test_a_principal_of_kip_11_is_split_at_its_first_colon() -> None:
    assert kip_11_principal_of("user:a:b") == KafkaPrincipal("User", "a:b")
    assert kip_11_principal_of("Group:a:b") == KafkaPrincipal("Group", "a:b")
    assert kip_11_principal_of("alice") == ALICE
    with pytest.raises(LegacyFormatError, match=r"^a principal is empty, write it as `User:name`$"):
        kip_11_principal_of("")


def test_what_could_never_be_a_statement_is_told_why() -> None:
    with pytest.raises(LegacyFormatError, match=r"^permission type `ANY` neither allows nor denies$"):
        Acl.of(ALICE, AclPermissionType.ANY, "*", READ)
    with pytest.raises(LegacyFormatError, match=r"^a prefix is empty, use the name `\*` for all$"):
        Resource(TOPIC, "", PatternType.PREFIXED)
    with pytest.raises(UnsupportedChangeError, match=r"^the resource to add ACLs to has no name$"):
        SimpleAclAuthorizer(MemoryAclStore()).add_acls({ACL}, Resource(TOPIC, ""))
