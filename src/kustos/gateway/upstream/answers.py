"""Splits a broker's stream into answers: whole frames, and the parts of a large one for its stream."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from kustos.wire import FrameReader

STREAM_HEAD_BYTES: Final = 9
"""The minimum number of bytes before an answer is streamed: length, correlation id, number of tagged
fields."""


class AnswerStream(Protocol):
    """Passes on an answer while it arrives."""

    def begin(self, size_bytes: int, head: bytes) -> bool:
        """Take the first bytes of a frame of this size, without the length; return False to buffer the frame.

        Raise `MalformedMessageError`.
        """

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raise `MalformedMessageError`."""


class AnswerPart(Enum):
    """The handling of an answer that has not arrived as a whole."""

    NONE = "no part of an answer is there"
    BEGUN = "it is not known yet whether it is streamed"
    GATHERED = "its parts are joined"
    STREAMED = "its parts go to a stream, or are dropped"


class AnswerReader:
    """Splits a stream of bytes into answers of at most `limit` bytes; no IO.

    `part` is the state of the answer that has not arrived as a whole. Call `offer` if it is `BEGUN` after
    `feed`.
    """

    __slots__ = ("_frames", "_left_bytes", "_limit", "_stream", "part")

    def __init__(self, limit: int) -> None:
        self.part = AnswerPart.NONE
        self._limit: Final = limit
        self._frames: Final = FrameReader(limit)
        self._stream: AnswerStream | None = None
        self._left_bytes = 0
        """The number of bytes of the streamed answer that have not arrived."""

    def feed(self, data: bytes) -> Sequence[bytes | None]:
        """Return the answers that these bytes complete, without lengths; None for a streamed one.

        Raise `MalformedMessageError`.
        """
        if self.part is AnswerPart.NONE and len(data) - 4 == int.from_bytes(data[:4], "big") <= self._limit:
            # nearly every read returns one whole answer
            return (data[4:],)
        if self.part is AnswerPart.STREAMED:
            part, data = data[: self._left_bytes], data[self._left_bytes :]
            self._left_bytes -= len(part)
            if self._stream is not None:
                self._stream.feed(part)
            if self._left_bytes:
                return ()
            self.part, self._stream = AnswerPart.NONE, None
            return (None, *self.feed(data)) if data else (None,)
        frames = self._frames.feed(data)
        if not self._frames.begun_bytes:
            self.part = AnswerPart.NONE
        elif frames or self.part is AnswerPart.NONE:
            self.part = AnswerPart.BEGUN
        return frames

    def offer(self, stream_of: Callable[[bytes], AnswerStream | None]) -> None:
        """Stream the answer that has begun, if `stream_of` returns a stream for its first bytes.

        Do nothing if too few bytes have arrived. Raise `MalformedMessageError`.
        """
        if self._frames.begun_bytes < STREAM_HEAD_BYTES:
            return
        size_bytes, head = self._frames.peek()
        self._stream = stream_of(head)
        if self._stream is None or not self._stream.begin(size_bytes, head):
            self.part, self._stream = AnswerPart.GATHERED, None
            return
        self._frames.take_rest()
        self.part, self._left_bytes = AnswerPart.STREAMED, size_bytes - len(head)

    def drop_stream(self) -> None:
        """Pass on nothing more; the reader still reads the streamed answer to its end."""
        self._stream = None

    def take_rest(self) -> None:
        """Drop the bytes of an incomplete answer."""
        self._frames.take_rest()
