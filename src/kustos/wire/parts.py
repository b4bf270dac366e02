"""Reads and writes a message in parts, so that a large one takes no long turn of an event loop.

A part is as many array elements as the caller wants, at all depths. What is read is checked as strictly as a
whole message is; what is written are the same bytes.
"""

from typing import Final

from kustos.wire.codec import ELEMENTS_PER_MESSAGE_MAX, READER_ERRORS, WRITER_ERRORS, MessageCodec
from kustos.wire.message import Message


class PartReader:
    """The message that exactly fills the buffer from `offset` to its end, still to be read.

    With `struct` it is of this class instead, and may end before. `message` is None until its last part was
    read; then `end` is the offset after it, and `had_unknown_tags` whether tagged fields unknown to its
    schema were skipped.
    """

    def __init__(
        self,
        codec: MessageCodec,
        buffer: bytes,
        offset: int,
        struct: str | None = None,
        element_limit: int = ELEMENTS_PER_MESSAGE_MAX,
    ) -> None:
        self._codec: Final = codec
        self._size: Final = len(buffer)
        self._is_whole: Final = struct is None
        self._limit: Final = element_limit
        self._unknown: Final = [element_limit]
        self._pause: Final = [0]
        self._steps: Final = codec.in_parts("read", struct)(
            buffer, offset, self._size, self._unknown, self._pause
        )
        self.message: Message | None = None
        self.end = offset
        self.had_unknown_tags = False

    def read(self, elements_max: int) -> int:
        """Read about so many elements, fewer at the end; return how many. Raises as `decode` does."""
        self._pause[0] = elements_max
        try:
            next(self._steps)
        except StopIteration as done:
            message, position = done.value
            if self._is_whole and position != self._size:
                raise self._codec.bytes_follow(self._size - position) from None
            self.message, self.end, self.had_unknown_tags = message, position, len(self._unknown) > 1
        except READER_ERRORS as error:
            raise self._codec.error_of(error, self._limit) from None
        return elements_max - self._pause[0]


class PartWriter:
    """A message still to be written; `body` has the bytes so far, and all once `is_done`."""

    def __init__(self, codec: MessageCodec, message: Message) -> None:
        self._codec: Final = codec
        self._pause: Final = [0]
        self._out: Final = bytearray()
        self._steps: Final = codec.in_parts("write")(message, self._out, self._pause)
        self.is_done = False

    def write(self, elements_max: int) -> int:
        """Write about so many elements, fewer at the end; return how many. Raises as `encode` does."""
        self._pause[0] = elements_max
        try:
            next(self._steps)
        except StopIteration:
            self.is_done = True
        except WRITER_ERRORS as error:
            raise self._codec.unencodable(error) from error
        return elements_max - self._pause[0]

    @property
    def body(self) -> bytes:
        """The bytes written so far."""
        return bytes(self._out)
