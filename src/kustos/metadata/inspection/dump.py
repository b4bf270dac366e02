"""Batch by batch what a file of the log holds, as far as it can be read: no judgement, no repair.

What is wrong with a file is for `kustos.metadata.inspection.verification`; here only a batch that cannot
be read at all ends the reading.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kustos.metadata.errors import LogDamagedError, RecordError
from kustos.metadata.inspection.files import FileKind, MetadataFile
from kustos.metadata.inspection.shown import ShownRecord, shown_control, shown_value
from kustos.metadata.log.segment import is_torn_tail
from kustos.metadata.records import controls_of
from kustos.runtime import Storage
from kustos.wire.record_batch import CorruptBatchError, Record, RecordBatch, read_batch

_NOTHING: Final = ShownRecord("(malformed)", None, None, "a control record that says nothing sane")


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    """A record and where it stands."""

    offset: int
    time_ms: int
    size_bytes: int
    shown: ShownRecord


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """A batch, where it lies in its file, and its records."""

    batch: RecordBatch
    position: int
    size_bytes: int
    records: tuple[DumpedRecord, ...]


@dataclass(frozen=True, slots=True)
class TornBytes:
    """What a crash left after the last whole batch of a segment; it was never acknowledged."""

    position: int
    size_bytes: int


def dump_file(file: MetadataFile, storage: Storage) -> Iterator[DumpedBatch | TornBytes]:
    """Yield the batches of a file in order, last of all what an unfinished write left.

    Raises `LogDamagedError` (file, byte) at a batch that cannot be read, after those before it.
    """
    data, position, next_offset = file.read(storage), 0, file.base_offset or 0
    while position < len(data):
        try:
            batch, end = read_batch(data, position)
        except CorruptBatchError as error:
            if file.kind is FileKind.SEGMENT and is_torn_tail(data, position, next_offset):
                yield TornBytes(position, len(data) - position)
                return
            raise LogDamagedError(
                f"`{file.path}` cannot be read from byte {position} on, where offset {next_offset} is due: "
                f"{error}; `kustos metadata verify` says what to do"
            ) from error
        yield DumpedBatch(batch, position, end - position, tuple(_records(batch)))
        position, next_offset = end, batch.last_offset + 1


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
