"""The ACLs that match a filter, read at once or in pieces between other decisions and changes."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from kustos.acl import AclBinding, AclBindingFilter

PIECE_ACLS: Final = 1024
"""ACLs examined before the reader can yield: less than a millisecond."""


class AclListing(Iterable[AclBinding]):
    """The matching ACLs as of its creation, in no fixed order.

    Creating it takes constant time, and it may be read on any thread: the given collections never change.
    `size` is the number of ACLs to examine.
    """

    __slots__ = ("_collections", "_filter", "size")

    def __init__(
        self, collections: Iterable[Collection[AclBinding]], binding_filter: AclBindingFilter
    ) -> None:
        self._collections = tuple(collections)
        self._filter = binding_filter
        self.size = sum(map(len, self._collections))

    def __iter__(self) -> Iterator[AclBinding]:
        return chain.from_iterable(self.pieces())

    def pieces(self) -> Iterator[list[AclBinding]]:
        """Yield the matches, one list, possibly empty, for each `PIECE_ACLS` examined."""
        for collection in self._collections:
            rest = iter(collection)
            while looked_at := list(islice(rest, PIECE_ACLS)):
                yield self._filter.among(looked_at)
