"""Recognizes the remains of a write that a crash interrupted before it was acknowledged.

The log appends batches in one write and syncs them. Until that fsync returns:

- a killed process leaves the first bytes of the write, up to any byte;
- a power cut leaves a file that ends anywhere in the write, with any subset of its sectors: an unwritten
  one reads as zeros. Sectors are written in any order.

So the bytes after the last whole batch are the beginning of a batch that could come next: its offset,
its epoch, magic 2, a length within the limit, its records one after the other, fewer than it counts. They
end where the file ends or where zeros from the edge of a sector reach its end. Anything else was once whole
and perhaps acknowledged; losing it could restore a revoked permission.

The bytes leave one case open: a hole of zeros with data after it may be a sector that was never written, or
one that was lost later amid acknowledged data. The recovery point, the offset below which everything is known
to be durable, decides: a hole beyond it counts as never written. Without a recovery point it is damage.

The search never looks inside a record, since users choose its bytes. It takes linear time.
"""

import struct
from typing import Final

from kustos.metadata.log.policy import MAX_BATCH_SIZE_BYTES, UNSYNCED_MAX_BYTES
from kustos.wire import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    MAGIC,
    CorruptBatchError,
    whole_records,
)

SECTOR_SIZE_BYTES: Final = 512
"""The smallest unit that a disk writes atomically."""
UNWRITTEN_MIN_BYTES: Final = 8
"""Fewer zeros at a sector's edge can also end a whole batch, if the recovery point is unknown."""

_BASE_OFFSET: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_LENGTH_MIN: Final = HEADER_SIZE_BYTES - LENGTH_END
_LENGTH_MAX: Final = MAX_BATCH_SIZE_BYTES - LENGTH_END
_MAGIC_AT: Final = 16


def is_unfinished_write(
    data: bytes, position: int, next_offset: int, epoch: int, recovery_point: int | None
) -> bool:
    """Return whether everything from `position` on is the remains of one crashed write, safe to cut.

    `next_offset` and `epoch` follow from the batches before `position`; the data begins at the edge of a
    sector.
    """
    if recovery_point is not None and next_offset < recovery_point:
        return False
    end = _unwritten_end(data, position) if recovery_point is None else _first_hole(data, position)
    if end == position:
        return True
    return end - position <= UNSYNCED_MAX_BYTES and _may_begin_batch(data, position, end, next_offset, epoch)


def _first_hole(data: bytes, position: int) -> int:
    """Return the start of the first sector, or part of one, of only zeros, or the end of the data."""
    start = position
    while start < len(data):
        end = min(start - start % SECTOR_SIZE_BYTES + SECTOR_SIZE_BYTES, len(data))
        if not any(data[start:end]):
            return start
        start = end
    return len(data)


def _unwritten_end(data: bytes, position: int) -> int:
    """Return the start of the zeros that fill the last sectors, or the end of the data."""
    written_end = position + len(data[position:].rstrip(b"\0"))
    if written_end == position:
        return position
    edge = -(-written_end // SECTOR_SIZE_BYTES) * SECTOR_SIZE_BYTES
    return edge if len(data) - edge >= UNWRITTEN_MIN_BYTES else len(data)


def _may_begin_batch(data: bytes, position: int, end: int, next_offset: int, epoch: int) -> bool:
    """Return whether these bytes are an incomplete beginning of the expected next batch."""
    there = data[position : min(end, position + HEADER_SIZE_BYTES)]
    if there[: _BASE_OFFSET.size] != _BASE_OFFSET.pack(next_offset)[: len(there)]:
        return False
    if len(there) >= LENGTH_END and not _LENGTH_MIN <= _LENGTH.unpack_from(there, 8)[0] <= _LENGTH_MAX:
        return False
    if len(there) > _MAGIC_AT and there[_MAGIC_AT] != MAGIC:
        return False
    return len(there) < HEADER_SIZE_BYTES or _lacks_records(data, position, end, epoch)


def _lacks_records(data: bytes, position: int, end: int, epoch: int) -> bool:
    """Return whether a batch with a whole header continues like a truncated one."""
    (_, length, its_epoch, _, _, attributes, last_offset_delta, _, _, _, _, _, count) = HEADER.unpack_from(
        data, position
    )
    if its_epoch < epoch or (its_epoch > epoch >= 0 and not attributes & CONTROL_BIT):
        return False
    if attributes & COMPRESSION_MASK or count < 1 or last_offset_delta != count - 1:
        return False
    batch_end = position + LENGTH_END + length
    if batch_end <= end:
        return False
    try:
        # a wrong length, which the checksum does not cover, claims more bytes than the records have
        return whole_records(data, position + HEADER_SIZE_BYTES, end, batch_end, count) < int(count)
    except CorruptBatchError:
        return False
