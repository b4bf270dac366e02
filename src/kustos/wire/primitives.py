"""Variable-length integers and UUIDs, and the package's errors; everything else of fixed width is `struct`.

A lenient parser accepts an over-long varint (with a redundant final zero byte), but kustos refuses it: an
attacker could use a frame that two parsers read differently. UUIDs have the form of Kafka's `Uuid`.
"""

import base64
import re
from typing import Final
from uuid import UUID

from kustos.runtime import Entropy


class WireError(Exception):
    """The base class of this package's errors."""


class MalformedMessageError(WireError):
    """The peer sent bytes that are not exactly one message of the schema; the connection must be closed."""


class EndsEarlyError(MalformedMessageError):
    """The bytes end inside the message: a reader of arriving bytes waits for more."""


class TooManyElementsError(MalformedMessageError):
    """The message has more array elements and tagged fields than the reader allows."""


class UnsupportedMessageError(WireError):
    """No schema is known for this API and version."""


class UnencodableMessageError(WireError):
    """A value cannot be encoded with its schema: a bug in kustos or a lossy downgrade."""


INT32_BYTES: Final = 4

ZERO_UUID: Final = bytes(16)
_UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_DASH: Final = 0x3E
"""The six bits that URL-safe Base64 writes as a dash."""

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


def uuid_text(value: UUID) -> str:
    """Return Kafka's text form of a UUID: 22 characters of URL-safe Base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_of_text(text: str) -> UUID:
    """Return the UUID of 22 characters of URL-safe Base64; raise `ValueError` for any other text."""
    if _UUID_TEXT.fullmatch(text) is None:
        raise ValueError(f"`{text}` is not a UUID in 22 characters of URL-safe Base64")
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def new_uuid(entropy: Entropy) -> UUID:
    """Return a random UUID whose text does not begin with a dash, which tools would parse as an option."""
    while (uuid := entropy.uuid()).bytes[0] >> 2 == _DASH:
        continue
    return uuid
