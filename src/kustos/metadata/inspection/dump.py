"""Dumps a log file batch by batch, as far as it can be read: no judgement, no repair.

`kustos.metadata.inspection.verification` reports what is wrong with a file; here only an unreadable batch
ends the reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kustos.metadata.errors import LogDamagedError, RecordError
from kustos.metadata.inspection.files import FileKind, MetadataFile
from kustos.metadata.inspection.shown import ShownRecord, shown_control, shown_value
from kustos.metadata.log import recovery_point_of
from kustos.metadata.log.segment import UNKNOWN_EPOCH
from kustos.metadata.log.unfinished import is_unfinished_write
from kustos.metadata.records import controls_of
from kustos.runtime import Storage
from kustos.wire import CorruptBatchError, Record, RecordBatch, read_batch

_NOTHING: Final = ShownRecord("(malformed)", None, None, "an invalid control record")


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """A record and its position."""

    offset: int
    time_ms: int
    size_bytes: int
    shown: ShownRecord


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """A batch, its position in the file, and its records."""

    batch: RecordBatch
    position: int
    size_bytes: int
    records: tuple[DumpedRecord, ...]


@dataclass(frozen=True, slots=True)
class TornBytes:
    """Bytes that a crash left after the last whole batch of a segment; never acknowledged."""

    position: int
    size_bytes: int


def dump_file(file: MetadataFile, storage: Storage) -> Iterator[DumpedBatch | TornBytes]:
    """Yield the batches of a file in order, then the remains of an unfinished write.

    Raises `LogDamagedError` (file, byte) at an unreadable batch, after yielding those before it.
    """
    recovery_point = recovery_point_of(file.path.parent, storage) if file.kind is FileKind.SEGMENT else None
    data, position, next_offset, epoch = file.read(storage), 0, file.base_offset or 0, UNKNOWN_EPOCH

    def is_torn() -> bool:
        return file.kind is FileKind.SEGMENT and is_unfinished_write(
            data, position, next_offset, epoch, recovery_point
        )

    while position < len(data):
        try:
            batch, end = read_batch(data, position)
        except CorruptBatchError as error:
            if is_torn():
                yield TornBytes(position, len(data) - position)
                return
            raise LogDamagedError(
                f"`{file.path}` cannot be read from byte {position} on, where offset {next_offset} is due: "
                f"{error}; `kustos metadata verify` says what to do"
            ) from error
        if batch.base_offset != next_offset and is_torn():
            yield TornBytes(position, len(data) - position)
            return
        yield DumpedBatch(batch, position, end - position, tuple(_records(batch)))
        position, next_offset, epoch = end, batch.last_offset + 1, batch.partition_leader_epoch


def _records(batch: RecordBatch) -> Iterator[DumpedRecord]:
    shown = (
        _shown_controls(batch) if batch.is_control else [shown_value(each.value) for each in batch.records]
    )
    for record, each in zip(batch.records, shown, strict=True):
        time_ms = batch.base_timestamp_ms + record.timestamp_delta_ms
        yield DumpedRecord(batch.base_offset + record.offset_delta, time_ms, _size_bytes(record), each)


def _shown_controls(batch: RecordBatch) -> list[ShownRecord]:
    try:
        return [shown_control(each) for each in controls_of(batch)]
    except RecordError:
        return [_NOTHING] * len(batch.records)


def _size_bytes(record: Record) -> int:
    return len(record.value or b"")
