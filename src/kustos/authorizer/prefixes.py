"""The prefixes of one principal on one resource type, found by binary search.

Sorted, a name's longest prefix is the greatest entry not above it, or one of that entry's own prefixes;
so a search is one bisection and a short climb along the parents, however many lengths there are. A
change touches the prefixes that begin with the changed one and no other.
"""

from bisect import bisect_left, bisect_right

from kustos.acl import AclBinding
from kustos.authorizer.cells import PrefixCell


class PrefixTable:
    """PREFIXED cells by name; links are made at the first search, so that bulk loading only sorts once."""

    __slots__ = ("_cells", "_linked", "_names", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, PrefixCell] = {}
        self._names: list[str] = []
        self._cells: list[PrefixCell] = []
        self._linked = True

    def longest(self, name: str) -> PrefixCell | None:
        """Return the cell of the longest prefix of a name."""
        if not self._linked:
            self._link()
        position = bisect_right(self._names, name)
        if not position:
            return None
        cell: PrefixCell | None = self._cells[position - 1]
        while cell is not None and not name.startswith(cell.name):
            cell = cell.parent
        return cell

    def add(self, name: str, binding: AclBinding) -> None:
        """Take in a binding that is not there yet."""
        cell = self.by_name.get(name)
        if cell is not None:
            cell.with_binding(binding)
            if self._linked:
                self._relink(bisect_left(self._names, name), cell, cell, cell)
            return
        fresh = PrefixCell(name, binding)
        if not self.by_name:
            self._linked = False
        if self._linked:
            fresh.parent = self.longest(name)
            position = bisect_left(self._names, name)
            self._names.insert(position, name)
            self._cells.insert(position, fresh)
            fresh.inherit()
            self._relink(position, fresh, fresh.parent, fresh)
        self.by_name[name] = fresh

    def remove(self, name: str, binding: AclBinding) -> None:
        """Give up a binding that is there."""
        cell = self.by_name[name]
        cell.without_binding(binding)
        if not cell.bindings:
            del self.by_name[name]
        if not self._linked:
            return
        position = bisect_left(self._names, name)
        if cell.bindings:
            self._relink(position, cell, cell, cell)
        else:
            self._relink(position, cell, cell, cell.parent)
            del self._names[position], self._cells[position]

    def _relink(
        self, position: int, changed: PrefixCell, old: PrefixCell | None, new: PrefixCell | None
    ) -> None:
        """Let the prefixes that begin with the changed one inherit again, `new` instead of `old`."""
        for index in range(position + 1, len(self._cells)):
            cell = self._cells[index]
            if not cell.name.startswith(changed.name):
                return
            if cell.parent is old:
                cell.parent = new
            cell.inherit()

    def _link(self) -> None:
        self._names = sorted(self.by_name)
        self._cells = [self.by_name[name] for name in self._names]
        above: PrefixCell | None = None
        for cell in self._cells:
            while above is not None and not cell.name.startswith(above.name):
                above = above.parent
            cell.parent = above
            cell.inherit()
            above = cell
        self._linked = True
