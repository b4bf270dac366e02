"""Batches as producers and brokers write them, of every codec and magic, for tests that decode them."""

import gzip
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from crc32c import crc32c

from kustos.client.topics import AbortedTransaction
from kustos.pipeline.run.topic.decoding import decode, next_offset
from kustos.wire import HEADER_SIZE_BYTES, LENGTH_END, Record, RecordBatch

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
SNAPPY_OF_JAVA = 10
"""The same codec in the framing of snappy-java."""

CODECS = (NONE, GZIP, SNAPPY, SNAPPY_OF_JAVA, LZ4, ZSTD)

TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = 0, 1

BLOCK_BYTES = 40
"""snappy-java takes 32 KB; here a batch of a few records has several blocks."""


def compressed(codec: int, data: bytes) -> bytes:
    """Return bytes as a producer compresses them."""
    if codec == GZIP:
        return gzip.compress(data)
    if codec == SNAPPY_OF_JAVA:
        blocks = [data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES)]
        framed = [compressed(SNAPPY, block) for block in blocks]
        return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"".join(struct.pack(">i", len(b)) + b for b in framed)
    names = {SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
    made: bytes = pa.compress(data, names[codec], asbytes=True) if codec else data
    return made


def sealed(batch: bytes) -> bytes:
    """Return a batch of magic 2 with its length and its checksum set right."""
    length = struct.pack(">i", len(batch) - LENGTH_END)
    return batch[:8] + length + batch[12:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def with_codec(batch: bytes, codec: int, body: bytes | None = None) -> bytes:
    """Return a batch whose records are compressed, or are given already compressed."""
    attributes = struct.unpack_from(">h", batch, 21)[0] | codec % SNAPPY_OF_JAVA
    if codec == SNAPPY_OF_JAVA:
        attributes |= SNAPPY
    body = compressed(codec, batch[HEADER_SIZE_BYTES:]) if body is None else body
    return sealed(batch[:21] + struct.pack(">h", attributes) + batch[23:HEADER_SIZE_BYTES] + body)


def data_batch(
    base_offset: int, values: list[bytes | None], codec: int = NONE, producer_id: int = -1, span: int = 0
) -> bytes:
    """Return a batch of these values, in a transaction if it has a producer.

    `span` is how many offsets it has: more than values where others were compacted away from its end.
    """
    batch = RecordBatch(
        base_offset,
        0,
        tuple(Record(delta, value, b"key", 0, ((b"h", b"x"),)) for delta, value in enumerate(values)),
        attributes=0 if producer_id < 0 else TRANSACTIONAL,
        last_offset_delta=max(span, len(values)) - 1,
        producer_id=producer_id,
    )
    return with_codec(batch.encode(), codec)


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    """Return the control batch that ends a transaction: `ABORT` or `COMMIT`."""
    record = Record(0, b"\0\0\0\0\0\0", struct.pack(">hh", 0, kind))
    attributes = TRANSACTIONAL | CONTROL
    return RecordBatch(offset, 0, (record,), attributes=attributes, producer_id=producer_id).encode()


def message_set(
    magic: int, base_offset: int, values: list[bytes | None], *, is_compressed: bool = False
) -> bytes:
    """Return messages of magic 0 or 1, gzipped into one or plain, with the offsets of a broker."""
    builder = LegacyRecordBatchBuilder(magic, GZIP if is_compressed else NONE, 1 << 20)
    relative = is_compressed and magic == 1
    for number, value in enumerate(values):
        builder.append(number if relative else base_offset + number, 1000, b"key", value)
    made = bytes(builder.build())
    if is_compressed:
        made = struct.pack(">q", base_offset + len(values) - 1) + made[8:]
    return made


@dataclass
class Log:
    """A log of batches, and which of its records a reader of committed ones sees."""

    batches: list[tuple[int, bytes]] = field(default_factory=list)
    """(first offset, bytes) of each."""
    end: int = 0
    seen: list[tuple[int, bytes | None]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(producer, first offset, offset of the marker) of each aborted transaction."""
    open: dict[int, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    firsts: dict[int, int] = field(default_factory=dict)

    def append(self, values: list[bytes | None], codec: int, producer_id: int, hole: int) -> None:
        """Add a batch of values, `hole` offsets longer than they are."""
        span = len(values) + hole
        batch = data_batch(self.end, values, codec, producer_id, span)
        rows = list(enumerate(values, self.end))
        if producer_id < 0:
            self.seen += rows
        else:
            self.firsts.setdefault(producer_id, self.end)
            self.open.setdefault(producer_id, []).extend(rows)
        self._add(batch, span)

    def end_transaction(self, producer_id: int, kind: int) -> None:
        """Add the marker of a transaction, if the producer is in one."""
        if producer_id not in self.open:
            return
        rows, first = self.open.pop(producer_id), self.firsts.pop(producer_id)
        if kind == COMMIT:
            self.seen += rows
        else:
            self.aborted.append((producer_id, first, self.end))
        self._add(marker(self.end, producer_id, kind), 1)

    def append_messages(self, magic: int, values: list[bytes | None], *, is_compressed: bool) -> None:
        """Add messages of an old magic."""
        self.seen += list(enumerate(values, self.end))
        self._add(message_set(magic, self.end, values, is_compressed=is_compressed), len(values))

    def _add(self, batch: bytes, span: int) -> None:
        self.batches.append((self.end, batch))
        self.end += span


class DecodedFetch(NamedTuple):
    """All records of a fetch, and where to read on."""

    offsets: list[int]
    values: list[bytes | None]
    next_offset: int


def decoded(records: bytes, aborted: Iterable[AbortedTransaction], first: int, end: int) -> DecodedFetch:
    """Return what a fetch is decoded to."""
    found = list(decode(records, aborted, first, end))
    offsets = [offset for each in found for offset in each.offsets]
    values = [value for each in found for value in each.values]
    return DecodedFetch(offsets, values, next_offset(records, first))
