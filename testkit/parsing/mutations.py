"""Requests of every API and version, and what an attacker may make of their bytes.

A mutation changes bytes without knowing their meaning, except for the tagged fields that end a request: their
number, order, tags and sizes are what two parsers most easily read in two ways.
"""

from collections.abc import Callable
from random import Random
from typing import Final

from kustos.protocol import ADMIN_OFFERED
from kustos.wire import MalformedMessageError, Message, read_uvarint, request_codec, uvarint
from kustos.wire.api_keys import ApiKey
from testkit.protocol.driver import OFFERED
from testkit.protocol.random_requests import frame_of, model, random_request

EVERY_VERSION: Final = sorted(
    (key, version)
    for key, (lowest, highest) in (ADMIN_OFFERED | OFFERED).items()
    for version in range(lowest, highest + 1)
)
"""All that kustos offers anywhere."""

FRAME_MAX_BYTES: Final = 40_960
MUTATIONS_MAX: Final = 4
SHARE_OF_PRODUCE: Final = 0.1
"""Of the requests drawn: a Produce is read in a second way where it repeats another."""

_HEX: Final = """
00 01 02 7f 80 fe ff 0000 0001 ffff fffe 7fff 8000
00000000 00000001 ffffffff fffffffe 7fffffff 80000000
8000 8100 808000 8080808000 ffffffff07 8080808008 ffffffff0f ffffffffff ffffffff7f 8080808010
c328 eda080 c080 efbbbf f09f9880
0163026869 010000 01000101 01010101 0102 0200000000 0201000000 6301 026300630100
"""
"""Lengths of 1, 2 and 4 bytes; varints that are padded, of 31 and 32 bits, or without an end; texts that are
not UTF-8, or look so; tagged fields that are unknown, or twice."""

PIECES: Final = tuple(map(bytes.fromhex, _HEX.split()))
"""What is inserted, or put in the place of as many bytes."""

LONG_PIECES: Final = (
    # texts of 200 and of 32,768 bytes, and lists of 103 empty texts: lengths of two and three bytes
    b"\xc9\x01" + b"a" * 200,
    b"\x00\xc8" + b"a" * 200,
    b"\x81\x80\x02" + b"a" * 0x8000,
    b"\x68" + b"\x01" * 103,
    b"\x00\x00\x00\x67" + b"\x00\x00" * 103,
)

Mutation = Callable[[Random, bytes], bytes]


def drawn(random: Random, key_and_version: tuple[int, int] | None = None) -> bytes:
    """Return the frame of a request that Kafka reads, without its length."""
    if key_and_version is None:
        is_produce = random.random() < SHARE_OF_PRODUCE
        of = [each for each in EVERY_VERSION if each[0] == ApiKey.PRODUCE] if is_produce else EVERY_VERSION
        key_and_version = random.choice(of)
    message = random_request(*key_and_version, random, model())
    return frame_of(*key_and_version, message, random.randrange(-2, 3))


def mutated(random: Random, frame: bytes) -> bytes:
    """Return a frame changed in one to four places."""
    for _ in range(random.randint(1, MUTATIONS_MAX)):
        frame = random.choice(MUTATIONS)(random, frame)
        if random.random() < 0.5:
            break
    return frame[:FRAME_MAX_BYTES]


def _place(random: Random, frame: bytes) -> int:
    # the header's key, version and number are seldom of interest
    first = 8 if len(frame) > 8 and random.random() < 0.95 else 0
    return random.randint(first, len(frame))


def flip(random: Random, frame: bytes) -> bytes:
    at = _place(random, frame)
    return (
        frame[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in frame[at : at + 1]) + frame[at + 1 :]
    )


def set_byte(random: Random, frame: bytes) -> bytes:
    at = _place(random, frame)
    return (
        frame[:at]
        + bytes((random.choice((0, 1, 2, 127, 128, 255, random.randrange(256))),))
        + frame[at + 1 :]
    )


def truncate(random: Random, frame: bytes) -> bytes:
    return frame[: _place(random, frame)]


def insert(random: Random, frame: bytes) -> bytes:
    at = _place(random, frame)
    return frame[:at] + random.choice(PIECES) + frame[at:]


def overwrite(random: Random, frame: bytes) -> bytes:
    at, piece = _place(random, frame), random.choice(PIECES)
    return frame[:at] + piece + frame[at + len(piece) :]


def replace(random: Random, frame: bytes) -> bytes:
    """Put something longer or shorter in the place of what may be a length."""
    at = _place(random, frame)
    return frame[:at] + random.choice((*PIECES, *LONG_PIECES)) + frame[at + random.choice((1, 1, 2, 4)) :]


def append(random: Random, frame: bytes) -> bytes:
    return frame + random.choice((*PIECES, frame, frame[8:]))


def cut(random: Random, frame: bytes) -> bytes:
    at = _place(random, frame)
    return frame[:at] + frame[at + random.choice((1, 1, 2, 4, 8, 16)) :]


def repeat(random: Random, frame: bytes) -> bytes:
    at = _place(random, frame)
    return frame[:at] + frame[at : at + random.choice((1, 2, 4, 8, 16, 32))] + frame[at:]


def pad(random: Random, frame: bytes) -> bytes:
    """Make a byte a varint that is longer than it needs to be."""
    at = _place(random, frame)
    longer = [bytes((byte | 0x80, *[0x80] * random.randrange(4), 0)) for byte in frame[at : at + 1]]
    return frame[:at] + b"".join(longer) + frame[at + 1 :]


def other_api(random: Random, frame: bytes) -> bytes:
    """Read the bytes of one request as another."""
    key, version = random.choice(EVERY_VERSION)
    return key.to_bytes(2, "big") + version.to_bytes(2, "big") + frame[4:]


def other_version(random: Random, frame: bytes) -> bytes:
    """Read the bytes of one version as the next."""
    version = int.from_bytes(frame[2:4], "big") + random.choice((-1, 1))
    return frame[:2] + (version & 0xFFFF).to_bytes(2, "big") + frame[4:]


def splice(random: Random, frame: bytes) -> bytes:
    """Go on as another request of the same API and version."""
    other = drawn(random)
    return frame[: _place(random, frame)] + other[_place(random, other) :]


def client_id(random: Random, frame: bytes) -> bytes:
    """Change what stands between the number of a request and its body."""
    size = int.from_bytes(frame[8:10], "big", signed=True)
    name = random.choice((b"\xff\xff", b"\0\0", b"\0\2\xc3\x28", b"\xff\xfe", b"\0\3abc", b"\x7f\xff"))
    return frame[:8] + name + frame[10 + max(0, size) :]


def header_tags(random: Random, frame: bytes) -> bytes:
    """Give the header of a flexible version other tagged fields."""
    at = 10 + max(0, int.from_bytes(frame[8:10], "big", signed=True))
    return frame[:at] + _tags(random, _some_tags(random, [])) + frame[at + 1 :]


def last_tags(random: Random, frame: bytes) -> bytes:
    """Change the tagged fields that end the request, if there can be any."""
    key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    if (key, version) not in KNOWN or not request_codec(key, version).flexible:
        return frame
    message, ending = _message(key, version, frame)
    if message is None or not frame.endswith(ending):
        return frame
    return frame[: len(frame) - len(ending)] + _tags(random, _some_tags(random, _entries(ending)))


def _message(key: int, version: int, frame: bytes) -> tuple[Message | None, bytes]:
    """Return the request in a frame, and its tagged fields as they are written."""
    codec = request_codec(key, version)
    begin = 11 + max(0, int.from_bytes(frame[8:10], "big", signed=True))
    try:
        message = codec.decode(frame, begin).message
    except MalformedMessageError:
        return None, b""
    return message, codec.encode_tags(message)


def _entries(ending: bytes) -> list[tuple[int, bytes]]:
    """Return the tags and their values."""
    count, position = read_uvarint(ending, 0)
    found = []
    for _ in range(count):
        tag, position = read_uvarint(ending, position)
        size, position = read_uvarint(ending, position)
        found.append((tag, ending[position : position + size]))
        position += size
    return found


def _some_tags(random: Random, entries: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the entries with others among them: known and unknown tags, twice or in a wrong order."""
    made = list(entries)
    for _ in range(random.randint(1, 3)):
        tag = random.choice((0, 1, 2, 3, 99, 2**31 - 1))
        made.append(random.choice([*entries, (tag, random.choice((b"", b"\0", b"\1", b"\2a", bytes(17))))]))
    if random.random() < 0.6:
        made.sort(key=lambda entry: entry[0])
    return made


def _tags(random: Random, entries: list[tuple[int, bytes]]) -> bytes:
    """Write tagged fields; now and then their number or a size is not what it says."""

    def counted(number: int) -> bytes:
        return uvarint(max(0, number + (random.choice((-1, 1, 5)) if random.random() < 0.05 else 0)))

    return b"".join(
        (counted(len(entries)), *(uvarint(tag) + counted(len(value)) + value for tag, value in entries))
    )


KNOWN: Final = frozenset(EVERY_VERSION)
MUTATIONS: Final[tuple[Mutation, ...]] = (
    flip,
    flip,
    set_byte,
    truncate,
    insert,
    insert,
    overwrite,
    overwrite,
    replace,
    append,
    cut,
    repeat,
    pad,
    other_api,
    other_version,
    splice,
    client_id,
    header_tags,
    last_tags,
    last_tags,
)
