"""Reads and writes a message in parts, so that a large message does not block the event loop.

The caller chooses the number of array elements in a part, at all depths. The checks and the written bytes are
the same as for a whole message.
"""

from typing import Final

from kustos.wire.codec import ELEMENTS_PER_MESSAGE_MAX, READER_ERRORS, WRITER_ERRORS, MessageCodec
from kustos.wire.message import Message


class PartReader:
    """An unread message that exactly fills the buffer from `offset` to its end.

    With `struct` it has this class instead, and may end earlier. `message` is None until its last part was
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
        """Read about this number of elements, fewer at the end; return the number. Raises as `decode`
        does."""
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
    """A message that is being written; `body` has the bytes so far, and all bytes when `is_done`."""

    def __init__(self, codec: MessageCodec, message: Message) -> None:
        self._codec: Final = codec
        self._pause: Final = [0]
        self._out: Final = bytearray()
        self._steps: Final = codec.in_parts("write")(message, self._out, self._pause)
        self.is_done = False

    def write(self, elements_max: int) -> int:
        """Write about this number of elements, fewer at the end; return the number. Raises as `encode`
        does."""
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
