"""Variable-length integers and the zero UUID; everything of fixed width is `struct`.

An over-long varint (a final zero byte that adds nothing) reads as the same number in a lenient parser, yet is
refused: two parsers that read one frame differently open an attack.
"""

from typing import Final

from kustos.wire.errors import EndsEarlyError, MalformedMessageError

ZERO_UUID: Final = bytes(16)

MAX_UVARINT: Final = 2**31 - 1
"""Lengths and tags are Java ints; no message has a larger one."""


def read_uvarint(buffer: bytes, position: int) -> tuple[int, int]:
    """Return (value, position after it); raise `MalformedMessageError` if over-long or too large."""
    try:
        byte = buffer[position]
        if byte < 0x80:
            return byte, position + 1
        return read_uvarint_tail(buffer, position + 1, byte)
    except IndexError:
        raise EndsEarlyError("the message ends inside a varint") from None


def read_uvarint_tail(buffer: bytes, position: int, first: int) -> tuple[int, int]:
    """Return (value, position after it) of a varint whose first byte has been read."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0:
                raise MalformedMessageError("a varint is longer than its value needs")
            if value > MAX_UVARINT:
                break
            return value, position
    raise MalformedMessageError("a varint does not fit 31 bits")


def uvarint(value: int) -> bytes:
    """Return the shortest encoding of a non-negative integer."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
