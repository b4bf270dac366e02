"""Upstream answers that pass to the client without decoding, and the rules for them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kustos.protocol.opened import throttle_time_in
from kustos.wire import INT32_BYTES, MessageCodec, with_length


class Passed(NamedTuple):
    """An answer that passes without decoding."""

    throttle_time_ms: int | None
    """The throttle time of the connection; None if this version has no such field."""
    frame: bytes
    """The client's frame, including its length prefix."""


PassOn: TypeAlias = Callable[[bytes], Passed | None]
"""The rule for an answer: upstream's frame without its length → the client's answer, or None if the answer
must be decoded. Raises `WireError` if the frame is not an answer."""


@dataclass(frozen=True, slots=True)
class SameAnswer:
    """An answer of upstream and the client's answer for it, both without the correlation id."""

    answer: bytes = field(repr=False)
    length: bytes
    """The length prefix of the client's frame."""
    reply: bytes = field(repr=False)
    throttle_time_ms: int | None

    def pass_on(self, answer: bytes) -> Passed | None:
        """Return the client's answer; None if upstream's is not the same."""
        if answer[INT32_BYTES:] != self.answer:
            return None
        return Passed(self.throttle_time_ms, b"".join((self.length, answer[:INT32_BYTES], self.reply)))


def pass_any(api_key: int, codec: MessageCodec, answer: bytes) -> Passed:
    """Forward upstream's answer unchanged; raise `WireError` if its header cannot be read."""
    return Passed(throttle_time_in(api_key, codec, answer), with_length(answer))
