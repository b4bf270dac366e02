"""Reads a message whose list of items may be large in parts, so that one message takes no long turn.

What is around the list is read at once, the items on demand. The end is checked after the last part: a
message is exact only if it was read to its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kustos.wire.codec import ELEMENTS_PER_MESSAGE_MAX, READER_ERRORS, MessageCodec
from kustos.wire.message import Message
from kustos.wire.parts import PartReader
from kustos.wire.primitives import MalformedMessageError, TooManyElementsError


class ItemReader:
    """The message that fills the buffer from `offset` to its end, with the list `at` still to be read.

    `message` holds the fields before the list at once, those after it from the last part on; its list is
    None. Raise `MalformedMessageError`, as `read` does.
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
        """Return the reader of the whole message, its list included, however large one item is."""
        return PartReader(self._codec, self._buffer, self._offset)

    def read(self, bytes_max: int) -> tuple[list[Message], int]:
        """Return the next items and their size: one at least, and no further one beyond so many bytes.

        There are none once all were read. The first one alone may be of any size.
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

        Nothing but their names was read: `item_at` reads an item, the others must not go on to anybody.
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
        """Return the item at an offset that `outline` gave."""
        with self._errors():
            item, _ = self._read_item(self._buffer, offset, len(self._buffer), self._limits)
        return item

    def large_item_at(self, offset: int) -> PartReader:
        """Return the reader of the item at an offset that `outline` gave, however large the item is."""
        return PartReader(self._codec, self._buffer, offset, self._item_name)

    @property
    def position(self) -> int:
        """The offset up to which the message was read."""
        return self._position

    def _advance(self, position: int) -> None:
        """Go on from here; read what follows the list where it ends."""
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
