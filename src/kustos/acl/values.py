"""Principals, patterns, entries, bindings: frozen, and only those that Kafka accepts."""

from dataclasses import dataclass, field
from sys import intern
from typing import ClassVar, Self

from kustos.acl.enums import AclOperation, AclPermissionType, PatternType, ResourceType
from kustos.acl.errors import AclValueError


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """Who acts: a type and a name; the token flag is no part of the identity (as in Kafka)."""

    USER_TYPE: ClassVar[str] = "User"

    principal_type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the principal written as `Type:name`; raise `AclValueError` without a colon."""
        principal_type, colon, name = text.partition(":")
        if not colon:
            raise AclValueError(
                f"could not parse principal from `{text}`, write it as `User:name` (no colon is present)"
            )
        # intern the type: principals are looked up by it, and it takes as much memory as a name
        return cls(intern(principal_type), name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


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
    """Who, from where, may or may not do what. Host and principal are texts, as in Kafka's records."""

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
    """An entry bound to a pattern, as `kafka-acls` lists and a log record holds it."""

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
