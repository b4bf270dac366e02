"""The codecs of Kafka's batches: gzip, snappy, LZ4 and zstd, none of which may fill the memory.

Arrow has them all, as every worker that makes tables has Arrow; its streams stop at a limit, which the
one-step functions of other libraries do not.
"""

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from kustos.wire import MalformedMessageError, read_uvarint

UNCOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""Most bytes of one batch uncompressed. Compressed it has 1 MB (`message.max.bytes`), unless a broker allows
more, and text shrinks to a tenth or, if it repeats itself, a hundredth. A megabyte of malice is a gigabyte in
gzip and ten in zstd. A task holds a batch in three forms at a time."""

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
_STREAMS: Final = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}

_FIRST_READ_BYTES: Final = 256 * 1024
"""What is read of a stream at first, doubled with each read: no batch costs many calls, and a small one no
memory of a large one."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_BLOCK_LENGTH: Final = struct.Struct(">i")


class CompressionError(Exception):
    """Compressed bytes that are damaged, too large, or of an unknown codec; the text says which."""


def uncompressed(codec: int, data: memoryview) -> bytes:
    """Return what was compressed, by Kafka's codec number; raise `CompressionError`."""
    if codec not in _STREAMS and codec != SNAPPY:
        raise CompressionError(f"its codec {codec} is none of gzip, snappy, LZ4 and zstd")
    parts, total = [], 0
    try:
        for part in _snappy(data) if codec == SNAPPY else _stream(_STREAMS[codec], data):
            parts.append(part)
            total += len(part)
            if total > UNCOMPRESSED_BYTES_MAX:
                raise _too_large()
    except (pa.ArrowException, OSError, MalformedMessageError, struct.error):
        # their texts may quote the bytes
        raise CompressionError("its compressed bytes are damaged") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large() -> CompressionError:
    return CompressionError(f"it has more than {UNCOMPRESSED_BYTES_MAX} bytes uncompressed")


def _stream(name: str, data: memoryview) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.BufferReader(data), name)
    wanted = _FIRST_READ_BYTES
    while part := stream.read(wanted):
        yield part
        wanted *= 2


def _snappy(data: memoryview) -> Iterator[bytes]:
    """Yield the blocks of snappy-java's framing, which Java writes, or librdkafka's only block."""
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        yield _snappy_block(data)
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        (size,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 < size <= len(data) - position:
            raise MalformedMessageError("a block is longer than its bytes")
        yield _snappy_block(data[position : position + size])
        position += size


def _snappy_block(data: memoryview) -> bytes:
    """Return a block; how long it is uncompressed stands at its head."""
    size, _ = read_uvarint(bytes(data[:5]), 0)
    if size > UNCOMPRESSED_BYTES_MAX:
        raise _too_large()
    block: bytes = pa.Codec("snappy").decompress(data, size, asbytes=True)
    return block
