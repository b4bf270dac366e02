"""Reads a message with a possibly large list of items in parts, so that no turn of the event loop is long.

The fields around the list are read at once, the items on demand. The end is checked after the last part: a
message is valid only if it was read to its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kustos.wire.codec import ELEMENTS_PER_MESSAGE_MAX, READER_ERRORS, MessageCodec
from kustos.wire.message import Message
from kustos.wire.parts import PartReader
from kustos.wire.primitives import MalformedMessageError, TooManyElementsError


class ItemReader:
    """The message that fills the buffer from `offset` to its end, with the unread list `at`.

    `message` has the fields before the list from the start, and the fields after it from the last part on;
    its list is None. Raise `MalformedMessageError`, as `read` does.
    """

    def __init__(self, codec: MessageCodec, buffer: bytes, offset: int, at: str) -> None:
        self._codec: Final = codec
        self._buffer: Final = buffer
        self._offset: Final = offset
        self._limits: Final[list[int]] = [ELEMENTS_PER_MESSAGE_MAX]
        around = codec.split(codec.root, at)
        self._tail: Final = around.tail
        self._item_name: Final = codec.root.ELEMENTS[at].__name__
        self._read_item: Final = codec.reader(codec.root.ELEMENTS[at])
        self._outline: Final = codec.outliner(codec.root.ELEMENTS[at], "name")
        self.is_done = False
        """Whether the message was read to its end."""
        with self._errors():
            (self.message, count), self._position = around.head(buffer, offset, len(buffer), self._limits)
            self._left = max(0, count)
            self._limits[0] -= self._left
            if self._limits[0] < 0:
                raise TooManyElementsError

    def whole(self) -> PartReader:
        """Return the reader of the whole message with its list, for items of any size."""
        return PartReader(self._codec, self._buffer, self._offset)

    def read(self, bytes_max: int) -> tuple[list[Message], int]:
        """Return the next items and their size: at least one item, and no further ones beyond this size.

        The result is empty after the last item. The first item may have any size.
        """
        items: list[Message] = []
        begin = position = self._position
        buffer, end = self._buffer, len(self._buffer)
        with self._errors():
            while self._left and (not items or position - begin < bytes_max):
                item, position = self._read_item(buffer, position, end, self._limits)
                items.append(item)
                self._left -= 1
            self._advance(position)
        return items, position - begin

    def outline(self, bytes_max: int) -> tuple[list[tuple[Any, int]], int]:
        """Return the names of the next items with their offsets, and their size, as `read` does.

        Only their names were parsed: `item_at` parses an item; unparsed items must not be forwarded.
        """
        found: list[tuple[Any, int]] = []
        begin = position = self._position
        buffer, end, outline = self._buffer, len(self._buffer), self._outline
        with self._errors():
            while self._left and (not found or position - begin < bytes_max):
                at = position
                name, position = outline(buffer, at, end, self._limits)
                found.append((name, at))
                self._left -= 1
            self._advance(position)
        return found, position - begin

    def item_at(self, offset: int) -> Message:
        """Return the item at an offset that `outline` returned."""
        with self._errors():
            item, _ = self._read_item(self._buffer, offset, len(self._buffer), self._limits)
        return item

    def large_item_at(self, offset: int) -> PartReader:
        """Return the reader of the item at an offset that `outline` returned, for items of any size."""
        return PartReader(self._codec, self._buffer, offset, self._item_name)

    @property
    def position(self) -> int:
        """The offset up to which the message was read."""
        return self._position

    def _advance(self, position: int) -> None:
        """Continue from this offset; at the end of the list, read the fields after it."""
        self._position = position
        if self._left or self.is_done:
            return
        end = len(self._buffer)
        self.message, self._position = self._tail(self.message, self._buffer, position, end, self._limits)
        self.is_done = True
        if self._position != end:
            raise MalformedMessageError(f"{end - self._position} bytes follow")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise what a generated reader raises as `MalformedMessageError` that names the message."""
        try:
            yield
        except READER_ERRORS as error:
            raise self._codec.error_of(error) from None
