"""Reads a message while its bytes arrive: its records pass by unread, everything around them is checked.

Such a message has a list of items, each with a list of parts, each with records: a Fetch response. The reader
keeps the bytes of one struct at most, until it is whole; the bytes before it may go on, since nothing in them
is left to check. What may not go on as it came is replaced by as many bytes, since the length of the message
went ahead.
"""

import struct
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple

from kustos.wire.codec import MessageCodec, SplitReader
from kustos.wire.message import Message
from kustos.wire.primitives import EndsEarlyError, MalformedMessageError, TooManyElementsError, uvarint

HELD_BYTES: Final = 64 * 1024
"""From this size on, a struct that is not whole is read again only when twice as much of it is there."""

PADDING_TAGS: Final = (127, 16_383)
"""Tags for bytes without a meaning; Kafka numbers a struct's tags from 0 and has a handful. There are two, of
one byte and two, since no size of the first fills every gap."""


class Shape(NamedTuple):
    """The names of a message's fields: its items, their parts, and the records of a part."""

    items: str
    parts: str
    records: str


class StreamedMessage:
    """One message of `size_bytes`, in the making. `message` is whole at the end, but for its records (None).

    `on_part(item, part)` is called before a part's records may go on, and raises `MalformedMessageError` if
    they may not. `on_end(message)` returns the messages whose tagged fields may stand in place of those that
    came, the best first: none, if they may stay.
    """

    def __init__(
        self,
        codec: MessageCodec,
        shape: Shape,
        size_bytes: int,
        on_part: Callable[[Message, Message], object],
        on_end: Callable[[Message], Sequence[Message]],
        element_limit: int,
    ) -> None:
        item_type = codec.root.ELEMENTS[shape.items]
        part_type = item_type.ELEMENTS[shape.parts]
        self._codec: Final = codec
        self._shape: Final = shape
        self._root: Final = codec.split(codec.root, shape.items)
        self._item: Final = codec.split(item_type, shape.parts)
        self._part: Final = codec.split(part_type, shape.records)
        self._on_part: Final = on_part
        self._on_end: Final = on_end
        self._left_bytes = size_bytes
        self._elements_left = element_limit
        self._held = b""
        self._retry_bytes = 0
        self._skipped_bytes = 0
        """How many bytes of records are still to come."""
        self._buffer = b""
        self._begin = self._position = 0
        """The last struct that was read, in the buffer."""
        self._unknown_tags = 0
        self._replaced: list[tuple[int, int, bytes]] = []
        self.is_altered = False
        """Whether some bytes were replaced."""
        self.is_done = False
        self.message = codec.new()
        self._reading: Final = self._read()

    @property
    def position(self) -> int:
        """Where the reader is in the bytes that it was fed last, and held before: `on_part` may ask."""
        return self._position

    def feed(self, data: bytes, position: int = 0) -> bytes:
        """Return the bytes that may go on, of these and those held; raise `MalformedMessageError`.

        `position`: where in `data` the message begins or goes on; what is before goes on with it.
        """
        self._left_bytes -= len(data) - position
        if self._left_bytes < 0 or self.is_done:
            raise self._malformed("bytes follow the message")
        if not self._held and self._skipped_bytes > len(data) - position:
            self._skipped_bytes -= len(data) - position
            return data
        if self._held:
            data, position = self._held + data, 0
            self._held = b""
            if len(data) < self._retry_bytes and self._left_bytes:
                self._held = data
                return b""
        self._buffer, self._position = data, position + self._skipped_bytes
        self._skipped_bytes = 0
        self._replaced = []
        try:
            next(self._reading)
        except StopIteration:
            self.is_done = True
        except TooManyElementsError:
            raise self._malformed("it has too many elements") from None
        except UnicodeDecodeError:
            raise self._malformed("it has a string that is not UTF-8") from None
        checked = self._taken()
        if self._left_bytes == 0 and not self.is_done:
            raise self._malformed("it ends too early")
        if self.is_done and self._position != len(data):
            raise self._malformed("bytes follow the message")
        return checked

    def _taken(self) -> bytes:
        """Return what was read, and hold the rest."""
        data, position = self._buffer, self._position
        self._buffer = b""
        if position > len(data):
            # records that go on in the next bytes
            self._skipped_bytes = position - len(data)
            position = len(data)
        elif position < len(data):
            self._held = data[position:]
            self._retry_bytes = 2 * len(self._held) if len(self._held) > HELD_BYTES else 0
        if not self._replaced:
            return data if position == len(data) else data[:position]
        self.is_altered = True
        pieces, at = [], 0
        for begin, end, instead in self._replaced:
            pieces += [data[at:begin], instead]
            at = end
        return b"".join((*pieces, data[at:position]))

    def _read(self) -> Generator[None, None, None]:
        shape = self._shape
        self.message, items = yield from self._whole(self._root.head)
        found: list[Message] = []
        setattr(self.message, shape.items, found)
        self._count(items)
        for _ in range(items):
            item, parts = yield from self._whole(self._item.head)
            read: list[Message] = []
            setattr(item, shape.parts, read)
            found.append(item)
            self._count(parts)
            for _ in range(parts):
                part, size_bytes = yield from self._whole(self._part.head)
                self._on_part(item, part)
                read.append(part)
                yield from self._pass_by(max(0, size_bytes))
                yield from self._end(self._part, part)
            yield from self._end(self._item, item)
        yield from self._end(self._root, self.message)

    def _count(self, elements: int) -> None:
        self._elements_left -= max(0, elements)
        if self._elements_left < 0:
            raise TooManyElementsError

    def _whole(self, read: Callable[..., tuple[Any, int]], *arguments: Any) -> Generator[None, None, Any]:
        """Return what `read` reads, once all of it is there."""
        while True:
            limits = [self._elements_left]
            try:
                value, position = read(*arguments, self._buffer, self._position, len(self._buffer), limits)
            except (EndsEarlyError, IndexError, struct.error):
                yield
                continue
            self._elements_left = limits[0]
            self._unknown_tags = len(limits) - 1
            self._begin, self._position = self._position, position
            return value

    def _pass_by(self, size_bytes: int) -> Generator[None, None, None]:
        self._position += size_bytes
        if self._position > len(self._buffer) + self._left_bytes:
            raise self._malformed("its records are longer than itself")
        if self._position > len(self._buffer):
            yield

    def _end(self, reader: SplitReader, value: Message) -> Generator[None, None, None]:
        yield from self._whole(reader.tail, value)
        allowed = list(self._on_end(value)) if value is self.message else []
        if self._unknown_tags and not allowed:
            allowed = [value]
        if allowed:
            tags = [self._codec.encode_tags(each) for each in allowed]
            instead = filled(tags, self._position - self._begin)
            self._replaced.append((self._begin, self._position, instead))

    def _malformed(self, reason: str) -> MalformedMessageError:
        return MalformedMessageError(f"`{self._codec.name}` v{self._codec.version}: {reason}")


def filled(tags: Sequence[bytes], size_bytes: int) -> bytes:
    """Return the first of these tagged fields (their number first) that can fill so many bytes.

    What is missing is a field of zeros with an unknown tag, which readers skip (KIP-482). Raise
    `MalformedMessageError` if none of them can: then more is to go on than came.
    """
    for each in tags:
        gap = size_bytes - len(each)
        if gap == 0:
            return each
        for tag in PADDING_TAGS:
            # the number of fields takes one byte, so adding one does not change its size
            for length_size in (1, 2, 3, 4):
                zeros = gap - len(uvarint(tag)) - length_size
                if zeros >= 0 and len(uvarint(zeros)) == length_size and each[0] < 0x7F:
                    return b"".join(
                        (bytes((each[0] + 1,)), each[1:], uvarint(tag), uvarint(zeros), bytes(zeros))
                    )
    raise MalformedMessageError("tagged fields do not fit where they came from")
