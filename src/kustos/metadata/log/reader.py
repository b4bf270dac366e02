"""Reading a metadata directory, ours or a real Kafka's: the newest snapshot, then the log after it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kustos.metadata.errors import LogDamagedError
from kustos.metadata.log import layout
from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.segment import UNKNOWN_EPOCH, SegmentReader, begins_epoch
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.runtime import Storage
from kustos.wire.record_batch import RecordBatch


@dataclass(frozen=True, slots=True)
class TornTail:
    """The unfinished write that a crash left behind in the last segment."""

    path: Path
    whole_size_bytes: int
    torn_size_bytes: int
    next_offset: int


class LogReader:
    """Reads once, in order: first `snapshot()` to its end, then `batches()` to its end.

    Afterwards `next_offset`, `epoch`, `epochs`, `segment` and `torn` tell where a writer goes on.
    Nothing is changed. Raises `LogDamagedError` for anything but a torn tail.
    """

    def __init__(self, directory: Path, storage: Storage) -> None:
        self._storage = storage
        self._partition = directory / layout.METADATA_PARTITION
        names = storage.names(self._partition)
        self.segments = tuple(
            sorted(base for name in names if (base := layout.segment_base_offset(name)) is not None)
        )
        self.snapshot_id = max(
            (id_ for name in names if (id_ := SnapshotId.of(name)) is not None), default=None
        )
        self.next_offset = 0 if self.snapshot_id is None else self.snapshot_id.end_offset
        self.epoch = 0 if self.snapshot_id is None else self.snapshot_id.epoch
        self.epochs: list[tuple[int, int]] = []
        self.torn: TornTail | None = None
        self.bootstrapped = False
        self._legacy_bootstrap = directory / layout.LEGACY_BOOTSTRAP
        if not self.segments and self.next_offset == 0 and layout.QUORUM_STATE in names:
            raise LogDamagedError(
                f"`{self._partition}` was written to, but its log is missing; "
                "restore the directory from a copy"
            )

    @property
    def segment(self) -> Path:
        """The segment that a writer appends to."""
        base_offset = self.segments[-1] if self.segments else self.next_offset
        return self._partition / layout.segment_name(base_offset)

    def snapshot(self) -> Iterator[RecordBatch]:
        """Yield the batches of the newest snapshot, if there is one."""
        if self.snapshot_id is not None:
            path = self._partition / self.snapshot_id.file_name
            yield from snapshot_batches(self._storage.read(path), str(path))

    def legacy_bootstrap(self) -> Iterator[RecordBatch]:
        """Yield the batches of an old bootstrap file; asked for only where the log says nothing yet.

        Afterwards `bootstrapped` is true, and a writer has to copy into the log what they add up to.
        """
        if self.snapshot_id is None and self._storage.exists(self._legacy_bootstrap):
            data = self._storage.read(self._legacy_bootstrap)
            yield from snapshot_batches(data, str(self._legacy_bootstrap))
            self.bootstrapped = True

    def batches(self) -> Iterator[RecordBatch]:
        """Yield the batches of the log that the snapshot does not contain."""
        start = self.next_offset
        if not self.segments:
            return
        if self.segments[0] > start:
            raise LogDamagedError(
                f"`{self._partition}` lacks the offsets from {start} to {self.segments[0] - 1}: no snapshot "
                "and no segment holds them; restore the directory from a copy"
            )
        offset = self.segments[0]
        epoch = 0 if offset == 0 else UNKNOWN_EPOCH
        for base_offset in self.segments:
            if base_offset != offset:
                raise LogDamagedError(
                    f"`{self._partition}` lacks the offsets from {offset} to {base_offset - 1}; "
                    "restore the directory from a copy"
                )
            path = self._partition / layout.segment_name(base_offset)
            data = self._storage.read(path)
            is_last = base_offset == self.segments[-1]
            reader = SegmentReader(data, str(path), offset, epoch, is_last=is_last)
            for batch in reader:
                self._note_epoch(batch)
                if batch.last_offset >= start:
                    yield batch
            offset, epoch = reader.next_offset, reader.epoch
            if reader.torn_size_bytes:
                self.torn = TornTail(path, reader.position, reader.torn_size_bytes, offset)
        if offset < start:
            raise LogDamagedError(
                f"`{self._partition}` has a snapshot up to offset {start - 1}, but its log ends at "
                f"{offset - 1}; restore the directory from a copy, or remove the segments, which the "
                "snapshot contains whole"
            )
        self.next_offset, self.epoch = offset, max(epoch, self.epoch)

    def _note_epoch(self, batch: RecordBatch) -> None:
        epoch = batch.partition_leader_epoch
        if not self.epochs or (epoch > self.epochs[-1][0] and begins_epoch(batch)):
            self.epochs.append((epoch, batch.base_offset))
