"""Record batches of audit events for a topic, made smaller until the topic accepts them.

Clients choose the names in their requests, and so the size of the events. The topic must accept events of any
size, because the first event that it rejects would block all others forever. Therefore the sink splits a
batch that is too large in two, and cuts the long texts of an event that is too large for its own batch. The
length and digest of the original text follow each cut text. The event, its principal and its decision stay.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from kustos.authorizer.audit import json_text
from kustos.wire import Record, RecordBatch

BATCH_MAX_BYTES: Final = 512 * 1024
"""The size of one record batch, below the default of `max.message.bytes` (1 MiB)."""

EVENT_MAX_BYTES: Final = 256 * 1024
"""The size of one event with its key: a name of 32,767 bytes, the longest that Kafka's classic strings hold,
fits even with every byte escaped."""

TEXT_MAX_CHARACTERS: Final = 249
"""The characters that remain of a cut text: enough for a whole topic name (Kafka's own limit)."""

DIGEST_CHARACTERS: Final = 100
"""Shorter texts stay whole: a cut text with its digest would not be shorter."""

RECORD_OVERHEAD_BYTES: Final = 64

Headers = tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event as a record."""

    key: str
    line: str
    time_ms: int
    is_shortened: bool = False

    @classmethod
    def of(cls, key: str, line: str, time_ms: int) -> Self:
        """Return the record of an event's JSON line, shortened if it is too large to send."""
        record = cls(key, line, time_ms)
        return record.shortened() if record.size_bytes > EVENT_MAX_BYTES else record

    @property
    def size_bytes(self) -> int:
        """The approximate size of the record in a batch."""
        return len(self.key.encode()) + len(self.line.encode()) + RECORD_OVERHEAD_BYTES

    def shortened(self) -> Self:
        """Return the record with its long texts cut."""
        event = cut_texts(json.loads(self.line))
        return type(self)(cut_texts(self.key), json_text(event), self.time_ms, is_shortened=True)


def cut_texts(value: Any, characters: int = TEXT_MAX_CHARACTERS) -> Any:
    """Return the value with its long texts cut."""
    match value:
        case dict():
            return {name: cut_texts(each, characters) for name, each in value.items()}
        case list():
            return [cut_texts(each, characters) for each in value]
        case str() if len(value) > characters and len(value) > DIGEST_CHARACTERS:
            digest = hashlib.sha256(value.encode(errors="surrogatepass")).hexdigest()
            return f"{value[:characters]}… ({len(value)} characters, sha256 {digest})"
        case _:
            return value


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Records of one partition, encoded."""

    records: tuple[EventRecord, ...]
    encoded: bytes
    headers: Headers = ()
    """The headers of each record."""

    @classmethod
    def of(cls, records: Iterable[EventRecord], headers: Headers = ()) -> Self:
        """Return the batch of at least one record."""
        items = tuple(records)
        base_ms = items[0].time_ms
        batch = RecordBatch(
            0,
            -1,
            tuple(
                Record(delta, item.line.encode(), item.key.encode(), item.time_ms - base_ms, headers)
                for delta, item in enumerate(items)
            ),
            last_offset_delta=len(items) - 1,
            base_timestamp_ms=base_ms,
            max_timestamp_ms=max(item.time_ms for item in items),
        )
        return cls(items, batch.encode(), headers)

    @property
    def shortened_events(self) -> int:
        """The number of events whose texts were cut."""
        return sum(record.is_shortened for record in self.records)

    def smaller(self) -> tuple[Self, ...]:
        """Return smaller batches that replace this one; empty if it cannot be smaller."""
        if len(self.records) > 1:
            middle = len(self.records) // 2
            halves = self.records[:middle], self.records[middle:]
            return tuple(type(self).of(half, self.headers) for half in halves)
        (record,) = self.records
        return () if record.is_shortened else (type(self).of([record.shortened()], self.headers),)


def batches_of(records: Iterable[EventRecord], headers: Headers = ()) -> Iterator[EventBatch]:
    """Yield batches of records, in order, each small enough for a topic with Kafka's defaults."""
    chunk: list[EventRecord] = []
    size = 0
    for record in records:
        if chunk and size + record.size_bytes > BATCH_MAX_BYTES:
            yield EventBatch.of(chunk, headers)
            chunk, size = [], 0
        chunk.append(record)
        size += record.size_bytes
    if chunk:
        yield EventBatch.of(chunk, headers)
