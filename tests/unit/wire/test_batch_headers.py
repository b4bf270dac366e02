"""Headers of batches in a Produce payload: what is authorized is read, what is malformed is refused."""

import struct
from dataclasses import replace

import pytest

from kustos.wire.batch_headers import BatchHeader, batch_headers
from kustos.wire.record_batch import (
    CONTROL_BIT,
    HEADER_SIZE_BYTES,
    TRANSACTIONAL_BIT,
    CorruptBatchError,
    batch_of,
)

BATCH = batch_of(7, 1, 1000, [b"one", b"two"])
HUGE = 2**31 - 1


def legacy(magic: int, *, attributes: int = 0, key: bytes = b"k", value: bytes = b"value") -> bytes:
    """One message of magic 0 or 1 (KIP-32); nothing here looks at its checksum."""
    body = struct.pack(">Ibb", 0, magic, attributes) + (struct.pack(">q", 1000) if magic else b"")
    for field in (key, value):
        body += struct.pack(">i", len(field)) + field
    return struct.pack(">qi", 3, len(body)) + body


def headers(payload: bytes) -> list[BatchHeader]:
    return list(batch_headers(payload))


def with_length(payload: bytes, length: int) -> bytes:
    return payload[:8] + struct.pack(">i", length) + payload[12:]


@pytest.mark.parametrize("transactional", [False, True])
@pytest.mark.parametrize("control", [False, True])
@pytest.mark.parametrize("compression", range(5))
def test_the_flags_of_a_batch_are_read(transactional: bool, control: bool, compression: int) -> None:
    flags = TRANSACTIONAL_BIT * transactional | CONTROL_BIT * control | compression
    # the sign and the timestamp's bit mean nothing here
    for attributes in (flags, flags | 0x08, flags - 0x8000):
        (header,) = headers(replace(BATCH, attributes=attributes).encode())
        assert (header.is_transactional, header.is_control) == (transactional, control)
        assert header.compression == compression


def test_every_field_of_a_batch_is_read() -> None:
    payload = replace(BATCH, producer_id=42, producer_epoch=3, base_sequence=9).encode()
    (header,) = headers(payload)
    assert header == BatchHeader(2, 7, len(payload), 0, 2, 1, 42, 3, 9)
    assert header.has_producer_id
    assert not headers(BATCH.encode())[0].has_producer_id
    assert headers(replace(BATCH, producer_id=0).encode())[0].has_producer_id


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_message_has_no_flags_of_new_ones(magic: int) -> None:
    (header,) = headers(legacy(magic, attributes=TRANSACTIONAL_BIT | CONTROL_BIT | 2))
    assert (header.magic, header.base_offset, header.compression) == (magic, 3, 2)
    assert not any((header.is_transactional, header.is_control, header.has_producer_id))


def test_a_payload_is_walked_to_its_end() -> None:
    control = replace(BATCH, attributes=CONTROL_BIT).encode()
    parts = [BATCH.encode(), legacy(0), legacy(1, key=b"", value=b""), legacy(0, key=b"", value=b""), control]
    found = headers(b"".join(parts))
    assert [header.magic for header in found] == [2, 0, 1, 0, 2]
    assert [header.size_bytes for header in found] == [len(part) for part in parts]
    assert [header.is_control for header in found] == [False] * 4 + [True]
    assert headers(b"") == []


WHOLE = {"magic 0": legacy(0), "magic 1": legacy(1), "magic 2": BATCH.encode()}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_payload_cut_anywhere_is_refused(kind: str) -> None:
    whole = WHOLE[kind]
    for size in range(1, len(whole)):
        with pytest.raises(CorruptBatchError):
            headers(whole[:size])
        with pytest.raises(CorruptBatchError):
            headers(whole + whole[:size])


@pytest.mark.parametrize("kind", WHOLE)
def test_no_length_but_the_right_one_passes(kind: str) -> None:
    whole = WHOLE[kind]
    right = len(whole) - 12
    assert headers(with_length(whole, right)) == headers(whole)
    # a wrong one is too small for a header, leaves a rest that is not a batch, or is not there
    for length in (0, -1, -(2**31), 1, 13, right - 1, right + 1, HUGE):
        with pytest.raises(CorruptBatchError):
            headers(with_length(whole, length))


@pytest.mark.parametrize(
    ("kind", "least"), [("magic 0", 14), ("magic 1", 22), ("magic 2", HEADER_SIZE_BYTES - 12)]
)
def test_a_batch_smaller_than_its_header_is_refused(kind: str, least: int) -> None:
    whole = WHOLE[kind]
    walk = batch_headers(with_length(whole, least))
    assert next(walk).size_bytes == least + 12
    with pytest.raises(CorruptBatchError):
        headers(with_length(whole, least - 1))


@pytest.mark.parametrize("magic", [3, 4, 127, 128, 255])
def test_another_magic_is_refused_where_the_walk_meets_it(magic: int) -> None:
    other = bytearray(BATCH.encode())
    other[16] = magic
    walk = batch_headers(BATCH.encode() + bytes(other))
    assert next(walk).magic == 2
    with pytest.raises(CorruptBatchError, match=f"magic {magic},"):
        next(walk)


@pytest.mark.parametrize("position", [23, 57])
def test_a_negative_count_is_refused(position: int) -> None:
    payload = bytearray(BATCH.encode())
    payload[position] |= 0x80
    with pytest.raises(CorruptBatchError, match="negative"):
        headers(bytes(payload))
