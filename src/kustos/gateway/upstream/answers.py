"""Reads a broker's answers: whole frames, and the parts of a large one for the stream that passes it on."""

from collections.abc import Iterator
from typing import Final, Protocol

from kustos.wire import FrameReader

STREAM_HEAD_BYTES: Final = 9
"""What must be there of an answer that is streamed: length, correlation id, number of tagged fields."""


class AnswerStream(Protocol):
    """Passes an answer on while it arrives."""

    def begin(self, size_bytes: int, head: bytes) -> bool:
        """Take the first bytes of a frame of this size, the length not among them; False: gather it.

        Raise `MalformedMessageError`.
        """

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raise `MalformedMessageError`."""


class StreamOwner(Protocol):
    """Knows which answer comes next."""

    @property
    def is_closed(self) -> bool:
        """Whether nobody takes answers any more."""

    def gather(self) -> None:
        """Send what follows from several answers together."""

    def stream_of(self, head: bytes) -> AnswerStream | None:
        """Return what takes the answer that begins so, None if it is to be gathered."""


class AnswerReader:
    """Cuts a stream of bytes into answers of at most `limit` bytes; no IO."""

    __slots__ = ("_declined", "_frames", "_left_bytes", "_stream")

    def __init__(self, limit: int) -> None:
        self._frames: Final = FrameReader(limit)
        self._stream: AnswerStream | None = None
        """Takes what comes of the answer that arrives now."""
        self._left_bytes = 0
        self._declined = False
        """Whether the answer that arrives now is gathered."""

    def feed(self, data: bytes, owner: StreamOwner) -> Iterator[bytes | None]:
        """Yield each frame that these bytes complete, None for an answer that was streamed.

        The owner deals with each before the next is read. Raise `MalformedMessageError`.
        """
        if self._stream is not None:
            part, data = data[: self._left_bytes], data[self._left_bytes :]
            self._left_bytes -= len(part)
            # what a closed owner no longer takes is read to its end all the same
            if not owner.is_closed:
                self._stream.feed(part)
            if self._left_bytes:
                return
            self._stream = None
            yield None
        if not data:
            return
        frames = self._frames.feed(data)
        if len(frames) > 1:
            owner.gather()
        for frame in frames:
            self._declined = False
            yield frame
        if self._frames.begun_bytes >= STREAM_HEAD_BYTES and not self._declined:
            self._begin(owner)

    def _begin(self, owner: StreamOwner) -> None:
        """Pass on what has come of an answer that is not whole, if somebody takes it."""
        size_bytes, head = self._frames.peek()
        stream = owner.stream_of(head)
        if stream is None or not stream.begin(size_bytes, head):
            self._declined = True
            return
        self._frames.take_rest()
        self._stream, self._left_bytes = stream, size_bytes - len(head)

    def take_rest(self) -> None:
        """Drop the bytes of an incomplete answer."""
        self._frames.take_rest()
