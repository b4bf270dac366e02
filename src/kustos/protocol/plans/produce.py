"""A Produce that repeats an earlier one of its connection except for the records, as is usual for producers.

The bytes around the records of a Produce are its shape. Frames with the same shape are the same request. The
header of each batch is always read, since it determines whether the batch is in a transaction.
"""

from dataclasses import dataclass
from typing import Final

from kustos.protocol.exchange import Exchange
from kustos.protocol.limits import items_max
from kustos.wire import (
    CORRELATION_ID_AT,
    CORRELATION_ID_END,
    MalformedMessageError,
    Shape,
    StreamedMessage,
    is_one_plain_batch,
    read_uvarint,
    uvarint,
)

RECORDS: Final = Shape("topic_data", "partition_data", "records")

SHAPE_BYTES_MAX: Final = 1024
"""The largest shape that is kept, to bound the memory of a connection and the bytes compared by a lookup."""


@dataclass(frozen=True, slots=True)
class ProduceShape:
    """A Produce without its records and correlation id."""

    beginning: bytes
    """API key and version."""
    pieces: tuple[bytes, ...]
    """The bytes after the correlation id, split at the length of each records field."""
    is_flexible: bool
    """Whether lengths of records are unsigned varints (KIP-482)."""

    @classmethod
    def of(cls, frame: bytes, exchange: Exchange) -> "ProduceShape | None":
        """Return the shape of a fully read request; None if the shape is too large to keep."""
        pieces = pieces_of(frame, exchange)
        if sum(map(len, pieces)) > SHAPE_BYTES_MAX:
            return None
        return cls(frame[:CORRELATION_ID_AT], pieces, exchange.codec.flexible)

    def matches(self, frame: bytes) -> bool:
        """Return whether a frame has this shape, with one non-transactional batch for each partition."""
        position, pieces = CORRELATION_ID_END, self.pieces
        if not frame.startswith(pieces[0], position) or not frame.startswith(self.beginning):
            return False
        for piece in pieces[:-1]:
            if not frame.startswith(piece, position):
                return False
            position += len(piece)
            if self.is_flexible:
                try:
                    size, position = read_uvarint(frame, position)
                except MalformedMessageError:
                    return False
                size -= 1
            else:
                size = int.from_bytes(frame[position : position + 4], "big", signed=True)
                position += 4
            end = position + size
            if size < 0 or end > len(frame) or not is_one_plain_batch(frame, position, end):
                return False
            position = end
        return len(frame) - position == len(pieces[-1]) and frame.endswith(pieces[-1])


def pieces_of(frame: bytes, exchange: Exchange) -> tuple[bytes, ...]:
    """Return the bytes around the records of a Produce, beginning after its correlation id."""
    begin = exchange.header.body_offset
    cuts: list[int] = []
    reader = StreamedMessage(
        exchange.codec,
        RECORDS,
        len(frame) - begin,
        lambda _topic, _partition: cuts.append(reader.position),
        lambda _request: (),
        items_max(exchange.header.api_key),
    )
    reader.feed(frame, begin)
    sizes = [
        len(partition.records) for topic in exchange.request.topic_data for partition in topic.partition_data
    ]
    pieces, at = [], CORRELATION_ID_END
    for cut, size in zip(cuts, sizes, strict=True):
        length_bytes = len(uvarint(size + 1)) if exchange.codec.flexible else 4
        pieces.append(frame[at : cut - length_bytes])
        at = cut + size
    return (*pieces, frame[at:])
