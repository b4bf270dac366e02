"""Principals, patterns, entries and bindings: immutable, and limited to values that Kafka accepts.

Each ACL that is read from a log has its own texts, pattern and entry, though a thousand ACLs may name one
topic and ten thousand one principal. Equal parts can be shared because they are immutable.
"""

from dataclasses import dataclass, field
from sys import intern
from typing import ClassVar, Final, Self

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType


class AclValueError(ValueError):
    """A principal, pattern, entry, filter or host that Kafka would reject; the text names it."""


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """A principal: a type and a name. As in Kafka, the token flag is not part of the identity.

    `groups` are the names of the groups of a client, each once. The ACLs of `Group:` and such a name apply to
    the client too, which Kafka does not offer. The groups are not part of the identity either, because they
    may change while the client is connected.
    """

    USER_TYPE: ClassVar[str] = "User"
    GROUP_TYPE: ClassVar[str] = "Group"
    GROUP_PREFIX: ClassVar[str] = "Group:"
    """The beginning of a group in an ACL."""

    principal_type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)
    groups: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the principal written as `Type:name`; raise `AclValueError` without a colon."""
        principal_type, colon, name = text.partition(":")
        if not colon:
            raise AclValueError(
                f"could not parse principal from `{text}`, write it as `User:name` (no colon is present)"
            )
        # intern the type: it is used for look-ups, and it takes as much memory as a name
        return cls(intern(principal_type), name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"

    @property
    def group_texts(self) -> tuple[str, ...]:
        """The groups as ACLs name them."""
        return tuple([self.GROUP_PREFIX + name for name in self.groups])


ANONYMOUS = KafkaPrincipal("User", "ANONYMOUS")
"""The principal on a listener without authentication."""

EVERY_PRINCIPAL = "User:*"
"""In an entry: every principal of every type."""


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """A resource type and a name, matched exactly (LITERAL) or as a prefix (PREFIXED)."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __post_init__(self) -> None:
        if self.resource_type is ResourceType.ANY:
            raise AclValueError("resource type `ANY` is only for filters")
        if self.pattern_type in {PatternType.ANY, PatternType.MATCH}:
            raise AclValueError(f"pattern type `{self.pattern_type}` is only for filters")


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """A permission for a principal, a host and an operation. Host and principal are texts, as in Kafka's
    records."""

    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def __post_init__(self) -> None:
        if self.operation is AclOperation.ANY:
            raise AclValueError("operation `ANY` is only for filters")
        if self.permission_type is AclPermissionType.ANY:
            raise AclValueError("permission type `ANY` is only for filters")


@dataclass(frozen=True, slots=True)
class AclBinding:
    """An entry bound to a pattern: the unit that `kafka-acls` lists and that a log record contains."""

    pattern: ResourcePattern
    entry: AccessControlEntry

    def audit_text(self) -> str:
        """Return Kafka's `StandardAcl` text, as its audit log shows a matching rule."""
        pattern, entry = self.pattern, self.entry
        return (
            f"StandardAcl[resourceType={pattern.resource_type}, resourceName={pattern.name}, "
            f"patternType={pattern.pattern_type}, principal={entry.principal}, host={entry.host}, "
            f"operation={entry.operation}, permissionType={entry.permission_type}]"
        )


# the values are immutable; replacing a part with an equal one changes no value
_put: Final = object.__setattr__


class SharedParts:
    """Interns the parts of bindings during one load."""

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
