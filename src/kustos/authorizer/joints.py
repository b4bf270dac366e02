"""Several cells that speak of one name: which of them decides, in the order of Kafka's scan."""

from collections.abc import Sequence

from kustos.acl import WILDCARD, AclBinding, PatternType
from kustos.authorizer.cells import EVERY_ALLOW, HOSTED, Cell, EntryOrder, entry_order
from kustos.authorizer.spi import Decision


class Joint(Cell):
    """The cells of one node that speak of a name, in the order of Kafka's scan: the first that denies
    decides, else the last that allows."""

    __slots__ = ("_cells",)

    def __init__(self, cells: Sequence[Cell]) -> None:
        mask = 0
        for cell in cells:
            mask |= cell.mask
        super().__init__(mask)
        self._cells = cells

    def at(self, host: str) -> Cell:
        """Return what is left of the cells for a client host."""
        return Joint([cell.at(host) for cell in self._cells]) if self.mask & HOSTED else self

    def decide(self, bit: int) -> Decision:
        """Return the decision behind a bit that is set in the mask of a cell without HOSTED."""
        for cell in reversed(self._cells) if bit <= EVERY_ALLOW else self._cells:
            if cell.mask & bit:
                return cell.sole or cell.decide(bit)
        return super().decide(bit)


class Pair(Cell):
    """What is said to one principal of a name, and what is said to everybody."""

    __slots__ = ("_every", "_name", "_own")

    def __init__(self, own: Cell, every: Cell, name: str) -> None:
        self.mask = own.mask | every.mask
        self.sole = None
        self._decisions = None
        self._own = own
        self._every = every
        self._name = name

    def at(self, host: str) -> Cell:
        """Return what is left of both for a client host."""
        return Pair(self._own.at(host), self._every.at(host), self._name) if self.mask & HOSTED else self

    def decide(self, bit: int) -> Decision:
        """Return the decision behind a bit that is set in the mask."""
        own, every = self._own, self._every
        if not every.mask & bit:
            return own.sole or own.decide(bit)
        if not own.mask & bit:
            return every.sole or every.decide(bit)
        return super().decide(bit)

    def _decision(self, bit: int) -> Decision:
        return first_of(self._own.decide(bit), self._every.decide(bit), self._name)


def visit_order(binding: AclBinding, name: str) -> tuple[bool, int, int, EntryOrder]:
    """Return when Kafka's scan for a name visits a matching binding: the name's own section, then `*`."""
    pattern = binding.pattern
    in_wildcard_section = (
        pattern.name == WILDCARD and pattern.pattern_type is PatternType.LITERAL and name != WILDCARD
    )
    return in_wildcard_section, -len(pattern.name), pattern.pattern_type, entry_order(binding)


def first_of(own: Decision, every: Decision, name: str) -> Decision:
    """Return which of two equal decisions Kafka's scan ends with: the first DENY, the last ALLOW."""
    mine, theirs = own.rule.binding, every.rule.binding
    if mine is None or theirs is None:
        return own
    is_mine_first = visit_order(mine, name) < visit_order(theirs, name)
    return own if is_mine_first is not own.allowed else every
