"""Reading a segment: whole batches in order, and a clear verdict on what does not belong.

A crash leaves a torn tail: a last batch that is too short, or that has zeros where a sector of the disk
was never written. It was never acknowledged, so it is cut. Anything else that is wrong was once whole
and perhaps acknowledged; losing it could bring back a permission that was taken away, so it stops the
start. (So does a power cut that left a hole before a whole batch of the same write: nothing tells it
from damage.) Neither the base offset nor the epoch is under the checksum: offsets must follow one
another, and an epoch may rise only at the leader-change batch that begins it.
"""

from collections.abc import Iterator
from typing import Final

from crc32c import crc32c

from kustos.metadata.errors import LogDamagedError, RecordError
from kustos.metadata.records import LeaderChange, controls_of
from kustos.wire.record_batch import (
    CRC_COVERS_FROM,
    HEADER,
    HEADER_SIZE_BYTES,
    LENGTH_END,
    MAGIC,
    CorruptBatchError,
    RecordBatch,
    read_batch,
)

SECTOR_SIZE_BYTES: Final = 512
"""The smallest piece that a disk writes whole."""
TORN_ZEROS_MIN_BYTES: Final = 8
"""Fewer zeros at a sector's edge also occur in whole batches."""

UNKNOWN_EPOCH: Final = -1
"""Before the first batch of a log whose beginning a snapshot replaced."""


class SegmentReader:
    """Iterates over the batches of one segment; afterwards `position` is where the whole ones end."""

    __slots__ = ("_data", "_is_last", "_name", "epoch", "next_offset", "position")

    def __init__(self, data: bytes, name: str, next_offset: int, epoch: int, *, is_last: bool) -> None:
        self._data = data
        self._name = name
        self._is_last = is_last
        self.next_offset = next_offset
        self.epoch = epoch
        self.position = 0

    @property
    def torn_size_bytes(self) -> int:
        """How many bytes after the whole batches are to be cut."""
        return len(self._data) - self.position

    def __iter__(self) -> Iterator[RecordBatch]:
        """Yield each whole batch; raise `LogDamagedError` at damage that is no torn tail."""
        while self.position < len(self._data):
            try:
                batch, end = read_batch(self._data, self.position)
            except CorruptBatchError as error:
                if self._is_last and is_torn_tail(self._data, self.position, self.next_offset):
                    return
                raise self._damaged(str(error)) from error
            self._check(batch)
            self.position = end
            self.next_offset = batch.last_offset + 1
            self.epoch = batch.partition_leader_epoch
            yield batch

    def _check(self, batch: RecordBatch) -> None:
        if batch.base_offset != self.next_offset:
            raise self._damaged(f"the batch there claims offset {batch.base_offset}")
        if [record.offset_delta for record in batch.records] != list(range(batch.last_offset_delta + 1)):
            raise self._damaged("the records there are not numbered one by one")
        if batch.partition_leader_epoch < self.epoch:
            raise self._damaged(f"the epoch falls there from {self.epoch} to {batch.partition_leader_epoch}")
        begins = begins_epoch(batch)
        if begins and batch.partition_leader_epoch == self.epoch:
            raise self._damaged(f"the epoch {self.epoch} begins there a second time")
        if batch.partition_leader_epoch > self.epoch and not (begins or self.epoch == UNKNOWN_EPOCH):
            raise self._damaged(f"the epoch there is {batch.partition_leader_epoch}, which never began")

    def _damaged(self, what: str) -> LogDamagedError:
        return LogDamagedError(
            f"`{self._name}` is damaged at offset {self.next_offset} (byte {self.position}): {what}; "
            "restore the directory from a copy, or, if everything from that offset on may be lost, "
            f"cut the file to {self.position} bytes and remove later segments"
        )


def begins_epoch(batch: RecordBatch) -> bool:
    """Return whether this is the control batch with which a leader begins its epoch."""
    try:
        return batch.is_control and any(isinstance(each, LeaderChange) for each in controls_of(batch))
    except RecordError:
        return False


def is_torn_tail(data: bytes, position: int, next_offset: int) -> bool:
    """Return whether everything from `position` on is one unfinished write, safe to cut."""
    if len(data) - position < HEADER_SIZE_BYTES:
        return True
    if _whole_batch_follows(data, position, next_offset):
        return False
    length, crc = HEADER.unpack_from(data, position)[1], HEADER.unpack_from(data, position)[4]
    if position + LENGTH_END + length > len(data):
        # too short for what it claims, unless only the claim is wrong
        return bool(crc32c(memoryview(data)[position + CRC_COVERS_FROM :]) != crc)
    return _has_unwritten_sector(data, position)


def _has_unwritten_sector(data: bytes, position: int) -> bool:
    start = position
    while start < len(data):
        end = min(start - start % SECTOR_SIZE_BYTES + SECTOR_SIZE_BYTES, len(data))
        if end - start >= TORN_ZEROS_MIN_BYTES and not any(data[start:end]):
            return True
        start = end
    return False


def _whole_batch_follows(data: bytes, position: int, next_offset: int) -> bool:
    # magic 2 sits at byte 16 of a batch; the checksum makes a chance hit impossible in practice
    at = data.find(MAGIC, position + 1 + 16)
    while at != -1:
        start = at - 16
        if len(data) - start >= HEADER_SIZE_BYTES:
            base_offset, length, _, _, crc, *_ = HEADER.unpack_from(data, start)
            end = start + LENGTH_END + length
            fits = start + HEADER_SIZE_BYTES <= end <= len(data)
            covered = memoryview(data)[start + CRC_COVERS_FROM : end]
            if fits and base_offset >= next_offset and crc32c(covered) == crc:
                return True
        at = data.find(MAGIC, at + 1)
    return False
