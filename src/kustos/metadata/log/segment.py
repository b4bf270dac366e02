"""Reads a segment: complete batches in order, and a classification of the remaining bytes.

The last segment may end with the remains of a crashed write (`kustos.metadata.log.unfinished`). Any other
damage stops the start. The checksum covers neither the base offset nor the epoch: offsets must follow one
another, and an epoch may rise only at the leader-change batch that begins it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kustos.metadata.errors import LogDamagedError, RecordError, TornTailError
from kustos.metadata.log.unfinished import SECTOR_SIZE_BYTES, is_unfinished_write
from kustos.metadata.records import LeaderChange, controls_of
from kustos.wire import CorruptBatchError, RecordBatch, read_batch

UNKNOWN_EPOCH: Final = -1
"""The epoch before the first batch of a log with a beginning replaced by a snapshot."""


@dataclass(frozen=True, slots=True)
class TornTail:
    """The unfinished write that a crash left behind in the last segment."""

    path: Path
    whole_size_bytes: int
    torn_size_bytes: int
    next_offset: int

    def error(self) -> TornTailError:
        """Return the error for read-only use: unlike a start, it cannot rule out a truncated copy."""
        return TornTailError(
            f"`{self.path}` ends in {self.torn_size_bytes} bytes of an unfinished write after offset "
            f"{self.next_offset - 1}: a crash left them, or the copy is not whole, and then what follows is "
            "missing, denials too; let the node start, which cuts them, cut them by `kustos metadata "
            "repair`, or pass over them with `--ignore-torn-tail`; if a node is writing to it, try again"
        )


class SegmentReader:
    """Iterates over the batches of one segment; afterwards `position` is the end of the whole ones.

    It begins at `position`, a byte of the file; the data begins at the start of the sector with that byte.
    `recovery_point` is the offset below which everything is known to be acknowledged, None if not recorded.
    """

    __slots__ = (
        "_data",
        "_is_last",
        "_path",
        "_recovery_point",
        "_start",
        "epoch",
        "next_offset",
        "position",
    )

    def __init__(
        self,
        data: bytes,
        path: Path,
        next_offset: int,
        epoch: int,
        *,
        is_last: bool,
        recovery_point: int | None = None,
        position: int = 0,
    ) -> None:
        self._data = data
        self._path = path
        self._is_last = is_last
        self._recovery_point = recovery_point
        self.next_offset = next_offset
        self.epoch = epoch
        self.position = position
        self._start = position - position % SECTOR_SIZE_BYTES

    @property
    def torn(self) -> TornTail | None:
        """The bytes to truncate after the complete batches, known when all batches have been read."""
        size_bytes = self._start + len(self._data) - self.position
        return TornTail(self._path, self.position, size_bytes, self.next_offset) if size_bytes else None

    def __iter__(self) -> Iterator[RecordBatch]:
        """Yield each whole batch; raise `LogDamagedError` at damage other than a torn tail."""
        while self.position - self._start < len(self._data):
            try:
                batch, end = read_batch(self._data, self.position - self._start)
            except CorruptBatchError as error:
                if self._is_torn():
                    return
                raise self._damaged(str(error)) from error
            if batch.base_offset != self.next_offset and self._is_torn():
                # a sector that was never written may end amid the offset, which no checksum covers
                return
            self._check(batch)
            self.position = self._start + end
            self.next_offset = batch.last_offset + 1
            self.epoch = batch.partition_leader_epoch
            yield batch

    def _is_torn(self) -> bool:
        return self._is_last and is_unfinished_write(
            self._data, self.position - self._start, self.next_offset, self.epoch, self._recovery_point
        )

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
            f"`{self._path}` is damaged at offset {self.next_offset} (byte {self.position}): {what}; "
            "restore the directory from a copy, or, if everything from that offset on may be lost, cut it "
            "by `kustos metadata repair`"
        )


def begins_epoch(batch: RecordBatch) -> bool:
    """Return whether this is the control batch that begins an epoch."""
    try:
        return batch.is_control and any(isinstance(each, LeaderChange) for each in controls_of(batch))
    except RecordError:
        return False
