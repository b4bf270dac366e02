"""Replaces a large set of ACLs without blocking concurrent decisions.

The slow parts use unshared objects, so they may run on another thread: `prepared` builds the new index with
`load_snapshot`, and `dismantle` frees the old one in pieces (dropping it at once would free millions of
objects in one step). `put_in_force`, between the two, is one short step.
"""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from kustos.acl import AclBinding
from kustos.authorizer.index.index import PrincipalNode
from kustos.authorizer.standard import StandardAuthorizer

LINKED_EARLY_MIN: Final = 256
"""The number of prefixes of one principal from which they are sorted before they are in force. Fewer prefixes
are sorted at the first question."""


def prepared(authorizer: StandardAuthorizer, acls: Iterable[tuple[UUID, AclBinding]]) -> StandardAuthorizer:
    """Return an authorizer with other ACLs, ready for use; raises what `load_snapshot` raises."""
    fresh = StandardAuthorizer(allow_everyone_if_no_acl_found=authorizer.allow_everyone_if_no_acl_found)
    fresh.version = authorizer.version
    fresh.load_snapshot(acls)
    for node in _nodes(fresh):
        if len(node.prefixes.by_name) >= LINKED_EARLY_MIN:
            node.prefixes.longest("")
    return fresh


def put_in_force(authorizer: StandardAuthorizer, fresh: StandardAuthorizer) -> bool:
    """Swap the ACLs of two authorizers; atomic for concurrent questions.

    Returns False if the ACLs were prepared for another `allow.everyone.if.no.acl.found`: then prepare them
    again.
    """
    if authorizer.allow_everyone_if_no_acl_found and not fresh.index.counts_coverage:
        return False
    authorizer.index, fresh.index = fresh.index, authorizer.index
    authorizer._bindings, fresh._bindings = fresh._bindings, authorizer._bindings
    authorizer._lent, fresh._lent = fresh._lent, authorizer._lent
    authorizer.version += 1
    return True


def dismantle(old: StandardAuthorizer) -> None:
    """Free the memory of an unused authorizer in small pieces."""
    for position, shard in enumerate(old._bindings):
        if position in old._lent:
            # a listing may still read it
            old._bindings[position] = {}
        else:
            _empty(shard)
    nodes = old.index._nodes
    while nodes:
        for node in nodes.popitem()[1].values():
            _empty(node.literals)
            _empty(node.prefixes.by_name)


def _nodes(authorizer: StandardAuthorizer) -> list[PrincipalNode]:
    return [node for by_type in authorizer.index.by_principal.values() for node in by_type.values()]


def _empty(entries: dict[Any, Any]) -> None:
    while entries:
        entries.popitem()
