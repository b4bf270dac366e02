"""What Kafka's own tests hold of adding, listing and removing ACLs, through control, image and authorizer."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from kustos.acl import (
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import StandardAuthorizer, StandardAuthorizerPlugin
from kustos.metadata.control import create_acls, delete_acls
from kustos.metadata.errors import MetadataError
from kustos.metadata.image import (
    EMPTY_IMAGE,
    AclAdded,
    AclRemoved,
    ImageBuilder,
    MetadataImage,
    acl_record,
    binding_of,
    image_of,
)
from kustos.metadata.records import MetadataRecord, RemoveAccessControlEntryRecord
from kustos.runtime import SystemEntropy
from testkit.acls.one_line import acl, acls, allows

ENTROPY = SystemEntropy()
TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
FOO_READ = "ALLOW READ User:alice TOPIC foo"


class Cluster:
    """An image that requests change, and an authorizer that follows it as a publisher does."""

    def __init__(self, *texts: str) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.authorizer = StandardAuthorizer()
        self.authorizer.complete_initial_load()
        assert self.create(*texts) == [True] * len(texts)

    def create(self, *texts: str) -> list[bool]:
        outcome = create_acls(self.image, acls(texts), ENTROPY)
        self._apply(outcome.records)
        self.errors = [result.error.message for result in outcome.results if result.error is not None]
        return [result.error is None for result in outcome.results]

    def delete(self, *filters: AclBindingFilter) -> list[set[AclBinding]]:
        outcome = delete_acls(self.image, filters)
        self._apply(outcome.records)
        return [set(result.deleted) for result in outcome.results]

    def _apply(self, records: Sequence[MetadataRecord]) -> None:
        builder = ImageBuilder(self.image)
        changes = builder.replay_all(records)
        self.image = builder.build(self.image.offset + 1, 0)
        for change in changes:
            if isinstance(change, AclAdded):
                self.authorizer.add_acl(change.id, change.binding)
            elif isinstance(change, AclRemoved):
                self.authorizer.remove_acl(change.id)

    def listed(self, asked: AclBindingFilter) -> set[AclBinding]:
        return set(self.authorizer.acls(asked))


def of(
    name: str | None, pattern_type: PatternType, kind: ResourceType = TOPIC, **entry: str
) -> AclBindingFilter:
    return AclBindingFilter(
        ResourcePatternFilter(kind, name, pattern_type),
        AccessControlEntryFilter(**entry),  # type: ignore[arg-type]
    )


EVERY = AclBindingFilter()


@pytest.mark.behaviour("B011")
def test_a_listing_has_what_the_filter_asks_for_and_no_more() -> None:
    wanted, others = (
        (FOO_READ, "DENY WRITE User:alice TOPIC foo"),
        ("ALLOW READ User:alice GROUP foo", "ALLOW READ User:alice TOPIC bar"),
    )
    cluster = Cluster(*wanted, *others)
    assert cluster.listed(EVERY) == set(acls((*wanted, *others)))
    assert cluster.listed(of("foo", LITERAL)) == set(acls(wanted))
    assert cluster.listed(of("foo", LITERAL, ResourceType.CLUSTER)) == set()


@pytest.mark.behaviour("B080")
def test_acls_of_a_resource_are_added_listed_and_removed() -> None:
    other = "ALLOW ALL User:bob TOPIC bar"
    cluster = Cluster(other)
    texts = [FOO_READ, "DENY READ User:bob TOPIC foo from 10.0.0.1", "ALLOW WRITE User:* TOPIC foo"]
    for number, text in enumerate(texts, start=1):
        assert cluster.create(text) == [True]
        assert cluster.listed(of("foo", LITERAL)) == set(acls(texts[:number]))
    assert allows(cluster.authorizer, "User:alice READ TOPIC foo")
    assert cluster.delete(of("foo", LITERAL, principal="User:alice")) == [{acl(FOO_READ)}]
    assert cluster.listed(EVERY) == set(acls([other, *texts[1:]]))
    assert not allows(cluster.authorizer, "User:alice READ TOPIC foo")
    assert cluster.delete(of("foo", LITERAL)) == [set(acls(texts[1:]))]
    assert cluster.authorizer.acl_count == len(cluster.image.acls) == 1


PATTERNS = (FOO_READ, "ALLOW READ User:alice TOPIC prefix foo", "ALLOW READ User:alice TOPIC *")
LITERAL_FOO, PREFIXED_FOO, EVERY_TOPIC = of("foo", LITERAL), of("foo", PREFIXED), of("*", LITERAL)


@pytest.mark.behaviour("B085")
def test_removing_from_every_resource_leaves_literals_and_prefixes() -> None:
    cluster = Cluster(*PATTERNS)
    assert cluster.delete(EVERY_TOPIC) == [{acl(PATTERNS[2])}]
    assert cluster.listed(EVERY) == set(acls(PATTERNS[:2]))
    assert allows(cluster.authorizer, "User:alice READ TOPIC foo")
    assert not allows(cluster.authorizer, "User:alice READ TOPIC bar")


@pytest.mark.behaviour("B086")
def test_removing_from_a_prefix_leaves_the_other_patterns() -> None:
    cluster = Cluster(*PATTERNS[:2], "ALLOW READ User:alice TOPIC prefix fo")
    assert cluster.delete(PREFIXED_FOO) == [{acl(PATTERNS[1])}]
    assert cluster.listed(EVERY) == {acl(PATTERNS[0]), acl("ALLOW READ User:alice TOPIC prefix fo")}
    assert allows(cluster.authorizer, "User:alice READ TOPIC foobar")
    assert cluster.delete(of("fo", PREFIXED)) == [{acl("ALLOW READ User:alice TOPIC prefix fo")}]
    assert not allows(cluster.authorizer, "User:alice READ TOPIC foobar")


@pytest.mark.behaviour("B087")
@pytest.mark.parametrize(
    ("kept", "place", "asked"), [(PREFIXED_FOO, "*", EVERY_TOPIC), (EVERY_TOPIC, "prefix foo", PREFIXED_FOO)]
)
def test_all_acls_of_every_resource_or_of_a_prefix_go_at_once(
    kept: AclBindingFilter, place: str, asked: AclBindingFilter
) -> None:
    many = [
        f"ALLOW {operation} User:{user} TOPIC {place}"
        for operation in ("READ", "WRITE")
        for user in ("a", "b")
    ]
    cluster = Cluster(*PATTERNS, *many)
    before = cluster.listed(kept)
    assert allows(cluster.authorizer, "User:a WRITE TOPIC foobar")
    (gone,) = cluster.delete(asked)
    assert not allows(cluster.authorizer, "User:a WRITE TOPIC foobar")
    assert gone > set(acls(many))
    assert cluster.listed(asked) == set()
    assert cluster.listed(kept) == before != set()


@pytest.mark.behaviour("B088")
def test_literals_prefixes_and_every_resource_are_kept_apart() -> None:
    cluster = Cluster(*PATTERNS)
    assert [cluster.listed(asked) for asked in (LITERAL_FOO, PREFIXED_FOO, EVERY_TOPIC)] == [
        {each} for each in acls(PATTERNS)
    ]
    # the same again is nothing new, another pattern of the name is
    assert cluster.create(*PATTERNS, "ALLOW READ User:alice TOPIC prefix *") == [True] * 4
    assert cluster.authorizer.acl_count == 4


@pytest.mark.behaviour("B090")
def test_a_listing_can_ask_for_one_principal() -> None:
    cluster = Cluster(
        FOO_READ, "ALLOW READ User:* TOPIC foo", "ALLOW READ User:bob TOPIC foo", "DENY READ User:bob GROUP g"
    )
    assert cluster.listed(of(None, PatternType.ANY, ResourceType.ANY, principal="User:bob")) == {
        acl("ALLOW READ User:bob TOPIC foo"), acl("DENY READ User:bob GROUP g"),
    }  # fmt: skip
    assert cluster.listed(of(None, PatternType.ANY, ResourceType.ANY, principal="User:*")) == {
        acl("ALLOW READ User:* TOPIC foo")
    }


@pytest.mark.behaviour("B091")
@pytest.mark.parametrize(
    ("pattern_type", "name", "found"),
    [
        (PatternType.ANY, None, {0, 1, 2}), (PatternType.ANY, "foo", {0, 1}), (PatternType.ANY, "*", {2}),
        (PatternType.MATCH, "foo", {0, 1, 2}), (PatternType.MATCH, "foobar", {1, 2}),
        (PatternType.MATCH, "x", {2}),
        (LITERAL, None, {0, 2}), (LITERAL, "foo", {0}), (PREFIXED, None, {1}), (PREFIXED, "foo", {1}),
        (PREFIXED, "foobar", set()), (LITERAL, "foobar", set()),
    ],
)  # fmt: skip
def test_a_listing_asks_for_any_for_what_governs_for_literals_or_for_prefixes(
    pattern_type: PatternType, name: str | None, found: set[int]
) -> None:
    cluster = Cluster(*PATTERNS)
    assert cluster.listed(of(name, pattern_type)) == {acl(PATTERNS[index]) for index in found}


@pytest.mark.behaviour("B073")
@pytest.mark.parametrize("kind", ["TOPIC", "GROUP", "TRANSACTIONAL_ID"])
def test_no_acl_is_made_for_an_empty_name(kind: str) -> None:
    cluster = Cluster(FOO_READ)
    other = "ALLOW READ User:alice TOPIC bar"
    assert cluster.create(f"ALLOW READ User:alice {kind} ''", other) == [False, True]
    assert cluster.errors == ["Invalid empty resource name"]
    assert cluster.listed(EVERY) == set(acls((FOO_READ, other)))


@pytest.mark.behaviour("B077")
def test_blanks_around_values_of_settings_do_not_matter() -> None:
    async def configured() -> StandardAuthorizer:
        plugin = StandardAuthorizerPlugin(asyncio.get_running_loop().create_future)
        plugin.configure(
            {"super.users": "  User:alice ;\tUser:bob  ", "allow.everyone.if.no.acl.found": " true\t"}
        )
        return plugin.standard

    standard = asyncio.run(configured())
    assert standard.super_users == {"User:alice", "User:bob"}
    assert standard.allow_everyone_if_no_acl_found


@pytest.mark.behaviour("B046")
def test_a_snapshot_that_is_loaded_has_the_same_acls_and_ids() -> None:
    cluster = Cluster(*PATTERNS, "DENY ALL User:bob GROUP g from 10.0.0.1")
    loaded = image_of(cluster.image.records())
    assert dict(loaded.acls.items()) == dict(cluster.image.acls.items())
    standard = StandardAuthorizer()
    standard.load_snapshot(loaded.acls.items())
    assert set(standard.acls()) == cluster.listed(EVERY)
    for acl_id, binding in cluster.image.acls.items():
        assert standard.remove_acl(acl_id) == binding
    assert standard.acl_count == 0


@pytest.mark.behaviour("B047")
def test_what_is_created_and_deleted_again_is_gone() -> None:
    cluster = Cluster(FOO_READ)
    before = cluster.image
    assert cluster.create("ALLOW READ User:alice TOPIC bar") == [True]
    assert len(cluster.image.acls) == 2
    assert cluster.delete(of("bar", LITERAL)) == [{acl("ALLOW READ User:alice TOPIC bar")}]
    assert cluster.image.same_state(before)
    assert cluster.delete(of("bar", LITERAL)) == [set()]
    # its place is free again
    assert cluster.create("ALLOW READ User:alice TOPIC bar") == [True]
    assert cluster.listed(of("bar", LITERAL))


@pytest.mark.behaviour("B048")
def test_what_exists_is_created_again_without_a_record() -> None:
    image = Cluster(FOO_READ).image
    outcome = create_acls(image, acls([FOO_READ]), ENTROPY)
    assert outcome.records == ()
    assert [result.error for result in outcome.results] == [None]
    assert len(create_acls(image, [acl(FOO_READ.replace("ALLOW", "DENY"))], ENTROPY).records) == 1


@pytest.mark.behaviour("B049")
def test_the_same_acl_twice_in_a_request_is_one_record() -> None:
    outcome = create_acls(EMPTY_IMAGE, acls([FOO_READ, FOO_READ]), ENTROPY)
    assert len(outcome.records) == 1
    assert [result.error for result in outcome.results] == [None, None]


@pytest.mark.behaviour("B054")
def test_an_image_written_as_records_and_read_is_the_same_image() -> None:
    image = Cluster(*PATTERNS).image
    assert len(image.acls) == 3
    assert image_of(image.records()).same_state(image)
    assert image_of(EMPTY_IMAGE.records()).same_state(EMPTY_IMAGE)


@pytest.mark.behaviour("B055")
def test_an_image_with_a_delta_is_the_image_that_was_meant() -> None:
    first, second, third = (acl_record(UUID(int=number), acl(text)) for number, text in enumerate(PATTERNS))
    before = image_of([first, second])
    builder = ImageBuilder(before)
    changes = builder.replay_all([RemoveAccessControlEntryRecord(UUID(int=0)), third])
    after = builder.build(1, 0)
    assert dict(after.acls.items()) == {UUID(int=1): acl(PATTERNS[1]), UUID(int=2): acl(PATTERNS[2])}
    assert dict(before.acls.items()) == {UUID(int=0): acl(PATTERNS[0]), UUID(int=1): acl(PATTERNS[1])}
    assert changes == (AclRemoved(UUID(int=0), acl(PATTERNS[0])), AclAdded(UUID(int=2), acl(PATTERNS[2])))


@pytest.mark.behaviour("B056")
def test_what_a_delta_adds_and_removes_again_leaves_no_trace() -> None:
    before = image_of([acl_record(UUID(int=1), acl(FOO_READ))])
    builder = ImageBuilder(before)
    added = acl_record(UUID(int=2), acl(PATTERNS[1]))
    builder.replay_all([added, RemoveAccessControlEntryRecord(UUID(int=2))])
    after = builder.build(1, 0)
    assert after.same_state(before)
    assert acl(PATTERNS[1]) not in after.acl_ids
    assert list(image_of(after.records()).acls) == [UUID(int=1)]


@pytest.mark.behaviour("B057")
def test_what_a_delta_removes_from_the_image_is_noted_with_what_it_was() -> None:
    builder = ImageBuilder(image_of([acl_record(UUID(int=1), acl(FOO_READ))]))
    assert builder.replay(RemoveAccessControlEntryRecord(UUID(int=1))) == (
        AclRemoved(UUID(int=1), acl(FOO_READ)),
    )
    assert UUID(int=1) not in builder.build(1, 0).acls


@pytest.mark.behaviour("B058")
def test_removing_an_unknown_id_is_a_fault() -> None:
    image = image_of([acl_record(UUID(int=1), acl(FOO_READ))])
    with pytest.raises(MetadataError):
        ImageBuilder(image).replay(RemoveAccessControlEntryRecord(UUID(int=2)))
    again = ImageBuilder(image)
    again.replay(RemoveAccessControlEntryRecord(UUID(int=1)))
    with pytest.raises(MetadataError):
        again.replay(RemoveAccessControlEntryRecord(UUID(int=1)))


@pytest.mark.behaviour("B035", "B036")
@pytest.mark.parametrize("operation", [each for each in AclOperation if each > AclOperation.ANY])
@pytest.mark.parametrize("permission", [AclPermissionType.ALLOW, AclPermissionType.DENY])
def test_an_acl_with_its_id_and_its_record_become_each_other(
    operation: AclOperation, permission: AclPermissionType
) -> None:
    for kind, place, host in (
        ("TOPIC", "prefix é", "*"),
        ("USER", "alice", "10.0.0.0/8"),
        ("CLUSTER", "kafka-cluster", "h"),
    ):
        binding = acl(f"{permission} {operation} Group:a:b {kind} {place} from {host}")
        record = acl_record(UUID(int=7), binding)
        assert record.id == UUID(int=7)
        assert binding_of(record) == binding
        assert acl_record(UUID(int=7), binding_of(record)) == record
