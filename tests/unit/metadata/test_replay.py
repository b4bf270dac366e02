"""Records that contradict the state before them: each is refused and names what it is about."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from kustos.metadata.errors import ReplayError
from kustos.metadata.image import (
    EMPTY_IMAGE,
    AclAdded,
    AclIdRemoved,
    ImageBuilder,
    MetadataImage,
    binding_of,
    image_of,
)
from kustos.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    OpaqueRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
)
from tests.unit.metadata.inspection_support import acl, token, user

ONE, TWO = UUID(int=1), UUID(int=2)


def twin(number: int, of: AccessControlEntryRecord) -> AccessControlEntryRecord:
    """The same ACL under another id."""
    return AccessControlEntryRecord(UUID(int=number), of.resource_type, of.resource_name, of.pattern_type,
                                    of.principal, of.host, of.operation, of.permission_type)  # fmt: skip


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([acl(1), acl(1)], f"two ACLs have the id `{ONE}`"),
        ([acl(1), twin(2, acl(1))], f"the ACL `{TWO}` is equal to `{ONE}`"),
        ([RemoveAccessControlEntryRecord(ONE)], f"the ACL id `{ONE}` is removed, but there is none"),
        (
            [user("ann"), RemoveUserScramCredentialRecord("ann", 2)],
            "the SCRAM credential of `ann` is removed, but there is none",
        ),
        (
            [RemoveDelegationTokenRecord("t")],
            "the delegation token `t` is removed, but there is none",
        ),
        (
            [DelegationTokenRecord("User:a", "User:b", ("User:c", "nobody"), 1, 3, 2, "t")],
            "the delegation token `t` names `nobody`, which is not a principal",
        ),
        (
            [DelegationTokenRecord("nobody", "User:b", (), 1, 3, 2, "t")],
            "the delegation token `t` names `nobody`, which is not a principal",
        ),
        (
            [DelegationTokenRecord("User:a", "nobody", (), 1, 3, 2, "t")],
            "the delegation token `t` names `nobody`, which is not a principal",
        ),
        ([EndTransactionRecord()], "a metadata transaction ends that never began"),
        ([AbortTransactionRecord()], "a metadata transaction ends that never began"),
        (
            [BeginTransactionRecord(), EndTransactionRecord(), EndTransactionRecord()],
            "a metadata transaction ends that never began",
        ),
        (
            [BeginTransactionRecord(), BeginTransactionRecord("x")],
            "a metadata transaction begins inside another one",
        ),
    ],
)
def test_a_record_that_contradicts_the_state_is_refused(
    records: Sequence[MetadataRecord], words: str
) -> None:
    with pytest.raises(ReplayError) as caught:
        image_of(records)
    assert str(caught.value) == words


def test_an_acl_that_cannot_be_is_refused_with_its_id() -> None:
    odd = AccessControlEntryRecord(ONE, 1, "t", 3, "User:a", "*", 3, 3)
    with pytest.raises(ReplayError, match=f"^the ACL `{ONE}` cannot be: ."):
        binding_of(odd)


def test_what_is_added_at_once_must_be_new() -> None:
    first, second = ((each.id, binding_of(each)) for each in (acl(1), acl(2)))
    for added, words in (
        ([first, first], f"two ACLs have the id `{ONE}`"),
        ([first, (TWO, first[1])], f"two ACLs are equal: {first[1].audit_text()}"),
    ):
        builder = ImageBuilder()
        with pytest.raises(ReplayError) as caught:
            builder.add_acls(added)
        assert str(caught.value) == words
    builder = ImageBuilder()
    builder.add_acls([first])
    builder.add_acls([second])
    assert (len(builder.view().acls), len(builder.build(0, 0).acls)) == (2, 2)
    builder = ImageBuilder()
    builder.replay(BeginTransactionRecord())
    with pytest.raises(ReplayError, match=r"^ACLs are added at once amid a metadata transaction$"):
        builder.add_acls([first, second])


def test_a_transaction_holds_its_records_back_until_it_ends() -> None:
    builder = ImageBuilder(image_of([acl(1)], offset=9, epoch=3))
    assert builder.replay(BeginTransactionRecord()) == ()
    assert builder.replay_all([RemoveAccessControlEntryRecord(ONE), acl(2)]) == ()
    assert set(builder.view().acls) == {ONE}
    # a view is of where the builder began
    assert (builder.view().offset, builder.view().epoch) == (9, 3)
    assert [type(each).__name__ for each in builder.replay(EndTransactionRecord())] == [
        "AclRemoved",
        "AclAdded",
    ]
    assert set(builder.view().acls) == {TWO}
    builder.replay_all([BeginTransactionRecord(), acl(3), AbortTransactionRecord()])
    built = builder.build(12, 4)
    assert (set(built.acls), built.offset, built.epoch) == ({TWO}, 12, 4)


def test_a_builder_that_forgot_the_acls_still_makes_their_changes() -> None:
    builder = ImageBuilder(image_of([acl(1)], offset=9, epoch=3))
    builder.replay(acl(2))
    builder.replay(BeginTransactionRecord())
    builder.replay(RemoveAccessControlEntryRecord(TWO))
    builder.forget_acls()
    assert (len(builder.view().acls), len(builder.view().acl_ids)) == (0, 0)
    assert builder.replay(EndTransactionRecord()) == (AclIdRemoved(TWO),)
    [added] = builder.replay(acl(2))
    assert added == AclAdded(TWO, binding_of(acl(2)))
    built = builder.build(12, 4)
    assert (len(built.acls), len(built.acl_ids), built.offset) == (0, 0, 12)


def test_a_builder_knows_whether_it_holds_records_back() -> None:
    builder, seen = ImageBuilder(), []
    for record in (BeginTransactionRecord(), acl(1), EndTransactionRecord(), BeginTransactionRecord(),
                   AbortTransactionRecord()):  # fmt: skip
        builder.replay(record)
        seen.append(builder.in_transaction)
    assert seen == [True, True, False, True, False]


def test_what_an_image_was_built_from_stays_and_what_follows_does_not_reach_it() -> None:
    before = image_of([acl(1), user(), token(), ConfigRecord(4, "", "x", "1")])
    builder = ImageBuilder(before)
    builder.replay_all([RemoveAccessControlEntryRecord(ONE), ConfigRecord(4, "", "x", "2")])
    between = builder.build(1, 1)
    builder.replay_all([acl(2), RemoveUserScramCredentialRecord("alice", 1), ConfigRecord(4, "", "x", None)])
    after = builder.build(2, 1)
    assert [set(each.acls) for each in (before, between, after)] == [{ONE}, set(), {TWO}]
    assert [dict(each.configs) for each in (before, between, after)] == [
        {(4, "", "x"): "1"},
        {(4, "", "x"): "2"},
        {},
    ]
    assert [len(each.scram_credentials) for each in (before, between, after)] == [1, 1, 0]
    assert after.delegation_tokens == before.delegation_tokens


def test_an_image_of_plain_mappings_is_built_upon_too() -> None:
    image = MetadataImage(features={"metadata.version": 30}, configs={(4, "", "x"): "1"})
    builder = ImageBuilder(image)
    builder.replay_all([FeatureLevelRecord("metadata.version", 31), ConfigRecord(4, "", "y", "2"), acl(1)])
    built = builder.build(0, 0)
    assert dict(built.features) == {"metadata.version": 31}
    assert dict(built.configs) == {(4, "", "x"): "1", (4, "", "y"): "2"}
    assert len(built.acls) == 1
    assert dict(image.features) == {"metadata.version": 30}


def test_records_that_are_kept_unread_and_the_one_that_says_nothing_change_nothing() -> None:
    builder = ImageBuilder()
    assert builder.replay_all([NoOpRecord(), OpaqueRecord(2, 0, b"x")]) == ()
    assert builder.build(-1, 0) == EMPTY_IMAGE


def test_a_feature_at_level_0_is_one_that_is_not_there() -> None:
    image = image_of([FeatureLevelRecord("x", 2), FeatureLevelRecord("x", 0), FeatureLevelRecord("y", 0)])
    assert dict(image.features) == {}
