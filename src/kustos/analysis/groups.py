"""Questions about a client with groups, as questions about a principal without groups."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from kustos.acl import AclBinding


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
