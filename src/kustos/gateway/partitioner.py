"""Which partition a key belongs to, as Kafka's own producer says (`BuiltInPartitioner`)."""

from typing import Final

_MASK: Final = 0xFFFF_FFFF
_M: Final = 0x5BD1_E995
_SEED: Final = 0x9747_B28C


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of Kafka's `Utils.murmur2`, as an unsigned number."""
    value = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ word
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15


def partition_of(key: bytes, partition_count: int) -> int:
    """Return the partition of a key among so many."""
    return (murmur2(key) & 0x7FFF_FFFF) % partition_count
