"""Interning of equal parts of many bindings.

ACLs read from a log have their own texts, patterns and entries, though a thousand of them may name one topic
and ten thousand one principal. Equal parts can be shared, since they never change.
"""

from typing import Final

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.values import AccessControlEntry, AclBinding, ResourcePattern

# the values are frozen; replacing a part with an equal one changes no value
_put: Final = object.__setattr__


class SharedParts:
    """Interns the parts of bindings; created for one load and dropped after it."""

    __slots__ = ("_entries", "_patterns")

    def __init__(self) -> None:
        self._patterns: dict[tuple[ResourceType, PatternType], dict[str, ResourcePattern]] = {}
        self._entries: dict[str, dict[tuple[str, AclOperation, AclPermissionType], AccessControlEntry]] = {}

    def intern(self, binding: AclBinding) -> None:
        """Replace the parts of a binding with equal ones seen before."""
        pattern, entry = binding.pattern, binding.entry
        kind = (pattern.resource_type, pattern.pattern_type)
        try:
            shared_pattern = self._patterns[kind].setdefault(pattern.name, pattern)
        except KeyError:
            self._patterns[kind] = {pattern.name: pattern}
        else:
            if shared_pattern is not pattern:
                _put(binding, "pattern", shared_pattern)
        key = (entry.host, entry.operation, entry.permission_type)
        try:
            entries = self._entries[entry.principal]
        except KeyError:
            self._entries[entry.principal] = {key: entry}
            return
        shared_entry = entries.setdefault(key, entry)
        if shared_entry is not entry:
            _put(binding, "entry", shared_entry)
        elif len(entries) > 1:
            # another entry of the same principal
            first = next(iter(entries.values()))
            _put(entry, "principal", first.principal)

    def forget(self) -> None:
        """Drop all parts one by one: dropping them at once would block every thread."""
        for known in self._patterns.values():
            while known:
                known.popitem()
        while self._entries:
            self._entries.popitem()
