"""The parts of DER (X.690) that certificates, names and key stores use: one-byte tags, definite lengths.

Each element must be within its parent. As in OpenSSL and Java, a length may have more bytes than necessary, a
text may contain characters that its type forbids, and a set may be unsorted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final


@unique
class DerTag(IntEnum):
    """The first byte of an element: its type."""

    INTEGER = 0x02
    BIT_STRING = 0x03
    OCTETS = 0x04
    OBJECT_IDENTIFIER = 0x06
    UTC_TIME = 0x17
    GENERALIZED_TIME = 0x18
    SEQUENCE = 0x30
    SET = 0x31


_LENGTH_MAX_BYTES: Final = 4
"""The maximum number of length bytes: the largest store has 4 MiB."""


class DerError(ValueError):
    """The bytes are not DER of the expected shape."""


@dataclass(frozen=True, slots=True)
class DerElement:
    """One element: its tag, its body, and `encoded`, the bytes of both with the length between them."""

    tag: int
    body: bytes = field(repr=False)
    encoded: bytes = field(repr=False)


def der_elements(data: bytes) -> Iterator[DerElement]:
    """Yield the elements that fill these bytes; raise `DerError`."""
    at = 0
    while at < len(data):
        start = at + 2
        length = data[at + 1] if start <= len(data) else -1
        if length & 0x80:
            count = length & 0x7F
            if not 1 <= count <= _LENGTH_MAX_BYTES:
                raise DerError("a length is cut off, indefinite or too long")
            start, length = start + count, int.from_bytes(data[start : start + count], "big")
        end = start + length
        if end > len(data):
            raise DerError("an element is longer than the bytes around it")
        yield DerElement(data[at], data[start:end], data[at:end])
        at = end


def der_bodies(data: bytes, tag: int) -> list[bytes]:
    """Return the bodies of all elements, which must have this tag; raise `DerError`."""
    found = list(der_elements(data))
    if any(each.tag != tag for each in found):
        raise DerError(f"only elements with tag {tag:#x} are expected")
    return [each.body for each in found]


def der_body(data: bytes, tag: int) -> bytes:
    """Return the body of the only element, which must have this tag; raise `DerError`."""
    found = der_bodies(data, tag)
    if len(found) != 1:
        raise DerError(f"one element with tag {tag:#x} is expected, not {len(found)}")
    return found[0]


def der_fields(data: bytes, *tags: int) -> list[DerElement]:
    """Return all elements, which must begin with these tags, in order; raise `DerError`."""
    found = list(der_elements(data))
    if tuple(each.tag for each in found[: len(tags)]) != tags:
        raise DerError(f"elements with tags {', '.join(map(hex, tags))} are expected")
    return found
