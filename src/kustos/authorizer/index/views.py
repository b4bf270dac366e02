"""The index for one client host: cells by name, with hosts already resolved.

A session creates a view for one version of the index and drops it with that version. So all values that do
not depend on the name are computed once, such as the cell of `*` for the host.
"""

from collections.abc import Callable, Sequence

from kustos.acl import WILDCARD, ResourceType
from kustos.authorizer.index.cells import HOSTED, NOTHING, Cell
from kustos.authorizer.index.index import AclIndex, PrincipalNode
from kustos.authorizer.index.joints import Joint, LiteralAndPrefix, Pair, Together
from kustos.authorizer.index.prefixes import LiteralCell, PrefixCell

Find = Callable[[str], Cell]
"""Returns a cell of all entries on a name for one host; its mask is empty without entries."""


class NodeView:
    """A node for one client host."""

    __slots__ = ("_host", "_literals", "_prefixes", "_stamp", "_wildcard")

    def __init__(self, node: PrincipalNode, host: str) -> None:
        self._host = host
        self._literals = node.literals
        self._prefixes = node.prefixes
        self._stamp = node.prefixes.stamp
        wildcard = NOTHING if node.wildcard is None else node.wildcard.at(host)
        self._wildcard = None if wildcard is NOTHING else wildcard

    def find(self, name: str) -> Cell:
        """Return a cell of all entries on a name for the host, `NOTHING` without entries."""
        literal = self._literals.get(name)
        if literal is not None and literal.stamp == self._stamp:
            prefix = literal.prefix
        else:
            prefix = self._longest(name, literal)
        host = self._host
        if self._wildcard is not None:
            return self._find_with_wildcard(name, literal, prefix, self._wildcard)
        if literal is None or prefix is None:
            only = literal or prefix or NOTHING
            return only.at(host) if only.mask & HOSTED else only
        longest = prefix.at(host) if prefix.mask & HOSTED else prefix
        exact = literal.at(host) if literal.mask & HOSTED else literal
        return exact if longest is NOTHING else LiteralAndPrefix(exact, longest)

    def _longest(self, name: str, literal: LiteralCell | None) -> PrefixCell | None:
        prefix = self._prefixes.longest(name) if self._prefixes.by_name else None
        if literal is not None:
            literal.prefix = prefix
            literal.stamp = self._stamp
        return prefix

    def _find_with_wildcard(
        self, name: str, literal: Cell | None, prefix: Cell | None, wildcard: Cell
    ) -> Cell:
        cells: list[Cell | None] = [literal, prefix, wildcard]
        if name[:1] == WILDCARD:
            # Kafka's scan for `*` skips literals that are a proper prefix of the name
            cells = [wildcard if name == WILDCARD else literal, prefix]
        views = [view for cell in cells if cell is not None and (view := cell.at(self._host)) is not NOTHING]
        mask = 0
        for view in views:
            mask |= view.mask
        return Joint(views, mask) if views else NOTHING


def find_in_all(nodes: Sequence[PrincipalNode], host: str) -> Find | None:
    """Return a function that finds the cells of these nodes on a host, None if there are no nodes."""
    if not nodes:
        return None
    finds = [NodeView(node, host).find for node in nodes]
    if len(finds) == 1:
        return finds[0]
    if len(finds) > 2:
        return lambda name: together([find_one(name) for find_one in finds], name)
    find_first, find_second = finds

    def find(name: str) -> Cell:
        first, second = find_first(name), find_second(name)
        if first is NOTHING or second is NOTHING:
            return second if first is NOTHING else first
        return Pair(first, second, name)

    return find


def together(cells: Sequence[Cell], name: str) -> Cell:
    """Return one cell for several cells of a name."""
    found = [cell for cell in cells if cell is not NOTHING]
    if len(found) > 1:
        return Together(found, name)
    return found[0] if found else NOTHING


def find_or_everything(find: Find | None, index: AclIndex, kind: ResourceType, everything: Cell) -> Find:
    """Return a function that finds cells, and `everything` for a name that no ACL of any principal names."""

    def find_covered(name: str) -> Cell:
        cell = NOTHING if find is None else find(name)
        return everything if cell is NOTHING and not index.covers(kind, name) else cell

    return find_covered
