"""Single ACLs on one resource type by pattern, to find the ACLs that match a name and each host.

The rows of `layers` merge the ACLs of a pattern; in this module each ACL keeps its number.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from kustos.acl import WILDCARD, AclBinding, PatternType
from kustos.analysis.by_host import LINE_END, place_of
from kustos.analysis.name_sets import Site

WHOLE: Final = ((0, LINE_END),)
"""The pieces of `*`: every host."""

WILDCARD_SITE: Final = Site(WILDCARD, is_literal=True)
"""The name `*` itself."""

ROOT: Final = Site("", is_literal=False)
"""Names with no particular prefix: the names that LITERAL `*` matches."""

STARRED: Final = Site(WILDCARD, is_literal=False)
"""Longer names that begin with `*`, which LITERAL `*` does not match."""


class Entry(NamedTuple):
    """An ACL: its number, its ALLOW and DENY bits, its pieces of the host line, and its zoned host."""

    number: int
    allows: int
    denies: int
    pieces: tuple[tuple[int, int], ...]
    zoned: str | None

    def covers_hosts_of(self, other: "Entry") -> bool:
        """Return whether this entry matches every host that another entry matches."""
        pieces = [*other.pieces]
        if other.zoned is not None and other.zoned != self.zoned:
            place = place_of(other.zoned)
            pieces += [] if place is None else [(place.number, place.number + 1)]
        return all(any(low <= start and end <= high for low, high in self.pieces) for start, end in pieces)


class Book:
    """The entries of one principal, or of all principals, on one resource type, by pattern."""

    __slots__ = ("_names", "_parents", "literals", "prefixes", "wildcard")

    def __init__(self) -> None:
        self.literals: dict[str, list[Entry]] = {}
        self.prefixes: dict[str, list[Entry]] = {}
        self.wildcard: list[Entry] = []
        self._names: list[str] | None = None
        self._parents: dict[str, str | None] = {}

    def add(self, binding: AclBinding, entry: Entry) -> None:
        """Add an entry."""
        name = binding.pattern.name
        if binding.pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.setdefault(name, []).append(entry)
        elif name == WILDCARD:
            self.wildcard.append(entry)
        else:
            self.literals.setdefault(name, []).append(entry)

    def entries(self) -> Iterator[Entry]:
        """Yield every entry."""
        yield from self.wildcard
        for rows in (self.literals, self.prefixes):
            for row in rows.values():
                yield from row

    def sites(self) -> set[Site]:
        """Return the sites where the matching entries can change, including the two edges of `*`."""
        sites = {Site(name, is_literal=True) for name in self.literals}
        sites |= {Site(name, is_literal=False) for name in self.prefixes}
        if self.wildcard or "" in self.prefixes:
            sites |= {ROOT, STARRED, WILDCARD_SITE}
        return sites

    def _sorted_prefixes(self) -> list[str]:
        if self._names is None:
            self._names = sorted(self.prefixes)
            above: str | None = None
            for name in self._names:
                while above is not None and not name.startswith(above):
                    above = self._parents[above]
                self._parents[name] = above
                above = name
        return self._names

    def matching(self, site: Site) -> Iterator[Entry]:
        """Yield the entries that match every name of a site's class."""
        name, is_literal = site
        if is_literal:
            yield from self.literals.get(name, ())
        if name[:1] != WILDCARD or site == WILDCARD_SITE:
            yield from self.wildcard
        if not self.prefixes:
            return
        names = self._sorted_prefixes()
        at = bisect_right(names, name)
        prefix = names[at - 1] if at else None
        while prefix is not None:
            if name.startswith(prefix):
                yield from self.prefixes[prefix]
            prefix = self._parents[prefix]


def entries_by_host(entries: list[Entry]) -> Iterator[tuple[list[Entry], int, int]]:
    """Yield, for each class of hosts, the matching entries and their combined ALLOW and DENY bits."""
    if all(entry.pieces == WHOLE for entry in entries):
        yield _summed(entries)
        return
    # pieces are nested or disjoint: one sweep with a stack; the longer of two with the same start comes first
    pieces = sorted(
        (start, -end, place) for place, entry in enumerate(entries) for start, end in entry.pieces
    )
    stack: list[tuple[int, Entry]] = []
    position = 0
    for start, minus_end, place in (*pieces, (LINE_END, 0, -1)):
        while stack and stack[-1][0] <= start:
            end = stack[-1][0]
            if position < end:
                yield _summed([entry for _, entry in stack])
                position = end
            stack.pop()
        if position < start:
            if stack:
                yield _summed([entry for _, entry in stack])
            position = start
        if place >= 0:
            stack.append((-minus_end, entries[place]))
    for zoned in {entry.zoned for entry in entries if entry.zoned is not None}:
        where = place_of(zoned)
        if where is not None:
            number = where.number
            yield _summed(
                [
                    entry
                    for entry in entries
                    if entry.zoned == zoned or any(start <= number < end for start, end in entry.pieces)
                ]
            )


def _summed(entries: list[Entry]) -> tuple[list[Entry], int, int]:
    allowed = denied = 0
    for entry in entries:
        allowed |= entry.allows
        denied |= entry.denies
    return entries, allowed, denied
