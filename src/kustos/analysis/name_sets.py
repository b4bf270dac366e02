"""Sets of resource names, exact over all texts and in canonical form.

A set is the list of places where membership flips: nested prefixes and single names. Names outside all places
are not in the set; the names under a prefix, and a single name, are in the set exactly if the enclosing place
is not. For example, `pay-` except `pay-secret` is the prefix `pay-` and the name `pay-secret`. The form is
unique: under a prefix that does not flip, almost all names behave like the enclosing place.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple, Self

from kustos.acl import WILDCARD, PatternType, ResourcePattern, ResourceType
from kustos.runtime import LISTED_MAX, listed, quoted

_LAST_CHARACTER: Final = chr(0x10FFFF)
_SUFFIXES: Final = "xyzabcdefghijklmnopqrstuvw0123456789-._"


class Site(NamedTuple):
    """A prefix, with all names that begin with it, or one name; a prefix sorts before its names."""

    name: str
    is_literal: bool

    def covers(self, name: str) -> bool:
        """Return whether the site contains a name."""
        return self.name == name if self.is_literal else name.startswith(self.name)

    def __str__(self) -> str:
        if self.is_literal:
            return quoted(self.name) if self.name else "the empty name"
        return f"every name that begins with `{self.name}`" if self.name else "every name"

    def to_json(self) -> dict[str, str]:
        """Return the pattern type and the name."""
        return {"pattern_type": "LITERAL" if self.is_literal else "PREFIXED", "name": self.name}


def site_of(pattern: ResourcePattern) -> Site:
    """Return the site of a pattern; as in Kafka, anything other than LITERAL is a prefix."""
    return Site(pattern.name, pattern.pattern_type is PatternType.LITERAL)


class NameTerm(NamedTuple):
    """A site in the set, without the listed sites under it."""

    site: Site
    without: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class NameSet:
    """A set of names; `turns` are the sites where membership flips, sorted."""

    turns: tuple[Site, ...]

    def __contains__(self, name: str) -> bool:
        return sum(site.covers(name) for site in self.turns) % 2 == 1

    def witness(self) -> str:
        """Return a name in the set; raise `ValueError` if the set is empty."""
        depth: list[Site] = []
        for site in self.turns:
            while depth and not site.name.startswith(depth[-1].name):
                depth.pop()
            if len(depth) % 2 == 0:
                return site.name if site.is_literal else self._under(site.name)
            if not site.is_literal:
                depth.append(site)
        raise ValueError("no name is in an empty set")

    def _under(self, prefix: str) -> str:
        """Return a name that begins with the prefix, but with no longer prefix that flips."""
        at = len(prefix)
        taken = {site.name[at] for site in self.turns if len(site.name) > at and site.name.startswith(prefix)}
        # some of the 1,114,112 characters are always free: an ACL set would have to name each of them
        free = chain(_SUFFIXES, map(chr, range(0x21, 0xD800)), map(chr, range(0xE000, 0x110000)))
        return prefix + next(character for character in free if character not in taken)

    def terms(self) -> Iterator[NameTerm]:
        """Yield the set as sites in it, each without the next smaller sites outside it."""
        starts: list[tuple[Site, list[Site]]] = []
        depth: list[tuple[Site, list[Site]]] = []
        for site in self.turns:
            while depth and not site.name.startswith(depth[-1][0].name):
                depth.pop()
            entry: tuple[Site, list[Site]] = (site, [])
            if len(depth) % 2 == 0:
                starts.append(entry)
            else:
                depth[-1][1].append(site)
            if not site.is_literal:
                depth.append(entry)
        for site, without in starts:
            yield NameTerm(site, tuple(without))

    def text(self, resource_type: ResourceType, shown_max: int = LISTED_MAX) -> str:
        """Return words such as ``topics that begin with `pay-` except `pay-secret` ``."""
        noun, many = NOUNS[resource_type]
        if resource_type is ResourceType.CLUSTER:
            return noun
        every, shown = "of every name", self
        root, *of_wildcard = WILDCARD_NAMES.turns
        if root in self.turns and [site for site in self.turns if site.name[:1] == WILDCARD] == of_wildcard:
            # `*` by definition excludes names that begin with an asterisk, so do not list them as exceptions
            every, shown = f"{every} that `*` stands for", NameSet(self._without(of_wildcard))
        if shown == EVERY_NAME:
            return f"{many} {every}"
        terms = list(shown.terms())
        prefixes = [term for term in terms if not term.site.is_literal]
        plain = [quoted(term.site.name) for term in prefixes if not term.without]
        phrases = [_phrase(term, many, every, shown_max) for term in prefixes if term.without]
        if plain:
            phrases.append(f"{many} that begin with {listed(plain, 'or', shown_max)}")
        literals = [str(term.site) for term in terms if term.site.is_literal]
        if literals:
            phrases.append(f"{noun if len(literals) == 1 else many} {listed(literals, 'and', shown_max)}")
        return listed(phrases, "and", shown_max)

    def _without(self, sites: list[Site]) -> tuple[Site, ...]:
        return tuple([site for site in self.turns if site not in sites])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the terms; each has `pattern_type`, `name` and, if it excludes something, `except`."""
        return [
            term.site.to_json()
            | ({"except": [site.to_json() for site in term.without]} if term.without else {})
            for term in self.terms()
        ]


def _phrase(term: NameTerm, many: str, every: str, shown_max: int) -> str:
    begins = f"that begin with `{term.site.name}`" if term.site.name else every
    prefixes = [quoted(site.name) for site in term.without if not site.is_literal]
    without = [str(site) for site in term.without if site.is_literal]
    if prefixes:
        without.append(f"those that begin with {listed(prefixes, 'or', shown_max)}")
    return f"{many} {begins} except {listed(without, 'and', shown_max)}"


NOUNS: Final[dict[ResourceType, tuple[str, str]]] = {
    ResourceType.TOPIC: ("topic", "topics"),
    ResourceType.GROUP: ("group", "groups"),
    ResourceType.CLUSTER: ("the cluster", "the cluster"),
    ResourceType.TRANSACTIONAL_ID: ("transactional id", "transactional ids"),
    ResourceType.DELEGATION_TOKEN: ("delegation token", "delegation tokens"),
    ResourceType.USER: ("user", "users"),
}
"""The singular and plural noun for each resource type."""

EVERY_NAME: Final = NameSet((Site("", is_literal=False),))
"""All texts, including the empty text and texts that begin with `*`."""

WILDCARD_NAMES: Final = NameSet(
    (Site("", is_literal=False), Site(WILDCARD, is_literal=False), Site(WILDCARD, is_literal=True))
)
"""The names that the LITERAL pattern `*` matches: `*` and every name that does not begin with it."""


@dataclass(frozen=True, slots=True)
class Zone:
    """The part to search: disjoint prefixes, and names outside these prefixes.

    A zone may be wider than needed: LITERAL `*` makes it contain every name.
    """

    prefixes: tuple[str, ...]
    literals: tuple[str, ...]

    @classmethod
    def of(cls, sites: Iterable[Site]) -> Self:
        """Return the zone that contains all these sites."""
        prefixes: list[str] = []
        literals: set[str] = set()
        for site in sorted(set(sites)):
            if site == _WILDCARD_SITE:
                return cls(("",), ())
            if prefixes and site.name.startswith(prefixes[-1]):
                continue
            if site.is_literal:
                literals.add(site.name)
            else:
                prefixes.append(site.name)
        return cls(tuple(prefixes), tuple(sorted(literals)))

    @property
    def is_empty(self) -> bool:
        """Whether the zone contains no name."""
        return not self.prefixes and not self.literals

    def cut_out_of(self, sites: list[Site]) -> list[Site]:
        """Return the sites outside the zone, from sorted sites."""
        spans: list[tuple[int, int]] = []
        for prefix in self.prefixes:
            start, after = bisect_left(sites, Site(prefix, is_literal=False)), text_after(prefix)
            spans.append((start, len(sites) if after is None else bisect_left(sites, Site(after, False))))
        for name in self.literals:
            site = Site(name, is_literal=True)
            start = bisect_left(sites, site)
            spans.append((start, start + (sites[start : start + 1] == [site])))
        kept: list[Site] = []
        position = 0
        for start, end in sorted(spans):
            kept += sites[position:start]
            position = end
        return kept + sites[position:]


def text_after(prefix: str) -> str | None:
    """Return the first text after all texts that begin with a prefix, None without such a text."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None


_WILDCARD_SITE: Final = Site(WILDCARD, is_literal=True)
EVERYWHERE: Final = Zone(("",), ())
