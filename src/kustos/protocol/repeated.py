"""Requests that repeat an earlier one of their connection but for their records, as a producer's do.

The same bytes around the records are the same request, and by the same ACLs it gets the same decisions. So
the shape of a Produce that passed whole is kept: the bytes around its records, and what was decided. A frame
with the same bytes there is neither parsed nor decided again: one comparison of versions shows that no ACL
changed since. Its records are read as always, since they say whether they belong to a transaction, and its
decisions are audited as always. Its answer passes unread if it differs from an earlier one in numbers only.

Anything else takes the usual way: another shape, other ACLs, a transaction, records that are not whole
batches.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol.effects import UpstreamAnswer
from kustos.protocol.exchange import Decided, Decider, Exchange, are_still_allowed
from kustos.protocol.limits import items_max
from kustos.wire import (
    AlikeFrames,
    Message,
    MessageCodec,
    RequestHeader,
    Shape,
    StreamedMessage,
    WireError,
    is_one_plain_batch,
    read_uvarint,
    uvarint,
)

RECORDS: Final = Shape("topic_data", "partition_data", "records")

SHAPES_MAX: Final = 4
"""Shapes kept for a connection: a producer with several partitions names them in turning order."""

SHAPE_BYTES_MAX: Final = 1024
"""The largest shape that is kept: it bounds the memory of a connection, and what a search compares."""

TRIES: Final = 8
TRY_AGAIN_AFTER: Final = 100
"""After so many shapes that never came again, a connection keeps one of a hundred: keeping costs as much as
a repetition saves."""

ANSWER_HEADER_BYTES: Final = 5
"""Correlation id, and the number of tagged fields if there are none."""

CORRELATION_ID_AT: Final = 4
HEADER_BYTES: Final = 8
"""API key, version and correlation id."""

Record = Callable[[int, int], Callable[[], None]]
"""Records the decisions of a shape once more, by the correlation id of a request, and the microseconds
since it was read; returns the callback that counts them, for when the request was sent."""


@dataclass(slots=True)
class ProduceShape:
    """A Produce without its records, which passed whole, and what was decided about it.

    It can be repeated once an answer has come that shows what its answers are like.
    """

    beginning: bytes
    """API key and version."""
    pieces: tuple[bytes, ...]
    """What follows the correlation id, cut at each length of records; the last one ends the frame."""
    codec: MessageCodec
    header: RequestHeader
    request: Message
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    topic_names: dict[bytes, str]
    version: int
    """The decider's version by which it was decided."""
    answers: AlikeFrames | None = None
    """What its answers are like."""
    record: Record | None = None
    """Whoever records decisions leaves here how to record those of a repetition."""

    def learn_answer(self, exchange: Exchange, answer: UpstreamAnswer) -> None:
        """Keep what an answer is like that passed as it came, without tagged fields at its end."""
        codec, frame = exchange.response_codec, answer.frame
        body_at = len(frame) - len(answer.body)
        is_usual = 0 < len(frame) <= SHAPE_BYTES_MAX and body_at <= ANSWER_HEADER_BYTES
        if is_usual and "throttle_time" in codec.root.FIELDS:
            self.answers = AlikeFrames.of(codec, answer.message, frame, body_at, "throttle_time")

    @classmethod
    def of(cls, frame: bytes, exchange: Exchange) -> "ProduceShape | None":
        """Return the shape of a request that passed as it came.

        None if it is too large to be kept, or nothing was decided about it.
        """
        pieces, codec, header = pieces_of(frame, exchange), exchange.codec, exchange.header
        is_large = sum(map(len, pieces)) > SHAPE_BYTES_MAX
        if exchange.since_version is None or is_large or not exchange.granted:
            return None
        empty = [
            topic.replace(partition_data=[each.replace(records=None) for each in topic.partition_data])
            for topic in exchange.request.topic_data
        ]
        return cls(
            frame[:CORRELATION_ID_AT],
            pieces,
            codec,
            header,
            exchange.request.replace(topic_data=empty),
            exchange.context,
            tuple(exchange.granted),
            exchange.topic_names,
            exchange.since_version,
        )

    def matches(self, frame: bytes) -> bool:
        """Return whether a frame is this request with one batch for each partition, in no transaction.

        Raise `MalformedMessageError` for a length that is none.
        """
        position, pieces = HEADER_BYTES, self.pieces
        if not frame.startswith(pieces[0], position) or not frame.startswith(self.beginning):
            return False
        for piece in pieces[:-1]:
            if not frame.startswith(piece, position):
                return False
            position += len(piece)
            if self.codec.flexible:
                size, position = read_uvarint(frame, position)
                size -= 1
            else:
                size = int.from_bytes(frame[position : position + 4], "big", signed=True)
                position += 4
            end = position + size
            if size < 0 or end > len(frame) or not is_one_plain_batch(frame, position, end):
                return False
            position = end
        return len(frame) - position == len(pieces[-1]) and frame.endswith(pieces[-1])


@dataclass(slots=True)
class Repetition:
    """A request that differs from one that passed whole only by its records and its number."""

    shape: ProduceShape
    frame: bytes
    answers: AlikeFrames
    """What its answer is like if it passes unread."""
    decider: Decider
    correlation_id: int
    """The number that the client gave it."""

    def is_still_allowed(self) -> bool:
        """Return whether every decision that lets it pass would still allow it."""
        shape = self.shape
        return are_still_allowed(shape.decided, self.decider, shape.version)


def pieces_of(frame: bytes, exchange: Exchange) -> tuple[bytes, ...]:
    """Return the bytes around the records of a Produce, from behind its correlation id on."""
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
    pieces, at = [], HEADER_BYTES
    for cut, size in zip(cuts, sizes, strict=True):
        length_bytes = len(uvarint(size + 1)) if exchange.codec.flexible else 4
        pieces.append(frame[at : cut - length_bytes])
        at = cut + size
    return (*pieces, frame[at:])


@dataclass(slots=True)
class RepeatedRequests:
    """The shapes of one connection, the newest first."""

    shapes: deque[ProduceShape] = field(default_factory=lambda: deque(maxlen=SHAPES_MAX))
    _in_vain: int = 0
    """How many requests were not repeated since the last that was."""

    def find(self, frame: bytes, version: int | None) -> ProduceShape | None:
        """Return the shape of a frame that repeats a request; `version` is the decider's now."""
        for shape in self.shapes:
            if shape.version == version:
                try:
                    if shape.matches(frame):
                        self._in_vain = 0
                        return shape
                except WireError:
                    # the usual way says what is wrong
                    return None
        return None

    def keep(self, frame: bytes, exchange: Exchange) -> ProduceShape | None:
        """Return the shape of a request that passed as it came, with all that was decided about it.

        None if it is not kept.
        """
        known = self.find(frame, exchange.since_version)
        if known is not None:
            return known
        self._in_vain += 1
        if self._in_vain > TRIES and self._in_vain % TRY_AGAIN_AFTER:
            return None
        shape = ProduceShape.of(frame, exchange)
        if shape is not None:
            self.shapes.appendleft(shape)
        return shape

    def forget(self) -> None:
        """Forget everything, since the requester changed."""
        self.shapes.clear()
