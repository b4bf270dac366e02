"""Kinds, severities and causes of findings about ACLs, and the breadth of an ACL."""

from enum import StrEnum, unique
from typing import Final

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)


@unique
class FindingKind(StrEnum):
    """The kind of a finding about an ACL."""

    UNUSED_ACL = "UNUSED_ACL"
    REDUNDANT_ACL = "REDUNDANT_ACL"
    SHADOWED_ACL = "SHADOWED_ACL"
    ORPHANED_ACL = "ORPHANED_ACL"


@unique
class Cause(StrEnum):
    """The cause of a finding."""

    NEVER_DECIDED = "NEVER_DECIDED"
    SAID_BY_OTHERS = "SAID_BY_OTHERS"
    DENIES_NOTHING = "DENIES_NOTHING"
    OF_A_SUPER_USER = "OF_A_SUPER_USER"
    DENIED = "DENIED"
    NO_SUCH_RESOURCE = "NO_SUCH_RESOURCE"
    PRINCIPAL_NOT_SEEN = "PRINCIPAL_NOT_SEEN"
    NO_SUCH_USER = "NO_SUCH_USER"
    USER_DELETED = "USER_DELETED"


EXACT: Final = frozenset({Cause.SAID_BY_OTHERS, Cause.DENIES_NOTHING, Cause.OF_A_SUPER_USER, Cause.DENIED})
"""Causes that follow from the set of ACLs, for every request, recorded or not."""


@unique
class FindingSeverity(StrEnum):
    """How much harm the ACL can do."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


_GOVERNING: Final = frozenset({AclOperation.ALL, AclOperation.ALTER, AclOperation.CLUSTER_ACTION})
_SHOWING: Final = frozenset(
    {AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.DESCRIBE_TOKENS}
)


def severity_of(binding: AclBinding) -> FindingSeverity:
    """Return how much harm an unneeded grant can do; a DENY does none."""
    pattern, entry = binding.pattern, binding.entry
    if entry.permission_type is not AclPermissionType.ALLOW:
        return FindingSeverity.LOW
    governs = pattern.resource_type is ResourceType.CLUSTER and entry.operation in _GOVERNING
    is_wide = pattern.name == WILDCARD or entry.principal == EVERY_PRINCIPAL
    if governs or (is_wide and entry.operation not in _SHOWING):
        return FindingSeverity.HIGH
    return FindingSeverity.LOW if entry.operation in _SHOWING else FindingSeverity.MEDIUM


def breadth(binding: AclBinding) -> tuple[object, ...]:
    """Return a sort key: grants before DENYs, broad ones first."""
    pattern, entry = binding.pattern, binding.entry
    is_wildcard = pattern.pattern_type is PatternType.LITERAL and pattern.name == WILDCARD
    return (
        entry.permission_type is not AclPermissionType.ALLOW,
        entry.principal != EVERY_PRINCIPAL,
        not is_wildcard,
        pattern.pattern_type is PatternType.LITERAL,
        len(pattern.name),
        entry.operation is not AclOperation.ALL,
        entry.host != WILDCARD,
        binding.audit_text(),
    )
