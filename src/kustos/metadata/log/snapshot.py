"""Snapshots: the records of an image in a file of their own (KIP-630).

A control batch with a header first, data batches, a control batch with a footer last. Offsets inside
begin at 0 and are not offsets of the log.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kustos.metadata.errors import LogDamagedError, RecordError
from kustos.metadata.records import (
    ControlRecord,
    MetadataRecord,
    SnapshotFooter,
    SnapshotHeader,
    control_batch,
    controls_of,
    encode_record,
)
from kustos.wire.record_batch import CorruptBatchError, RecordBatch, batch_of, read_batch

MAX_RECORDS_PER_BATCH: Final = 1024
"""As Kafka's snapshot writer: a reader never holds more than this many records at once."""


def encode_snapshot(
    records: Iterable[MetadataRecord],
    *,
    epoch: int,
    timestamp_ms: int,
    last_contained_timestamp_ms: int = 0,
    controls: tuple[ControlRecord, ...] = (),
) -> bytes:
    """Return a whole snapshot file; `controls` follow the header in its batch."""
    header = control_batch(0, epoch, timestamp_ms, (SnapshotHeader(last_contained_timestamp_ms), *controls))
    out, offset = bytearray(header.encode()), header.last_offset + 1
    pending: list[bytes] = []

    def flush() -> None:
        nonlocal offset
        if pending:
            out.extend(batch_of(offset, epoch, timestamp_ms, pending).encode())
            offset += len(pending)
            pending.clear()

    for record in records:
        pending.append(encode_record(record))
        if len(pending) == MAX_RECORDS_PER_BATCH:
            flush()
    flush()
    out += control_batch(offset, epoch, timestamp_ms, (SnapshotFooter(),)).encode()
    return bytes(out)


def snapshot_batches(data: bytes, name: str) -> Iterator[RecordBatch]:
    """Yield the batches of a snapshot; raise `LogDamagedError` unless it is whole, header to footer."""
    position, next_offset, finished, is_first = 0, 0, False, True
    while position < len(data):
        try:
            batch, position = read_batch(data, position)
            controls = controls_of(batch) if batch.is_control else []
        except (CorruptBatchError, RecordError) as error:
            raise _damaged(name, f"at byte {position}: {error}") from error
        if batch.base_offset != next_offset:
            raise _damaged(name, f"the batch for offset {next_offset} claims {batch.base_offset}")
        next_offset = batch.last_offset + 1
        if finished:
            raise _damaged(name, "something follows the footer")
        if is_first and not any(isinstance(each, SnapshotHeader) for each in controls):
            raise _damaged(name, "it does not begin with a header")
        is_first = False
        finished = any(isinstance(each, SnapshotFooter) for each in controls)
        yield batch
    if not finished:
        raise _damaged(name, "it does not end with a footer")


def _damaged(name: str, what: str) -> LogDamagedError:
    return LogDamagedError(f"the snapshot `{name}` is damaged: {what}; restore it from a copy")
