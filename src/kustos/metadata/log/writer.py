"""The one writer of the log: appends whole batches, and answers only when they are on the disk."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import structlog

from kustos.metadata.errors import BatchTooLargeError, DirectoryError, LogDamagedError, LogFailedError
from kustos.metadata.log import layout
from kustos.metadata.log.policy import (
    DEFAULT_POLICY,
    MAX_BATCH_SIZE_BYTES,
    RECORD_OVERHEAD_MAX_BYTES,
    LogPolicy,
)
from kustos.metadata.log.reader import ActiveSegment, LogReader
from kustos.metadata.records import LeaderChange, MetadataRecord, control_batch, encode_record
from kustos.runtime import Clock, Storage
from kustos.wire.record_batch import HEADER_SIZE_BYTES, RecordBatch, batch_of

Values = tuple[bytes, ...]
"""The encoded records of one batch."""

UNSYNCED_MAX_BYTES: Final = 2 * MAX_BATCH_SIZE_BYTES
"""No write between two fsyncs is larger: so far back may lie what an fsync that failed did not save."""

_log = structlog.get_logger("kustos.metadata.log")


def encode_values(records: Iterable[MetadataRecord]) -> Values:
    """Return the records of one batch as bytes.

    Raises `RecordError` if one cannot be expressed, `BatchTooLargeError` if they do not fit a batch.
    """
    values = tuple(map(encode_record, records))
    size_bytes = HEADER_SIZE_BYTES + sum(map(len, values)) + RECORD_OVERHEAD_MAX_BYTES * len(values)
    if size_bytes > MAX_BATCH_SIZE_BYTES:
        size_bytes = len(batch_of(0, 0, 0, values).encode())
    if size_bytes > MAX_BATCH_SIZE_BYTES:
        raise BatchTooLargeError(
            f"The total record(s) size of {size_bytes} exceeds the maximum allowed batch size of "
            f"{MAX_BATCH_SIZE_BYTES}"
        )
    return values


class LogWriter:
    """Continues the log where its reader ended; the caller holds the directory's lock.

    After one write or fsync that failed, the kernel may have dropped the bytes and a later fsync may
    still report success, so nothing is ever acknowledged again: every call raises `LogFailedError`
    until the process starts anew and reads back what the disk really holds.
    """

    def __init__(
        self,
        directory: Path,
        storage: Storage,
        clock: Clock,
        reader: LogReader,
        policy: LogPolicy = DEFAULT_POLICY,
    ) -> None:
        self._partition = directory / layout.METADATA_PARTITION
        self._storage = storage
        self._clock = clock
        self._policy = policy
        self._epochs = list(reader.epochs)
        self._failure: BaseException | None = None
        self.next_offset = reader.next_offset
        self.epoch = reader.epoch
        self.last_timestamp_ms = reader.last_timestamp_ms
        self.written_bytes = 0
        """Since it was opened."""
        self._active = reader.active
        self._require_own()
        self._file = storage.open_append(reader.segment)
        try:
            self._mend(reader)
        except BaseException:
            self._file.close()
            raise

    def _mend(self, reader: LogReader) -> None:
        """Cut a torn tail, and save again what an fsync that failed may not have saved."""
        if reader.torn is not None:
            torn = reader.torn
            _log.warning(
                "cut an unfinished write from the end of the metadata log",
                path=str(torn.path),
                cut_bytes=torn.torn_size_bytes,
                size_bytes=torn.whole_size_bytes,
                next_offset=torn.next_offset,
            )
            self._file.truncate(torn.whole_size_bytes)
            self._file.sync()
        if self._active.size_bytes:
            # what an earlier writer failed to sync may be there to be read, and gone after a power cut
            self._storage.rewrite(reader.segment, max(0, self._active.size_bytes - UNSYNCED_MAX_BYTES))

    @property
    def last_offset(self) -> int:
        """The offset of the last record that is durable; -1 before the first."""
        return self.next_offset - 1

    @property
    def active_base_offset(self) -> int:
        """Where the segment begins that is written to; it is never deleted."""
        return self._active.base_offset

    def _require_own(self) -> None:
        """Raise `DirectoryError` for a log that no writer began: each claims its epoch before it writes."""
        if self.next_offset and not self._storage.exists(self._partition / layout.QUORUM_STATE):
            raise DirectoryError(
                f"`{self._partition}` holds a log without `{layout.QUORUM_STATE}`: a copy of another's, "
                "such as a node keeps in cluster mode, and to continue it here would part it from the "
                "original; name another directory in `metadata.log.dir`, or restore the missing file"
            )

    def begin_epoch(self, node_id: int) -> None:
        """Begin a new epoch as its only voter and leader, as each start of a controller does.

        Raises `LogDamagedError` if the log's end is missing, `LogFailedError` if the disk does not take it.
        """
        try:
            self._begin_epoch(node_id)
        except OSError as error:
            self._failure = error
        self.require_working()

    def _begin_epoch(self, node_id: int) -> None:
        state_path = self._partition / layout.QUORUM_STATE
        voted = 0
        if self._storage.exists(state_path):
            voted = layout.decode_quorum_epoch(self._storage.read(state_path), state_path)
            if self.epoch > voted:
                raise LogDamagedError(
                    f"the metadata log in `{self._partition}` ends in epoch {self.epoch}, but "
                    f"`{state_path.name}` knows only {voted}; restore the directory from a copy"
                )
        self._require_epochs()
        epoch = max(self.epoch, voted) + 1
        # the epoch is claimed before it is used: after a crash in between, the next one is higher still
        self._storage.write(state_path, layout.encode_quorum_state(node_id, epoch))
        leader_change = LeaderChange(node_id, (node_id,), (node_id,))
        self._append(
            [control_batch(self.next_offset, epoch, self._clock.wall_ms(), (leader_change,))],
        )
        self._epochs.append((epoch, self.last_offset))
        self.epoch = epoch
        self._storage.write(
            self._partition / layout.LEADER_EPOCH_CHECKPOINT, layout.encode_epochs(tuple(self._epochs))
        )

    def _require_epochs(self) -> None:
        """Raise `LogDamagedError` if the log ends before an epoch that is known to have begun in it."""
        path = self._partition / layout.LEADER_EPOCH_CHECKPOINT
        if not self._storage.exists(path):
            return
        epochs = layout.decode_epochs(self._storage.read(path), path)
        if epochs and (epochs[-1][1] >= self.next_offset or epochs[-1][0] > self.epoch):
            raise LogDamagedError(
                f"the metadata log in `{self._partition}` ends at offset {self.last_offset} in epoch "
                f"{self.epoch}, but `{path.name}` knows of epoch {epochs[-1][0]} from offset {epochs[-1][1]} "
                "on: its end is missing; restore the directory from a copy"
            )

    def append(self, batches: Sequence[Sequence[MetadataRecord]]) -> list[int]:
        """Append each group of records as one batch, and wait for the disk; see `append_values`.

        Raises `RecordError` or `BatchTooLargeError` before anything is written.
        """
        return self.append_values([encode_values(records) for records in batches])

    def append_values(self, groups: Sequence[Values]) -> list[int]:
        """Append each group of encoded records as one batch, in one write, and wait for the disk.

        Returns the last offset of each batch. Groups must not be empty, and each as `encode_values` made
        it. Raises `LogFailedError` if they are not known to be durable.
        """
        offset, timestamp_ms = self.next_offset, self._clock.wall_ms()
        batches = []
        for values in groups:
            batches.append(batch_of(offset, self.epoch, timestamp_ms, values))
            offset += len(values)
        if batches:
            self._append(batches)
        return [batch.last_offset for batch in batches]

    def close(self) -> None:
        """Let go of the segment; everything acknowledged is on the disk already."""
        self._file.close()

    def _append(self, batches: Sequence[RecordBatch]) -> None:
        self.require_working()
        try:
            self._write(batches)
        except BaseException as error:
            # also after an interrupt nobody knows how much of it is in the file
            self._failure = error
            if not isinstance(error, OSError):
                raise
        self.require_working()
        self.next_offset = batches[-1].last_offset + 1
        self.last_timestamp_ms = max(self.last_timestamp_ms, batches[-1].max_timestamp_ms)

    def _write(self, batches: Sequence[RecordBatch]) -> None:
        data = bytearray()
        for batch in batches:
            encoded = batch.encode()
            if self._must_roll(len(data) + len(encoded), batch.max_timestamp_ms):
                # a segment is begun only when the one before it is durable whole: only the last can be torn
                self._flush(data)
                data = bytearray()
                self._roll(batch.base_offset)
            elif len(data) + len(encoded) > UNSYNCED_MAX_BYTES:
                self._flush(data)
                data = bytearray()
            if self._active.first_timestamp_ms is None:
                self._active.first_timestamp_ms = batch.max_timestamp_ms
            data += encoded
        self._flush(data)

    def _must_roll(self, growth_bytes: int, timestamp_ms: int) -> bool:
        first_ms = self._active.first_timestamp_ms
        if first_ms is None:
            return False
        return (
            self._active.size_bytes + growth_bytes > self._policy.segment_bytes
            or timestamp_ms - first_ms > self._policy.segment_ms
        )

    def _flush(self, data: bytearray) -> None:
        if data:
            self._file.append(bytes(data))
            self._file.sync()
            self._active.size_bytes += len(data)
            self.written_bytes += len(data)

    def _roll(self, base_offset: int) -> None:
        name = layout.segment_name(base_offset)
        file = self._storage.open_append(self._partition / name)
        try:
            self._storage.write(
                self._partition / layout.ACTIVE_SEGMENT, layout.encode_active_segment(base_offset)
            )
        except BaseException:
            file.close()
            raise
        self._file.close()
        self._file, self._active = file, ActiveSegment(base_offset)
        _log.info("began a new segment of the metadata log", path=str(self._partition / name))

    @property
    def has_failed(self) -> bool:
        """Whether a write failed before, so that nothing is taken any more; from any thread."""
        return self._failure is not None

    def require_working(self) -> None:
        """Raise `LogFailedError` if a write failed before."""
        if self._failure is not None:
            raise LogFailedError(
                f"the metadata log in `{self._partition}` could not be written ({self._failure}); nothing is "
                "acknowledged any more, check the disk and restart"
            ) from self._failure
