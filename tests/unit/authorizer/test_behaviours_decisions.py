"""The behaviours of decisions on one resource in Kafka's own tests, each in a test of its own."""

import random
from itertools import product
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import RuleKind
from testkit.acls.one_line import ELSEWHERE, HOST, acl, acls, allows, authorizer_of, decision
from testkit.differential.specification import Spec

OPERATIONS = [operation.name for operation in AclOperation if operation > AclOperation.ALL]
UNRELATED: list[tuple[str, ...]] = [
    (),
    ("ALLOW READ User:alice GROUP *",),
    (
        "ALLOW DELETE User:alice TOPIC *",
        "ALLOW DELETE User:alice TOPIC prefix f",
        "ALLOW DELETE User:* TOPIC foo",
    ),
    (
        f"ALLOW DELETE User:alice TOPIC prefix f from {HOST}",
        f"DENY DELETE User:alice TOPIC foo from {ELSEWHERE}",
    ),
]
"""Unrelated ACLs that make the index take other code paths."""

unrelated = pytest.mark.parametrize(
    "unrelated", UNRELATED, ids=["alone", "another type", "other patterns", "hosts"]
)

IMPLIED = {
    "READ": {"DESCRIBE"}, "WRITE": {"DESCRIBE"}, "DELETE": {"DESCRIBE"}, "ALTER": {"DESCRIBE"},
    "ALTER_CONFIGS": {"DESCRIBE_CONFIGS"},
}  # fmt: skip


@pytest.mark.behaviour("B004")
def test_an_acl_applies_to_its_principal_or_to_all() -> None:
    asked = "User:alice READ TOPIC t"
    for other in ("User:alic", "User:alicea", "user:alice", "Group:alice", "Group:*", "User:bob"):
        assert not allows(authorizer_of(f"ALLOW READ {other} TOPIC t"), asked), other
    assert allows(authorizer_of("ALLOW READ User:alice TOPIC t"), asked)
    for_all = authorizer_of("ALLOW READ User:* TOPIC t")
    assert allows(for_all, asked)
    assert allows(for_all, "Group:alice READ TOPIC t")


@pytest.mark.behaviour("B006")
@pytest.mark.parametrize("operation", ["READ", "WRITE", "DELETE", "ALTER"])
def test_rights_to_use_a_resource_imply_describe(operation: str) -> None:
    assert allows(authorizer_of(f"ALLOW {operation} User:alice TOPIC t"), "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B007")
def test_alter_configs_implies_describe_configs() -> None:
    authorizer = authorizer_of("ALLOW ALTER_CONFIGS User:alice TOPIC t")
    assert allows(authorizer, "User:alice DESCRIBE_CONFIGS TOPIC t")
    assert not allows(authorizer, "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B008")
def test_create_does_not_imply_describe() -> None:
    assert not allows(authorizer_of("ALLOW CREATE User:alice TOPIC t"), "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B009")
def test_a_denied_read_leaves_describe() -> None:
    authorizer = authorizer_of("ALLOW WRITE User:alice TOPIC t", "DENY READ User:alice TOPIC t")
    assert allows(authorizer, "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B010")
@unrelated
def test_a_denied_describe_overrides_implied_describe(unrelated: tuple[str, ...]) -> None:
    texts = ("ALLOW READ User:alice TOPIC foo", "DENY DESCRIBE User:alice TOPIC foo")
    for more in ((), ("ALLOW ALL User:* TOPIC foo",)):
        authorizer = authorizer_of(*texts, *more, *unrelated)
        assert not allows(authorizer, "User:alice DESCRIBE TOPIC foo")
        assert allows(authorizer, "User:alice READ TOPIC foo")


@pytest.mark.behaviour("B012")
@unrelated
def test_a_literal_acl_applies_to_its_own_name_and_type(unrelated: tuple[str, ...]) -> None:
    authorizer = authorizer_of("ALLOW READ User:alice TOPIC foo", *unrelated)
    assert allows(authorizer, "User:alice READ TOPIC foo")
    for other in ("foob", "fo", "Foo", "bar"):
        assert not allows(authorizer, f"User:alice READ TOPIC {other}"), other
    assert not allows(authorizer, "User:alice READ TRANSACTIONAL_ID foo")


@pytest.mark.behaviour("B013")
@pytest.mark.parametrize("order", [1, -1])
@unrelated
def test_deny_wins_on_one_resource(order: int, unrelated: tuple[str, ...]) -> None:
    both = ("ALLOW READ User:alice TOPIC foo", "DENY READ User:alice TOPIC foo")[::order]
    denied = decision(authorizer_of(*both, *unrelated), "User:alice READ TOPIC foo")
    assert denied.rule.binding == acl("DENY READ User:alice TOPIC foo")
    assert not denied.allowed


@pytest.mark.behaviour("B031")
@unrelated
def test_an_allow_on_a_prefix_wins_without_denies(unrelated: tuple[str, ...]) -> None:
    for prefix in ("f", "fo", "foo"):
        authorizer = authorizer_of(f"ALLOW READ User:alice TOPIC prefix {prefix}", *unrelated)
        assert allows(authorizer, "User:alice READ TOPIC foo"), prefix


@pytest.mark.behaviour("B032")
@unrelated
def test_an_allow_on_the_name_wins_without_denies(unrelated: tuple[str, ...]) -> None:
    assert allows(authorizer_of("ALLOW READ User:alice TOPIC foo", *unrelated), "User:alice READ TOPIC foo")


@pytest.mark.behaviour("B014")
@unrelated
def test_a_denied_longer_prefix_overrides_its_part_of_an_allowed_prefix(unrelated: tuple[str, ...]) -> None:
    texts = ("ALLOW READ User:alice TOPIC prefix foo", "DENY READ User:alice TOPIC prefix foobar")
    authorizer = authorizer_of(*texts, *unrelated)
    names = ("fo", "foo", "fooa", "foobar", "foobarbaz")
    may = {name for name in names if allows(authorizer, f"User:alice READ TOPIC {name}")}
    assert may == {"foo", "fooa"}


@pytest.mark.behaviour("B015")
def test_a_prefix_of_one_principal_does_not_apply_to_another() -> None:
    authorizer = authorizer_of("ALLOW READ User:bob TOPIC prefix foo", "DENY READ User:bob TOPIC prefix foob")
    assert not allows(authorizer, "User:alice READ TOPIC foo")
    authorizer.add_acl(UUID(int=9), acl("ALLOW READ User:alice TOPIC foobar"))
    assert allows(authorizer, "User:alice READ TOPIC foobar")


@pytest.mark.behaviour("B016")
def test_an_acl_with_a_host_applies_to_that_host() -> None:
    authorizer = authorizer_of(
        f"ALLOW READ User:alice TOPIC t from {HOST}",
        f"DENY WRITE User:alice TOPIC t from {HOST}",
        "ALLOW WRITE User:alice TOPIC t",
    )
    assert allows(authorizer, "User:alice READ TOPIC t", HOST)
    assert not allows(authorizer, "User:alice READ TOPIC t", ELSEWHERE)
    assert not allows(authorizer, "User:alice WRITE TOPIC t", HOST)
    assert allows(authorizer, "User:alice WRITE TOPIC t", ELSEWHERE)


@pytest.mark.behaviour("B017")
@pytest.mark.parametrize("seed", range(8))
def test_many_literals_and_prefixes_decide_as_the_plain_specification(seed: int) -> None:
    chance = random.Random(seed)
    names = ["f", "fo", "foo", "foobar", "foobarbaz", "bar", "b", "*"]
    texts = {
        f"{chance.choice(['ALLOW', 'ALLOW', 'DENY'])} {chance.choice(OPERATIONS[:5])} "
        f"{chance.choice(['User:alice', 'User:bob', 'User:*'])} TOPIC "
        f"{chance.choice(['', 'prefix '])}{chance.choice(names)}{chance.choice(['', '', f' from {HOST}'])}"
        for _ in range(40)
    }
    authorizer, spec = authorizer_of(*sorted(texts)), Spec(acls(sorted(texts)), frozenset(), False)
    for operation, name, host in product(OPERATIONS[:6], names, (HOST, ELSEWHERE)):
        mine = decision(authorizer, f"User:alice {operation} TOPIC {name}", host)
        asked = ("User:alice", host, AclOperation[operation], ResourceType.TOPIC, name)
        assert (mine.allowed, mine.rule.binding or mine.rule.kind.value) == spec.authorize(*asked)


@pytest.mark.behaviour("B018")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_deny_of_all_denies_each_operation(operation: str) -> None:
    texts = (f"ALLOW {operation} User:alice TOPIC foo", "DENY ALL User:alice TOPIC prefix f")
    assert not allows(authorizer_of(*texts), f"User:alice {operation} TOPIC foo")


@pytest.mark.behaviour("B019")
@pytest.mark.parametrize("operation", [*OPERATIONS, "ALL"])
def test_an_allow_of_all_allows_each_operation(operation: str) -> None:
    assert allows(authorizer_of("ALLOW ALL User:alice TOPIC foo"), f"User:alice {operation} TOPIC foo")
    only_this = authorizer_of(f"ALLOW {operation} User:alice TOPIC foo")
    assert allows(only_this, "User:alice ALL TOPIC foo") is (operation == "ALL")


@pytest.mark.behaviour("B026", "B079")
def test_default_allow_allows_resources_without_acls() -> None:
    authorizer = authorizer_of("ALLOW READ User:bob TOPIC prefix or", default_allow=True)
    opened = decision(authorizer, "User:alice READ TOPIC free")
    assert opened.rule.kind is RuleKind.DEFAULT_ALLOW
    assert opened.allowed
    assert not allows(authorizer, "User:alice READ TOPIC orders")
    assert allows(authorizer, "User:alice READ GROUP orders")
    authorizer.remove_acl(UUID(int=1))
    assert allows(authorizer, "User:alice READ TOPIC orders")


@pytest.mark.behaviour("B027", "B079")
def test_resources_without_acls_are_denied_without_default_allow() -> None:
    closed = decision(authorizer_of(), "User:alice READ TOPIC free")
    assert closed.rule.kind is RuleKind.DEFAULT_DENY
    assert not closed.allowed


@pytest.mark.behaviour("B033")
def test_the_reported_acl_of_several_matches_is_kafkas() -> None:
    """Kafka iterates by descending name, then pattern, operation, principal, host, permission; `*` last."""
    upwards = [
        "READ User:alice TOPIC *", "READ User:alice TOPIC prefix o", "READ User:alice TOPIC prefix or",
        "READ User:alice TOPIC prefix orders", "READ User:alice TOPIC orders from 10.0.0.1",
        "READ User:alice TOPIC orders", "READ User:* TOPIC orders", "ALL User:alice TOPIC orders",
        "ALL User:* TOPIC orders",
    ]  # fmt: skip
    asked = "User:alice READ TOPIC orders"
    for number in range(1, len(upwards) + 1):
        denied = authorizer_of(*(f"DENY {text}" for text in upwards[:number]))
        assert decision(denied, asked).rule.binding == acl(f"DENY {upwards[number - 1]}")
        allowed = authorizer_of(*(f"ALLOW {text}" for text in upwards[-number:]))
        assert decision(allowed, asked).rule.binding == acl(f"ALLOW {upwards[-number]}")


@pytest.mark.behaviour("B072")
def test_an_empty_name_can_be_decided() -> None:
    asked = "User:alice READ GROUP ''"
    assert not allows(authorizer_of(), asked)
    assert not allows(authorizer_of("ALLOW READ User:alice GROUP g"), asked)
    assert allows(authorizer_of("ALLOW READ User:alice GROUP *"), asked)
    assert not allows(authorizer_of("ALLOW READ User:alice GROUP *", "DENY READ User:* GROUP *"), asked)


@pytest.mark.behaviour("B074")
def test_users_hosts_and_operations_of_a_topic_each_have_their_own_acls() -> None:
    """The matrix of Kafka's `testTopicAcl`: principals, operations and hosts."""
    authorizer = authorizer_of(
        f"ALLOW READ User:alice TOPIC t from {HOST}", f"ALLOW READ User:alice TOPIC t from {ELSEWHERE}",
        f"DENY READ User:alice TOPIC t from {HOST}", f"ALLOW WRITE User:alice TOPIC t from {HOST}",
        "ALLOW DESCRIBE User:alice TOPIC t", "ALLOW READ User:bob TOPIC t", "ALLOW WRITE User:carol TOPIC t",
    )  # fmt: skip
    allowed = {
        (user, operation, host)
        for user, operation, host in product(
            ("alice", "bob", "carol"), ("READ", "WRITE", "DESCRIBE", "ALTER"), (HOST, ELSEWHERE)
        )
        if allows(authorizer, f"User:{user} {operation} TOPIC t", host)
    }
    everywhere = product(
        [
            ("bob", "READ"),
            ("bob", "DESCRIBE"),
            ("carol", "WRITE"),
            ("carol", "DESCRIBE"),
            ("alice", "DESCRIBE"),
        ],
        (HOST, ELSEWHERE),
    )
    assert allowed == {(*who, host) for who, host in everywhere} | {
        ("alice", "READ", ELSEWHERE), ("alice", "WRITE", HOST),
    }  # fmt: skip


@pytest.mark.behaviour("B075")
def test_a_custom_principal_type_is_compared_exactly() -> None:
    authorizer = authorizer_of("ALLOW READ Robot:alice TOPIC t")
    assert allows(authorizer, "Robot:alice READ TOPIC t")
    assert not allows(authorizer, "User:alice READ TOPIC t")
    assert not allows(authorizer, "robot:alice READ TOPIC t")


class Certified(KafkaPrincipal):
    """A principal of a custom class with another field."""

    __slots__ = ("fingerprint",)


@pytest.mark.behaviour("B005", "B076")
def test_the_class_of_a_principal_does_not_matter() -> None:
    authorizer = authorizer_of("ALLOW READ User:alice TOPIC t", super_users="User:root")
    for name, operation in (("alice", AclOperation.READ), ("root", AclOperation.ALTER)):
        session = authorizer.session(Certified("User", name), HOST)
        assert session.decide(operation, ResourceType.TOPIC, "t").allowed
    assert (
        not authorizer.session(Certified("User", "bob"), HOST)
        .decide(AclOperation.READ, ResourceType.TOPIC, "t")
        .allowed
    )


@pytest.mark.behaviour("B076")
def test_a_super_user_may_do_everything_despite_denies() -> None:
    authorizer = authorizer_of(
        "DENY ALL User:* TOPIC *", "DENY ALL User:root TOPIC t", super_users="User:root"
    )
    granted = decision(authorizer, "User:root ALTER TOPIC t")
    assert granted.rule.kind is RuleKind.SUPER_USER
    assert granted.allowed
    assert not allows(authorizer, "Group:root ALTER TOPIC t")


@pytest.mark.behaviour("B078")
def test_an_acl_on_every_resource_allows_and_a_literal_deny_still_denies() -> None:
    authorizer = authorizer_of("ALLOW READ User:alice TOPIC *", "DENY READ User:alice TOPIC secret")
    assert allows(authorizer, "User:alice READ TOPIC orders")
    assert not allows(authorizer, "User:alice READ TOPIC secret")


@pytest.mark.behaviour("B082")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_allowed_operation_allows_exactly_the_implied_operations(operation: str) -> None:
    authorizer = authorizer_of(f"ALLOW {operation} User:alice TOPIC t")
    allowed = {asked for asked in OPERATIONS if allows(authorizer, f"User:alice {asked} TOPIC t")}
    assert allowed == {operation} | IMPLIED.get(operation, set())


@pytest.mark.behaviour("B009")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_denied_operation_denies_only_itself(operation: str) -> None:
    authorizer = authorizer_of("ALLOW ALL User:alice TOPIC t", f"DENY {operation} User:alice TOPIC t")
    denied = {asked for asked in OPERATIONS if not allows(authorizer, f"User:alice {asked} TOPIC t")}
    assert denied == {operation}


@pytest.mark.behaviour("B083")
def test_an_acl_on_every_resource_applies_to_all_of_its_type() -> None:
    authorizer = authorizer_of("ALLOW READ User:alice GROUP *")
    assert allows(authorizer, "User:alice READ GROUP any")
    assert not allows(authorizer, "User:alice READ TOPIC any")
    assert not allows(authorizer, "User:bob READ GROUP any")


@pytest.mark.behaviour("B084")
def test_an_acl_on_a_prefix_applies_to_every_name_with_it() -> None:
    authorizer = authorizer_of("ALLOW READ User:alice GROUP prefix app")
    may = {
        name: allows(authorizer, f"User:alice READ GROUP {name}") for name in ("app", "apple", "ap", "xapp")
    }
    assert may == {"app": True, "apple": True, "ap": False, "xapp": False}


@pytest.mark.behaviour("B089")
def test_adjacent_prefixes_of_one_character_do_not_mix() -> None:
    authorizer = authorizer_of(
        *(f"ALLOW READ User:alice TOPIC prefix {letter}" for letter in "fy"),
        "DENY READ User:alice TOPIC prefix g",
    )
    may = {
        name: allows(authorizer, f"User:alice READ TOPIC {name}")
        for name in ("f", "foo_", "g", "foo-g", "h", "e", "y1", "z")
    }
    assert may == {
        "f": True,
        "foo_": True,
        "g": False,
        "foo-g": True,
        "h": False,
        "e": False,
        "y1": True,
        "z": False,
    }
