"""Sets of ACLs compiled where they decide: once in each Python process, cached for its later tasks."""

from collections import OrderedDict
from typing import Final, Protocol

from kustos.authorizer import StandardAuthorizer
from kustos.authorizer.bulk import BulkAuthorizer
from kustos.pipeline.deciding.acl_set import authorizer_of_content

COMPILED_SETS_MAX: Final = 4
"""Cached in a process: two sets to compare, and two of the query before. The least recently used is evicted
first; a set of 100,000 ACLs takes some 150 MB with the tables of bulk decisions."""


class ShippedAcls(Protocol):
    """A set of ACLs that workers can load; created by `ship`."""

    @property
    def name(self) -> str:
        """The name of the set, for people."""

    @property
    def digest(self) -> str:
        """The digest of the set."""

    def content(self) -> bytes:
        """Return the set's content; in a worker."""


class _Compiled:
    """An authorizer, and its bulk authorizers with and without rules."""

    __slots__ = ("authorizer", "authorizers")

    def __init__(self, authorizer: StandardAuthorizer) -> None:
        self.authorizer: Final = authorizer
        self.authorizers: Final[dict[bool, BulkAuthorizer]] = {}


_compiled: Final[OrderedDict[str, _Compiled]] = OrderedDict()


def compiled(shipped: ShippedAcls, *, with_rule: bool) -> BulkAuthorizer:
    """Return this process's authorizer of the set, compiled on first use.

    Raises `AclSetError` if the set was damaged in transfer: then nothing is decided.
    """
    found = _compiled.get(shipped.digest)
    if found is None:
        while len(_compiled) >= COMPILED_SETS_MAX:
            _compiled.popitem(last=False)
        authorizer = authorizer_of_content(shipped.name, shipped.content(), shipped.digest)
        found = _compiled[shipped.digest] = _Compiled(authorizer)
    _compiled.move_to_end(shipped.digest)
    bulk = found.authorizers.get(with_rule)
    if bulk is None:
        bulk = found.authorizers[with_rule] = BulkAuthorizer(found.authorizer, with_rule=with_rule)
    return bulk
