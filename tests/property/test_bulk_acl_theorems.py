"""Theorems about reading ACLs in bulk: it equals reading them one by one, or declines."""

import struct
from uuid import UUID

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from kustos.acl import AclBinding
from kustos.metadata.directory.bulk_acls import BulkAcls
from kustos.metadata.directory.loader import records_of
from kustos.metadata.errors import RecordError, ReplayError
from kustos.metadata.image import ImageBuilder, binding_of
from kustos.metadata.records import AccessControlEntryRecord, MetadataRecord, NoOpRecord, encode_record
from kustos.wire.record_batch import (
    CRC_COVERS_FROM,
    CorruptBatchError,
    RawBatch,
    batch_of,
    read_raw_batch,
    zigzag,
)

texts = st.text(max_size=8) | st.sampled_from(["x" * 126, "x" * 127, "x" * 300, "ü" * 63, "ü" * 64])
codes = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 15, 16, -1])
usual = st.sampled_from([2, 3])
records = st.builds(
    AccessControlEntryRecord,
    st.uuids(),
    usual | codes,
    texts,
    st.sampled_from([3, 4]) | codes,
    texts,
    texts,
    usual | codes,
    usual | codes,
)
batches = st.lists(records, min_size=1, max_size=6)


def one_by_one(batch: RawBatch) -> list[tuple[UUID, AclBinding]] | None:
    """Return the result of the general reader; None if it refuses the batch or finds other records."""
    try:
        found = records_of(batch.decode())
        return [(each.id, binding_of(each)) for each in found if isinstance(each, AccessControlEntryRecord)]
    except (CorruptBatchError, RecordError, ReplayError):
        return None


def raw(values: list[MetadataRecord], epoch: int = 1) -> RawBatch:
    return read_raw_batch(batch_of(0, epoch, 5, map(encode_record, values)).encode())


@given(st.lists(batches, min_size=1, max_size=3))
def test_acls_read_in_bulk_are_those_read_one_by_one(groups: list[list[AccessControlEntryRecord]]) -> None:
    bulk = BulkAcls()
    for group in groups:
        batch = raw([*group])
        found, expected = bulk.read(batch), one_by_one(batch)
        assert found is None or found == expected
        if found is not None:
            assert [acl_id.bytes for acl_id, _ in found] == [each.id.bytes for each in group]
            assert [hash(each) for each in found] == [hash(each) for each in expected or ()]
        is_plain = all(
            len(text.encode()) < 127
            for each in group
            for text in (each.resource_name, each.principal, each.host)
        )
        may_be_stored = all(
            each.resource_type in range(2, 8)
            and each.pattern_type in (3, 4)
            and each.operation in range(2, 16)
            and each.permission_type in (2, 3)
            for each in group
        )
        assert (found is not None) or not (is_plain and may_be_stored), "the common case is read in bulk"


@given(batches, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
@example([AccessControlEntryRecord(UUID(int=1), 2, "a", 3, "User:a", "*", 3, 3)], [(0, 0x80)])
def test_forged_bytes_are_read_in_bulk_as_one_by_one_or_not_at_all(
    group: list[AccessControlEntryRecord], forged: list[tuple[int, int]]
) -> None:
    data = bytearray(batch_of(0, 1, 5, map(encode_record, group)).encode())
    for at, value in forged:
        data[61 + at % (len(data) - 61)] = value
    # whoever forges a batch also forges its checksum
    struct.pack_into(">I", data, 17, crc32c(bytes(data[CRC_COVERS_FROM:])))
    batch = read_raw_batch(bytes(data))
    found = BulkAcls().read(batch)
    assert found is None or found == one_by_one(batch)


def test_what_else_is_in_a_batch_leaves_it_to_the_general_reader() -> None:
    acl = AccessControlEntryRecord(UUID(int=1), 2, "a", 3, "User:a", "*", 3, 3)
    assert BulkAcls().read(raw([acl])) is not None
    assert BulkAcls().read(raw([acl, NoOpRecord()])) is None
    assert BulkAcls().read(raw([NoOpRecord()])) is None


@given(batches)
def test_adding_acls_at_once_is_replaying_their_records(group: list[AccessControlEntryRecord]) -> None:
    singly, at_once = ImageBuilder(), ImageBuilder()
    acls = one_by_one(raw([*group]))
    if acls is None:
        return
    try:
        singly.replay_all(group)
    except ReplayError:
        try:
            at_once.add_acls(acls)
        except ReplayError:
            return
        raise AssertionError("an ACL was made twice") from None
    at_once.add_acls(acls)
    assert at_once.build(0, 0) == singly.build(0, 0)


def test_the_common_case_is_read_in_bulk_whatever_its_length() -> None:
    for size in range(1, 127):
        acls = [
            AccessControlEntryRecord(
                UUID(int=number), 2, "n" * size, 4, "User:" + "u" * (number % 120), "*", 3, 3
            )
            for number in range(200)
        ]
        batch = raw([*acls])
        assert BulkAcls().read(batch) == one_by_one(batch)


ACL = AccessControlEntryRecord(UUID(int=1), 2, "a", 3, "User:a", "*", 3, 3)
VALUE = encode_record(ACL)


def sealed(body: bytes, count: int) -> RawBatch:
    """Return a batch with these bytes of records and a valid checksum."""
    data = bytearray(batch_of(0, 1, 5, [VALUE] * count).encode()[:61]) + body
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[CRC_COVERS_FROM:])))
    return read_raw_batch(bytes(data))


def framed(inner: bytes) -> bytes:
    return zigzag(len(inner)) + inner


PLAIN = b"\x00\x00\x00\x01" + zigzag(len(VALUE)) + VALUE + b"\x00"
ODD = {
    "something after the headers": framed(PLAIN + b"\x00"),
    "a header": framed(PLAIN[:-1] + b"\x02\x02k\x02v"),
    "attributes": framed(b"\x01" + PLAIN[1:]),
    "an age": framed(b"\x00\x02" + PLAIN[2:]),
    "another place in the batch": framed(b"\x00\x00\x02" + PLAIN[3:]),
    "a key": framed(b"\x00\x00\x00\x02k" + PLAIN[4:]),
    "no value": framed(b"\x00\x00\x00\x01\x01\x00"),
    "a value that is too short": framed(PLAIN[:4] + zigzag(len(VALUE) - 1) + VALUE[:-1] + b"\x00"),
    "a value with something after it": framed(PLAIN[:4] + zigzag(len(VALUE) + 1) + VALUE + b"\x00\x00"),
    "a value that ends before the record": framed(PLAIN[:4] + zigzag(len(VALUE) - 1) + VALUE + b"\x00"),
    "a tagged field": framed(PLAIN[:4] + zigzag(len(VALUE) + 2) + VALUE[:-1] + b"\x01\x00\x00" + b"\x00"),
    "a size of three bytes": b"\xd0\x80\x00" + PLAIN,
    "a negative size": b"\x63" + PLAIN,
    "a size beyond the batch": b"\x7e" + PLAIN,
    "something after the record": framed(PLAIN) + b"\x00",
    "an empty name": framed(PLAIN.replace(b"\x02a\x03", b"\x01\x03")),
    "null for a name": framed(PLAIN.replace(b"\x02a\x03", b"\x00\x03")),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_record_is_left_to_the_general_reader(what: str) -> None:
    assert BulkAcls().read(sealed(framed(PLAIN), 1)) == [(ACL.id, binding_of(ACL))]
    odd = sealed(ODD[what], 1)
    found = BulkAcls().read(odd)
    assert found is None or found == one_by_one(odd)
    twice = sealed(framed(PLAIN) + ODD[what], 2)
    found = BulkAcls().read(twice)
    assert found is None or found == one_by_one(twice)
