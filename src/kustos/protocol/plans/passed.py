"""An answer of upstream that passes to the client unread, and the rules that say so."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kustos.protocol.opened import throttle_time_in
from kustos.wire import INT32_BYTES, MessageCodec, with_length


class Passed(NamedTuple):
    """An answer that passes unread."""

    throttle_time_ms: int | None
    """How long upstream throttles the connection; None if this version has no such field."""
    frame: bytes
    """What the client gets, length included."""


PassOn: TypeAlias = Callable[[bytes], Passed | None]
"""The rule for an answer: what the client gets for a frame of upstream without its length; None if the answer
must be read. Raises `WireError` if the frame is no answer."""


@dataclass(frozen=True, slots=True)
class SameAnswer:
    """An answer of upstream, and what the client got for it; both without the correlation id."""

    answer: bytes = field(repr=False)
    length: bytes
    """The length of the client's frame, as it begins."""
    reply: bytes = field(repr=False)
    throttle_time_ms: int | None

    def pass_on(self, answer: bytes) -> Passed | None:
        """Return the client's answer; None if upstream's is not the same."""
        if answer[INT32_BYTES:] != self.answer:
            return None
        return Passed(self.throttle_time_ms, b"".join((self.length, answer[:INT32_BYTES], self.reply)))


def pass_any(api_key: int, codec: MessageCodec, answer: bytes) -> Passed:
    """Pass upstream's answer on as it is; raise `WireError` if its header cannot be read."""
    return Passed(throttle_time_in(api_key, codec, answer), with_length(answer))
