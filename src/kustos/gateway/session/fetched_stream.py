"""Streams an answer to the client while it arrives, each part after it was checked.

A large answer is never held as a whole, and the client reads its beginning while the broker still sends its
end. Bytes that were passed on cannot be taken back: bytes that may not pass end the connection.
"""

from collections.abc import Callable
from typing import Final

from kustos.gateway.upstream.addresses import NoPortForBrokerError
from kustos.protocol import AskStreamed, Opened, StreamedAnswer, items_max
from kustos.wire import (
    LENGTH_BYTES,
    MalformedMessageError,
    StreamedMessage,
    read_response_header,
    response_header_is_flexible,
)

ANSWERED_PER_REQUESTED: Final = 2
"""The maximum number of elements in an answer per element of its request; aborted transactions are added to
it."""

ABORTED_MAX: Final = 100_000
"""The maximum number of aborted transactions in one answer, far more than producers can leave in its
records."""


class FetchedStream:
    """An `AnswerStream` that writes to a client; `write` sends bytes."""

    def __init__(self, opened: Opened, ask: AskStreamed, write: Callable[[bytes], None]) -> None:
        self._opened: Final = opened
        self._ask: Final = ask
        self._write: Final = write
        self._message: StreamedMessage | None = None

    def begin(self, size_bytes: int, head: bytes) -> bool:
        """Pass on the beginning of an answer; return False if its header is unusual."""
        message = self._read_header(size_bytes, head)
        if message is None:
            return False
        self._write(size_bytes.to_bytes(LENGTH_BYTES, "big"))
        self._pass(message, head, self._body_at)
        return True

    def feed(self, data: bytes) -> None:
        """Pass on the next bytes."""
        if self._message is not None:
            self._pass(self._message, data, 0)

    def end(self, frame: bytes) -> StreamedAnswer | None:
        """Return the answer after all of it has passed; `frame` is the whole answer, empty if streamed.

        Return None if the answer must change and nothing of it passed. Raise `MalformedMessageError`.
        """
        if frame and not self._pass_whole(frame):
            return None
        message = self._message
        if message is None or not message.is_done:
            raise MalformedMessageError("an answer ended before all of it passed")
        return StreamedAnswer(message.message)

    def _pass_whole(self, frame: bytes) -> bool:
        message = self._read_header(len(frame), frame)
        if message is None:
            return False
        passed = self._fed(message, frame, self._body_at)
        if message.is_altered:
            return False
        self._write(len(frame).to_bytes(LENGTH_BYTES, "big") + passed)
        return True

    def _read_header(self, size_bytes: int, frame: bytes) -> StreamedMessage | None:
        codec, ask = self._opened.answer_codec(), self._ask
        api_key = self._opened.row.api_key
        is_flexible = response_header_is_flexible(api_key, codec)
        if is_flexible and frame[LENGTH_BYTES]:
            # unknown tagged fields: only a new header can omit them
            return None
        _, self._body_at = read_response_header(frame, is_flexible)
        elements_max = ANSWERED_PER_REQUESTED * items_max(api_key) + ABORTED_MAX
        self._message = StreamedMessage(
            codec, ask.shape, size_bytes - self._body_at, ask.on_part, ask.on_end, elements_max
        )
        return self._message

    def _pass(self, message: StreamedMessage, data: bytes, position: int) -> None:
        checked = self._fed(message, data, position)
        if checked:
            self._write(checked)

    def _fed(self, message: StreamedMessage, data: bytes, position: int) -> bytes:
        try:
            return message.feed(data, position)
        except NoPortForBrokerError as error:
            raise MalformedMessageError(str(error)) from error
