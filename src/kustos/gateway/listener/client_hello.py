"""Detects when the first message of a TLS client is whole, without OpenSSL.

OpenSSL takes about 50 kB for a handshake from its first byte on. The handshake therefore begins only when the
client's ClientHello is whole; until then its bytes wait, at most `HELD_MAX_BYTES`.
"""

from typing import Final

HANDSHAKE_RECORD: Final = 0x16
"""The first byte of a TLS connection (RFC 8446, section 5.1)."""

HELLO_MAX_BYTES: Final = 16_384
"""The longest ClientHello: a record has no more (RFC 8446, section 5.1). With a session ticket and keys for
post-quantum cryptography it takes less than 8 KiB."""

HELLO_RECORDS_MAX: Final = 16
"""The maximum number of records in a ClientHello: each read parses all of them again."""

_RECORD_HEADER_BYTES: Final = 5
HELD_MAX_BYTES: Final = HELLO_MAX_BYTES + _RECORD_HEADER_BYTES * HELLO_RECORDS_MAX
"""The size of the longest ClientHello with its records. A client sends no more before the first answer."""

_MESSAGE_HEADER_BYTES: Final = 4
_CLIENT_HELLO: Final = 1


class NoClientHelloError(ValueError):
    """The bytes are not the beginning of a ClientHello, or it is too long, or more bytes follow it."""


def is_whole_hello(data: bytes | bytearray) -> bool:
    """Return whether a client's first bytes contain its whole ClientHello; raise `NoClientHelloError`."""
    if len(data) > HELD_MAX_BYTES:
        raise NoClientHelloError
    message, at, records = bytearray(), 0, 0
    while len(data) - at >= _RECORD_HEADER_BYTES:
        size_bytes = int.from_bytes(data[at + 3 : at + _RECORD_HEADER_BYTES])
        records += 1
        if data[at] != HANDSHAKE_RECORD or size_bytes > HELLO_MAX_BYTES or records > HELLO_RECORDS_MAX:
            raise NoClientHelloError
        at += _RECORD_HEADER_BYTES
        message += data[at : at + size_bytes]
        at += size_bytes
        if len(message) < _MESSAGE_HEADER_BYTES:
            continue
        end = _MESSAGE_HEADER_BYTES + int.from_bytes(message[1:_MESSAGE_HEADER_BYTES])
        if message[0] != _CLIENT_HELLO or end > HELLO_MAX_BYTES:
            raise NoClientHelloError
        if len(message) >= end:
            return True
    return False
