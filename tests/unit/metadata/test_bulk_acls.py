"""ACLs in bulk: which batches are read so, up to the byte, and that large ones are among them."""

import struct
from uuid import UUID

import pytest
from crc32c import crc32c

from kustos.metadata.directory import bulk_acls
from kustos.metadata.directory.bulk_acls import BulkAcls
from kustos.metadata.image import binding_of
from kustos.metadata.records import AccessControlEntryRecord, encode_record
from kustos.wire.record_batch import CRC_COVERS_FROM, RawBatch, Record, RecordBatch, batch_of, read_raw_batch


def record(
    number: int = 1,
    name: str = "t",
    principal: str = "User:a",
    host: str = "*",
    codes: tuple[int, int, int, int] = (2, 3, 3, 3),
) -> AccessControlEntryRecord:
    """`codes`: of the resource type, the pattern type, the operation and the permission."""
    resource_type, pattern_type, operation, permission = codes
    return AccessControlEntryRecord(
        UUID(int=number), resource_type, name, pattern_type, principal, host, operation, permission
    )


def raw(*records: AccessControlEntryRecord) -> RawBatch:
    return read_raw_batch(batch_of(0, 1, 5, map(encode_record, records)).encode())


def forged(data: bytes) -> RawBatch:
    """A batch whose checksum was made to fit."""
    out = bytearray(data)
    struct.pack_into(">I", out, 17, crc32c(bytes(out[CRC_COVERS_FROM:])))
    return read_raw_batch(bytes(out))


@pytest.mark.parametrize("name_size", [1, 20, 21, 22, 60, 84, 85, 86, 87, 100, 126])
@pytest.mark.parametrize("principal_size", [6, 70, 126])
def test_records_of_every_usual_size_are_read_in_bulk(name_size: int, principal_size: int) -> None:
    # below and above 64 and 128 bytes, where the sizes of records and values begin to take two bytes
    made = record(7, "n" * name_size, "User:".ljust(principal_size, "p"))
    assert BulkAcls().read(raw(made, record(8))) == [
        (UUID(int=7), binding_of(made)),
        (UUID(int=8), binding_of(record(8))),
    ]


def test_names_of_127_bytes_and_more_are_left_to_the_general_reader() -> None:
    assert BulkAcls().read(raw(record(name="n" * 126))) is not None
    for made in (record(name="n" * 127), record(principal="User:".ljust(127, "p")), record(host="h" * 127)):
        assert BulkAcls().read(raw(made)) is None


def test_the_fullest_batch_is_read_in_bulk() -> None:
    records = [record(number, f"t{number}") for number in range(1024)]
    found = BulkAcls().read(raw(*records))
    assert found == [(each.id, binding_of(each)) for each in records]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("code", [0, 1, 99])
def test_codes_that_are_not_stored_are_left_to_the_general_reader(place: int, code: int) -> None:
    first, second, third, fourth = (code if place == at else 3 for at in range(4))
    assert BulkAcls().read(raw(record(codes=(first, second, third, fourth)))) is None


def test_equal_parts_are_one_object_until_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    bulk = BulkAcls()
    alike = [binding for _, binding in bulk.read(raw(*(record(number) for number in range(3)))) or ()]
    assert len(alike) == 3
    assert alike[0].pattern is alike[1].pattern is alike[2].pattern
    assert alike[0].entry is alike[1].entry is alike[2].entry
    monkeypatch.setattr(bulk_acls, "REMEMBERED_PARTS_MAX", 2)
    names = ["a", "b", "a", "c", "a"]
    made = [record(number, name, f"User:{name}") for number, name in enumerate(names)]
    found = [binding for _, binding in BulkAcls().read(raw(*made)) or ()]
    assert found == [binding_of(each) for each in made]
    # two are remembered; the third makes room by forgetting both
    assert found[0].pattern is found[2].pattern
    assert found[0].entry is found[2].entry
    assert found[0].pattern is not found[4].pattern
    assert found[0].entry is not found[4].entry


@pytest.mark.parametrize(
    "odd",
    [
        Record(0, encode_record(record()), key=b""),
        Record(0, encode_record(record()), timestamp_delta_ms=1),
        Record(0, encode_record(record()), headers=((b"", None),)),
        Record(0, encode_record(record()), attributes=1),
        Record(0, encode_record(record()) + b"\x00"),
        Record(0, encode_record(record())[:-1] + b"\x01\x09\x00"),
        Record(0, b""),
        Record(0, None),
        Record(1, encode_record(record())),
    ],
    ids=["key", "time", "header", "attributes", "longer", "tag", "empty", "null", "offset"],
)
def test_anything_odd_about_a_record_leaves_its_batch_to_the_general_reader(odd: Record) -> None:
    batch = RecordBatch(0, 1, (odd,), last_offset_delta=0)
    assert BulkAcls().read(read_raw_batch(batch.encode())) is None


def test_a_batch_is_read_to_its_last_byte_or_not_at_all() -> None:
    whole = batch_of(0, 1, 5, [encode_record(record())] * 2).encode()
    assert BulkAcls().read(forged(whole)) is not None
    longer = bytearray(whole + b"\x00")
    struct.pack_into(">i", longer, 8, len(longer) - 12)
    assert BulkAcls().read(forged(bytes(longer))) is None
    # one record more than is announced, and one less
    for count in (1, 3):
        counted = bytearray(whole)
        struct.pack_into(">i", counted, 57, count)
        assert BulkAcls().read(forged(bytes(counted))) is None
