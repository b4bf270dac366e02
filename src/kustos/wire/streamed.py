"""Reads a message while its bytes arrive: records are forwarded unread, all other bytes are checked.

Such a message has a list of items, each with a list of parts, each with records: a Fetch response. The reader
buffers at most the bytes of one struct until it is complete; earlier bytes may be forwarded, because they are
checked. Bytes that must not be forwarded are replaced by the same number of bytes, because the length of the
message was already sent.
"""

import struct
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple

from kustos.wire.codec import MessageCodec, SplitReader
from kustos.wire.message import Message
from kustos.wire.primitives import EndsEarlyError, MalformedMessageError, TooManyElementsError, uvarint

HELD_BYTES: Final = 64 * 1024
"""From this size on, an incomplete struct is read again only when its buffered size has doubled."""

PADDING_TAGS: Final = (127, 16_383)
"""Tags for filler fields; Kafka numbers a struct's tags from 0 and has only a few. There are two, of one and
of two bytes, because the first alone cannot fill every gap."""


class Shape(NamedTuple):
    """The names of a message's fields: its items, their parts, and the records of a part."""

    items: str
    parts: str
    records: str


class StreamedMessage:
    """A message of `size_bytes` that is being read. At the end, `message` is complete except for its records
    (None).

    `on_part(item, part)` is called before the records of a part are forwarded, and raises
    `MalformedMessageError` to prevent that. `on_end(message)` returns messages whose tagged fields may
    replace the received ones, in order of preference; empty if the received ones may be forwarded.
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
        """The number of bytes of records that have not arrived yet."""
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
        """The position of the reader in the buffered and newly fed bytes, for `on_part`."""
        return self._position

    def feed(self, data: bytes, position: int = 0) -> bytes:
        """Return the bytes that may be forwarded, of these and the buffered ones; raise
        `MalformedMessageError`.

        `position`: the start or continuation of the message in `data`; the bytes before it are forwarded,
        too.
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
        """Return the bytes that were read, and buffer the rest."""
        data, position = self._buffer, self._position
        self._buffer = b""
        if position > len(data):
            # records that continue in the next bytes
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
        """Return the result of `read` when all its bytes have arrived."""
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
    """Return the first of these encoded tagged fields (number first) that can be extended to this size.

    A filler field of zeros with an unknown tag, which readers skip (KIP-482), fills the gap. Raise
    `MalformedMessageError` if all of them are too large.
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
