"""Clients with groups, whose ACLs are their own and the ACLs of `Group:` principals."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
)
from kustos.analysis.difference import Difference, diff
from kustos.analysis.kernel import RESOURCE_TYPES, Rules

EVERYTHING_ALLOWED: Final = tuple(
    AclBinding(
        ResourcePattern(kind, "", PatternType.PREFIXED),
        AccessControlEntry(EVERY_PRINCIPAL, WILDCARD, AclOperation.ALL, AclPermissionType.ALLOW),
    )
    for kind in RESOURCE_TYPES
)
"""ACLs that allow everything to everyone."""


def as_own(bindings: Iterable[AclBinding], principal: str, groups: Collection[str]) -> list[AclBinding]:
    """Return ACLs that decide for a principal alone as `bindings` decide for the principal with its groups.

    `groups` are written as in ACLs (`Group:name`). An authorizer matches the ACLs of all of them alike, so
    the ACLs of the groups become ACLs of the principal. Duplicates are left out.
    """
    own = (
        replace(binding, entry=replace(binding.entry, principal=principal))
        if binding.entry.principal in groups
        else binding
        for binding in bindings
    )
    return list(dict.fromkeys(own))


def with_groups(rules: Rules, bindings: Iterable[AclBinding]) -> Rules:
    """Return the rules for a set of ACLs: with groups if an ACL is for a `Group:` principal."""
    has_groups = any(binding.entry.principal.startswith(KafkaPrincipal.GROUP_PREFIX) for binding in bindings)
    return replace(rules, clients_have_groups=has_groups)


def denial_changes(old: Iterable[AclBinding], new: Iterable[AclBinding]) -> Difference:
    """Return at least one region that DENYs deny in one set only, as `diff` does; empty if there is none.

    Two sets decide alike for clients with any groups if this and `diff` are empty: `diff` compares decisions
    for one principal, and does not see a DENY of what no ACL of that principal allows.
    """
    before, after = (
        [*EVERYTHING_ALLOWED, *[b for b in some if b.entry.permission_type is not AclPermissionType.ALLOW]]
        for some in (old, new)
    )
    return diff(before, after, regions_max=1)
