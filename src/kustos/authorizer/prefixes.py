"""The prefixes of one principal on one resource type, found by binary search.

Sorted, a name's longest prefix is the greatest entry not above it, or one of that entry's own prefixes;
so a search is one bisection and a short climb along the parents, however many lengths there are. A
change touches the prefixes that begin with the changed one and no other.
"""

from bisect import bisect_left, bisect_right

from kustos.acl import AclBinding
from kustos.authorizer.cells import PrefixCell


class PrefixTable:
    """PREFIXED cells by name.

    `names` are sorted, and `cells[i]` is the cell of `names[i - 1]`: so `cells[bisect_right(names, name)]`
    is where a search begins, None if every name is greater. Links are made at the first search, so that
    bulk loading sorts only once; until then both lists are empty and that look-up raises IndexError.
    """

    __slots__ = ("by_name", "cells", "names")

    def __init__(self) -> None:
        self.by_name: dict[str, PrefixCell] = {}
        self.names: list[str] = []
        self.cells: list[PrefixCell | None] = []

    def longest(self, name: str) -> PrefixCell | None:
        """Return the cell of the longest prefix of a name."""
        if not self.cells:
            self.link()
        cell = self.cells[bisect_right(self.names, name)]
        while cell is not None and not name.startswith(cell.name):
            cell = cell.parent
        return cell

    def add(self, name: str, binding: AclBinding) -> None:
        """Take in a binding that is not there yet."""
        cell = self.by_name.get(name)
        if cell is not None:
            cell.with_binding(binding)
            if self.cells:
                self._relink(bisect_left(self.names, name), cell, cell, cell)
            return
        fresh = PrefixCell(name, binding)
        if self.cells:
            fresh.parent = self.longest(name)
            position = bisect_left(self.names, name)
            self.names.insert(position, name)
            self.cells.insert(position + 1, fresh)
            fresh.inherit()
            self._relink(position, fresh, fresh.parent, fresh)
        self.by_name[name] = fresh

    def remove(self, name: str, binding: AclBinding) -> None:
        """Give up a binding that is there."""
        cell = self.by_name[name]
        cell.without_binding(binding)
        if not cell.bindings:
            del self.by_name[name]
        if not self.cells:
            return
        position = bisect_left(self.names, name)
        if cell.bindings:
            self._relink(position, cell, cell, cell)
        else:
            self._relink(position, cell, cell, cell.parent)
            del self.names[position], self.cells[position + 1]

    def _relink(
        self, position: int, changed: PrefixCell, old: PrefixCell | None, new: PrefixCell | None
    ) -> None:
        """Let the prefixes that begin with the changed one inherit again, `new` instead of `old`."""
        for index in range(position + 1, len(self.names)):
            cell = self.by_name[self.names[index]]
            if not cell.name.startswith(changed.name):
                return
            if cell.parent is old:
                cell.parent = new
            cell.inherit()

    def link(self) -> None:
        """Sort the names and find each one's next shorter prefix."""
        self.names = sorted(self.by_name)
        self.cells = [None]
        above: PrefixCell | None = None
        for name in self.names:
            cell = self.by_name[name]
            while above is not None and not name.startswith(above.name):
                above = above.parent
            cell.parent = above
            cell.inherit()
            self.cells.append(cell)
            above = cell
