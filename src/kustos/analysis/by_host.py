"""Functions of the client's host, exact over every possible address.

A client's host is an address in Java's `getHostAddress()` form, so all hosts lie on one line of numbers:

    IPv4            2^32 addresses
    IPv6            2^128 - 2^32: without IPv4-mapped addresses, which Java turns into IPv4
    IPv6 with zone  as many again, `fe80:0:0:0:0:0:0:1%eth0`, for every zone that no entry names

`*` is the whole line, a range is one piece of it (an IPv6 range matches zoned addresses too), and an
exact text is one point. An exact text with a zone is a point outside the line, `zoned`. Every other text,
such as `::1`, `localhost` or a range that Kafka cannot parse, matches no client. Two pieces are nested or
disjoint, never partly overlapping, so one sweep with a stack sums any number of pieces.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address
from itertools import pairwise
from typing import Final, NamedTuple

from kustos.acl import WILDCARD, AclValueError, HostRange

_IPV4_COUNT: Final = 1 << 32
_MAPPED: Final = 0xFFFF << 32
_IPV6_COUNT: Final = (1 << 128) - _IPV4_COUNT
IPV6_START: Final = _IPV4_COUNT
ZONED_START: Final = IPV6_START + _IPV6_COUNT
LINE_END: Final = ZONED_START + _IPV6_COUNT

_IPV4: Final = re.compile(
    r"(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})"
)

HOST_PATTERNS_MAX: Final = 65_536
"""Parsed host texts kept in the cache, as many as the authorizer keeps."""


class HostPlace(NamedTuple):
    """A client's host: its number on the line, and its own text if it has a zone."""

    number: int
    zoned: str | None


class HostPattern(NamedTuple):
    """The clients that an entry's host matches: half-open pieces of the line, or one text with a zone."""

    pieces: tuple[tuple[int, int], ...]
    zoned: str | None

    @property
    def matches_nobody(self) -> bool:
        """Whether no client can ever have a matching host."""
        return not self.pieces and self.zoned is None


def _dense(number: int) -> int:
    """Return an IPv6 number, or the end of a piece, with the IPv4 gap closed."""
    return number if number <= _MAPPED else max(_MAPPED, number - _IPV4_COUNT)


def ipv6_number(dense: int) -> int:
    """Return the IPv6 number at a place in either IPv6 part of the line, counted from that part's start."""
    return dense if dense < _MAPPED else dense + _IPV4_COUNT


def ipv6_text(number: int) -> str:
    """Return an IPv6 address as Java prints it: all eight groups."""
    return ":".join(f"{number >> shift & 0xFFFF:x}" for shift in range(112, -1, -16))


def ipv4_text(number: int) -> str:
    """Return an IPv4 address as Java prints it."""
    return ".".join(str(number >> shift & 0xFF) for shift in (24, 16, 8, 0))


def host_text(number: int, zone: str = "zone") -> str:
    """Return the host at a place on the line; a zoned host gets `zone`."""
    if number < IPV6_START:
        return ipv4_text(number)
    if number < ZONED_START:
        return ipv6_text(ipv6_number(number - IPV6_START))
    return f"{ipv6_text(ipv6_number(number - ZONED_START))}%{zone}"


def place_of(host: str) -> HostPlace | None:
    """Return the place of a client's host, None if no client can have it."""
    if _IPV4.fullmatch(host):
        parts = [int(part) for part in host.split(".")]
        return HostPlace(int.from_bytes(bytes(parts)), None) if max(parts) <= 255 else None
    digits, percent, zone = host.partition("%")
    if ":" not in digits or "/" in host or (percent and not zone):
        return None
    try:
        number = int(IPv6Address(digits))
    except ValueError:
        return None
    if ipv6_text(number) != digits or _MAPPED <= number < _MAPPED + _IPV4_COUNT:
        return None
    start = ZONED_START if percent else IPV6_START
    return HostPlace(start + _dense(number), host if percent else None)


@lru_cache(maxsize=HOST_PATTERNS_MAX)
def host_pattern(text: str) -> HostPattern:
    """Return the clients that the host of an entry matches."""
    if text == WILDCARD:
        return HostPattern(((0, LINE_END),), None)
    if "/" not in text:
        place = place_of(text)
        if place is None or place.zoned is not None:
            return HostPattern((), text if place is not None else None)
        return HostPattern(((place.number, place.number + 1),), None)
    try:
        found = HostRange.parse(text)
    except AclValueError:
        return HostPattern((), None)
    if found.bits == 32:
        # 0.0.0.0/32 contains no address
        held = ((found.lowest, found.highest + 1),) if found.lowest <= found.highest else ()
        return HostPattern(held, None)
    low, high = _dense(found.lowest), _dense(found.highest + 1)
    return HostPattern(((IPV6_START + low, IPV6_START + high), (ZONED_START + low, ZONED_START + high)), None)


def _start(step: tuple[int, int]) -> int:
    return step[0]


@dataclass(frozen=True, slots=True)
class ByHost:
    """A function from every host to a number (a set of bits); equal functions compare equal.

    `steps`: each place on the line where the number changes, with the new number. `zoned`: the texts with a
    zone, sorted, whose number differs from the number at their place on the line.
    """

    steps: tuple[tuple[int, int], ...]
    zoned: tuple[tuple[str, int], ...] = ()

    def at(self, place: HostPlace) -> int:
        """Return the number for a client's host."""
        for text, number in self.zoned:
            if text == place.zoned:
                return number
        return self.on_line(place.number)

    def on_line(self, number: int) -> int:
        """Return the number at a place on the line."""
        steps = self.steps
        return steps[0][1] if len(steps) == 1 else steps[bisect_right(steps, number, key=_start) - 1][1]

    def values(self) -> Iterator[int]:
        """Yield each number that some host has, possibly more than once."""
        yield from (value for _, value in self.steps)
        yield from (value for _, value in self.zoned)

    def pieces(self) -> Iterator[tuple[int, int, int]]:
        """Yield the line in pieces: start, end (exclusive), number."""
        for (start, value), (end, _) in pairwise((*self.steps, (LINE_END, 0))):
            yield start, end, value


@lru_cache(maxsize=4096)
def constant(value: int) -> ByHost:
    """Return the function with the same number for every host."""
    return ByHost(((0, value),))


def canonical(steps: list[tuple[int, int]], zoned: Mapping[str, int]) -> ByHost:
    """Return the function with these sorted steps (the last one at a place wins) and zoned texts."""
    kept: list[tuple[int, int]] = []
    for start, value in steps:
        if kept and kept[-1][0] == start:
            kept.pop()
        if not kept or kept[-1][1] != value:
            kept.append((start, value))
    line = ByHost(tuple(kept))
    if not zoned:
        return line if len(kept) > 1 else constant(kept[0][1])
    odd = [
        (text, value) for text, value in sorted(zoned.items()) if line.on_line(_line_number(text)) != value
    ]
    return ByHost(line.steps, tuple(odd))


def _line_number(zoned: str) -> int:
    place = place_of(zoned)
    if place is None:
        raise ValueError(zoned)
    return place.number


def summed(row: Mapping[str, int], decide: Callable[[int], int]) -> ByHost:
    """Return `decide` of the combined bits of all host texts (text to bits) that match each host."""
    whole = row.get(WILDCARD, 0)
    if len(row) == (WILDCARD in row):
        return constant(decide(whole))
    pieces: list[tuple[int, int, int]] = []
    zoned: dict[str, int] = {}
    for text, bits in row.items():
        if text != WILDCARD:
            pattern = host_pattern(text)
            pieces += [(start, -end, bits) for start, end in pattern.pieces]
            if pattern.zoned is not None:
                zoned[text] = zoned.get(text, 0) | bits
    steps = [(0, whole)]
    stack = [(LINE_END, whole)]
    # the end is negated, so the longer of two pieces with the same start comes first
    for start, minus_end, bits in (*sorted(pieces), (LINE_END, -LINE_END, 0)):
        while len(stack) > 1 and stack[-1][0] <= start:
            end, _ = stack.pop()
            steps.append((end, stack[-1][1]))
        if start < LINE_END:
            stack.append((-minus_end, stack[-1][1] | bits))
            steps.append((start, stack[-1][1]))
    line = canonical([step for step in steps if step[0] < LINE_END], {})
    at_zoned = {text: decide(line.on_line(_line_number(text)) | bits) for text, bits in zoned.items()}
    return canonical([(start, decide(bits)) for start, bits in line.steps], at_zoned)


def mapped(function: ByHost, change: Callable[[int], int]) -> ByHost:
    """Return the function with `change` applied to each number."""
    steps = [(start, change(value)) for start, value in function.steps]
    return canonical(steps, {text: change(value) for text, value in function.zoned})


def combined(first: ByHost, second: ByHost, join: Callable[[int, int], int]) -> ByHost:
    """Return the function that joins the numbers of two functions for every host."""
    if len(first.steps) == len(second.steps) == 1 and not first.zoned and not second.zoned:
        return constant(join(first.steps[0][1], second.steps[0][1]))
    starts = sorted({start for start, _ in (*first.steps, *second.steps)})
    steps = [(start, join(first.on_line(start), second.on_line(start))) for start in starts]
    texts = {text for text, _ in (*first.zoned, *second.zoned)}
    places = {text: HostPlace(_line_number(text), text) for text in texts}
    return canonical(steps, {text: join(first.at(place), second.at(place)) for text, place in places.items()})
