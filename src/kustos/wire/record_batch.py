"""Record batches of magic 2: the unit in which Kafka stores, checks and publishes records (KIP-98).

A batch is a 61-byte header and its records. The CRC-32C covers everything from the attributes on, but not the
base offset and the leader epoch, which a leader fills in late. Only uncompressed batches are decoded here:
the metadata log never compresses, and the gateway reads only the headers of payloads
(`kustos.wire.batch_headers`).
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from kustos.wire.primitives import MalformedMessageError

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE_BYTES: Final = HEADER.size
LENGTH_END: Final = 12
"""The start of the part that `batchLength` counts."""
CRC_COVERS_FROM: Final = 21
MAGIC: Final = 2

NO_PRODUCER_ID: Final = -1
COMPRESSION_MASK: Final = 0x07
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20


class CorruptBatchError(MalformedMessageError):
    """Bytes that are not a complete, valid record batch."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record; offset and timestamp are relative to its batch, as on disk."""

    offset_delta: int
    value: bytes | None
    key: bytes | None = None
    timestamp_delta_ms: int = 0
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    attributes: int = 0


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A whole batch. Length, count and checksum are derived."""

    base_offset: int
    partition_leader_epoch: int
    records: tuple[Record, ...]
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = -1

    @property
    def is_control(self) -> bool:
        """Whether its records are control records, not user data."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.base_offset + self.last_offset_delta

    def encode(self) -> bytes:
        """Return the batch as bytes; decoding them gives an equal batch."""
        body = bytearray()
        for record in self.records:
            _write_record(body, record)
        covered = (
            _COVERED.pack(
                self.attributes,
                self.last_offset_delta,
                self.base_timestamp_ms,
                self.max_timestamp_ms,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                len(self.records),
            )
            + body
        )
        length = CRC_COVERS_FROM - LENGTH_END + len(covered)
        return (
            _UNCOVERED.pack(self.base_offset, length, self.partition_leader_epoch, MAGIC, crc32c(covered))
            + covered
        )


_UNCOVERED: Final = struct.Struct(">qiibI")
_COVERED: Final = struct.Struct(">hiqqqhii")


def batch_of(
    base_offset: int,
    epoch: int,
    timestamp_ms: int,
    values: Iterable[bytes],
) -> RecordBatch:
    """Return a metadata batch: a data batch of these values with one timestamp and no keys."""
    records = tuple(Record(delta, value) for delta, value in enumerate(values))
    return RecordBatch(
        base_offset,
        epoch,
        records,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
    )


def encoded_batch_of(base_offset: int, epoch: int, timestamp_ms: int, values: Sequence[bytes]) -> bytes:
    """Return the bytes of `batch_of` with these arguments, without building each record."""
    body = bytearray()
    for delta, value in enumerate(values):
        head = b"\x00\x00" + zigzag(delta) + b"\x01" + zigzag(len(value))
        body += zigzag(len(head) + len(value) + 1) + head + value + b"\x00"
    covered = _COVERED.pack(
        0, len(values) - 1, timestamp_ms, timestamp_ms, NO_PRODUCER_ID, -1, -1, len(values)
    )
    checksum = crc32c(body, crc32c(covered))
    length = CRC_COVERS_FROM - LENGTH_END + len(covered) + len(body)
    return _UNCOVERED.pack(base_offset, length, epoch, MAGIC, checksum) + covered + body


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A whole batch with a verified checksum and undecoded records: `buffer[records_start:end]`."""

    buffer: bytes
    records_start: int
    end: int
    count: int
    base_offset: int
    partition_leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def is_control(self) -> bool:
        """Whether its records are control records, not user data."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def last_offset(self) -> int:
        """The offset of its last record."""
        return self.base_offset + self.last_offset_delta

    def decode(self) -> RecordBatch:
        """Return the batch with its records; raise `CorruptBatchError` if they do not fill it exactly."""
        records, cursor = [], self.records_start
        for _ in range(self.count):
            record, cursor = _read_record(self.buffer, cursor, self.end)
            records.append(record)
        if cursor != self.end:
            raise CorruptBatchError("the record batch is longer than its records")
        return RecordBatch(
            self.base_offset,
            self.partition_leader_epoch,
            tuple(records),
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
        )


def read_batch(buffer: bytes, position: int = 0) -> tuple[RecordBatch, int]:
    """Return (the batch that begins at `position`, the position after it), its checksum verified.

    Raises `CorruptBatchError` for bytes that end too soon, another magic, a wrong checksum, a
    compressed batch, or records that do not fill the batch exactly.
    """
    raw = read_raw_batch(buffer, position)
    return raw.decode(), raw.end


def read_raw_batch(buffer: bytes, position: int = 0) -> RawBatch:
    """Return the batch that begins at `position` without reading its records, its checksum verified.

    Raises `CorruptBatchError` as `read_batch` does, except for errors in the records.
    """
    end = batch_end(buffer, position)
    (base_offset, _, epoch, magic, crc, attributes, last_offset_delta, base_timestamp_ms, max_timestamp_ms,
     producer_id, producer_epoch, base_sequence, count) = HEADER.unpack_from(buffer, position)  # fmt: skip
    if magic != MAGIC:
        raise CorruptBatchError(f"the record batch has magic {magic}, only {MAGIC} is read here")
    if crc32c(memoryview(buffer)[position + CRC_COVERS_FROM : end]) != crc:
        raise CorruptBatchError("the record batch fails its checksum")
    if attributes & COMPRESSION_MASK:
        raise CorruptBatchError("the record batch is compressed, a metadata log never is")
    if count < 0 or last_offset_delta < 0:
        raise CorruptBatchError("the record batch has a negative count")
    return RawBatch(
        buffer,
        position + HEADER_SIZE_BYTES,
        end,
        count,
        base_offset,
        epoch,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
    )


def batch_end(buffer: bytes, position: int) -> int:
    """Return the end of the batch at `position`; raise `CorruptBatchError` if the bytes end before that."""
    if len(buffer) - position < HEADER_SIZE_BYTES:
        raise CorruptBatchError("the bytes end inside a record batch header")
    length: int = struct.unpack_from(">i", buffer, position + 8)[0]
    end = position + LENGTH_END + length
    if length < HEADER_SIZE_BYTES - LENGTH_END or end > len(buffer):
        raise CorruptBatchError(f"the record batch claims {length} bytes, which are not there")
    return end


def whole_records(buffer: bytes, start: int, end: int, batch_end_position: int, count: int) -> int:
    """Return the number of the batch's `count` records that are completely between `start` and `end`.

    The bytes after them, up to `end`, may begin another record. Raises `CorruptBatchError` if a batch that
    ends at `batch_end_position` cannot contain these bytes.
    """
    cursor = start
    for number in range(count):
        size_part = buffer[cursor : min(cursor + VARINT_MAX_BYTES, end)]
        if len(size_part) < VARINT_MAX_BYTES and all(byte & 0x80 for byte in size_part):
            return number
        size, body = _read_zigzag(buffer, cursor, end, _VARINT_BITS)
        if size < 1 or body + size > batch_end_position:
            raise CorruptBatchError(f"a record claims {size} bytes, for which its batch has no room")
        if body + size > end:
            return number
        record, cursor = _read_record(buffer, cursor, batch_end_position)
        if record.offset_delta != number:
            raise CorruptBatchError("the records of a batch are not numbered one by one")
    return count


def zigzag(value: int) -> bytes:
    """Return the zig-zag varint of a signed integer, as records use it."""
    number = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


VARINT_MAX_BYTES: Final = 5
_VARINT_BITS: Final = 28
_VARLONG_BITS: Final = 63
_LAST_BYTE_BITS: Final = {_VARINT_BITS: 4, _VARLONG_BITS: 1}
"""The bit at which the last byte begins, and how many of its bits count towards 32 or 64: Java drops the
others."""


def _read_zigzag(buffer: bytes, position: int, end: int, bits: int) -> tuple[int, int]:
    number = shift = 0
    while position < end:
        byte = buffer[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            if (byte == 0 and shift) or (shift == bits and byte >> _LAST_BYTE_BITS[bits]):
                raise CorruptBatchError("a varint is longer than its value needs or holds more than it can")
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > bits:
            raise CorruptBatchError("a varint in a record is too long")
    raise CorruptBatchError("a record ends inside a varint")


def _write_record(out: bytearray, record: Record) -> None:
    body = bytearray(struct.pack(">b", record.attributes))
    body += zigzag(record.timestamp_delta_ms)
    body += zigzag(record.offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    body += zigzag(len(record.headers))
    for key, value in record.headers:
        _write_bytes(body, key)
        _write_bytes(body, value)
    out += zigzag(len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out += b"\x01"  # the zig-zag form of -1
    else:
        out += zigzag(len(value))
        out += value


def _read_bytes(buffer: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = _read_zigzag(buffer, position, end, _VARINT_BITS)
    if size == -1:
        return None, position
    if size < 0 or position + size > end:
        raise CorruptBatchError(f"a field of a record claims {size} bytes, which are not there")
    return buffer[position : position + size], position + size


def _read_record(buffer: bytes, position: int, batch_end_position: int) -> tuple[Record, int]:
    size, position = _read_zigzag(buffer, position, batch_end_position, _VARINT_BITS)
    end = position + size
    if size < 1 or end > batch_end_position:
        raise CorruptBatchError(f"a record claims {size} bytes, which are not there")
    attributes: int = struct.unpack_from(">b", buffer, position)[0]
    timestamp_delta_ms, position = _read_zigzag(buffer, position + 1, end, _VARLONG_BITS)
    offset_delta, position = _read_zigzag(buffer, position, end, _VARINT_BITS)
    key, position = _read_bytes(buffer, position, end)
    value, position = _read_bytes(buffer, position, end)
    header_count, position = _read_zigzag(buffer, position, end, _VARINT_BITS)
    headers = []
    if header_count < 0:
        raise CorruptBatchError("a record has a negative number of headers")
    for _ in range(header_count):
        header_key, position = _read_bytes(buffer, position, end)
        if header_key is None:
            raise CorruptBatchError("a record has a header without a key")
        header_value, position = _read_bytes(buffer, position, end)
        headers.append((header_key, header_value))
    if position != end:
        raise CorruptBatchError("a record is longer than its fields")
    return Record(offset_delta, value, key, timestamp_delta_ms, tuple(headers), attributes), end
