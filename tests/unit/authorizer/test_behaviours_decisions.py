"""What Kafka's own tests hold of decisions on one resource, each behaviour in a test of its own."""

import random
from itertools import product
from uuid import UUID

import pytest

from kustos.acl import AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import RuleKind
from testkit.acls.one_line import ELSEWHERE, HOST, acl, acls, allows, authorizer_of, decision
from testkit.differential.specification import Spec

OPERATIONS = [operation.name for operation in AclOperation if operation > AclOperation.ALL]
BESIDE: list[tuple[str, ...]] = [
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
"""ACLs that decide nothing of what is asked, yet send the question along other ways through the index."""

beside = pytest.mark.parametrize("beside", BESIDE, ids=["alone", "another type", "other patterns", "hosts"])

IMPLIED = {
    "READ": {"DESCRIBE"}, "WRITE": {"DESCRIBE"}, "DELETE": {"DESCRIBE"}, "ALTER": {"DESCRIBE"},
    "ALTER_CONFIGS": {"DESCRIBE_CONFIGS"},
}  # fmt: skip


@pytest.mark.behaviour("B004")
def test_an_acl_speaks_of_the_one_it_names_or_of_everybody() -> None:
    asked = "User:alice READ TOPIC t"
    for other in ("User:alic", "User:alicea", "user:alice", "Group:alice", "Group:*", "User:bob"):
        assert not allows(authorizer_of(f"ALLOW READ {other} TOPIC t"), asked), other
    assert allows(authorizer_of("ALLOW READ User:alice TOPIC t"), asked)
    everybody = authorizer_of("ALLOW READ User:* TOPIC t")
    assert allows(everybody, asked)
    assert allows(everybody, "Group:alice READ TOPIC t")


@pytest.mark.behaviour("B006")
@pytest.mark.parametrize("operation", ["READ", "WRITE", "DELETE", "ALTER"])
def test_who_may_use_a_resource_may_describe_it(operation: str) -> None:
    assert allows(authorizer_of(f"ALLOW {operation} User:alice TOPIC t"), "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B007")
def test_who_may_alter_configurations_may_describe_them() -> None:
    authorizer = authorizer_of("ALLOW ALTER_CONFIGS User:alice TOPIC t")
    assert allows(authorizer, "User:alice DESCRIBE_CONFIGS TOPIC t")
    assert not allows(authorizer, "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B008")
def test_who_may_create_may_not_therefore_describe() -> None:
    assert not allows(authorizer_of("ALLOW CREATE User:alice TOPIC t"), "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B009")
def test_forbidding_to_read_leaves_describing() -> None:
    authorizer = authorizer_of("ALLOW WRITE User:alice TOPIC t", "DENY READ User:alice TOPIC t")
    assert allows(authorizer, "User:alice DESCRIBE TOPIC t")


@pytest.mark.behaviour("B010")
@beside
def test_forbidding_to_describe_forbids_it_whatever_is_allowed(beside: tuple[str, ...]) -> None:
    texts = ("ALLOW READ User:alice TOPIC foo", "DENY DESCRIBE User:alice TOPIC foo")
    for more in ((), ("ALLOW ALL User:* TOPIC foo",)):
        authorizer = authorizer_of(*texts, *more, *beside)
        assert not allows(authorizer, "User:alice DESCRIBE TOPIC foo")
        assert allows(authorizer, "User:alice READ TOPIC foo")


@pytest.mark.behaviour("B012")
@beside
def test_a_literal_is_for_its_own_name_and_type(beside: tuple[str, ...]) -> None:
    authorizer = authorizer_of("ALLOW READ User:alice TOPIC foo", *beside)
    assert allows(authorizer, "User:alice READ TOPIC foo")
    for other in ("foob", "fo", "Foo", "bar"):
        assert not allows(authorizer, f"User:alice READ TOPIC {other}"), other
    assert not allows(authorizer, "User:alice READ TRANSACTIONAL_ID foo")


@pytest.mark.behaviour("B013")
@pytest.mark.parametrize("order", [1, -1])
@beside
def test_on_one_resource_deny_wins(order: int, beside: tuple[str, ...]) -> None:
    both = ("ALLOW READ User:alice TOPIC foo", "DENY READ User:alice TOPIC foo")[::order]
    denied = decision(authorizer_of(*both, *beside), "User:alice READ TOPIC foo")
    assert denied.rule.binding == acl("DENY READ User:alice TOPIC foo")
    assert not denied.allowed


@pytest.mark.behaviour("B031")
@beside
def test_where_nothing_denies_an_allow_on_a_prefix_wins(beside: tuple[str, ...]) -> None:
    for prefix in ("f", "fo", "foo"):
        authorizer = authorizer_of(f"ALLOW READ User:alice TOPIC prefix {prefix}", *beside)
        assert allows(authorizer, "User:alice READ TOPIC foo"), prefix


@pytest.mark.behaviour("B032")
@beside
def test_where_nothing_denies_an_allow_on_the_name_wins(beside: tuple[str, ...]) -> None:
    assert allows(authorizer_of("ALLOW READ User:alice TOPIC foo", *beside), "User:alice READ TOPIC foo")


@pytest.mark.behaviour("B014")
@beside
def test_a_denied_longer_prefix_takes_its_part_of_an_allowed_one(beside: tuple[str, ...]) -> None:
    texts = ("ALLOW READ User:alice TOPIC prefix foo", "DENY READ User:alice TOPIC prefix foobar")
    authorizer = authorizer_of(*texts, *beside)
    names = ("fo", "foo", "fooa", "foobar", "foobarbaz")
    may = {name for name in names if allows(authorizer, f"User:alice READ TOPIC {name}")}
    assert may == {"foo", "fooa"}


@pytest.mark.behaviour("B015")
def test_the_prefix_of_one_is_nothing_to_another() -> None:
    authorizer = authorizer_of("ALLOW READ User:bob TOPIC prefix foo", "DENY READ User:bob TOPIC prefix foob")
    assert not allows(authorizer, "User:alice READ TOPIC foo")
    authorizer.add_acl(UUID(int=9), acl("ALLOW READ User:alice TOPIC foobar"))
    assert allows(authorizer, "User:alice READ TOPIC foobar")


@pytest.mark.behaviour("B016")
def test_an_acl_of_an_address_is_for_that_address() -> None:
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
def test_many_literals_and_prefixes_decide_as_a_plain_reading_does(seed: int) -> None:
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
def test_default_allow_opens_what_no_acl_names() -> None:
    authorizer = authorizer_of("ALLOW READ User:bob TOPIC prefix or", default_allow=True)
    opened = decision(authorizer, "User:alice READ TOPIC free")
    assert opened.rule.kind is RuleKind.DEFAULT_ALLOW
    assert opened.allowed
    assert not allows(authorizer, "User:alice READ TOPIC orders")
    assert allows(authorizer, "User:alice READ GROUP orders")
    authorizer.remove_acl(UUID(int=1))
    assert allows(authorizer, "User:alice READ TOPIC orders")


@pytest.mark.behaviour("B027", "B079")
def test_without_default_allow_what_no_acl_names_is_closed() -> None:
    closed = decision(authorizer_of(), "User:alice READ TOPIC free")
    assert closed.rule.kind is RuleKind.DEFAULT_DENY
    assert not closed.allowed


@pytest.mark.behaviour("B033")
def test_of_several_that_match_the_one_is_named_that_kafka_comes_to_first_or_last() -> None:
    """Kafka walks by name downwards, then pattern, operation, principal, host, permission; `*` at last."""
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
def test_an_empty_name_can_be_asked_about() -> None:
    asked = "User:alice READ GROUP ''"
    assert not allows(authorizer_of(), asked)
    assert not allows(authorizer_of("ALLOW READ User:alice GROUP g"), asked)
    assert allows(authorizer_of("ALLOW READ User:alice GROUP *"), asked)
    assert not allows(authorizer_of("ALLOW READ User:alice GROUP *", "DENY READ User:* GROUP *"), asked)


@pytest.mark.behaviour("B074")
def test_users_hosts_and_operations_of_a_topic_each_have_their_own_acls() -> None:
    """The matrix of Kafka's `testTopicAcl`: who may do what from where, all decided side by side."""
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
def test_a_type_of_ones_own_is_compared_exactly() -> None:
    authorizer = authorizer_of("ALLOW READ Robot:alice TOPIC t")
    assert allows(authorizer, "Robot:alice READ TOPIC t")
    assert not allows(authorizer, "User:alice READ TOPIC t")
    assert not allows(authorizer, "robot:alice READ TOPIC t")


class Certified(KafkaPrincipal):
    """A principal of a class of one's own, with more in it."""

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
def test_a_super_user_may_do_everything_whatever_denies() -> None:
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
def test_each_allowed_operation_allows_just_what_it_implies(operation: str) -> None:
    authorizer = authorizer_of(f"ALLOW {operation} User:alice TOPIC t")
    allowed = {asked for asked in OPERATIONS if allows(authorizer, f"User:alice {asked} TOPIC t")}
    assert allowed == {operation} | IMPLIED.get(operation, set())


@pytest.mark.behaviour("B009")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_denied_operation_denies_itself_alone(operation: str) -> None:
    authorizer = authorizer_of("ALLOW ALL User:alice TOPIC t", f"DENY {operation} User:alice TOPIC t")
    denied = {asked for asked in OPERATIONS if not allows(authorizer, f"User:alice {asked} TOPIC t")}
    assert denied == {operation}


@pytest.mark.behaviour("B083")
def test_an_acl_on_every_resource_is_for_each_of_its_type() -> None:
    authorizer = authorizer_of("ALLOW READ User:alice GROUP *")
    assert allows(authorizer, "User:alice READ GROUP any")
    assert not allows(authorizer, "User:alice READ TOPIC any")
    assert not allows(authorizer, "User:bob READ GROUP any")


@pytest.mark.behaviour("B084")
def test_an_acl_on_a_prefix_is_for_each_name_that_it_begins() -> None:
    authorizer = authorizer_of("ALLOW READ User:alice GROUP prefix app")
    may = {
        name: allows(authorizer, f"User:alice READ GROUP {name}") for name in ("app", "apple", "ap", "xapp")
    }
    assert may == {"app": True, "apple": True, "ap": False, "xapp": False}


@pytest.mark.behaviour("B089")
def test_prefixes_of_one_character_beside_each_other_do_not_mix() -> None:
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
