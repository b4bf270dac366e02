"""The only writer of the log: appends whole batches, and returns only when they are on the disk."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import structlog

from kustos.metadata.errors import (
    BatchTooLargeError,
    DirectoryError,
    LogDamagedError,
    LogFailedError,
    LogFullError,
)
from kustos.metadata.log import layout
from kustos.metadata.log.policy import (
    DEFAULT_POLICY,
    MAX_BATCH_SIZE_BYTES,
    RECORD_OVERHEAD_MAX_BYTES,
    UNSYNCED_MAX_BYTES,
    LogPolicy,
)
from kustos.metadata.log.reader import ActiveSegment, LogReader
from kustos.metadata.records import LeaderChange, MetadataRecord, control_batch, encode_record
from kustos.runtime import Clock, FixedFile, Storage, is_out_of_descriptors, is_out_of_space, words_of
from kustos.wire import HEADER_SIZE_BYTES, RecordBatch, batch_of

Values = tuple[bytes, ...]
"""The encoded records of one batch."""

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

    After a failed write or fsync, the kernel may have dropped the bytes and a later fsync may still report
    success, so nothing is ever acknowledged again: every call raises `LogFailedError` until the process
    restarts and reads back what the disk really holds. A full disk is not fatal if the first write of a call
    meets it, before any fsync: the writer takes the bytes back and raises `LogFullError`. A lack of file
    descriptors is not fatal either: a write needs none, and operations that need some change nothing without
    them and can wait.
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
        """Bytes written and synced since it was opened."""
        self._synced_before = 0
        """The same when the current call began."""
        self._active = reader.active
        self._active_is_named = True
        self._voted_epoch = self._require_own()
        # changes to the disk begin here
        self._file = storage.open_append(reader.segment)
        try:
            self._mend(reader)
            self._recovery_point = self._begin_recovery_point()
        except BaseException:
            self._file.close()
            raise

    def _mend(self, reader: LogReader) -> None:
        """Cut a torn tail, and rewrite data that a failed fsync may have lost."""
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
            # data that an earlier writer failed to sync may be readable now, and gone after a power cut
            self._storage.rewrite(reader.segment, max(0, self._active.size_bytes - UNSYNCED_MAX_BYTES))

    def _begin_recovery_point(self) -> FixedFile:
        path = self._partition / layout.RECOVERY_POINT
        try:
            self._storage.write(path, layout.encode_recovery_point(self.next_offset))
        except OSError as error:
            self._failure = error
        self.require_working()
        return self._storage.open_fixed(path)

    @property
    def last_offset(self) -> int:
        """The offset of the last record that is durable; -1 before the first."""
        return self.next_offset - 1

    @property
    def active_base_offset(self) -> int:
        """The base offset of the active segment, which is never deleted."""
        return self._active.base_offset

    def _require_own(self) -> int:
        """Return the last claimed epoch: each writer claims its own before it writes.

        Raises `DirectoryError` for a log that no writer began, `LogDamagedError` for one beyond the claimed
        epoch.
        """
        path = self._partition / layout.QUORUM_STATE
        if not self._storage.exists(path):
            if self.next_offset:
                raise DirectoryError(
                    f"`{self._partition}` holds a log without `{path.name}`: a copy of another's, such as a "
                    "node keeps in cluster mode, and to continue it here would part it from the original; "
                    "name another directory in `metadata.log.dir`, or restore the missing file"
                )
            return 0
        voted = layout.decode_quorum_epoch(self._storage.read(path), path)
        if self.epoch > voted:
            raise LogDamagedError(
                f"the metadata log in `{self._partition}` ends in epoch {self.epoch}, but `{path.name}` "
                f"knows only {voted}; restore the directory from a copy"
            )
        return voted

    def begin_epoch(self, node_id: int) -> None:
        """Begin a new epoch as its only voter and leader, as at each start of a controller.

        Raises `LogFailedError` if writing fails.
        """
        try:
            self._begin_epoch(node_id)
        except OSError as error:
            self._failure = error
        self.require_working()

    def _begin_epoch(self, node_id: int) -> None:
        epoch = max(self.epoch, self._voted_epoch) + 1
        # claim the epoch before use: after a crash in between, the next one is higher still
        self._storage.write(self._partition / layout.QUORUM_STATE, layout.encode_quorum_state(node_id, epoch))
        leader_change = LeaderChange(node_id, (node_id,), (node_id,))
        self._append(
            [control_batch(self.next_offset, epoch, self._clock.wall_ms(), (leader_change,))],
        )
        self._epochs.append((epoch, self.last_offset))
        self.epoch = epoch
        self._storage.write(
            self._partition / layout.LEADER_EPOCH_CHECKPOINT, layout.encode_epochs(tuple(self._epochs))
        )

    def append(self, batches: Sequence[Sequence[MetadataRecord]]) -> list[int]:
        """Append each group of records as one batch, and wait for the disk; see `append_values`.

        Raises `RecordError` or `BatchTooLargeError` before anything is written.
        """
        appended = self.append_values([encode_values(records) for records in batches])
        return [last_offset for last_offset, _ in appended]

    def append_values(self, groups: Sequence[Values]) -> list[tuple[int, bytes]]:
        """Append each group of encoded records as one batch, in one write, and wait for the disk.

        Returns the last offset and the bytes of each batch. Groups must not be empty, and must come from
        `encode_values`. Raises `LogFullError` if none was written, `LogFailedError` if they may not be
        durable.
        """
        offset, timestamp_ms = self.next_offset, self._clock.wall_ms()
        batches = []
        for values in groups:
            batches.append(batch_of(offset, self.epoch, timestamp_ms, values))
            offset += len(values)
        encoded = self._append(batches) if batches else []
        return [(batch.last_offset, data) for batch, data in zip(batches, encoded, strict=True)]

    def close(self) -> None:
        """Close the files; everything acknowledged is on the disk already."""
        self._file.close()
        self._recovery_point.close()

    def _append(self, batches: Sequence[RecordBatch]) -> list[bytes]:
        """Append the batches, and return their bytes."""
        self.require_working()
        self._synced_before = self.written_bytes
        encoded = [batch.encode() for batch in batches]
        try:
            self._write(batches, encoded)
            # not synced: it may lag behind what was acknowledged, never be ahead of it
            self._recovery_point.overwrite(layout.encode_recovery_point(batches[-1].last_offset + 1))
        except LogFullError:
            raise
        except BaseException as error:
            # also after an interrupt, since it is unknown how much was written
            self._failure = error
            if not isinstance(error, OSError):
                raise
        self.require_working()
        self.next_offset = batches[-1].last_offset + 1
        self.last_timestamp_ms = max(self.last_timestamp_ms, batches[-1].max_timestamp_ms)
        return encoded

    def _write(self, batches: Sequence[RecordBatch], encoded: Sequence[bytes]) -> None:
        if not self._active_is_named:
            self._name_active()
        data = bytearray()
        for batch, piece in zip(batches, encoded, strict=True):
            if self._must_roll(len(data) + len(piece), batch.max_timestamp_ms):
                # begin a segment only when the previous one is fully durable: only the last can be torn
                self._flush(data)
                data = bytearray()
                self._roll(batch.base_offset)
            elif len(data) + len(piece) > UNSYNCED_MAX_BYTES:
                self._flush(data)
                data = bytearray()
            if self._active.first_timestamp_ms is None:
                self._active.first_timestamp_ms = batch.max_timestamp_ms
            data += piece
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
            try:
                self._file.append(bytes(data))
            except OSError as error:
                # batches of this call that are on the disk already could not be taken back
                if not is_out_of_space(error) or self.written_bytes != self._synced_before:
                    raise
                self._take_back()
                raise LogFullError(
                    f"the metadata log in `{self._partition}` has no room for the change "
                    f"({words_of(error)}); nothing was changed, make room and try again"
                ) from error
            self._file.sync()
            self._active.size_bytes += len(data)
            self.written_bytes += len(data)

    def _take_back(self) -> None:
        """Truncate a partial first write of a call: it was neither synced nor published."""
        self._file.truncate(self._active.size_bytes)
        if not self._active.size_bytes:
            self._active.first_timestamp_ms = None

    def _roll(self, base_offset: int) -> None:
        """Begin a new segment; without a file descriptor or free disk space, continue the old one and retry
        later."""
        path = self._partition / layout.segment_name(base_offset)
        try:
            file = self._storage.open_append(path)
        except OSError as error:
            # a file that was created, but whose name may not be durable, must not stay behind
            is_unchanged = is_out_of_space(error) and not self._storage.exists(path)
            if not (is_unchanged or is_out_of_descriptors(error)):
                raise
            _log.warning(
                "a new segment of the metadata log has to wait", path=str(path), reason=words_of(error)
            )
            return
        self._file.close()
        self._file, self._active = file, ActiveSegment(base_offset)
        self._name_active()
        _log.info("began a new segment of the metadata log", path=str(path))

    def _name_active(self) -> None:
        """Record the name of the last segment; reading does not need it, so it can wait."""
        base_offset = self._active.base_offset
        try:
            self._storage.write(
                self._partition / layout.ACTIVE_SEGMENT, layout.encode_active_segment(base_offset)
            )
        except OSError as error:
            if not (is_out_of_descriptors(error) or is_out_of_space(error)):
                raise
            self._active_is_named = False
            _log.warning("the last segment has yet to be written down", reason=words_of(error))
        else:
            self._active_is_named = True

    @property
    def has_failed(self) -> bool:
        """Whether a write failed before, so that nothing is accepted any more; from any thread."""
        return self._failure is not None

    def require_working(self) -> None:
        """Raise `LogFailedError` if a write failed before."""
        if self._failure is not None:
            raise LogFailedError(
                f"the metadata log in `{self._partition}` could not be written ({words_of(self._failure)}); "
                "nothing is acknowledged any more, check the disk and restart"
            ) from self._failure
