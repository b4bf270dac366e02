"""The local copy of the quorum's log, for quick restarts: the fetched snapshot and batches, unchanged.

It is in `<metadata.log.dir>/__cluster_metadata-0`: at most one snapshot and one segment, which begins where
the snapshot ends. Nothing in it is trusted until a leader confirms what is committed, so nothing is fsynced,
and a damaged copy is discarded: the quorum has everything. A disk failure costs the copy, never the node.
"""

from collections import deque
from pathlib import Path
from typing import Final

import structlog

from kustos.metadata.errors import DirectoryError, MetadataError
from kustos.metadata.image import MetadataImage
from kustos.metadata.log import METADATA_PARTITION, SnapshotId, encode_snapshot, layout
from kustos.metadata.log.snapshot import snapshot_batches
from kustos.metadata.quorum.values import FetchedBatch, SnapshotFetched
from kustos.runtime import PRIVATE_FILE_MODE, AppendFile, Storage, words_of
from kustos.wire import CorruptBatchError, batch_end, read_batch

LOG: Final = structlog.get_logger("kustos.metadata")

LOG_MAX_BYTES: Final = 4 * 1024 * 1024
"""A longer log is replaced by a snapshot of its state, unless the last snapshot is even larger: the whole log
is read at startup, and an idle quorum writes about 12 MB a day."""


class LocalCopy:
    """The copy on disk. Build it with `open`; then `snapshot` and `kept` are its previous contents."""

    def __init__(self, partition: Path, storage: Storage) -> None:
        self._partition: Final = partition
        self._storage: Final = storage
        self._file: AppendFile | None = None
        self._size_bytes = self._snapshot_bytes = 0
        # batches that may still be cut: (last offset, start in the file)
        self._uncommitted: deque[tuple[int, int]] = deque()
        self.snapshot: SnapshotFetched | None = None
        self.kept: tuple[FetchedBatch, ...] = ()

    @classmethod
    def open(cls, directory: Path, storage: Storage) -> "LocalCopy":
        """Return the copy in this directory, an empty one if it is damaged.

        Raise `DirectoryError` if the directory holds a log that is not a copy.
        """
        partition = directory / METADATA_PARTITION
        if storage.exists(partition / layout.QUORUM_STATE):
            raise DirectoryError(
                f"`{partition}` holds a log that this node wrote itself, which `kustos.metadata.store=kraft` "
                "would overwrite; name another directory in `metadata.log.dir`, formatted with the id of the "
                "cluster"
            )
        copy = cls(partition, storage)
        try:
            copy._read()
        except (MetadataError, CorruptBatchError, OSError) as error:
            LOG.warning(
                "the local copy of the metadata is discarded and fetched again", reason=words_of(error)
            )
            copy.snapshot, copy.kept = None, ()
            copy.reset()
        else:
            copy._begin(SnapshotId(0, 0) if copy.snapshot is None else copy.snapshot.snapshot_id)
        return copy

    @property
    def is_writable(self) -> bool:
        """Whether fetched data is stored."""
        return self._file is not None

    @property
    def wants_snapshot(self) -> bool:
        """Whether `replace_by` is due: the log is long, and fully committed."""
        if self._file is None or self._uncommitted:
            return False
        return self._size_bytes > max(LOG_MAX_BYTES, self._snapshot_bytes)

    def _read(self) -> None:
        self._storage.make_directory(self._partition)
        names = self._storage.names(self._partition)
        newest = max((each for name in names if (each := SnapshotId.of(name)) is not None), default=None)
        base = newest or SnapshotId(0, 0)
        if newest is not None and newest.end_offset > 0:
            data = self._storage.read(self._partition / newest.file_name)
            for _ in snapshot_batches(data, newest.file_name):
                continue
            self.snapshot, self._snapshot_bytes = SnapshotFetched(newest, data), len(data)
        path = self._partition / layout.segment_name(base.end_offset)
        if self._storage.exists(path):
            self._read_segment(path, base)

    def _read_segment(self, path: Path, base: SnapshotId) -> None:
        data = self._storage.read(path)
        kept: list[FetchedBatch] = []
        position, expected, epoch = 0, base.end_offset, base.epoch
        while position < len(data):
            try:
                batch_end(data, position)
            except CorruptBatchError:
                break  # the process ended during a write; the missing rest will be fetched
            batch, end = read_batch(data, position)
            follows = batch.base_offset == expected or (not kept and batch.base_offset < expected)
            if not follows or batch.last_offset < expected or batch.partition_leader_epoch < epoch:
                raise CorruptBatchError(f"`{path.name}` lacks a batch at offset {expected}")
            kept.append(FetchedBatch(batch, data[position:end]))
            self._uncommitted.append((batch.last_offset, position))
            position, expected, epoch = end, batch.last_offset + 1, batch.partition_leader_epoch
        self.kept, self._size_bytes = tuple(kept), position

    def _begin(self, base: SnapshotId) -> None:
        """Continue the segment after this snapshot, cut to its whole batches; delete everything else."""
        try:
            own = {layout.segment_name(base.end_offset)}
            if base.end_offset:
                own.add(base.file_name)
            for name in self._storage.names(self._partition):
                is_ours = SnapshotId.of(name) is not None or layout.segment_base_offset(name) is not None
                if is_ours and name not in own:
                    self._storage.remove(self._partition / name)
            self._file = self._storage.open_append(self._partition / layout.segment_name(base.end_offset))
            self._file.truncate(self._size_bytes)
        except OSError as error:
            self._give_up(error)

    def reset(self) -> None:
        """Delete everything, as if nothing had been fetched yet."""
        self._drop()
        try:
            for name in self._storage.names(self._partition):
                if SnapshotId.of(name) is not None or layout.segment_base_offset(name) is not None:
                    self._storage.remove(self._partition / name)
        except OSError as error:
            self._give_up(error)
            return
        self._begin(SnapshotId(0, 0))

    def append(self, batches: tuple[FetchedBatch, ...]) -> None:
        """Append the following batches."""
        if self._file is None:
            return
        try:
            self._file.append(b"".join(each.data for each in batches))
        except OSError as error:
            self._give_up(error)
            return
        for each in batches:
            self._uncommitted.append((each.batch.last_offset, self._size_bytes))
            self._size_bytes += len(each.data)

    def truncate(self, end_offset: int) -> None:
        """Cut the batches that extend beyond this offset."""
        position = self._size_bytes
        while self._uncommitted and self._uncommitted[-1][0] >= end_offset:
            _, position = self._uncommitted.pop()
        if self._file is None or position == self._size_bytes:
            return
        try:
            self._file.truncate(position)
        except OSError as error:
            self._give_up(error)
            return
        self._size_bytes = position

    def commit(self, end_offset: int) -> None:
        """Note that nothing below this offset will be cut."""
        while self._uncommitted and self._uncommitted[0][0] < end_offset:
            self._uncommitted.popleft()

    def replace(self, fetched: SnapshotFetched) -> None:
        """Replace everything by this snapshot."""
        self._drop()
        try:
            path = self._partition / fetched.snapshot_id.file_name
            self._storage.write(path, fetched.data, PRIVATE_FILE_MODE)
        except OSError as error:
            self._give_up(error)
            return
        self._snapshot_bytes = len(fetched.data)
        self._begin(fetched.snapshot_id)

    def replace_by(self, image: MetadataImage, timestamp_ms: int) -> None:
        """Replace everything by a snapshot of this image; no batch may follow the image."""
        data = encode_snapshot(image.records(), epoch=image.epoch, timestamp_ms=timestamp_ms)
        self.replace(SnapshotFetched(SnapshotId(image.offset + 1, image.epoch), data))

    def _drop(self) -> None:
        self.close()
        self._uncommitted.clear()
        self._size_bytes = self._snapshot_bytes = 0

    def _give_up(self, error: OSError) -> None:
        """Store nothing from now on; the next start reads the whole part, and fetches the rest."""
        LOG.error(
            "the local copy of the metadata cannot be written, a restart of this node will take longer",
            path=str(self._partition),
            reason=words_of(error),
        )
        self.close()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
