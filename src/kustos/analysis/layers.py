"""The entries of one principal on one resource type, sorted by name for walking.

A row holds the entries on one pattern, as bits (`authorizer.index.cells`) by host text.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from kustos.acl import WILDCARD, AclBinding
from kustos.analysis.by_host import host_pattern
from kustos.analysis.name_sets import Site, Zone, site_of, text_after
from kustos.authorizer.index import EVERY_ALLOW, HOSTED, binding_mask

Row = dict[str, int]

COVERED: Final = HOSTED
"""Bit of a row that means "some entry names the resource"; cells use this bit with another meaning."""


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
        """Return the layer of one principal's bindings, without bindings that can match no client."""
        layer = cls()
        for binding in bindings:
            mask = _effective_mask(binding)
            if mask:
                layer._add(binding, binding.entry.host, mask)
        return layer

    @classmethod
    def covering(cls, bindings: Iterable[AclBinding]) -> "Layer":
        """Return the layer with COVERED on every pattern of these bindings."""
        layer = cls()
        for binding in bindings:
            layer._add(binding, WILDCARD, COVERED)
        return layer

    @classmethod
    def marking(cls, *sites: Site) -> "Layer":
        """Return the layer that allows everything on these patterns."""
        layer = cls()
        for site in sites:
            layer._row(site)[WILDCARD] = EVERY_ALLOW
        return layer

    def put(self, site: Site, bindings: Iterable[AclBinding]) -> None:
        """Replace the row of a pattern with these bindings, which are all on this pattern."""
        if self.own(site) is None:
            self._lengths = self._literal_names = self._prefix_names = None
        row = self._row(site)
        row.clear()
        for binding in bindings:
            mask = _effective_mask(binding)
            if mask:
                row[binding.entry.host] = row.get(binding.entry.host, 0) | mask

    def _add(self, binding: AclBinding, host: str, mask: int) -> None:
        row = self._row(site_of(binding.pattern))
        row[host] = row.get(host, 0) | mask

    def _row(self, site: Site) -> Row:
        if not site.is_literal:
            return self.prefixes.setdefault(site.name, {})
        return self.wildcard if site.name == WILDCARD else self.literals.setdefault(site.name, {})

    @property
    def is_empty(self) -> bool:
        """Whether the layer has no rows."""
        return not (self.wildcard or self.prefixes or self.literals)

    def above(self, name: str) -> Iterator[Row]:
        """Yield the rows that match every name that begins with this one, LITERAL `*` included."""
        if self.wildcard and name[:1] != WILDCARD:
            yield self.wildcard
        yield from self._prefixes_of(name, len(name))

    def around(self, site: Site) -> Iterator[Row]:
        """Yield the rows that match the class around a site."""
        if site.is_literal:
            yield from self.above(site.name)
            return
        if self.wildcard and (site.name[:1] != WILDCARD or site.name == WILDCARD):
            yield self.wildcard
        yield from self._prefixes_of(site.name, len(site.name) - 1)

    def _prefixes_of(self, name: str, longest: int) -> Iterator[Row]:
        if self.prefixes:
            if self._lengths is None:
                self._lengths = sorted({len(prefix) for prefix in self.prefixes})
            for length in self._lengths:
                if length > longest:
                    break
                row = self.prefixes.get(name[:length])
                if row is not None:
                    yield row

    def matches(self, site: Site) -> bool:
        """Return whether any row matches the names of a site."""
        return bool(self.own(site)) or any(self.above(site.name))

    def own(self, site: Site) -> Row | None:
        """Return the row of exactly this pattern."""
        if not site.is_literal:
            return self.prefixes.get(site.name)
        return self.wildcard or None if site.name == WILDCARD else self.literals.get(site.name)

    def sites_under(self, prefix: str) -> Iterator[Site]:
        """Yield the patterns whose name begins with a prefix, without LITERAL `*`."""
        if self._literal_names is None or self._prefix_names is None:
            self._literal_names = sorted(self.literals)
            self._prefix_names = sorted(self.prefixes)
        yield from (Site(name, is_literal=False) for name in _beginning(self._prefix_names, prefix))
        yield from (Site(name, is_literal=True) for name in _beginning(self._literal_names, prefix))

    def sites_within(self, zone: Zone) -> Iterator[Site]:
        """Yield sites that together cover all names of a zone that any pattern here matches."""
        for name in zone.literals:
            site = Site(name, is_literal=True)
            if self.own(site) or any(self.above(name)):
                yield site
        for prefix in zone.prefixes:
            if any(self.above(prefix)):
                yield Site(prefix, is_literal=False)
                continue
            yield from self.sites_under(prefix)
            if prefix == WILDCARD and self.wildcard:
                yield Site(WILDCARD, is_literal=True)


def _effective_mask(binding: AclBinding) -> int:
    """Return the bits of a binding, 0 if it can match no client."""
    host = binding.entry.host
    if host != WILDCARD and host_pattern(host).matches_nobody:
        return 0
    return binding_mask(binding) & ~HOSTED


def _beginning(names: list[str], prefix: str) -> list[str]:
    """Return the names that begin with a prefix, from sorted names."""
    after = text_after(prefix)
    return names[bisect_left(names, prefix) : None if after is None else bisect_left(names, after)]
