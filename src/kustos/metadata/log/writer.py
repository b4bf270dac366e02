"""The one writer of the log: appends whole batches, and answers only when they are on the disk."""

from collections.abc import Sequence
from pathlib import Path

import structlog

from kustos.metadata.errors import LogDamagedError, LogFailedError
from kustos.metadata.log import layout
from kustos.metadata.log.reader import LogReader
from kustos.metadata.records import LeaderChange, MetadataRecord, control_batch, encode_record
from kustos.runtime import Clock, Storage
from kustos.wire.record_batch import batch_of

_log = structlog.get_logger("kustos.metadata.log")


class LogWriter:
    """Continues the log where its reader ended; the caller holds the directory's lock.

    After one write or fsync that failed, the kernel may have dropped the bytes and a later fsync may
    still report success, so nothing is ever acknowledged again: every call raises `LogFailedError`
    until the process starts anew and reads back what the disk really holds.
    """

    def __init__(self, directory: Path, storage: Storage, clock: Clock, reader: LogReader) -> None:
        self._partition = directory / layout.METADATA_PARTITION
        self._storage = storage
        self._clock = clock
        self._epochs = list(reader.epochs)
        self._failure: BaseException | None = None
        self.next_offset = reader.next_offset
        self.epoch = reader.epoch
        self._file = storage.open_append(reader.segment)
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

    @property
    def last_offset(self) -> int:
        """The offset of the last record that is durable; -1 before the first."""
        return self.next_offset - 1

    def begin_epoch(self, node_id: int) -> None:
        """Begin a new epoch as its only voter and leader, as each start of a controller does."""
        state_path = self._partition / layout.QUORUM_STATE
        voted = 0
        if self._storage.exists(state_path):
            voted = layout.decode_quorum_epoch(self._storage.read(state_path), state_path)
            if self.epoch > voted:
                raise LogDamagedError(
                    f"the metadata log in `{self._partition}` ends in epoch {self.epoch}, but "
                    f"`{state_path.name}` knows only {voted}; restore the directory from a copy"
                )
        epoch = max(self.epoch, voted) + 1
        # the epoch is claimed before it is used: after a crash in between, the next one is higher still
        self._storage.write(state_path, layout.encode_quorum_state(node_id, epoch))
        leader_change = LeaderChange(node_id, (node_id,), (node_id,))
        batch = control_batch(self.next_offset, epoch, self._clock.wall_ms(), (leader_change,))
        self._append_bytes(batch.encode())
        self._epochs.append((epoch, self.next_offset))
        self.next_offset, self.epoch = batch.last_offset + 1, epoch
        self._storage.write(
            self._partition / layout.LEADER_EPOCH_CHECKPOINT, layout.encode_epochs(tuple(self._epochs))
        )

    def append(self, batches: Sequence[Sequence[MetadataRecord]]) -> list[int]:
        """Append each group of records as one batch, all in one write, and wait for the disk.

        Returns the last offset of each batch. Groups must not be empty. Raises `RecordError` before
        anything is written if a record cannot be expressed, `LogFailedError` if it is not known to be
        durable.
        """
        offset, timestamp_ms = self.next_offset, self._clock.wall_ms()
        data, last_offsets = bytearray(), []
        for records in batches:
            data += batch_of(offset, self.epoch, timestamp_ms, map(encode_record, records)).encode()
            offset += len(records)
            last_offsets.append(offset - 1)
        self._append_bytes(bytes(data))
        self.next_offset = offset
        return last_offsets

    def close(self) -> None:
        """Let go of the segment; everything acknowledged is on the disk already."""
        self._file.close()

    def _append_bytes(self, data: bytes) -> None:
        self.require_working()
        try:
            self._file.append(data)
            self._file.sync()
        except BaseException as error:
            # also after an interrupt nobody knows how much of it is in the file
            self._failure = error
            if not isinstance(error, OSError):
                raise
        self.require_working()

    def require_working(self) -> None:
        """Raise `LogFailedError` if a write failed before."""
        if self._failure is not None:
            raise LogFailedError(
                f"the metadata log in `{self._partition}` could not be written ({self._failure}); nothing is "
                "acknowledged any more, check the disk and restart"
            ) from self._failure
