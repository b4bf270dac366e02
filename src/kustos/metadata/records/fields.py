"""Readers and writers of single fields, in the flexible encoding that every metadata record uses."""

import struct
from typing import Final
from uuid import UUID

from kustos.metadata.errors import RecordError
from kustos.wire import MalformedMessageError, read_uvarint, uvarint

MAX_STRING_SIZE_BYTES: Final = 0x7FFF
"""Kafka's generated code refuses longer strings, both reading and writing."""

INT8: Final = struct.Struct(">b")
INT16: Final = struct.Struct(">h")
UINT16: Final = struct.Struct(">H")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")


class FieldReader:
    """Reads the bytes of one record; every method raises `RecordError` if they do not fit."""

    __slots__ = ("_data", "_passes_unknown_tags", "_position")

    def __init__(self, data: bytes, position: int = 0, *, passes_unknown_tags: bool = False) -> None:
        self._data = data
        self._position = position
        self._passes_unknown_tags = passes_unknown_tags

    def uvarint(self) -> int:
        """Return an unsigned varint of at most 31 bits."""
        try:
            value, self._position = read_uvarint(self._data, self._position)
        except MalformedMessageError as error:
            raise RecordError(f"a metadata record is malformed: {error}") from None
        return value

    def take(self, size_bytes: int) -> bytes:
        """Return the next bytes."""
        end = self._position + size_bytes
        if end > len(self._data):
            raise RecordError("a metadata record ends inside a field")
        data = self._data[self._position : end]
        self._position = end
        return data

    def number(self, form: struct.Struct) -> int:
        """Return an integer of fixed width."""
        value: int = form.unpack(self.take(form.size))[0]
        return value

    def bytes_(self) -> bytes:
        """Return a compact byte string."""
        data = self._nullable_bytes()
        if data is None:
            raise RecordError("a metadata record has null in a field that cannot be null")
        return data

    def _nullable_bytes(self) -> bytes | None:
        size = self.uvarint() - 1
        return None if size < 0 else self.take(size)

    def string(self) -> str:
        """Return a compact string."""
        return _text(self.bytes_())

    def nullable_string(self) -> str | None:
        """Return a compact string or None."""
        data = self._nullable_bytes()
        return None if data is None else _text(data)

    def uuid(self) -> UUID:
        """Return a UUID."""
        return UUID(bytes=self.take(16))

    def rest(self) -> bytes:
        """Return the remaining bytes."""
        return self.take(len(self._data) - self._position)

    def tags(self) -> list[tuple[int, bytes]]:
        """Return the tagged fields that end a struct."""
        return [(self.uvarint(), self.take(self.uvarint())) for _ in range(self.uvarint())]

    def no_tags(self) -> None:
        """Read the end of a struct without known tagged fields; see `only_tag` for unknown ones."""
        self.only_tag(-1)

    def only_tag(self, known: int) -> bytes | None:
        """Read the tagged fields that end a struct; return the known one, None if it is missing.

        Unknown ones are refused unless `passes_unknown_tags`: a writer of the log must not lose fields that
        it does not know, while a follower may ignore them (KIP-482).
        """
        found = self.tags()
        data = [data for tag, data in found if tag == known]
        if len(data) > 1 or (len(data) < len(found) and not self._passes_unknown_tags):
            raise RecordError("a metadata record has an unknown tagged field")
        return data[0] if data else None

    def end(self) -> None:
        """Raise `RecordError` if bytes remain."""
        if self._position != len(self._data):
            raise RecordError(f"a metadata record has {len(self._data) - self._position} bytes too many")


def _text(data: bytes) -> str:
    if len(data) > MAX_STRING_SIZE_BYTES:
        raise RecordError(f"a string in a metadata record has {len(data)} bytes, 32767 are allowed")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RecordError("a string in a metadata record is not UTF-8") from None


def nullable_string_field(value: str | None) -> bytes:
    """Return a compact string, or null for None."""
    return uvarint(0) if value is None else string_field(value)


def bytes_field(value: bytes) -> bytes:
    """Return a compact byte string."""
    return uvarint(len(value) + 1) + value


def string_field(value: str) -> bytes:
    """Return a compact string; raise `RecordError` for one that Kafka could not read."""
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise RecordError("a text holds half of a surrogate pair, which UTF-8 cannot express") from None
    if len(data) > MAX_STRING_SIZE_BYTES:
        raise RecordError(f"a text has {len(data)} bytes of UTF-8, a record holds at most 32767")
    return bytes_field(data)


def number_field(form: struct.Struct, value: int) -> bytes:
    """Return an integer of fixed width; raise `RecordError` if it does not fit."""
    try:
        return form.pack(value)
    except struct.error:
        raise RecordError(f"the number {value} does not fit its field of {form.size} bytes") from None
