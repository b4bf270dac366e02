"""Sets of ACLs compiled where they are asked: once in each Python process, kept for its later tasks."""

from collections import OrderedDict
from typing import Final, Protocol

from kustos.authorizer.bulk import BulkAuthorizer
from kustos.pipeline.deciding.acl_set import authorizer_of_content

COMPILED_SETS_MAX: Final = 4
"""Kept in a process: two sets compared, with rules and without. The least recently used goes first; one of
100,000 ACLs takes some 150 MB with the tables of bulk decisions."""


class ShippedAcls(Protocol):
    """A set of ACLs that workers can get at; made by `ship`."""

    @property
    def name(self) -> str:
        """What people call the set."""

    @property
    def digest(self) -> str:
        """The digest of the set."""

    def content(self) -> bytes:
        """Return the set's content; in a worker."""


_compiled: Final[OrderedDict[tuple[str, bool], BulkAuthorizer]] = OrderedDict()


def compiled(shipped: ShippedAcls, *, with_rule: bool) -> BulkAuthorizer:
    """Return this process's authorizer of the set, compiled when first asked for.

    Raises `AclSetError` if the set was damaged on its way: nothing is decided then.
    """
    key = shipped.digest, with_rule
    found = _compiled.get(key)
    if found is None:
        while len(_compiled) >= COMPILED_SETS_MAX:
            _compiled.popitem(last=False)
        authorizer = authorizer_of_content(shipped.name, shipped.content(), shipped.digest)
        found = _compiled[key] = BulkAuthorizer(authorizer, with_rule=with_rule)
    _compiled.move_to_end(key)
    return found
