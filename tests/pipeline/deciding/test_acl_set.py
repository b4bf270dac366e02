"""A set of ACLs is what it holds, however it came; and arrives whole or not at all."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.acl import AclBinding
from kustos.pipeline.deciding import AclsInForce
from kustos.pipeline.deciding.acl_set import authorizer_of_content
from kustos.pipeline.errors import AclSetError
from testkit.acls.one_line import acl
from testkit.acls.strategies import bindings
from tests.pipeline.deciding.worlds import asked_around, decided_singly, made_world

typed_bindings = bindings.filter(lambda binding: ":" in binding.entry.principal)
acl_lists = st.lists(typed_bindings, max_size=8)
users = st.lists(st.sampled_from(["User:root", "User:ü", "Group:x"]), max_size=3)


@given(acls=acl_lists, super_users=users, default_allow=st.booleans(), chance=st.randoms())
def test_the_digest_is_of_the_content_alone(
    acls: list[AclBinding], super_users: list[str], default_allow: bool, chance: Random
) -> None:
    once = AclsInForce.of("one", acls, super_users=super_users, allow_everyone_if_no_acl_found=default_allow)
    repeated = [*acls, *acls]
    chance.shuffle(repeated)
    again = AclsInForce.of(
        "two",
        repeated,
        super_users=";".join(reversed(super_users)),
        allow_everyone_if_no_acl_found=default_allow,
    )
    assert (once.digest, once.content) == (again.digest, again.content)
    other = AclsInForce.of(
        "one", acls, super_users=super_users, allow_everyone_if_no_acl_found=not default_allow
    )
    assert other.digest != once.digest
    if once.bindings:
        assert once.with_bindings("less", once.bindings[1:]).digest != once.digest


@given(acls=acl_lists, super_users=users, default_allow=st.booleans())
def test_what_is_sent_is_what_arrives(
    acls: list[AclBinding], super_users: list[str], default_allow: bool
) -> None:
    sent = AclsInForce.of("sent", acls, super_users=super_users, allow_everyone_if_no_acl_found=default_allow)
    arrived = authorizer_of_content(sent.name, sent.content, sent.digest)
    assert set(arrived.acls()) == set(acls)
    assert arrived.super_users == frozenset(super_users)
    assert arrived.allow_everyone_if_no_acl_found is default_allow


@pytest.mark.parametrize("seed", range(12))
def test_the_order_of_acls_changes_neither_decision_nor_rule(seed: int) -> None:
    acl_set, asks = made_world(seed)
    rows = asked_around(asks, seed)
    shuffled = Random(seed).sample(acl_set.bindings, len(acl_set.bindings))
    assert acl_set.with_bindings("shuffled", shuffled).bindings == acl_set.bindings
    arrived = authorizer_of_content(acl_set.name, acl_set.content, acl_set.digest)
    assert decided_singly(arrived, rows) == decided_singly(acl_set.authorizer(), rows)


@given(place=st.integers(0, 200), bit=st.integers(0, 7), cut=st.integers(0, 30))
def test_a_damaged_set_is_refused(place: int, bit: int, cut: int) -> None:
    sent = AclsInForce.of("acls.yaml", [acl("ALLOW READ User:alice TOPIC orders")], super_users="User:root")
    data = bytearray(sent.content)
    data[place % len(data)] ^= 1 << bit
    for damaged in (bytes(data), sent.content[: len(sent.content) - 1 - cut]):
        with suppress(AclSetError):  # what is refused allows nothing; a bit that says nothing may turn
            assert set(authorizer_of_content(sent.name, damaged, sent.digest).acls()) == set(sent.bindings)
    with pytest.raises(AclSetError, match="were damaged on their way"):
        authorizer_of_content(sent.name, sent.content[: len(sent.content) - 5 - cut], sent.digest)


@pytest.mark.parametrize(
    ("principal", "super_users", "said"),
    [
        ("alice", "", "acls.yaml: principal `alice` of an ACL has no type, write it as `User:name`"),
        ("User:alice", "User:*", "acls.yaml: super user `User:*` would be everybody"),
        ("User:alice", "root", "acls.yaml: could not parse principal from `root`"),
    ],
)
def test_what_no_authorizer_holds_is_refused_before_it_is_sent(
    principal: str, super_users: str, said: str
) -> None:
    with pytest.raises(AclSetError) as caught:
        AclsInForce.of("acls.yaml", [acl(f"ALLOW READ {principal} TOPIC a")], super_users=super_users)
    assert said in str(caught.value)
