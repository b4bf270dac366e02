"""The prefixes of one principal on one resource type, found by binary search.

In sorted order, a name's longest prefix is the greatest entry not above it, or one of that entry's own
prefixes; so a search is one bisection and a few steps along the parents, for any number of lengths. A change
affects only the prefixes that begin with the changed one.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kustos.acl import AclBinding
from kustos.authorizer.index.cells import EVERY_ALLOW, NOTHING, Cell, PatternCell, view_of
from kustos.authorizer.spi.values import Decision


class PrefixCell(PatternCell):
    """A cell of a PREFIXED pattern, linked to the next shorter prefix of its name.

    `mask` is the union of its own bits and the bits of all shorter prefixes; `own_mask` has only its own
    bits.
    """

    __slots__ = ("_own_mask", "name", "parent")

    def __init__(self, binding: AclBinding) -> None:
        super().__init__(binding)
        self._own_mask = self.mask
        self.name = binding.pattern.name
        self.parent: PrefixCell | None = None

    @property
    def own_mask(self) -> int:
        """The bits of the cell's own bindings."""
        return self._own_mask

    def _grow(self, mask: int) -> None:
        self._own_mask |= mask
        self.mask |= mask

    def _shrink(self, mask: int) -> None:
        self._own_mask = mask
        self.inherit()

    def inherit(self) -> None:
        """Inherit the bits of the next shorter prefix, which must have inherited its own before."""
        self.mask = self._own_mask if self.parent is None else self._own_mask | self.parent.mask
        self.forget()

    def chain(self) -> Iterator["PrefixCell"]:
        """Yield this cell and the cells of all shorter prefixes, longest first (Kafka's order)."""
        cell: PrefixCell | None = self
        while cell is not None:
            yield cell
            cell = cell.parent

    def _is_single(self) -> bool:
        return self.parent is None and super()._is_single()

    def _decision(self, bit: int) -> Decision:
        having = [cell for cell in self.chain() if cell.own_mask & bit]
        cell = having[-1] if bit <= EVERY_ALLOW else having[0]
        return super(PrefixCell, cell)._decision(bit)

    def _view(self, host: str) -> Cell:
        view: PrefixView | None = None
        # shortest first, without recursion: names can have thousands of characters, so chains can be as long
        for cell in reversed(list(self.chain())):
            own = view_of(cell.bindings_at(host))
            if own is not NOTHING:
                view = PrefixView(own, view)
        return view or NOTHING


class LiteralCell(PatternCell):
    """A cell of a LITERAL pattern, which caches the longest prefix of its name.

    `prefix` is valid while `stamp` equals the stamp of the node's prefix table: a search is expensive, and
    changes of prefixes are far less frequent than questions.
    """

    __slots__ = ("prefix", "stamp")

    def __init__(self, binding: AclBinding) -> None:
        super().__init__(binding)
        self.prefix: PrefixCell | None = None
        self.stamp = -1


class PrefixView(Cell):
    """The part of a prefix and all shorter ones that applies to one client host."""

    __slots__ = ("_own", "_shorter")

    def __init__(self, own: Cell, shorter: "PrefixView | None") -> None:
        super().__init__(own.mask if shorter is None else own.mask | shorter.mask)
        self._own = own
        self._shorter = shorter

    def _decision(self, bit: int) -> Decision:
        found: Cell | None = None
        view: PrefixView | None = self
        while view is not None and (found is None or bit <= EVERY_ALLOW):
            found = view._own if view._own.mask & bit else found
            view = view._shorter
        return (found or NOTHING).decide(bit)


class PrefixTable:
    """PREFIXED cells by name.

    `names` are sorted, and `cells[i]` is the cell of `names[i - 1]`: so a search begins at
    `cells[bisect_right(names, name)]`, which is None if every name is greater. The first search creates the
    links, so bulk loading sorts only once; until then both lists are empty. The list objects never change.
    `stamp` changes whenever the longest prefix of a name may change.
    """

    __slots__ = ("by_name", "cells", "names", "stamp")

    def __init__(self) -> None:
        self.by_name: dict[str, PrefixCell] = {}
        self.names: list[str] = []
        self.cells: list[PrefixCell | None] = []
        self.stamp = 0

    def linked(self) -> tuple[list[str], list[PrefixCell | None]]:
        """Return `names` and `cells`, linked for a search; `names` is empty without prefixes."""
        if self.by_name and not self.cells:
            self.link()
        return self.names, self.cells

    def longest(self, name: str) -> PrefixCell | None:
        """Return the cell of the longest prefix of a name."""
        if not self.cells:
            self.link()
        cell = self.cells[bisect_right(self.names, name)]
        while cell is not None and not name.startswith(cell.name):
            cell = cell.parent
        return cell

    def add(self, binding: AclBinding) -> None:
        """Add a binding; raise `DuplicateAclError` if it exists."""
        name = binding.pattern.name
        cell = self.by_name.get(name)
        if cell is not None:
            cell.add(binding)
            if self.cells:
                self._relink(bisect_left(self.names, name), cell, cell, cell)
            return
        fresh = PrefixCell(binding)
        if self.cells:
            fresh.parent = self.longest(name)
            position = bisect_left(self.names, name)
            self.names.insert(position, name)
            self.cells.insert(position + 1, fresh)
            fresh.inherit()
            self._relink(position, fresh, fresh.parent, fresh)
        self.by_name[name] = fresh
        self.stamp += 1

    def remove(self, binding: AclBinding) -> None:
        """Remove an existing binding."""
        name = binding.pattern.name
        cell = self.by_name[name]
        is_empty = cell.remove(binding)
        if is_empty:
            del self.by_name[name]
            self.stamp += 1
        if not self.cells:
            return
        position = bisect_left(self.names, name)
        if is_empty:
            self._relink(position, cell, cell, cell.parent)
            del self.names[position], self.cells[position + 1]
        else:
            self._relink(position, cell, cell, cell)

    def _relink(
        self, position: int, changed: PrefixCell, old: PrefixCell | None, new: PrefixCell | None
    ) -> None:
        """Update the prefixes that begin with the changed one: they inherit from `new` instead of `old`."""
        for index in range(position + 1, len(self.names)):
            cell = self.by_name[self.names[index]]
            if not cell.name.startswith(changed.name):
                return
            if cell.parent is old:
                cell.parent = new
            cell.inherit()

    def link(self) -> None:
        """Sort the names and find each one's next shorter prefix."""
        self.cells.append(None)
        above: PrefixCell | None = None
        for name in sorted(self.by_name):
            cell = self.by_name[name]
            # a copy places the names that a bisection compares next to each other, with fewer cache misses
            cell.name = name[:-1] + name[-1:]
            self.names.append(cell.name)
            while above is not None and not name.startswith(above.name):
                above = above.parent
            cell.parent = above
            cell.inherit()
            self.cells.append(cell)
            above = cell
