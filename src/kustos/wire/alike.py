"""Messages that differ from a known one only in numbers of fixed width, found without reading them.

Two encodings of the known message, with zeros and with ones in all such numbers, show which bits are theirs.
A message with the same bytes elsewhere has the same structure: the same lengths, texts and tagged fields.
"""

from dataclasses import dataclass
from typing import Any, Self

from kustos.wire.codec import MessageCodec
from kustos.wire.message import Message
from kustos.wire.primitives import INT32_BYTES


@dataclass(frozen=True, slots=True)
class AlikeFrames:
    """The frames, without their lengths, that are a known one but for their numbers.

    Correlation id and untagged integers may differ; all else is equal, so what was found of the known frame's
    structure is true of each. Offsets are in the frame.
    """

    size_bytes: int
    fixed: int
    """The bits that are not part of a number, of the frame as one big-endian integer."""
    known: int
    """Those bits in the known frame."""
    number_at: int
    """Where the number is that `number` returns."""

    @classmethod
    def of(cls, codec: MessageCodec, message: Message, frame: bytes, body_at: int, number: str) -> Self:
        """Return the frames like this one, which holds the message; `number` is an int32 at its top."""
        free = _bits(codec, _with_numbers(codec, message, 0), _with_numbers(codec, message, -1))
        place = _bits(codec, message.replace(**{number: 0}), message.replace(**{number: -1}))
        body_bits = 8 * (len(frame) - body_at)
        correlation_id = ((1 << 32) - 1) << 8 * (len(frame) - INT32_BYTES)
        fixed = ((1 << 8 * len(frame)) - 1) & ~(free | correlation_id)
        number_at = body_at + (body_bits - place.bit_length()) // 8
        return cls(len(frame), fixed, int.from_bytes(frame, "big") & fixed, number_at)

    def match(self, frame: bytes) -> bool:
        """Return whether a frame is alike."""
        return len(frame) == self.size_bytes and int.from_bytes(frame, "big") & self.fixed == self.known

    def number(self, frame: bytes) -> int:
        """Return the number in a frame that matches."""
        return int.from_bytes(frame[self.number_at : self.number_at + INT32_BYTES], "big", signed=True)


def _bits(codec: MessageCodec, one: Message, other: Message) -> int:
    """Return the bits in which two encodings of one size differ."""
    return int.from_bytes(codec.encode(one), "big") ^ int.from_bytes(codec.encode(other), "big")


def _with_numbers(codec: MessageCodec, message: Message, number: int) -> Message:
    """Return the message with this number in all untagged integers, at all depths."""

    def changed(value: Any) -> Any:
        if isinstance(value, Message):
            return _with_numbers(codec, value, number)
        if isinstance(value, list):
            return [changed(item) for item in value]
        return number if type(value) is int else value

    return message.replace(
        **{name: changed(getattr(message, name)) for name in codec.untagged(type(message))}
    )
