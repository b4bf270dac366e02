"""A Produce that repeats an earlier one of its connection but for its records, as a producer's do.

The shape of a Produce that passed whole is kept: the bytes around its records, and what was decided. A frame
with the same bytes there is neither parsed nor decided again. Its records are read as always, since they say
whether they belong to a transaction. Its answer passes unread if it differs from an earlier one in numbers
only.

Anything else takes the usual way: another shape, a transaction, records that are not whole batches.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol.effects import UpstreamAnswer
from kustos.protocol.exchange import Addresses, Decided, Exchange, Record
from kustos.protocol.limits import items_max
from kustos.wire import (
    CORRELATION_ID_AT,
    CORRELATION_ID_END,
    AlikeFrames,
    ApiKey,
    Shape,
    StreamedMessage,
    is_one_plain_batch,
    read_uvarint,
    uvarint,
    with_length,
)

RECORDS: Final = Shape("topic_data", "partition_data", "records")

SHAPE_BYTES_MAX: Final = 1024
"""The largest shape that is kept: it bounds the memory of a connection, and what a search compares."""

ANSWER_HEADER_BYTES: Final = 5
"""Correlation id, and the number of tagged fields if there are none."""


@dataclass(slots=True)
class ProduceShape:
    """A Produce without its records, which passed whole, and what was decided about it.

    It can be repeated once an answer has come that shows what its answers are like.
    """

    beginning: bytes
    """API key and version."""
    pieces: tuple[bytes, ...]
    """What follows the correlation id, cut at each length of records; the last one ends the frame."""
    is_flexible: bool
    """Whether lengths of records are unsigned varints (KIP-482)."""
    acks: int
    context: AuthorizableRequestContext
    decided: tuple[Decided, ...]
    topic_names: dict[bytes, str]
    version: int
    """The decider's version by which it was decided."""
    answers: AlikeFrames | None = None
    """What its answers are like."""
    record: Record | None = None
    """Whoever records decisions leaves here how to record those of a repetition."""

    api_key: ClassVar[int] = ApiKey.PRODUCE

    @property
    def granted(self) -> tuple[Decided, ...]:
        """What lets a repetition pass: all that was decided."""
        return self.decided

    def sent(self, frame: bytes) -> bytes:
        """Return the whole frame to send upstream for a repetition: the client's own."""
        return with_length(frame)

    def pass_on(self, answer: bytes) -> tuple[int | None, bytes] | None:
        """Return the throttle time of upstream's answer and the client's frame; None if it must be read."""
        if self.answers is None or not self.answers.match(answer):
            return None
        return self.answers.number(answer), with_length(answer)

    def teach(self, _addresses: Addresses) -> None:
        """Do nothing: an answer that passes unread has no tagged fields, so it names no brokers (KIP-951)."""

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
        pieces = pieces_of(frame, exchange)
        is_large = sum(map(len, pieces)) > SHAPE_BYTES_MAX
        if exchange.since_version is None or is_large or not exchange.granted:
            return None
        return cls(
            frame[:CORRELATION_ID_AT],
            pieces,
            exchange.codec.flexible,
            exchange.request.acks,
            exchange.context,
            tuple(exchange.granted),
            exchange.topic_names,
            exchange.since_version,
        )

    def matches(self, frame: bytes) -> bool:
        """Return whether a frame is this request with one batch for each partition, in no transaction.

        Raise `MalformedMessageError` for a length that is none.
        """
        position, pieces = CORRELATION_ID_END, self.pieces
        if not frame.startswith(pieces[0], position) or not frame.startswith(self.beginning):
            return False
        for piece in pieces[:-1]:
            if not frame.startswith(piece, position):
                return False
            position += len(piece)
            if self.is_flexible:
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
    pieces, at = [], CORRELATION_ID_END
    for cut, size in zip(cuts, sizes, strict=True):
        length_bytes = len(uvarint(size + 1)) if exchange.codec.flexible else 4
        pieces.append(frame[at : cut - length_bytes])
        at = cut + size
    return (*pieces, frame[at:])
