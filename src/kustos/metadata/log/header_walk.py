"""The walk over the batches of a segment that a snapshot replaces, by their headers alone.

They do not contribute to the state, so their records are neither read nor checked: damage in them is harmless
as long as the snapshot, which is checked in full, can be read, and `kustos metadata verify` reports it. The
walk checks what the log after the snapshot depends on: chained headers, magic 2, offsets without a gap, and
in full the first batch, every control batch, and every batch that changes the epoch. At the first
irregularity the walk ends, and normal reading reports what is wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log.policy import MAX_BATCH_SIZE_BYTES
from kustos.metadata.log.segment import SegmentReader
from kustos.runtime import Storage
from kustos.wire import CONTROL_BIT, HEADER, HEADER_SIZE_BYTES, LENGTH_END, MAGIC, RecordBatch

WINDOW_SIZE_BYTES: Final = 1024 * 1024
"""Bytes read at a time: thousands of headers if requests are small."""

_LENGTH_MIN: Final = HEADER_SIZE_BYTES - LENGTH_END
_LENGTH_MAX: Final = MAX_BATCH_SIZE_BYTES - LENGTH_END


@dataclass(slots=True)
class LogPosition:
    """The position of a reader in a segment: at this byte, before this offset, in this epoch."""

    position: int
    next_offset: int
    epoch: int
    last_timestamp_ms: int = 0


def skip_batches(
    storage: Storage,
    path: Path,
    place: LogPosition,
    end_offset: int,
    note: Callable[[RecordBatch], None],
) -> LogPosition:
    """Return the position after the last batch that lies entirely below `end_offset`.

    Batches that are read in full go to `note`.
    """
    position, next_offset, epoch = place.position, place.next_offset, place.epoch
    last_timestamp_ms = place.last_timestamp_ms
    is_first, file_size_bytes = True, storage.size_bytes(path)
    window, window_start = b"", position
    while next_offset < end_offset:
        at = position - window_start
        if at + HEADER_SIZE_BYTES > len(window):
            window, window_start, at = storage.read_part(path, position, WINDOW_SIZE_BYTES), position, 0
            if len(window) < HEADER_SIZE_BYTES:
                break
        (base_offset, length, its_epoch, magic, _, attributes, last_offset_delta, _, timestamp_ms,
         *_) = HEADER.unpack_from(window, at)  # fmt: skip
        follows = base_offset == next_offset and magic == MAGIC and _LENGTH_MIN <= length <= _LENGTH_MAX
        if not follows or not 0 <= last_offset_delta < end_offset - base_offset:
            break
        size_bytes = LENGTH_END + length
        if position + size_bytes > file_size_bytes:
            break
        if is_first or attributes & CONTROL_BIT or its_epoch != epoch:
            batch = _whole(storage.read_part(path, position, size_bytes), path, next_offset, epoch)
            if batch is None:
                break
            note(batch)
            is_first = False
        position, next_offset, epoch = position + size_bytes, base_offset + last_offset_delta + 1, its_epoch
        last_timestamp_ms = max(last_timestamp_ms, timestamp_ms)
    return LogPosition(position, next_offset, epoch, last_timestamp_ms)


def _whole(data: bytes, path: Path, next_offset: int, epoch: int) -> RecordBatch | None:
    """Return the batch that fills these bytes, None if it is not the expected next one."""
    try:
        return next(iter(SegmentReader(data, path, next_offset, epoch, is_last=False)), None)
    except LogDamagedError:
        return None
