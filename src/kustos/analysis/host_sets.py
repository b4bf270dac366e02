"""Sets of client hosts, exact and in canonical form."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

from kustos.analysis.by_host import (
    IPV6_START,
    LINE_END,
    ZONED_START,
    ByHost,
    constant,
    host_text,
    ipv6_number,
    mapped,
    place_of,
    summed,
)
from kustos.runtime import LISTED_MAX, listed

_LIKELY: Final = ("10.0.0.1", "192.168.0.1", "203.0.113.7")
_SEGMENTS: Final = (
    (0, IPV6_START, "every IPv4 address"),
    (IPV6_START, ZONED_START, "every IPv6 address without a zone"),
    (ZONED_START, LINE_END, "every IPv6 address with a zone"),
)


@dataclass(frozen=True, slots=True)
class HostSet:
    """A set of client hosts; `member` is 1 for the hosts in the set."""

    member: ByHost

    @classmethod
    def where(cls, function: ByHost, bits: int) -> Self:
        """Return the hosts for which a function has any of these bits."""
        return cls(mapped(function, lambda value: int(value & bits != 0)))

    @property
    def is_everywhere(self) -> bool:
        """Whether the set has every host."""
        return self == ANYWHERE

    @property
    def is_empty(self) -> bool:
        """Whether the set has no host."""
        return self == NOWHERE

    @property
    def order(self) -> tuple[object, ...]:
        """A sort key."""
        return self.member.steps, self.member.zoned

    def __contains__(self, host: str) -> bool:
        """Return whether a client's host is in the set; False for a text not in `getHostAddress()` form."""
        place = place_of(host)
        return place is not None and bool(self.member.at(place))

    def witness(self) -> str:
        """Return a host in the set; raise `ValueError` if the set is empty."""
        for host in _LIKELY:
            if host in self:
                return host
        for start, end, value in self.member.pieces():
            if value:
                return self._inside(start, end)
        for text, value in self.member.zoned:
            if value:
                return text
        raise ValueError("no host is in an empty set")

    def _inside(self, start: int, end: int) -> str:
        # the first address of a range is rarely a client's
        number = min(start + 1, end - 1)
        text, zone = host_text(number), "zone"
        while text not in self:
            # only named texts with a zone can be missing here, and their number is finite
            zone += "x"
            text = host_text(number, zone)
        return text

    def text(self, shown_max: int = LISTED_MAX) -> str:
        """Return words to follow `from`."""
        if self.is_everywhere:
            return "anywhere"
        inside, outside = list(self._terms(1)), list(self._terms(0))
        if not inside:
            return "nowhere"
        if self.member.steps[-1][1] and len(outside) < len(inside):
            return f"anywhere except {listed(outside, 'and', shown_max)}"
        return listed(inside, "or", shown_max)

    def to_json(self) -> dict[str, Any]:
        """Return `{"in": [...]}` or, for nearly everywhere, `{"except": [...]}`."""
        if self.member.steps[-1][1]:
            return {"except": list(self._terms(0))}
        return {"in": list(self._terms(1))}

    def _terms(self, wanted: int) -> Iterator[str]:
        pieces: list[list[tuple[int, int]]] = [[], [], []]
        for start, end, value in self.member.pieces():
            if value == wanted:
                for segment, (first, last, _) in enumerate(_SEGMENTS):
                    if max(start, first) < min(end, last):
                        pieces[segment].append((max(start, first), min(end, last)))
        for start, end in pieces[0]:
            yield _SEGMENTS[0][2] if (start, end) == _SEGMENTS[0][:2] else _range_text(start, end, 0, 32)
        shift = ZONED_START - IPV6_START
        zoned = {(start - shift, end - shift) for start, end in pieces[2]}
        plain = set(pieces[1])
        for start, end in sorted(plain | zoned):
            which = (start, end) in plain, (start, end) in zoned
            if end - start == ZONED_START - IPV6_START:
                text = {
                    (True, True): "every IPv6 address",
                    (True, False): _SEGMENTS[1][2],
                    (False, True): _SEGMENTS[2][2],
                }[which]
            else:
                text = _range_text(start, end, IPV6_START, 128)
                if which == (False, True):
                    text += " with any other zone"
                elif which == (True, False) and end - start > 1:
                    text += " without a zone"
                elif which == (True, True) and end - start == 1:
                    text += "/128"
            yield text
        yield from (text for text, value in self.member.zoned if value == wanted)


def _range_text(start: int, end: int, origin: int, bits: int) -> str:
    """Return one address, a range in CIDR notation if possible, or `first-last`."""
    first, last = start - origin, end - 1 - origin
    if bits == 128:
        first, last = ipv6_number(first), ipv6_number(last)
    if first == last:
        return host_text(start)
    # as in Kafka, the IPv4 ranges that begin at 0.0.0.0 do not contain 0.0.0.0
    lowest = 0 if bits == 32 and first == 1 else first
    size = last - lowest + 1
    if size & (size - 1) == 0 and lowest % size == 0 and (bits == 128 or first):
        return f"{host_text(start - first + lowest)}/{bits - size.bit_length() + 1}"
    return f"{host_text(start)}-{host_text(end - 1)}"


ANYWHERE: Final = HostSet(constant(1))
NOWHERE: Final = HostSet(constant(0))


def hosts_are_covered(host: str, others: Iterable[str]) -> bool:
    """Return whether the other hosts match each client that the host of an entry matches."""
    row = dict.fromkeys(others, 2)
    row[host] = row.get(host, 0) | 1
    return 1 not in summed(row, lambda bits: bits).values()


def by_bits(function: ByHost, first: int) -> Iterator[tuple[int, HostSet]]:
    """Yield bits with their hosts; merges bits with equal hosts, separately for the bits in `first`."""
    joined = 0
    for value in function.values():
        joined |= value
    found: dict[tuple[bool, HostSet], int] = defaultdict(int)
    while joined:
        bit = joined & -joined
        joined ^= bit
        found[bool(bit & first), HostSet.where(function, bit)] += bit
    for (_, hosts), bits in found.items():
        yield bits, hosts
