"""Frames and headers, which precede a body.

A frame is an int32 length followed by that many bytes. A request header is version 2 where the API's version
is flexible, else version 1; a response header is version 1 there, else 0, and always 0 for ApiVersions, which
a client must be able to read before it knows the server (KIP-511).
"""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from kustos.wire.codec import MessageCodec
from kustos.wire.primitives import MalformedMessageError, read_uvarint

API_VERSIONS: Final = 18
LENGTH_BYTES: Final = 4
"""The length before each frame."""
API_KEY_END: Final = LENGTH_BYTES + 2
"""Where the API key ends, from the first byte of the length."""

_LENGTH: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
_CORRELATION_ID: Final = struct.Struct(">i")
_RESPONSE: Final = struct.Struct(">ii")
CORRELATION_ID_AT: Final = 4
CORRELATION_ID_END: Final = 8
"""Where the correlation id of a request without its length is: behind API key and version."""

MINIMUM_HEADER_SIZE: Final = _HEADER.size

NO_TAGS: Final = b"\0"
"""The end of a header of a flexible version, except if it has tagged fields."""

HEADER_TAGS_MAX: Final = 64
"""The largest number of tagged fields in a header. No header has any so far (KIP-482), and parsing them costs
time before the client is authenticated."""


class RequestHeader(NamedTuple):
    """The header of a request. `body_offset` is where the body begins in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    had_unknown_tags: bool = False


def read_request_header(frame: bytes, flexible: bool) -> RequestHeader:
    """Return the header of a frame without its length; raise `MalformedMessageError`.

    All tagged fields are unknown: they are skipped and reported.
    """
    if len(frame) < MINIMUM_HEADER_SIZE:
        raise MalformedMessageError(f"a frame of {len(frame)} bytes is too short for a request header")
    api_key, api_version, correlation_id, size = _HEADER.unpack_from(frame)
    position = MINIMUM_HEADER_SIZE
    client_id = None
    if size >= 0:
        end = position + size
        if end > len(frame):
            raise MalformedMessageError("the frame ends inside the client id")
        try:
            client_id = frame[position:end].decode()
        except UnicodeDecodeError:
            raise MalformedMessageError("the client id is not UTF-8") from None
        position = end
    elif size != -1:
        raise MalformedMessageError("the client id has a negative length")
    had_unknown_tags = False
    if flexible:
        position, had_unknown_tags = _skip_tags(frame, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position, had_unknown_tags)


def _skip_tags(frame: bytes, position: int) -> tuple[int, bool]:
    if frame[position : position + 1] == NO_TAGS:
        return position + 1, False
    count, position = read_uvarint(frame, position)
    if count > HEADER_TAGS_MAX:
        raise MalformedMessageError(f"the header has {count} tagged fields, more than {HEADER_TAGS_MAX}")
    last = -1
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
        if tag <= last or position > len(frame):
            raise MalformedMessageError("the header's tagged fields are out of order or too long")
        last = tag
    return position, count > 0


def peek_api(frame: bytes) -> tuple[int, int, int]:
    """Return (API key, version, correlation id) of a frame that may not be a request."""
    if len(frame) < MINIMUM_HEADER_SIZE:
        raise MalformedMessageError(f"a frame of {len(frame)} bytes is too short for a request header")
    api_key, api_version, correlation_id, _ = _HEADER.unpack_from(frame)
    return api_key, api_version, correlation_id


def correlation_id_of(frame: bytes) -> int:
    """Return the correlation id of a request that is as long as a header."""
    number: int = _CORRELATION_ID.unpack_from(frame, CORRELATION_ID_AT)[0]
    return number


def without_correlation_id(frame: bytes) -> bytes:
    """Return the bytes of a request that all requests like it share."""
    return frame[:CORRELATION_ID_AT] + frame[CORRELATION_ID_END:]


def with_correlation_id(rest: bytes) -> bytes:
    """Return a request of these shared bytes; its correlation id is 0."""
    return rest[:CORRELATION_ID_AT] + _CORRELATION_ID.pack(0) + rest[CORRELATION_ID_AT:]


def request_frame(
    codec: MessageCodec, api_key: int, correlation_id: int, client_id: str | None, body: bytes
) -> bytes:
    """Return a whole request, length prefix included."""
    name = b"" if client_id is None else client_id.encode()
    header = _HEADER.pack(api_key, codec.version, correlation_id, -1 if client_id is None else len(name))
    tags = b"\0" if codec.flexible else b""
    return b"".join((_LENGTH.pack(len(header) + len(name) + len(tags) + len(body)), header, name, tags, body))


def response_header_is_flexible(api_key: int, codec: MessageCodec) -> bool:
    """Return whether a response of this codec has a header with tagged fields."""
    return codec.flexible and api_key != API_VERSIONS


def response_frame(api_key: int, codec: MessageCodec, correlation_id: int, body: bytes) -> bytes:
    """Return a whole response, length prefix included."""
    # `response_header_is_flexible`, inlined as it is used for every answer
    if codec.flexible and api_key != API_VERSIONS:
        return _RESPONSE.pack(4 + len(NO_TAGS) + len(body), correlation_id) + NO_TAGS + body
    return _RESPONSE.pack(4 + len(body), correlation_id) + body


def read_response_header(frame: bytes, flexible: bool) -> tuple[int, int]:
    """Return (correlation id, offset of the body) of a frame without its length."""
    if len(frame) < 4:
        raise MalformedMessageError(f"a frame of {len(frame)} bytes is too short for a response header")
    position = 4
    if flexible:
        position, _ = _skip_tags(frame, position)
    return _CORRELATION_ID.unpack_from(frame)[0], position


def with_length(frame: bytes) -> bytes:
    """Return a frame with its length, as it is sent."""
    return _LENGTH.pack(len(frame)) + frame


class FrameLengthError(MalformedMessageError):
    """The length of a frame, `size`, is refused. `frames` are complete frames before it in the same bytes."""

    def __init__(self, size: int, limit: int, frames: list[bytes]) -> None:
        super().__init__(f"a frame length of {size} is outside 0..{limit}")
        self.size = size
        self.frames = frames


SMALL_PART_BYTES: Final = 65_536
"""Parts of a frame up to this size are joined as they arrive: otherwise a peer that sends byte by byte would
cost an object for each byte, forty times its size."""


class FrameReader:
    """Cuts a stream of bytes into frames; no IO.

    `feed` returns the whole frames, without their lengths. A negative or too large length raises
    `FrameLengthError`: the limit bounds the memory one peer can take. The bytes after the last whole frame
    are kept; another reader with another limit can continue with them. The large parts of a large frame are
    joined once, when the last one arrives.

    The caller may reuse the buffer that it passes: everything is copied from it, each frame once.

    `limit_of` returns the limit of an API (None: `limit`), which applies as soon as the API key of a frame is
    there. A frame that comes whole in one piece is left to its reader. `rest` has bytes that a reader with
    another limit left: the next `feed` returns their frames.
    """

    __slots__ = ("_is_judged", "_limit_of", "_needed", "_parts", "begun_bytes", "limit")

    def __init__(
        self, limit: int, limit_of: Callable[[int], int | None] | None = None, rest: bytes = b""
    ) -> None:
        self._limit_of: Final = limit_of
        self._is_judged = True
        """Whether the incomplete frame is within the limit of its API."""
        self._parts: list[bytes | bytearray] = [rest] if rest else []
        self._needed = LENGTH_BYTES
        self.begun_bytes = len(rest)
        """How many bytes there are of an incomplete frame, its length among them."""
        self.limit = limit

    def feed(self, data: bytes | memoryview) -> list[bytes]:
        """Return the frames completed by these bytes, in order; raise `FrameLengthError`."""
        if self._parts:
            self._keep(data)
            self.begun_bytes += len(data)
            if self.begun_bytes < self._needed:
                if not self._is_judged:
                    self._judge([])
                return []
            if self.begun_bytes == self._needed > LENGTH_BYTES:
                # nearly every large frame: nothing follows it, and it is joined without its length
                head = memoryview(self._parts[0])[LENGTH_BYTES:]
                frame = b"".join((head, *self._parts[1:]))
                self._parts, self._needed, self.begun_bytes = [], LENGTH_BYTES, 0
                return [frame]
            data = self.take_rest()
        available = len(data)
        frames: list[bytes] = []
        position = 0
        while available - position >= LENGTH_BYTES:
            size = _LENGTH.unpack_from(data, position)[0]
            if not 0 <= size <= self.limit:
                self._parts, self.begun_bytes = [bytes(data[position:])], available - position
                raise FrameLengthError(size, self.limit, frames)
            end = position + LENGTH_BYTES + size
            if end > available:
                self._needed = LENGTH_BYTES + size
                break
            frames.append(bytes(data[position + LENGTH_BYTES : end]))
            if end == available:
                return frames
            position = end
        if position < available:
            self._parts, self.begun_bytes = [bytes(data[position:])], available - position
            if self._limit_of is not None:
                self._is_judged = False
                self._judge(frames)
        return frames

    def _judge(self, frames: list[bytes]) -> None:
        """Raise `FrameLengthError` if the incomplete frame is known to exceed the limit of its API."""
        if self._limit_of is None or self._needed == LENGTH_BYTES or self.begun_bytes < API_KEY_END:
            return
        self._is_judged = True
        head = bytes(self._parts[0][:API_KEY_END])
        if len(head) < API_KEY_END:
            head = b"".join(self._parts)
        size = self._needed - LENGTH_BYTES
        limit = self._limit_of(int.from_bytes(head[LENGTH_BYTES:API_KEY_END], "big"))
        if limit is not None and size > limit:
            raise FrameLengthError(size, limit, frames)

    def _keep(self, data: bytes | memoryview) -> None:
        last = self._parts[-1]
        if len(last) + len(data) > SMALL_PART_BYTES:
            self._parts.append(bytes(data))
        elif isinstance(last, bytearray):
            last += data
        else:
            self._parts[-1] = bytearray(last) + data

    def peek(self) -> tuple[int, bytes]:
        """Return the size of the incomplete frame and its first bytes, both without its length.

        Its length must have arrived.
        """
        begun = b"".join(self._parts)
        self._parts = [begun]
        return self._needed - LENGTH_BYTES, begun[LENGTH_BYTES:]

    def take_rest(self) -> bytes:
        """Return and drop the buffered bytes, so that a reader with another limit can continue."""
        rest = b"".join(self._parts)
        self._parts, self._needed, self.begun_bytes = [], LENGTH_BYTES, 0
        return rest
