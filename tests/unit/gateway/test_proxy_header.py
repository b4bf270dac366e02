"""Headers of the PROXY protocol, by the examples and the limits of HAProxy's specification."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.gateway.listener.proxy_header import (
    V1_MAX_BYTES,
    V2_MAX_BYTES,
    V2_SIGNATURE,
    ProxyHeader,
    ProxyHeaderError,
    read_header,
)

LONGEST = b"PROXY TCP6 " + b" ".join([b"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"] * 2) + b" 65535 65535\r\n"


def v2(command: int, family: int, addresses: bytes) -> bytes:
    return V2_SIGNATURE + bytes([command, family]) + len(addresses).to_bytes(2, "big") + addresses


IPV4 = bytes([192, 0, 2, 7, 10, 0, 0, 1]) + (51_234).to_bytes(2, "big") + (9_192).to_bytes(2, "big")
IPV6 = bytes.fromhex("20010db8" + "00" * 11 + "07") + bytes(16) + (51_234).to_bytes(2, "big") + bytes(2)
TLV = b"\x20\x00\x05alice"

HEADERS = {
    b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 9192\r\n": ("192.0.2.7", 51_234),
    b"PROXY TCP6 2001:db8::7 ::1 51234 9192\r\n": ("2001:db8::7", 51_234),
    LONGEST: ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 65_535),
    b"PROXY UNKNOWN\r\n": None,
    b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n": None,
    v2(0x21, 0x11, IPV4): ("192.0.2.7", 51_234),
    v2(0x21, 0x11, IPV4 + TLV): ("192.0.2.7", 51_234),
    v2(0x21, 0x21, IPV6): ("2001:db8::7", 51_234),
    v2(0x21, 0x00, b""): None,
    v2(0x20, 0x00, b""): None,
    v2(0x20, 0x11, IPV4): None,
    v2(0x20, 0x31, bytes(216)): None,
}

REFUSED = {
    "another protocol": b"GET / HTTP/1.1\r\n",
    "a Kafka frame": b"\x00\x00\x00\x20\x00\x12",
    "no family": b"PROXY \r\n",
    "one blank too many": b"PROXY TCP4  192.0.2.7 10.0.0.1 51234 9192\r\n",
    "a name": b"PROXY TCP4 localhost 10.0.0.1 51234 9192\r\n",
    "an address of the other family": b"PROXY TCP4 ::1 ::1 51234 9192\r\n",
    "a zone": b"PROXY TCP6 fe80::1%eth0 ::1 51234 9192\r\n",
    "a port too large": b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 9192\r\n",
    "a port with a sign": b"PROXY TCP4 192.0.2.7 10.0.0.1 +5123 9192\r\n",
    "a port of Arabic digits": "PROXY TCP4 192.0.2.7 10.0.0.1 \u0665\u0661 9192\r\n".encode(),
    "a wrong destination": b"PROXY TCP4 192.0.2.7 10.0.0 51234 9192\r\n",
    "a wrong port of the destination": b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 x\r\n",
    "a line without end": b"PROXY UNKNOWN" + b" " * V1_MAX_BYTES,
    "version 3": v2(0x31, 0x11, IPV4),
    "an unknown command": v2(0x22, 0x11, IPV4),
    "datagrams": v2(0x21, 0x12, IPV4),
    "a Unix socket": v2(0x21, 0x31, bytes(216)),
    "too few addresses": v2(0x21, 0x11, IPV4[:11]),
    "too many fields": v2(0x21, 0x11, IPV4 + bytes(V2_MAX_BYTES)),
}


@pytest.mark.parametrize(("header", "source"), HEADERS.items())
def test_a_header_gives_the_client(header: bytes, source: tuple[str, int] | None) -> None:
    assert read_header(header) == ProxyHeader(len(header), source)


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_ends_before_the_client_bytes_and_no_prefix_suffices(header: bytes) -> None:
    for more in (b"", b"\r\n", b"PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n", bytes(300)):
        found = read_header(header + more)
        assert found is not None
        assert found.size == len(header)
    assert all(read_header(header[:size]) is None for size in range(len(header)))


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        read_header(data)


BEGINNINGS = st.sampled_from(
    [b"", b"PROXY ", b"PROXY TCP4 ", b"PROXY TCP6 ", V2_SIGNATURE, V2_SIGNATURE + b"\x21"]
)


@given(st.tuples(BEGINNINGS, st.binary(max_size=300)).map(b"".join))
def test_any_bytes_are_a_header_a_prefix_or_rejected(data: bytes) -> None:
    try:
        found = read_header(data)
    except ProxyHeaderError:
        # a rejected prefix stays rejected, whatever follows
        with pytest.raises(ProxyHeaderError):
            read_header(data + b"\r\n")
        return
    if found is None:
        assert len(data) < V2_MAX_BYTES
    else:
        assert 0 < found.size <= len(data)
        assert read_header(data[: found.size]) == found
