"""Equal parts of many bindings as one object each.

ACLs read from a log have texts, patterns and entries of their own, though a thousand of them may speak of
one topic and ten thousand of one principal. What is equal can be shared, since it never changes.
"""

from typing import Final

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.values import AccessControlEntry, AclBinding, ResourcePattern

# the values are frozen for everybody; to put an equal part in the place of a part changes no value
_put: Final = object.__setattr__


class SharedParts:
    """Remembers the parts of the bindings that it met; made for one load and dropped after it."""

    __slots__ = ("_entries", "_patterns")

    def __init__(self) -> None:
        self._patterns: dict[tuple[ResourceType, PatternType], dict[str, ResourcePattern]] = {}
        self._entries: dict[str, dict[tuple[str, AclOperation, AclPermissionType], AccessControlEntry]] = {}

    def settle(self, binding: AclBinding) -> None:
        """Let a binding have those parts that an equal one was met with before."""
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
            # another thing said of the same principal
            first = next(iter(entries.values()))
            _put(entry, "principal", first.principal)

    def forget(self) -> None:
        """Forget all parts one by one: dropped at once they would stop every thread meanwhile."""
        for known in self._patterns.values():
            while known:
                known.popitem()
        while self._entries:
            self._entries.popitem()
