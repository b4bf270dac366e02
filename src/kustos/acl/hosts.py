"""Hosts of entries: `*`, one address as text, or (Kafka 4.4, KIP-1235) an address range in CIDR notation.

Addresses are compared as texts in Java's `getHostAddress()` form: IPv4 dotted, IPv6 uncompressed
(`0:0:0:0:0:0:0:1`). A host is a range exactly if it contains a `/`. Kafka parses ranges with commons-net, and
kustos behaves in the same manner: host bits are ignored, `0.0.0.0` is in no IPv4 range, an IPv4 client is in
no IPv6 range, and an unparsable range matches no client. One difference: if a zone is a name, Kafka checks
that the machine has that interface; kustos only checks the syntax.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final, Self

from kustos.acl.enums import WILDCARD
from kustos.acl.values import AclValueError

_IPV4_BITS: Final = 32
_IPV6_BITS: Final = 128
_IPV4: Final = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")
_IPV4_PREFIX: Final = re.compile(r"[0-9]{1,2}")
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")
_QUAD_CHARACTERS_MAX: Final = 15
_ZONE_NAME: Final = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_INT_MAX: Final = 2**31 - 1

PARSED_HOSTS_MAX: Final = 65_536
"""The number of cached addresses and ranges: about 10 MB, and more distinct hosts than a node has clients."""


def _ipv4(text: str) -> int | None:
    match = _IPV4.fullmatch(text)
    if match is None:
        return None
    number = 0
    for part in match.groups():
        if int(part) > 255:
            return None
        number = number << 8 | int(part)
    return number


def java_int(text: str) -> int | None:
    """Parse an integer as Java's `Integer.parseInt` does: decimal digits of any script, one sign, 32 bits."""
    sign = text[:1]
    digits = text[1:] if sign in {"+", "-"} else text
    if not digits.isdecimal() or max(digits) > "\uffff":
        return None
    # Python raises a different error for thousands of digits
    significant = "".join([str(int(digit)) for digit in digits]).lstrip("0")
    if len(significant) > len(str(_INT_MAX)):
        return None
    number = int(significant or "0") * (-1 if sign == "-" else 1)
    return number if -_INT_MAX - 1 <= number <= _INT_MAX else None


def _is_zone(text: str) -> bool:
    if text.isascii() and text.isdecimal():
        return java_int(text) is not None
    return _ZONE_NAME.fullmatch(text) is not None


def java_ipv6(text: str) -> IPv6Address | None:
    """Parse an address as Java's `InetAddress` does: brackets, any number of leading zeros, a zone."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    digits, percent, zone = text.partition("%")
    quad = digits.rpartition(":")[2]
    if "." in quad and len(quad) > _QUAD_CHARACTERS_MAX:
        return None
    try:
        address = IPv6Address(_LEADING_ZEROS.sub("", digits))
    except ValueError:
        return None
    if percent and (address.ipv4_mapped is not None or not _is_zone(zone)):
        return None
    return address


def _ipv6(text: str) -> int | None:
    address = java_ipv6(text)
    # Java converts a v4-mapped address to an IPv4 address, which is in no IPv6 range
    return None if address is None or address.ipv4_mapped is not None else int(address)


@dataclass(frozen=True, slots=True)
class HostRange:
    """A CIDR range: `lowest` and `highest` are the numbers of the first and last address in it."""

    bits: int
    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the range written as `address/prefix`; raise `AclValueError` if Kafka could not parse it."""
        address_text, _, prefix_text = text.partition("/")
        if ":" in text:
            bits, address, prefix = _IPV6_BITS, _ipv6(address_text), java_int(prefix_text)
        else:
            bits, address = _IPV4_BITS, _ipv4(address_text)
            prefix = int(prefix_text) if _IPV4_PREFIX.fullmatch(prefix_text) else None
        if address is None or prefix is None or not 0 <= prefix <= bits:
            raise AclValueError(
                f"host `{text}` is not an address range, write it as `10.0.0.0/8` or `2001:db8::/32`"
            )
        host_bits = (1 << (bits - prefix)) - 1
        lowest = address & ~host_bits
        if bits == _IPV4_BITS:
            # commons-net never finds 0.0.0.0 in a range, not even in 0.0.0.0/0
            lowest = max(lowest, 1)
        return cls(bits, lowest, address | host_bits)

    def __contains__(self, address: tuple[int, int]) -> bool:
        """Return whether an address, as (bits, number), is in the range."""
        bits, number = address
        return bits == self.bits and self.lowest <= number <= self.highest

    def holds(self, other: Self) -> bool:
        """Return whether every address of another range is in this one."""
        return self.bits == other.bits and self.lowest <= other.lowest and other.highest <= self.highest

    def meets(self, other: Self) -> bool:
        """Return whether the two ranges overlap."""
        return self.bits == other.bits and self.lowest <= other.highest and other.lowest <= self.highest


@lru_cache(maxsize=PARSED_HOSTS_MAX)
def _parsed_range(text: str) -> HostRange | None:
    try:
        return HostRange.parse(text)
    except AclValueError:
        return None


@lru_cache(maxsize=PARSED_HOSTS_MAX)
def _parsed_address(text: str) -> tuple[int, int] | None:
    number = _ipv6(text) if ":" in text else _ipv4(text)
    if number is None:
        return None
    return (_IPV6_BITS if ":" in text else _IPV4_BITS, number)


def host_matches(pattern: str, host: str) -> bool:
    """Return whether an entry's host matches this client address (`getHostAddress()` form)."""
    if pattern in (WILDCARD, host):
        return True
    if "/" not in pattern:
        return False
    parsed = _parsed_range(pattern)
    address = _parsed_address(host)
    return parsed is not None and address is not None and address in parsed


def host_holds(outer: str, inner: str) -> bool:
    """Return whether the host `outer` of an entry matches every client address that `inner` matches.

    False in uncertain cases: if `inner` is a range of one address, `10.0.0.1/32`, or a range that matches no
    client.
    """
    if host_matches(outer, inner):
        return True
    around, within = _range_of(outer), _range_of(inner)
    return around is not None and within is not None and around.holds(within)


def hosts_meet(one: str, other: str) -> bool:
    """Return whether two entries' hosts may match the same client address."""
    if host_matches(one, other) or host_matches(other, one):
        return True
    first, second = _range_of(one), _range_of(other)
    return first is not None and second is not None and first.meets(second)


def _range_of(host: str) -> HostRange | None:
    return _parsed_range(host) if "/" in host else None
