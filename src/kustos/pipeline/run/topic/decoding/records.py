"""The committed records of fetched batches: whole, intact, and of no aborted transaction (KIP-98)."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch
from crc32c import crc32c

from kustos.client.topics import AbortedTransaction
from kustos.pipeline.errors import DamagedRecordsError
from kustos.pipeline.run.topic.decoding.compression import CompressionError, uncompressed
from kustos.pipeline.run.topic.decoding.legacy import DamagedMessageError, legacy_records
from kustos.runtime import garbage_collection_paused
from kustos.wire import (
    COMPRESSION_MASK,
    CRC_COVERS_FROM,
    HEADER,
    HEADER_SIZE_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatchError,
    RawBatch,
    offset_after,
    whole_batches,
)

_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17

_CONTROL_KEY: Final = struct.Struct(">hh")
_ABORT: Final = 0
"""The type of the control record that ends an aborted transaction; its key is a version and a type."""


@dataclass(frozen=True, slots=True)
class DecodedRecords:
    """Records of a batch in the order of their offsets, which may have holes; its bytes, uncompressed."""

    offsets: Sequence[int]
    values: Sequence[bytes | None] = field(repr=False)
    size_bytes: int


def decode(
    records: bytes | memoryview, aborted: Iterable[AbortedTransaction], first: int, end: int
) -> Iterator[DecodedRecords]:
    """Yield the records of a fetch with `first <= offset < end` that happened, batch by batch.

    `aborted` are the aborted transactions of the same fetch. Control batches are left out, and a last batch
    that is cut short. Takes every magic and codec of Kafka; one batch is uncompressed at a time. Raises
    `DamagedRecordsError`.
    """
    view = memoryview(records)
    transactions = _Transactions(aborted)
    base_offset = first
    try:
        for position, header in whole_batches(records):
            base_offset = header.base_offset
            batch = view[position : position + header.size_bytes]
            if header.magic != MAGIC:
                # the offset of one that wraps others is that of its last (KIP-31)
                yield _kept(legacy_records(batch), first, end, len(batch))
                continue
            if base_offset >= end:
                break
            _verify(batch)
            last_offset = base_offset + header.last_offset_delta
            if transactions.happened(header, batch) and last_offset >= first:
                found = _records(header, batch)
                if base_offset < first or last_offset >= end:
                    rows = zip(found.offsets, found.values, strict=True)
                    found = _kept(rows, first, end, found.size_bytes)
                yield found
    except (CompressionError, DamagedMessageError, CorruptBatchError) as error:
        raise _damaged(base_offset, error) from None


def next_offset(records: bytes | memoryview, first: int) -> int:
    """Return the offset after the last whole batch of a fetch from `first` on, `first` if there is none.

    It may be beyond the end of what was asked for. Raises `DamagedRecordsError`.
    """
    try:
        return offset_after(records, first)
    except CorruptBatchError as error:
        raise _damaged(first, error) from None


def _damaged(offset: int, error: Exception) -> DamagedRecordsError:
    return DamagedRecordsError(
        f"the batch at or after offset {offset} cannot be read: {error}; look at it with "
        "`kafka-dump-log.sh --deep-iteration` at the leader of its partition"
    )


def _verify(batch: memoryview) -> None:
    if crc32c(batch[CRC_COVERS_FROM:]) != _CRC.unpack_from(batch, _CRC_AT)[0]:
        raise DamagedMessageError("it fails its checksum")


class _Transactions:
    """Which batches were aborted; asked for each batch in the order of their offsets."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: set[int] = set()

    def happened(self, header: BatchHeader, batch: memoryview) -> bool:
        """Return whether the records of a batch are data that was not aborted."""
        while self._coming and self._coming[-1].first_offset <= header.base_offset + header.last_offset_delta:
            self._aborted.add(self._coming.pop().producer_id)
        if header.is_control:
            if header.producer_id in self._aborted and _is_abort(header, batch):
                self._aborted.discard(header.producer_id)
            return False
        return not (header.is_transactional and header.producer_id in self._aborted)


def _is_abort(header: BatchHeader, batch: memoryview) -> bool:
    """Return whether a control batch holds the marker of an abort; compaction may have emptied it."""
    for record in _raw(header, bytes(batch)).decode().records:
        if record.key is not None and len(record.key) >= _CONTROL_KEY.size:
            return bool(_CONTROL_KEY.unpack_from(record.key)[1] == _ABORT)
    return False


def _records(header: BatchHeader, batch: memoryview) -> DecodedRecords:
    """Return the records of a batch of magic 2 whose checksum is right."""
    if header.compression:
        head = bytearray(batch[:HEADER_SIZE_BYTES])
        # the attributes are what the checksum covers first
        head[CRC_COVERS_FROM + 1] &= ~COMPRESSION_MASK & 0xFF
        batch = memoryview(b"".join((head, uncompressed(header.compression, batch[HEADER_SIZE_BYTES:]))))
    try:
        # the collector would look at each record, which goes at once
        with garbage_collection_paused():
            found = list(DefaultRecordBatch(batch))
    except CorruptRecordException:
        raise DamagedMessageError("its records do not fill it") from None
    except UnicodeDecodeError:
        # a key of a header that is not UTF-8: Kafka and its clients take it
        read = _raw(header, bytes(batch)).decode().records
        offsets = [header.base_offset + record.offset_delta for record in read]
        return DecodedRecords(offsets, [record.value for record in read], len(batch))
    values = [record.value for record in found]
    if len(found) == header.last_offset_delta + 1:
        end = header.base_offset + len(found)
        return DecodedRecords(range(header.base_offset, end), values, len(batch))
    return DecodedRecords([record.offset for record in found], values, len(batch))


def _raw(header: BatchHeader, batch: bytes) -> RawBatch:
    """Return an uncompressed batch of magic 2 for our own reader, which takes four times as long."""
    fields = HEADER.unpack_from(batch)
    return RawBatch(
        batch, HEADER_SIZE_BYTES, len(batch), header.record_count, fields[0], fields[2], *fields[5:12]
    )


def _kept(found: Iterable[tuple[int, bytes | None]], first: int, end: int, size_bytes: int) -> DecodedRecords:
    rows = [(offset, value) for offset, value in found if first <= offset < end]
    return DecodedRecords([offset for offset, _ in rows], [value for _, value in rows], size_bytes)
