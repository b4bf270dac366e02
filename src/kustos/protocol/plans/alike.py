"""Recognizes answers that differ from a known one only in integers of fixed width, without parsing them.

Two encodings of the known answer, with zeros and with ones in all such integers, show which bits belong to
these integers. If all other bits of an answer are equal, the answer has the same structure: the same lengths,
texts and tagged fields.
"""

from dataclasses import dataclass
from typing import Any, Self

from kustos.protocol.plans.passed import Passed
from kustos.wire import INT32_BYTES, Message, MessageCodec, with_length


@dataclass(frozen=True, slots=True)
class AlikeAnswers:
    """The answers, without their lengths, that equal a known one except for their integers.

    The correlation id and untagged integers may differ. All other bits are equal, so every such answer has
    the structure of the known one. Offsets are relative to the frame.
    """

    size_bytes: int
    fixed: int
    """The mask of the bits outside integers, with the frame as one big-endian integer."""
    known: int
    """The values of these bits in the known answer."""
    throttle_time_at: int
    """The offset of the throttle time."""

    @classmethod
    def of(cls, codec: MessageCodec, message: Message, frame: bytes, body_at: int) -> Self:
        """Return the answers like this frame, whose message begins with the throttle time."""
        free = _bits(codec, _with_numbers(codec, message, 0), _with_numbers(codec, message, -1))
        place = _bits(codec, message.replace(throttle_time=0), message.replace(throttle_time=-1))
        body_bits = 8 * (len(frame) - body_at)
        correlation_id = ((1 << 32) - 1) << 8 * (len(frame) - INT32_BYTES)
        fixed = ((1 << 8 * len(frame)) - 1) & ~(free | correlation_id)
        throttle_time_at = body_at + (body_bits - place.bit_length()) // 8
        return cls(len(frame), fixed, int.from_bytes(frame, "big") & fixed, throttle_time_at)

    def pass_on(self, answer: bytes) -> Passed | None:
        """Return the client's answer for an answer that is alike, None for any other answer.

        An answer that is alike has no tagged fields at its end, so it names no brokers (KIP-951).
        """
        if len(answer) != self.size_bytes or int.from_bytes(answer, "big") & self.fixed != self.known:
            return None
        at = self.throttle_time_at
        throttle_time_ms = int.from_bytes(answer[at : at + INT32_BYTES], "big", signed=True)
        return Passed(throttle_time_ms, with_length(answer))


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
