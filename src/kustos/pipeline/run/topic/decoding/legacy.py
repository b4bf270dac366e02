"""Messages of magic 0 and 1, which brokers before 0.11 wrote and later ones keep as they are.

A compressed message wraps others. Its offset is that of the last of them; theirs are absolute in magic 0, and
count from the first in magic 1 (KIP-31).
"""

import struct
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from kustos.pipeline.run.topic.decoding.compression import uncompressed
from kustos.wire import COMPRESSION_MASK, LENGTH_END

_HEAD: Final = struct.Struct(">qiIbb")
_CRC_COVERS_FROM: Final = 16
_TIMESTAMP_BYTES: Final = 8
_SIZE: Final = struct.Struct(">i")


class DamagedMessageError(Exception):
    """A message that is not whole and intact; the text says what is wrong."""


def legacy_records(message: memoryview) -> Iterator[tuple[int, bytes | None]]:
    """Yield (offset, value) of one whole message, or of those that it wraps.

    Raises `DamagedMessageError` and `CompressionError`.
    """
    offset, magic, codec, value = _read(message)
    if not codec:
        yield offset, None if value is None else bytes(value)
        return
    if value is None:
        raise DamagedMessageError("it is compressed and empty")
    inner = list(_inner(memoryview(uncompressed(codec, value))))
    base = offset - inner[-1][0] if magic and inner else 0
    for its_offset, its_value in inner:
        yield base + its_offset, its_value


def _inner(messages: memoryview) -> Iterator[tuple[int, bytes | None]]:
    position = 0
    while position < len(messages):
        if len(messages) - position < LENGTH_END:
            raise DamagedMessageError("it ends inside a message that it wraps")
        (length,) = _SIZE.unpack_from(messages, position + LENGTH_END - _SIZE.size)
        end = position + LENGTH_END + length
        if length < 0 or end > len(messages):
            raise DamagedMessageError("it ends inside a message that it wraps")
        offset, _, codec, value = _read(messages[position:end])
        if codec:
            raise DamagedMessageError("it wraps a message that wraps others")
        yield offset, None if value is None else bytes(value)
        position = end


def _read(message: memoryview) -> tuple[int, int, int, memoryview | None]:
    """Return (offset, magic, codec, value) of a message whose checksum is right."""
    try:
        offset, _, crc, magic, attributes = _HEAD.unpack_from(message)
        if crc32(message[_CRC_COVERS_FROM:]) != crc:
            raise DamagedMessageError("it fails its checksum")
        if magic not in (0, 1):
            raise DamagedMessageError(f"it has magic {magic}")
        position = _HEAD.size + (_TIMESTAMP_BYTES if magic else 0)
        _, position = _sized(message, position)
        value, position = _sized(message, position)
    except struct.error:
        raise DamagedMessageError("it ends too early") from None
    if position != len(message):
        raise DamagedMessageError("bytes follow after its value")
    return offset, magic, attributes & COMPRESSION_MASK, value


def _sized(message: memoryview, position: int) -> tuple[memoryview | None, int]:
    (size,) = _SIZE.unpack_from(message, position)
    position += _SIZE.size
    if size < 0:
        return None, position
    if position + size > len(message):
        raise DamagedMessageError("it ends inside a key or a value")
    return message[position : position + size], position + size
