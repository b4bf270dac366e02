"""A whole set of ACLs taken in at once."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final
from uuid import UUID

from kustos.acl import AclBinding, SharedParts
from kustos.authorizer.errors import DuplicateAclIdError

ID_SHARDS: Final = 64
"""Dictionaries that share the ids of all ACLs, a power of two: one of a million stands still for 30 ms as it
grows, and every other thread with it."""

SHARD_BITS: Final = ID_SHARDS - 1
"""The bits of an id that are the number of its dictionary."""

ShardedBindings = list[dict[int, AclBinding]]
"""Bindings by the integers of their ids; an id's last bits, which are random, tell its dictionary."""


def no_bindings() -> ShardedBindings:
    """Return dictionaries that hold nothing yet."""
    return [{} for _ in range(ID_SHARDS)]


def all_bindings(bindings: ShardedBindings) -> Iterator[AclBinding]:
    """Yield the bindings, in no set order."""
    return chain.from_iterable([shard.values() for shard in bindings])


def bindings_by_id(acls: Iterable[tuple[UUID, AclBinding]]) -> ShardedBindings:
    """Return bindings by the integers of their ids; raise `DuplicateAclIdError`.

    Equal parts of the bindings are shared, so the ACLs of a log weigh less here than there.
    """
    bindings = no_bindings()
    parts = SharedParts()
    settle = parts.settle
    for acl_id, binding in acls:
        number = acl_id.int
        shard = bindings[number & SHARD_BITS]
        if number in shard:
            raise DuplicateAclIdError(f"snapshot has two ACLs with id `{acl_id}`")
        settle(binding)
        shard[number] = binding
    parts.forget()
    return bindings
