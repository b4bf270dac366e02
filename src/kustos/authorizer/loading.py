"""A whole set of ACLs taken in at once."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from uuid import UUID

from kustos.acl import AclBinding, SharedParts
from kustos.authorizer.errors import DuplicateAclIdError


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Keep Python's cyclic garbage collector from walking again and again through what only grows."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def bindings_by_id(acls: Iterable[tuple[UUID, AclBinding]]) -> dict[int, AclBinding]:
    """Return bindings by the integers of their ids; raise `DuplicateAclIdError`.

    Equal parts of the bindings are shared, so the ACLs of a log weigh less here than there.
    """
    bindings: dict[int, AclBinding] = {}
    parts = SharedParts()
    settle = parts.settle
    for acl_id, binding in acls:
        number = acl_id.int
        if number in bindings:
            raise DuplicateAclIdError(f"snapshot has two ACLs with id `{acl_id}`")
        settle(binding)
        bindings[number] = binding
    parts.forget()
    return bindings
