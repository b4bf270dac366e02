"""Matches many filters against the ACLs of an image: in one walk, or none if each names one ACL.

The filters of a request are grouped by their texts and looked up by the texts of each ACL, so ten thousand
filters cost little more than one, except for their matches. The remaining comparison, of the four codes, is
cached.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from kustos.acl import (
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    PatternType,
    ResourcePattern,
)
from kustos.metadata.image import MetadataImage

Acl = tuple[UUID, AclBinding]

_NO_TEXTS: Final = ""


def each_match(
    image: MetadataImage, filters: Iterable[AclBindingFilter]
) -> Iterator[tuple[AclBindingFilter, Acl]]:
    """Yield each filter with each ACL that it matches; for one filter in the order of the image.

    Equal filters count as one. None may have an unknown code.
    """
    tables: dict[tuple[str, ...], dict[Any, _FilterGroup]] = {}
    for acl_filter in dict.fromkeys(filters):
        if acl_filter.matches_at_most_one:
            acl_id = image.acl_ids.get(binding := _named_by(acl_filter))
            if acl_id is not None:
                yield acl_filter, (acl_id, binding)
            continue
        texts = _texts(acl_filter)
        key = tuple(texts.values()) if len(texts) > 1 else next(iter(texts.values()), _NO_TEXTS)
        tables.setdefault(tuple(texts), {}).setdefault(key, _FilterGroup()).take(acl_filter)
    look_ups = [(_key_of(paths), table) for paths, table in tables.items()]
    for acl in image.acls.items() if look_ups else ():
        binding = acl[1]
        for key_of, table in look_ups:
            group = table.get(key_of(binding))
            if group is not None:
                for acl_filter in group.matching(binding):
                    yield acl_filter, acl


def _named_by(acl_filter: AclBindingFilter) -> AclBinding:
    """Return the one ACL that a filter can match."""
    pattern, entry = acl_filter.pattern_filter, acl_filter.entry_filter
    return AclBinding(
        ResourcePattern(pattern.resource_type, pattern.name or "", pattern.pattern_type),
        AccessControlEntry(entry.principal or "", entry.host or "", entry.operation, entry.permission_type),
    )


def _texts(acl_filter: AclBindingFilter) -> dict[str, str]:
    """Return the texts that an ACL must have to match, by attribute path."""
    pattern, entry = acl_filter.pattern_filter, acl_filter.entry_filter
    name = None if pattern.pattern_type is PatternType.MATCH else pattern.name
    texts = {"entry.principal": entry.principal, "pattern.name": name, "entry.host": entry.host}
    return {path: text for path, text in texts.items() if text is not None}


def _key_of(paths: tuple[str, ...]) -> Callable[[AclBinding], Any]:
    return attrgetter(*paths) if paths else lambda _: _NO_TEXTS


class _FilterGroup:
    """Filters with the same texts, except for the names of filters of pattern type MATCH."""

    def __init__(self) -> None:
        self._plain: list[AclBindingFilter] = []
        self._by_governed: dict[str, list[AclBindingFilter]] = {}
        self._names: list[str] | None = None
        self._known: dict[tuple[object, ...], list[AclBindingFilter]] = {}

    def take(self, acl_filter: AclBindingFilter) -> None:
        """Add a filter."""
        name = acl_filter.pattern_filter.name
        if name is not None and acl_filter.pattern_filter.pattern_type is PatternType.MATCH:
            self._by_governed.setdefault(name, []).append(acl_filter)
        else:
            self._plain.append(acl_filter)

    def matching(self, binding: AclBinding) -> list[AclBindingFilter]:
        """Return the filters that match an ACL with the texts of the group."""
        pattern, entry = binding.pattern, binding.entry
        name = pattern.name if self._by_governed and self._governs(pattern) else None
        kind = (name, pattern.resource_type, pattern.pattern_type, entry.operation, entry.permission_type)
        found = self._known.get(kind)
        if found is None:
            governed = () if name is None else self._governed_by(pattern)
            candidates = [*self._plain, *governed]
            found = self._known[kind] = [each for each in candidates if each.matches(binding)]
        return found

    def _governs(self, pattern: ResourcePattern) -> bool:
        """Return whether a pattern matches any of the names in MATCH filters."""
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name in self._by_governed or pattern.name == WILDCARD
        return next(self._governed_by(pattern), None) is not None

    def _governed_by(self, pattern: ResourcePattern) -> Iterator[AclBindingFilter]:
        """Yield the MATCH filters with a name that the pattern matches."""
        name, by_name = pattern.name, self._by_governed
        if self._names is None:
            self._names = sorted(by_name)
        if pattern.pattern_type is PatternType.LITERAL and name != WILDCARD:
            yield from by_name.get(name, ())
            return
        # `*` matches every name; names with a common prefix lie side by side
        prefix = name if pattern.pattern_type is PatternType.PREFIXED else ""
        for position in range(bisect_left(self._names, prefix), len(self._names)):
            if not self._names[position].startswith(prefix):
                return
            yield from by_name[self._names[position]]
