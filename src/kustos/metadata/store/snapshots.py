"""Snapshots at run time (KIP-630): scheduling, writing, and deletion of what they replace.

The keeper belongs to the thread that calls the store. Only `SnapshotJob.write` runs elsewhere: the image
is frozen, and the file appears whole or not at all. A failed snapshot costs only disk space: the log
continues, and the snapshot is retried later.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from kustos.metadata import SNAPSHOT_SUFFIX
from kustos.metadata.errors import LogDamagedError
from kustos.metadata.image import MetadataImage
from kustos.metadata.log import layout
from kustos.metadata.log.layout import SnapshotId
from kustos.metadata.log.policy import KeptSnapshot, LogPolicy, superfluous
from kustos.metadata.log.reader import LogReader
from kustos.metadata.log.snapshot import (
    last_contained_timestamp_ms,
    raw_snapshot_batches,
    snapshot_pieces,
)
from kustos.metadata.log.writer import LogWriter
from kustos.metadata.records import ControlRecord
from kustos.runtime import PART_SUFFIX, PRIVATE_FILE_MODE, Clock, Storage, words_of

RETRY_MS: Final = 60_000
"""Wait after a failed snapshot, so that a full disk is not filled again each second."""

HEADER_BATCH_MAX_BYTES: Final = 256 * 1024
"""Largest first batch of a snapshot: its header, and with KIP-853 the voters and their addresses."""

_log = structlog.get_logger("kustos.metadata")


class SnapshotCancelledError(Exception):
    """The snapshot was cancelled."""


class SnapshotJob:
    """One snapshot to write, once, on any thread."""

    def __init__(
        self,
        partition: Path,
        storage: Storage,
        image: MetadataImage,
        *,
        timestamp_ms: int,
        last_contained_timestamp_ms: int,
        controls: tuple[ControlRecord, ...],
    ) -> None:
        self.id: Final = SnapshotId(image.offset + 1, image.epoch)
        self.path: Final = partition / self.id.file_name
        self.last_contained_timestamp_ms: Final = last_contained_timestamp_ms
        self.size_bytes = 0
        self._storage = storage
        self._image = image
        self._timestamp_ms = timestamp_ms
        self._controls = controls
        self._cancelled = False

    def cancel(self) -> None:
        """Make `write` end soon, without a file; from any thread."""
        self._cancelled = True

    def write(self) -> None:
        """Write the file, durably, and check it.

        Raises `OSError`, `SnapshotCancelledError`, or `LogDamagedError` if it does not read back.
        """
        self._storage.write_pieces(self.path, self._pieces(), PRIVATE_FILE_MODE)
        # older files are deleted because of this one: it must be readable
        for _ in raw_snapshot_batches(self._storage.read(self.path), str(self.path)):
            self._require_wanted()

    def _pieces(self) -> Iterator[bytes]:
        for piece in snapshot_pieces(
            self._image.records(),
            epoch=self.id.epoch,
            timestamp_ms=self._timestamp_ms,
            last_contained_timestamp_ms=self.last_contained_timestamp_ms,
            controls=self._controls,
        ):
            self._require_wanted()
            self.size_bytes += len(piece)
            yield piece

    def _require_wanted(self) -> None:
        if self._cancelled:
            raise SnapshotCancelledError


class SnapshotKeeper:
    """Tracks the snapshots of a directory, schedules the next one, and deletes what it replaces."""

    def __init__(
        self, directory: Path, storage: Storage, clock: Clock, policy: LogPolicy, reader: LogReader
    ) -> None:
        self._partition = directory / layout.METADATA_PARTITION
        self._storage = storage
        self._clock = clock
        self._policy = policy
        self._controls = reader.quorum_controls
        self._opaque_records = reader.opaque_records
        self._is_intact = not reader.skipped_snapshots
        self._kept: list[KeptSnapshot] = []
        self._survey(reader.snapshots)
        self._unsnapshotted_bytes = reader.unsnapshotted_bytes
        self._last_ms = clock.monotonic_ms()
        self._retry_at_ms: int | None = None
        self._running: SnapshotJob | None = None
        self._bytes_of_running = 0
        if self._opaque_records:
            _log.warning(
                "no snapshots are taken: the log holds records of kinds that kustos keeps but does not read, "
                "and a snapshot would lose them",
                records=self._opaque_records,
            )

    def _survey(self, ids: tuple[SnapshotId, ...]) -> None:
        for name in self._storage.names(self._partition):
            if name.endswith(SNAPSHOT_SUFFIX + PART_SUFFIX):
                # the remains of a snapshot interrupted by a crash
                self._storage.remove(self._partition / name)
        for id_ in ids:
            path = self._partition / id_.file_name
            try:
                timestamp_ms = last_contained_timestamp_ms(
                    self._storage.read_part(path, 0, HEADER_BATCH_MAX_BYTES), str(path)
                )
            except LogDamagedError as error:
                self._is_intact = False
                _log.error("an old snapshot is damaged", reason=str(error))
            else:
                self._kept.append(KeptSnapshot(id_, self._storage.size_bytes(path), timestamp_ms))

    def appended(self, size_bytes: int) -> None:
        """Note that the log grew by this many bytes."""
        self._unsnapshotted_bytes += size_bytes

    @property
    def is_due(self) -> bool:
        """Whether a snapshot should be taken now."""
        if self._running is not None or self._opaque_records or not self._unsnapshotted_bytes:
            return False
        now_ms = self._clock.monotonic_ms()
        if self._retry_at_ms is not None and now_ms < self._retry_at_ms:
            return False
        interval_ms = self._policy.snapshot_interval_ms
        return self._unsnapshotted_bytes >= self._policy.snapshot_record_bytes or (
            0 < interval_ms <= now_ms - self._last_ms
        )

    def begin(self, image: MetadataImage, log: LogWriter) -> SnapshotJob | None:
        """Return the snapshot to write if one is due, else None; `end` must follow it."""
        if not self.is_due:
            return None
        self._running = SnapshotJob(
            self._partition,
            self._storage,
            image,
            timestamp_ms=self._clock.wall_ms(),
            last_contained_timestamp_ms=log.last_timestamp_ms,
            controls=self._controls,
        )
        self._bytes_of_running = self._unsnapshotted_bytes
        return self._running

    def end(self, job: SnapshotJob, failure: BaseException | None = None) -> None:
        """Note the outcome of a snapshot."""
        if job is not self._running:
            raise ValueError("this snapshot is not the one that is being written")
        self._running = None
        if failure is not None:
            self._retry_at_ms = self._clock.monotonic_ms() + RETRY_MS
            if not isinstance(failure, SnapshotCancelledError):
                _log.error(
                    "a snapshot of the metadata could not be written; the log goes on without it",
                    path=str(job.path),
                    reason=words_of(failure) or type(failure).__name__,
                )
            return
        # it was read back: it replaces all older ones, damaged or not
        self._retry_at_ms, self._is_intact = None, True
        self._last_ms = self._clock.monotonic_ms()
        self._unsnapshotted_bytes -= self._bytes_of_running
        self._kept = [each for each in self._kept if each.id != job.id]
        self._kept.append(KeptSnapshot(job.id, job.size_bytes, job.last_contained_timestamp_ms))
        _log.info("wrote a snapshot of the metadata", path=str(job.path), size_bytes=job.size_bytes)

    def clean(self) -> None:
        """Delete files according to the policy; raise `OSError` if deletion fails.

        While a snapshot is damaged nothing is deleted: the older ones and the log replace it.
        """
        if not self._is_intact:
            return
        sizes = {
            base: self._storage.size_bytes(self._partition / name)
            for name in self._storage.names(self._partition)
            if (base := layout.segment_base_offset(name)) is not None
        }
        gone = superfluous(self._kept, sizes, self._policy, self._clock.wall_ms())
        for id_ in gone.snapshots:
            self._remove(id_.file_name)
            self._kept = [each for each in self._kept if each.id != id_]
        for base_offset in gone.segments:
            self._remove(layout.segment_name(base_offset))

    def _remove(self, name: str) -> None:
        # oldest first and each durably, so that a crash leaves no hole
        self._storage.remove(self._partition / name)
        _log.info("deleted an old file of the metadata log", path=str(self._partition / name))
