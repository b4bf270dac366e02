"""The header of the PROXY protocol, versions 1 and 2: the address of a client behind a load balancer.

It follows HAProxy's specification of 2020/03/05. Additional fields of version 2 (TLVs) are skipped: the
balancer copies some of them from the client, so they prove no identity.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final

V1_PREFIX: Final = b"PROXY "
V2_SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"

V1_MAX_BYTES: Final = 107
"""The longest line of version 1, with its end."""

V2_MAX_BYTES: Final = 4_096
"""The maximum size of a version 2 header that is read. Addresses take 52 bytes, a balancer's fields some
hundreds."""

_V2_HEAD_BYTES: Final = 16
_V2_LOCAL, _V2_PROXY = 0x20, 0x21
_V2_UNSPECIFIED: Final = 0x00
_V2_TCP: Final = {0x11: 4, 0x21: 16}
"""Family and transport -> the size of an address; only streams over IPv4 and IPv6 carry Kafka."""

_V1_FAMILIES: Final = {b"TCP4": 4, b"TCP6": 6}
_PORT_MAX_DIGITS: Final = 5


class ProxyHeaderError(ValueError):
    """The bytes are not a PROXY protocol header; the error text contains none of the bytes."""


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """A header of `size` bytes. `source` is the client's address and port, None if the header contains none.

    None means that the balancer itself is the client (LOCAL), or does not know it (UNKNOWN, UNSPEC).
    """

    size: int
    source: tuple[str, int] | None


def is_header(data: bytes) -> bool:
    """Return whether a header begins with these bytes, at least four."""
    return data[:4] in {V1_PREFIX[:4], V2_SIGNATURE[:4]}


def read_header(data: bytes) -> ProxyHeader | None:
    """Return the header at the beginning of the bytes, None if it is incomplete; raise `ProxyHeaderError`."""
    if data.startswith(V2_SIGNATURE[: len(data)]):
        return _read_v2(data)
    if data.startswith(V1_PREFIX[: len(data)]):
        return _read_v1(data)
    raise ProxyHeaderError("the connection does not begin with a header of the PROXY protocol")


def _read_v1(data: bytes) -> ProxyHeader | None:
    line, end, _ = data[:V1_MAX_BYTES].partition(b"\r\n")
    if not end:
        if len(data) >= V1_MAX_BYTES:
            raise ProxyHeaderError(f"the line of version 1 is longer than {V1_MAX_BYTES} bytes")
        return None
    size, words = len(line) + len(end), line.split(b" ")
    if words[1] == b"UNKNOWN":
        return ProxyHeader(size, None)
    if len(words) != 6 or words[1] not in _V1_FAMILIES:
        raise ProxyHeaderError("the line of version 1 is not a family with two addresses and two ports")
    _, family, source, destination, port, destination_port = words
    _v1_address(destination, family)
    _v1_port(destination_port)
    return ProxyHeader(size, (_v1_address(source, family), _v1_port(port)))


def _v1_address(word: bytes, family: bytes) -> str:
    try:
        address = ipaddress.ip_address(word.decode("ascii"))
    except ValueError:
        address = None
    if address is None or address.version != _V1_FAMILIES[family] or b"%" in word:
        raise ProxyHeaderError("an address in the line of version 1 is not one of its family")
    return str(address)


def _v1_port(word: bytes) -> int:
    # `bytes.isdigit` accepts only ASCII digits
    if not word.isdigit() or len(word) > _PORT_MAX_DIGITS or int(word) > 0xFFFF:
        raise ProxyHeaderError("a port in the line of version 1 is not one")
    return int(word)


def _read_v2(data: bytes) -> ProxyHeader | None:
    if len(data) < _V2_HEAD_BYTES:
        return None
    command, family = data[12], data[13]
    size = _V2_HEAD_BYTES + int.from_bytes(data[14:16])
    if command not in {_V2_LOCAL, _V2_PROXY}:
        raise ProxyHeaderError("the header of version 2 has an unknown version or command")
    if size > V2_MAX_BYTES:
        raise ProxyHeaderError(f"the header of version 2 is longer than {V2_MAX_BYTES} bytes")
    if command == _V2_PROXY and family != _V2_UNSPECIFIED and family not in _V2_TCP:
        raise ProxyHeaderError("the header of version 2 is not about TCP over IPv4 or IPv6")
    if len(data) < size:
        return None
    if command == _V2_LOCAL or family == _V2_UNSPECIFIED:
        return ProxyHeader(size, None)
    address_bytes = _V2_TCP[family]
    addresses = data[_V2_HEAD_BYTES:size]
    if len(addresses) < 2 * address_bytes + 4:
        raise ProxyHeaderError("the header of version 2 is too short for its addresses")
    source = ipaddress.ip_address(addresses[:address_bytes])
    port = int.from_bytes(addresses[2 * address_bytes : 2 * address_bytes + 2])
    return ProxyHeader(size, (str(source), port))
