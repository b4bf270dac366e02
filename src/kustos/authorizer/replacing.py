"""A large set of ACLs put in the place of another without stopping who decides meanwhile.

What takes long works on objects that nobody else sees, so it may run on another thread: `prepared` makes
the new index with `load_snapshot` itself, `dismantle` takes the old one apart piece by piece (to drop it
whole would free millions of objects in one breath). Between them `put_in_force` is one short step.
"""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from kustos.acl import AclBinding
from kustos.authorizer.index import Node
from kustos.authorizer.standard import StandardAuthorizer

LINKED_EARLY_MIN: Final = 256
"""Prefixes of one principal that are sorted before they are in force; fewer the first question sorts."""


def prepared(authorizer: StandardAuthorizer, acls: Iterable[tuple[UUID, AclBinding]]) -> StandardAuthorizer:
    """Return an authorizer with other ACLs, ready to take over; raise what `load_snapshot` raises."""
    fresh = StandardAuthorizer(allow_everyone_if_no_acl_found=authorizer.allow_everyone_if_no_acl_found)
    fresh.version = authorizer.version
    fresh.load_snapshot(acls)
    for node in _nodes(fresh):
        if len(node.prefixes.by_name) >= LINKED_EARLY_MIN:
            node.prefixes.longest("")
    return fresh


def put_in_force(authorizer: StandardAuthorizer, fresh: StandardAuthorizer) -> bool:
    """Give an authorizer the ACLs of another, which is left with the old ones; one step for who asks.

    Returns whether it was done: what was prepared for another `allow.everyone.if.no.acl.found` is of no
    use and has to be prepared anew.
    """
    if authorizer.allow_everyone_if_no_acl_found and not fresh.index.counts_coverage:
        return False
    authorizer.index, fresh.index = fresh.index, authorizer.index
    authorizer._bindings, fresh._bindings = fresh._bindings, authorizer._bindings
    authorizer.version += 1
    return True


def dismantle(old: StandardAuthorizer) -> None:
    """Free the memory of an authorizer that nobody asks any more, a little at a time."""
    for shard in old._bindings:
        _empty(shard)
    nodes = old.index._nodes
    while nodes:
        for node in nodes.popitem()[1].values():
            _empty(node.literals)
            _empty(node.prefixes.by_name)


def _nodes(authorizer: StandardAuthorizer) -> list[Node]:
    return [node for by_type in authorizer.index._nodes.values() for node in by_type.values()]


def _empty(entries: dict[Any, Any]) -> None:
    while entries:
        entries.popitem()
