"""What is said of one principal on one resource type, sorted by name for walking.

A row is the entries on one pattern, as bits (`authorizer.cells`) by host text.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from kustos.acl import WILDCARD, AclBinding, PatternType
from kustos.analysis.by_host import host_pattern
from kustos.analysis.name_sets import Site, Zone
from kustos.authorizer.cells import HOSTED, binding_mask

Row = dict[str, int]

COVERED: Final = HOSTED
"""Bit of a row, in the place that cells use for another purpose: some entry names the resource."""

_LAST_CHARACTER: Final = chr(0x10FFFF)


class Layer:
    """Rows by pattern: literals, prefixes, and LITERAL `*`."""

    __slots__ = ("_lengths", "_literal_names", "_prefix_names", "literals", "prefixes", "wildcard")

    def __init__(self) -> None:
        self.literals: dict[str, Row] = {}
        self.prefixes: dict[str, Row] = {}
        self.wildcard: Row = {}
        self._lengths: list[int] | None = None
        self._literal_names: list[str] | None = None
        self._prefix_names: list[str] | None = None

    @classmethod
    def of(cls, bindings: Iterable[AclBinding]) -> "Layer":
        """Return the layer of one principal's bindings; those that can match nobody leave no trace."""
        layer = cls()
        for binding in bindings:
            host = binding.entry.host
            mask = binding_mask(binding) & ~HOSTED
            if mask and (host == WILDCARD or not host_pattern(host).speaks_of_nobody):
                layer._add(binding, host, mask)
        return layer

    @classmethod
    def covering(cls, bindings: Iterable[AclBinding]) -> "Layer":
        """Return the layer that says COVERED wherever any of these bindings names the resource."""
        layer = cls()
        for binding in bindings:
            layer._add(binding, WILDCARD, COVERED)
        return layer

    def _add(self, binding: AclBinding, host: str, mask: int) -> None:
        name = binding.pattern.name
        if binding.pattern.pattern_type is not PatternType.LITERAL:
            row = self.prefixes.setdefault(name, {})
        elif name == WILDCARD:
            row = self.wildcard
        else:
            row = self.literals.setdefault(name, {})
        row[host] = row.get(host, 0) | mask

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return not (self.wildcard or self.prefixes or self.literals)

    def above(self, name: str) -> Iterator[Row]:
        """Yield the rows that speak of every name that begins with this one, LITERAL `*` included."""
        if self.wildcard and name[:1] != WILDCARD:
            yield self.wildcard
        if self.prefixes:
            if self._lengths is None:
                self._lengths = sorted({len(prefix) for prefix in self.prefixes})
            for length in self._lengths:
                if length > len(name):
                    break
                row = self.prefixes.get(name[:length])
                if row is not None:
                    yield row

    def own(self, site: Site) -> Row | None:
        """Return the row of the very pattern."""
        if not site.is_literal:
            return self.prefixes.get(site.name)
        return self.wildcard or None if site.name == WILDCARD else self.literals.get(site.name)

    def sites_under(self, prefix: str) -> Iterator[Site]:
        """Yield the patterns whose name begins with a prefix; LITERAL `*` is not among them."""
        if self._literal_names is None or self._prefix_names is None:
            self._literal_names = sorted(self.literals)
            self._prefix_names = sorted(self.prefixes)
        yield from (Site(name, is_literal=False) for name in _beginning(self._prefix_names, prefix))
        yield from (Site(name, is_literal=True) for name in _beginning(self._literal_names, prefix))

    def speaks_within(self, zone: Zone) -> bool:
        """Return whether any pattern here speaks of a name in the zone."""
        return any(
            name in self.literals or any(self.above(name)) or (name == WILDCARD and bool(self.wildcard))
            for name in zone.literals
        ) or any(
            any(self.above(prefix))
            or (prefix == WILDCARD and bool(self.wildcard))
            or any(True for _ in self.sites_under(prefix))
            for prefix in zone.prefixes
        )


def _beginning(names: list[str], prefix: str) -> list[str]:
    """Return those of sorted names that begin with a prefix."""
    if not prefix:
        return names
    stem = prefix.rstrip(_LAST_CHARACTER)
    start = bisect_left(names, prefix)
    # the first text after all that begin with the prefix: its last character raised by one
    end = bisect_left(names, stem[:-1] + chr(ord(stem[-1]) + 1)) if stem else len(names)
    return names[start:end]
