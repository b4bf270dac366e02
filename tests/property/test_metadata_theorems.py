"""Theorems about the metadata: maps, batches, images, and what publishers receive."""

import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.metadata.control import ScramDeletion, ScramUpsertion, create_acls, delete_acls
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.image import (
    AclAdded,
    AclRemoved,
    Change,
    ImageBuilder,
    MetadataDelta,
    MetadataImage,
    ScramCredentialRemoved,
    ScramCredentialSet,
    acl_record,
    image_of,
)
from kustos.metadata.image.maps import BUCKETS, DraftMap, FrozenMap
from kustos.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from kustos.metadata.store.store import AlterScram, CreateAcls, DeleteAcls, MetadataStore, StoreRequest
from kustos.runtime import SystemEntropy
from kustos.wire.record_batch import (
    COMPRESSION_MASK,
    CRC_COVERS_FROM,
    CorruptBatchError,
    Record,
    RecordBatch,
    batch_of,
    encoded_batch_of,
    read_batch,
)

# keys in the same bucket, and keys in different ones
keys = st.builds(lambda low, high: low + BUCKETS * high, st.integers(0, 3), st.integers(0, 3))
steps = st.lists(st.tuples(st.sampled_from(["set", "set", "pop", "freeze", "restart"]), keys, st.integers()))


def assert_same(mapping: FrozenMap[int, int] | DraftMap[int, int], model: dict[int, int]) -> None:
    assert dict(mapping) == model
    assert mapping == FrozenMap(model.items())
    assert len(mapping) == len(list(mapping)) == len(model)
    assert sorted(mapping.items()) == sorted(model.items())
    assert sorted(mapping.values()) == sorted(model.values())
    for low in range(4):
        for key in (low, low + BUCKETS, low + 9 * BUCKETS):
            assert (key in mapping) == (key in model)
            assert mapping.get(key, -1) == model.get(key, -1)


@given(st.dictionaries(keys, st.integers()), steps)
def test_a_map_is_a_dict_and_its_old_versions_stay(
    first: dict[int, int], taken: list[tuple[str, int, int]]
) -> None:
    model = dict(first)
    frozen: FrozenMap[int, int] = FrozenMap(first.items())
    draft, versions = DraftMap(frozen), [(frozen, dict(first))]
    for step, key, value in taken:
        if step == "set":
            draft[key] = model[key] = value
        elif step == "pop":
            assert draft.pop(key) == model.pop(key, None)
        else:
            versions.append((draft.freeze(), dict(model)))
            draft = DraftMap(versions[-1][0]) if step == "restart" else draft
        assert_same(draft, model)
    for version, then in versions:
        assert_same(version, then)


int16, int32, int64 = (st.integers(-(2**bits), 2**bits - 1) for bits in (15, 31, 63))
blobs = st.binary(max_size=200)
batch_records = st.builds(
    Record,
    int32,
    st.none() | blobs,
    st.none() | blobs,
    int64,
    st.lists(st.tuples(blobs, st.none() | blobs), max_size=3).map(tuple),
    st.integers(-128, 127),
)
batches = st.builds(
    RecordBatch,
    int64,
    int32,
    st.lists(batch_records, max_size=5).map(tuple),
    int16.map(lambda value: value & ~COMPRESSION_MASK),
    st.integers(0, 2**31 - 1),
    int64,
    int64,
    int64,
    int16,
    int32,
)


@given(batches, blobs, blobs)
def test_reading_a_batch_is_the_inverse_of_writing_it(
    batch: RecordBatch, before: bytes, after: bytes
) -> None:
    data = batch.encode()
    assert read_batch(before + data + after, len(before)) == (batch, len(before) + len(data))


@given(int64, int32, int64, st.lists(blobs, max_size=200))
def test_a_batch_of_values_is_encoded_alike_with_and_without_records(
    offset: int, epoch: int, timestamp_ms: int, values: list[bytes]
) -> None:
    assert (
        encoded_batch_of(offset, epoch, timestamp_ms, values)
        == batch_of(offset, epoch, timestamp_ms, values).encode()
    )


UNCOVERED = {*range(8), *range(12, 16)}
"""The base offset and the epoch: no checksum covers them, the order of the log reveals errors."""


@given(batches, st.data())
def test_a_flipped_byte_of_a_batch_is_detected(batch: RecordBatch, data: st.DataObject) -> None:
    flipped = bytearray(batch.encode())
    position = data.draw(st.integers(0, len(flipped) - 1))
    flipped[position] ^= data.draw(st.integers(1, 255))
    try:
        read, _ = read_batch(bytes(flipped))
    except CorruptBatchError:
        return
    assert position in UNCOVERED
    assert read != batch


@given(batches, st.data())
def test_a_batch_that_is_read_is_written_back_to_the_byte(batch: RecordBatch, data: st.DataObject) -> None:
    changed = bytearray(batch.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(CRC_COVERS_FROM, len(changed) - 1))] = data.draw(st.integers(0, 255))
    # whoever forges a batch also forges its checksum
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[CRC_COVERS_FROM:])))
    try:
        read, _ = read_batch(bytes(changed))
    except CorruptBatchError:
        return
    assert read.encode() == changed


bindings = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
        st.sampled_from(["a", "ab", "*"]),
        st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    ),
    st.builds(
        AccessControlEntry,
        st.sampled_from(["User:a", "User:b"]),
        st.just("*"),
        st.sampled_from([AclOperation.READ, AclOperation.WRITE]),
        st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
    ),
)
acl_lists = st.lists(bindings, max_size=8)
users = st.sampled_from(["a", "b", "c"])
mechanisms = st.sampled_from([1, 2])
credentials = st.builds(UserScramCredentialRecord, users, mechanisms, blobs, blobs, blobs, int32)
levels = st.builds(FeatureLevelRecord, st.sampled_from(["metadata.version", "x"]), st.integers(0, 33))
State = tuple[dict[UUID, AclBinding], dict[tuple[str, int], UserScramCredentialRecord], dict[str, int]]


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[MetadataRecord], State]:
    """Draw records that a controller could have written, and their final state as plain dicts."""
    acls: dict[UUID, AclBinding] = {}
    scram: dict[tuple[str, int], UserScramCredentialRecord] = {}
    features: dict[str, int] = {}
    records: list[MetadataRecord] = []
    for number, item in enumerate(draw(st.lists(bindings | credentials | levels | st.booleans()))):
        if isinstance(item, AclBinding):
            if item not in acls.values():
                acls[UUID(int=number)] = item
                records.append(acl_record(UUID(int=number), item))
        elif isinstance(item, UserScramCredentialRecord):
            scram[item.name, item.mechanism] = item
            records.append(item)
        elif isinstance(item, FeatureLevelRecord):
            features[item.name] = item.feature_level
            records.append(item)
        elif item and acls:
            acl_id = draw(st.sampled_from(sorted(acls)))
            del acls[acl_id]
            records.append(RemoveAccessControlEntryRecord(acl_id))
        elif scram and not item:
            key = draw(st.sampled_from(sorted(scram)))
            del scram[key]
            records.append(RemoveUserScramCredentialRecord(*key))
    return records, (acls, scram, {name: level for name, level in features.items() if level})


def state_of(image: MetadataImage) -> State:
    assert {binding: acl_id for acl_id, binding in image.acls.items()} == image.acl_ids
    scram = {
        key: UserScramCredentialRecord(*key, each.salt, each.stored_key, each.server_key, each.iterations)
        for key, each in image.scram_credentials.items()
    }
    return dict(image.acls), scram, dict(image.features)


@given(logs(), st.data())
def test_the_image_of_a_log_is_the_fold_of_its_records(
    log: tuple[list[MetadataRecord], State], data: st.DataObject
) -> None:
    records, expected = log
    cut = data.draw(st.integers(0, len(records)))
    first = image_of(records[:cut])
    before = state_of(first)
    builder = ImageBuilder(first)
    builder.replay_all(decode_record(encode_record(record)) for record in records[cut:])
    assert state_of(builder.build(0, 0)) == expected == state_of(image_of(records))
    assert state_of(first) == before


@given(logs())
def test_an_image_is_the_image_of_its_records(log: tuple[list[MetadataRecord], State]) -> None:
    image = image_of(log[0])
    again = image_of(decode_record(encode_record(record)) for record in image.records())
    assert image.same_state(again)
    assert state_of(again) == log[1]


def exactly(binding: AclBinding) -> AclBindingFilter:
    pattern, entry = binding.pattern, binding.entry
    return AclBindingFilter(
        ResourcePatternFilter(pattern.resource_type, pattern.name, pattern.pattern_type),
        AccessControlEntryFilter(entry.principal, entry.host, entry.operation, entry.permission_type),
    )


@given(acl_lists, acl_lists)
def test_deleting_what_was_created_is_the_identity(old: list[AclBinding], asked: list[AclBinding]) -> None:
    base = image_of(create_acls(image_of([]), old, SystemEntropy()).records)
    builder = ImageBuilder(base)
    builder.replay_all(create_acls(base, asked, SystemEntropy()).records)
    created = builder.build(0, 0)
    assert set(created.acls.values()) == {*old, *asked}
    new = [exactly(binding) for binding in set(asked) - set(old)]
    builder.replay_all(delete_acls(created, new).records)
    assert builder.build(0, 0).same_state(base)


class Follower:
    """A publisher that knows only what it receives."""

    def __init__(self) -> None:
        self.state: tuple[dict[UUID, AclBinding], dict[tuple[str, int], object]] = ({}, {})
        self.offsets: list[int] = []

    def publish_snapshot(self, image: MetadataImage) -> None:
        self.state = (dict(image.acls), dict(image.scram_credentials))
        self.offsets = [image.offset]

    def publish_delta(self, delta: MetadataDelta) -> None:
        self.offsets.append(delta.last_offset)
        for change in delta.changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        acls, scram = self.state
        match change:
            case AclAdded(acl_id, binding):
                assert acl_id not in acls
                acls[acl_id] = binding
            case AclRemoved(acl_id, binding):
                assert acls.pop(acl_id) == binding
            case ScramCredentialSet(user, mechanism, credential):
                scram[user, mechanism] = credential
            case ScramCredentialRemoved(user, mechanism):
                del scram[user, mechanism]
            case _:
                raise AssertionError(change)


requests = st.one_of(
    st.builds(CreateAcls, acl_lists.map(tuple)),
    st.builds(DeleteAcls, acl_lists.map(lambda found: tuple(map(exactly, found)))),
    st.builds(
        AlterScram,
        st.lists(st.builds(ScramDeletion, users, mechanisms), max_size=2).map(tuple),
        st.lists(st.builds(ScramUpsertion, users, mechanisms, st.just(4096), blobs, blobs), max_size=2).map(
            tuple
        ),
    ),
)


@settings(max_examples=25, deadline=None)  # each example syncs the disk many times
@given(st.lists(st.lists(requests, max_size=4), max_size=4))
def test_publishers_see_every_change_in_the_order_of_the_log(groups: Sequence[list[StoreRequest]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "meta"
        format_directory(directory)
        store = MetadataStore.open(directory)
        try:
            follower = Follower()
            store.add_publisher(follower)
            for group in groups:
                store.append_many(group)
                image = store.image
                assert follower.state == (dict(image.acls), dict(image.scram_credentials))
                assert follower.offsets[-1] == store.last_offset
            assert follower.offsets == sorted(set(follower.offsets))
        finally:
            store.close()
        assert read_image(directory).same_state(store.image)
