"""Parses the headers of the batches in a payload of Produce or Fetch, without reading records.

The gateway needs to know whether a payload is transactional, whether it contains control batches, and its
producer id; it never needs records. Message sets of magic 0 and 1, which old clients and mirrors still send,
are parsed message by message. Upstream verifies checksums: a wrong header cannot gain a permission, because
this module reads every bit that is authorized.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kustos.wire.record_batch import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    NO_PRODUCER_ID,
    TRANSACTIONAL_BIT,
    CorruptBatchError,
)

_MAGIC_AT: Final = 16
_LENGTH_AT: Final = 8
_LENGTH: Final = struct.Struct(">i")
_LEGACY: Final = struct.Struct(">qiIbb")
_LEGACY_OVERHEAD_BYTES: Final = {0: 14, 1: 22}
"""The minimum size of a message: CRC, magic, attributes, (timestamp,) key length, value length."""


class BatchHeader(NamedTuple):
    """The header of one batch, or of one message of magic 0 or 1. Sizes in bytes.

    This is a named tuple because its creation takes a fifth of the time of a frozen dataclass.
    """

    magic: int
    base_offset: int
    size_bytes: int
    attributes: int
    record_count: int = 1
    last_offset_delta: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = -1

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction (never before magic 2)."""
        return self.magic >= 2 and self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Whether it claims to be a control batch, which no client may send."""
        return self.magic >= 2 and self.attributes & CONTROL_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent or transactional producer sent it."""
        return self.producer_id != NO_PRODUCER_ID

    @property
    def compression(self) -> int:
        """Kafka's codec number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION_MASK


def batch_headers(records: bytes) -> Iterator[BatchHeader]:
    """Yield the header of each batch; the payload must consist of complete batches.

    Raises `CorruptBatchError` at the first batch that is truncated, has an invalid length, or has a magic
    other than 0, 1 and 2. The caller handles a null payload.
    """
    position, total = 0, len(records)
    while position < total:
        header = _header(records, position)
        yield header
        position += header.size_bytes


def whole_batches(records: bytes | memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each complete batch of fetched records; the last one may be truncated.

    Raises `CorruptBatchError` as `batch_headers` does, but not for the truncated last batch.
    """
    position = 0
    while (end := _whole_end(records, position)) is not None:
        yield position, _header(records, position)
        position = end


def offset_after(records: bytes | memoryview, offset: int) -> int:
    """Return the offset after the last complete batch of fetched records, `offset` if there is none.

    Only the length of the batches before the last one is read. Raises `CorruptBatchError` as `whole_batches`
    does.
    """
    last, position = -1, 0
    while (end := _whole_end(records, position)) is not None:
        last, position = position, end
    if last < 0:
        return offset
    # the offset of a wrapper message is the offset of its last inner message (KIP-31)
    header = _header(records, last)
    # a batch that contains `offset` may begin before it, but none ends before it
    return max(offset, header.base_offset + header.last_offset_delta + 1)


def _whole_end(records: bytes | memoryview, position: int) -> int | None:
    """Return the end of the batch at a position, None if the bytes end before."""
    rest = len(records) - position
    if rest <= _MAGIC_AT:
        return None
    length: int = _LENGTH.unpack_from(records, position + _LENGTH_AT)[0]
    if length < _LEGACY_OVERHEAD_BYTES[0]:
        raise CorruptBatchError(f"a batch claims {length} bytes, less than any has")
    return None if LENGTH_END + length > rest else position + LENGTH_END + length


def is_one_plain_batch(data: bytes, start: int, end: int) -> bool:
    """Return whether a part of these bytes is exactly one batch of magic 2 that is in no transaction."""
    if end - start < HEADER_SIZE_BYTES:
        return False
    fields = HEADER.unpack_from(data, start)
    return (
        fields[3] == 2
        and LENGTH_END + fields[1] == end - start
        and not fields[5] & TRANSACTIONAL_BIT
        # last offset delta and count, with the same checks as in `batch_headers`
        and fields[6] >= 0
        and fields[12] >= 0
    )


def _header(records: bytes | memoryview, position: int) -> BatchHeader:
    if len(records) - position <= _MAGIC_AT:
        raise CorruptBatchError("the payload ends inside a batch header")
    magic = records[position + _MAGIC_AT]
    if magic == 2:
        return _current(records, position)
    if magic in _LEGACY_OVERHEAD_BYTES:
        return _legacy(records, position, magic)
    raise CorruptBatchError(f"the payload holds a batch of magic {magic}, only 0, 1 and 2 exist")


def _fields(records: bytes | memoryview, position: int) -> tuple[int, ...]:
    """Return the fields of a header of magic 2, checked against the records' size; raise
    `CorruptBatchError`."""
    if len(records) - position < HEADER_SIZE_BYTES:
        raise CorruptBatchError("the payload ends inside a batch header")
    fields = HEADER.unpack_from(records, position)
    length, last_offset_delta, count = fields[1], fields[6], fields[12]
    if length < HEADER_SIZE_BYTES - LENGTH_END or position + LENGTH_END + length > len(records):
        raise CorruptBatchError(f"a batch claims {length} bytes, which the payload does not hold")
    if count < 0 or last_offset_delta < 0:
        raise CorruptBatchError("a batch has a negative count")
    return fields


def _current(records: bytes | memoryview, position: int) -> BatchHeader:
    (base_offset, length, _, magic, _, attributes, last_offset_delta, _, _,
     producer_id, producer_epoch, base_sequence, count) = _fields(records, position)  # fmt: skip
    return BatchHeader(
        magic,
        base_offset,
        LENGTH_END + length,
        attributes,
        count,
        last_offset_delta,
        producer_id,
        producer_epoch,
        base_sequence,
    )


def _legacy(records: bytes | memoryview, position: int, magic: int) -> BatchHeader:
    if len(records) - position < _LEGACY.size:
        raise CorruptBatchError("the payload ends inside a message header")
    base_offset, length, _, _, attributes = _LEGACY.unpack_from(records, position)
    if length < _LEGACY_OVERHEAD_BYTES[magic] or position + LENGTH_END + length > len(records):
        raise CorruptBatchError(f"a message claims {length} bytes, which the payload does not hold")
    return BatchHeader(magic, base_offset, LENGTH_END + length, attributes)
