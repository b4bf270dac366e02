"""Snapshots: the records of an image in their own file (KIP-630).

A control batch with a header, data batches, a control batch with a footer. Offsets inside begin at 0 and are
not offsets of the log.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kustos.metadata.errors import LogDamagedError, RecordError
from kustos.metadata.log.policy import MAX_BATCH_SIZE_BYTES, RECORD_OVERHEAD_MAX_BYTES
from kustos.metadata.records import (
    ControlRecord,
    MetadataRecord,
    SnapshotFooter,
    SnapshotHeader,
    control_batch,
    controls_of,
    encode_record,
)
from kustos.wire import (
    HEADER_SIZE_BYTES,
    CorruptBatchError,
    RawBatch,
    RecordBatch,
    encoded_batch_of,
    read_batch,
    read_raw_batch,
)

MAX_RECORDS_PER_BATCH: Final = 1024
"""As Kafka's snapshot writer: a reader never holds more than this many records at once."""

RECORDS_MAX_BYTES: Final = MAX_BATCH_SIZE_BYTES - HEADER_SIZE_BYTES
"""Long names make large records: no batch may exceed the limit of Kafka's readers."""


def encode_snapshot(
    records: Iterable[MetadataRecord],
    *,
    epoch: int,
    timestamp_ms: int,
    last_contained_timestamp_ms: int = 0,
    controls: tuple[ControlRecord, ...] = (),
) -> bytes:
    """Return a whole snapshot file; `controls` follow the header in its batch."""
    return b"".join(
        snapshot_pieces(
            records,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            last_contained_timestamp_ms=last_contained_timestamp_ms,
            controls=controls,
        )
    )


def snapshot_pieces(
    records: Iterable[MetadataRecord],
    *,
    epoch: int,
    timestamp_ms: int,
    last_contained_timestamp_ms: int = 0,
    controls: tuple[ControlRecord, ...] = (),
) -> Iterator[bytes]:
    """Yield a snapshot file batch by batch, so that only one is in memory at a time."""
    header = control_batch(0, epoch, timestamp_ms, (SnapshotHeader(last_contained_timestamp_ms), *controls))
    yield header.encode()
    offset = header.last_offset + 1
    pending: list[bytes] = []
    pending_size_bytes = 0
    for record in records:
        value = encode_record(record)
        size_bytes = len(value) + RECORD_OVERHEAD_MAX_BYTES
        if len(pending) == MAX_RECORDS_PER_BATCH or pending_size_bytes + size_bytes > RECORDS_MAX_BYTES:
            yield encoded_batch_of(offset, epoch, timestamp_ms, pending)
            offset += len(pending)
            pending, pending_size_bytes = [], 0
        pending.append(value)
        pending_size_bytes += size_bytes
    if pending:
        yield encoded_batch_of(offset, epoch, timestamp_ms, pending)
        offset += len(pending)
    yield control_batch(offset, epoch, timestamp_ms, (SnapshotFooter(),)).encode()


def last_contained_timestamp_ms(data: bytes, name: str) -> int:
    """Return the time of the last record that a snapshot contains, by its header.

    `data` may be only the beginning of the file. Raises `LogDamagedError` without a header.
    """
    try:
        batch, _ = read_batch(data)
        controls = controls_of(batch) if batch.is_control else []
    except (CorruptBatchError, RecordError) as error:
        raise _damaged(name, f"at byte 0: {error}") from error
    for control in controls:
        if isinstance(control, SnapshotHeader):
            return control.last_contained_log_timestamp_ms
    raise _damaged(name, "it does not begin with a header")


def snapshot_batches(data: bytes, name: str) -> Iterator[RecordBatch]:
    """Yield the batches of a snapshot; raise `LogDamagedError` unless it is whole, header to footer."""
    for raw in raw_snapshot_batches(data, name):
        yield decoded(raw, name)


def decoded(raw: RawBatch, name: str) -> RecordBatch:
    """Return a batch of a snapshot with its records; raise `LogDamagedError` if they do not fill it."""
    try:
        return raw.decode()
    except CorruptBatchError as error:
        raise _damaged(name, f"at byte {raw.records_start - HEADER_SIZE_BYTES}: {error}") from error


def raw_snapshot_batches(data: bytes, name: str) -> Iterator[RawBatch]:
    """Yield the batches of a snapshot as `snapshot_batches` does, without reading their records."""
    position, next_offset, finished, is_first = 0, 0, False, True
    while position < len(data):
        try:
            batch = read_raw_batch(data, position)
            controls = controls_of(batch.decode()) if batch.is_control else []
        except (CorruptBatchError, RecordError) as error:
            raise _damaged(name, f"at byte {position}: {error}") from error
        position = batch.end
        if batch.base_offset != next_offset:
            raise _damaged(name, f"the batch for offset {next_offset} claims {batch.base_offset}")
        if batch.count != batch.last_offset_delta + 1:
            raise _damaged(name, f"the batch for offset {next_offset} lacks records")
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
