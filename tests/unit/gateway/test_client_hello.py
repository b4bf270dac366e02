"""The ClientHello is complete in any pieces and records, within limits."""

import itertools
import ssl

import pytest

from kustos.gateway.listener.client_hello import (
    HELD_MAX_BYTES,
    HELLO_MAX_BYTES,
    HELLO_RECORDS_MAX,
    NoClientHelloError,
    is_whole_hello,
)
from testkit.hellos import client_hello


def records(message: bytes, *sizes: int) -> bytes:
    """Return a message split into records of these sizes, the last one with the rest."""
    ends = [*itertools.accumulate(sizes), len(message)]
    parts = [message[begin:end] for begin, end in itertools.pairwise([0, *ends])]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in parts)


def message_of(size_bytes: int) -> bytes:
    return b"\x01" + (size_bytes - 4).to_bytes(3) + bytes(size_bytes - 4)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("sizes", [(), (1,), (3, 1), (4, 0, 100), (1,) * (HELLO_RECORDS_MAX - 1)])
def test_each_prefix_of_a_client_hello_is_incomplete(version: ssl.TLSVersion, sizes: tuple[int, ...]) -> None:
    data = records(client_hello(b"kafka.example", version)[5:], *sizes)
    assert not any(is_whole_hello(data[:size]) for size in range(len(data)))
    assert is_whole_hello(data)
    assert is_whole_hello(data + b"what follows")


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x40\x01",
        b"\x15\x03\x01\x00\x02",
        records(b"\x02\x00\x00\x01\x00"),
        records(b"\x01\x00\x40\x00"),
        records(message_of(4), 1)[:6] + b"\x15\x03\x01\x00\x02",
        b"\x16\x03\x01\x00\x00" * (HELLO_RECORDS_MAX + 1),
        records(message_of(100)) + bytes(HELD_MAX_BYTES),
    ],
    ids=[
        "long record",
        "alert",
        "server",
        "long message",
        "alert amid hello",
        "many records",
        "more behind it",
    ],
)
def test_bytes_that_cannot_become_a_client_hello_within_the_limits_are_rejected(data: bytes) -> None:
    with pytest.raises(NoClientHelloError):
        is_whole_hello(data)


def test_the_buffer_is_limited_to_the_longest_client_hello_with_its_records() -> None:
    longest = records(message_of(HELLO_MAX_BYTES), *[1000] * (HELLO_RECORDS_MAX - 1))
    assert is_whole_hello(longest)
    assert not is_whole_hello(longest[:-1])
    assert len(longest) == HELD_MAX_BYTES
