"""The encoding of values between writer and worker: a few forms, each a pair of functions.

Numbers are big-endian, texts UTF-8, and variable lengths come first in four bytes. No form reads a value that
it does not write, and none allocates more than its bytes justify: a list has no more items than there are
bytes left.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Generic, TypeVar
from uuid import UUID


class WorkersError(Exception):
    """The base class of this package's errors."""


class ChannelError(WorkersError):
    """Bytes that are not a valid message; the receiver closes the channel."""


class WorkerStartError(WorkersError):
    """The worker processes cannot be started, or one of them ended before it served."""

    def __init__(self, text: str, exit_code: int | None = None) -> None:
        super().__init__(text)
        self.exit_code = exit_code
        """The worker's exit code, if it ended by itself."""


T = TypeVar("T")
Kind = TypeVar("Kind", bound=IntEnum)

_LENGTH: Final = struct.Struct(">I")


class Cursor:
    """Reads a body from beginning to end."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        """The number of unread bytes."""
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        """Return the next bytes; raise `ChannelError` if there are fewer."""
        if size > self.left:
            raise ChannelError(f"a message ends {size - self.left} bytes too early")
        start, self._position = self._position, self._position + size
        return self._data[start : self._position]

    def length(self) -> int:
        """Return a length, at most the number of unread bytes."""
        (length,) = _LENGTH.unpack(self.take(_LENGTH.size))
        if length > self.left:
            raise ChannelError(f"a message of {self.left} more bytes claims {length}")
        return int(length)

    def end(self) -> None:
        """Raise `ChannelError` if anything is left."""
        if self.left:
            raise ChannelError(f"a message goes on for {self.left} bytes after its end")


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """One way to write a value. `read` raises `ChannelError`, or ValueError for an invalid value."""

    write: Callable[[bytearray, T], None]
    read: Callable[[Cursor], T]


def _number(code: str) -> Form[int]:
    packing = struct.Struct(code)

    def read(cursor: Cursor) -> int:
        return int(packing.unpack(cursor.take(packing.size))[0])

    return Form(lambda out, value: out.extend(packing.pack(value)), read)


def _write_bytes(out: bytearray, value: bytes) -> None:
    out += _LENGTH.pack(len(value))
    out += value


def _read_flag(cursor: Cursor) -> bool:
    code = cursor.take(1)[0]
    if code > 1:
        raise ChannelError(f"a flag is {code}, it must be 0 or 1")
    return code == 1


INT8: Final = _number(">b")
INT16: Final = _number(">h")
INT32: Final = _number(">i")
INT64: Final = _number(">q")
FLAG: Final[Form[bool]] = Form(lambda out, value: out.append(int(value)), _read_flag)
BYTES: Final[Form[bytes]] = Form(_write_bytes, lambda cursor: cursor.take(cursor.length()))
TEXT: Final[Form[str]] = Form(
    lambda out, value: _write_bytes(out, value.encode()), lambda cursor: BYTES.read(cursor).decode()
)
UUID16: Final[Form[UUID]] = Form(
    lambda out, value: out.extend(value.bytes), lambda cursor: UUID(bytes=cursor.take(16))
)


def optional(form: Form[T]) -> Form[T | None]:
    """Return the form of a value or None."""

    def write(out: bytearray, value: T | None) -> None:
        FLAG.write(out, value is not None)
        if value is not None:
            form.write(out, value)

    return Form(write, lambda cursor: form.read(cursor) if FLAG.read(cursor) else None)


def tuple_of(form: Form[T]) -> Form[tuple[T, ...]]:
    """Return the form of any number of values; each must take a byte at least."""

    def write(out: bytearray, value: tuple[T, ...]) -> None:
        out += _LENGTH.pack(len(value))
        for item in value:
            form.write(out, item)

    return Form(write, lambda cursor: tuple(form.read(cursor) for _ in range(cursor.length())))


def table_of(form: Form[T]) -> Form[Mapping[str, T]]:
    """Return the form of values by name."""

    def write(out: bytearray, value: Mapping[str, T]) -> None:
        out += _LENGTH.pack(len(value))
        for name, item in value.items():
            TEXT.write(out, name)
            form.write(out, item)

    return Form(write, lambda cursor: {TEXT.read(cursor): form.read(cursor) for _ in range(cursor.length())})


def code_of(kind: type[Kind], number: Form[int] = INT8) -> Form[Kind]:
    """Return the form of an enum's member, as its code; ValueError for a code that no member has."""
    return Form(lambda out, value: number.write(out, int(value)), lambda cursor: kind(number.read(cursor)))


def record(value_type: type[T], **forms: Form[Any]) -> Form[T]:
    """Return the form of a value with these fields, in order."""

    def write(out: bytearray, value: T) -> None:
        for name, form in forms.items():
            form.write(out, getattr(value, name))

    def read(cursor: Cursor) -> T:
        return value_type(**{name: form.read(cursor) for name, form in forms.items()})

    return Form(write, read)


def one_of(kinds: Mapping[int, tuple[type[Any], Form[Any]]]) -> Form[Any]:
    """Return the form of a value of one of these types, identified by the number before it."""
    codes = {value_type: code for code, (value_type, _) in kinds.items()}

    def write(out: bytearray, value: Any) -> None:
        code = codes.get(type(value))
        if code is None:
            raise ChannelError(f"`{type(value).__name__}` is not a message or part of one")
        out.append(code)
        kinds[code][1].write(out, value)

    def read(cursor: Cursor) -> Any:
        code = cursor.take(1)[0]
        if code not in kinds:
            raise ChannelError(f"a message has a part of kind {code}, which is unknown")
        return kinds[code][1].read(cursor)

    return Form(write, read)
