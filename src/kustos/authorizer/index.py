"""The compiled index: principal, then resource type, then pattern.

Kafka walks a tree sorted by resource and looks at every entry on every matching pattern, whoever it is
for. Here a question touches only what speaks of its principal (and of `User:*`): one dictionary look-up
for the literal name, one bisection for the prefixes, one cell for the wildcard. A change touches one
principal's node on one resource type.
"""

from bisect import bisect_right

from kustos.acl import EVERY_PRINCIPAL, WILDCARD, AclBinding, AclOperation, PatternType, ResourceType
from kustos.authorizer.cells import ALLOWS, DECIDES, DENIES, HOSTED, Cell, EntryOrder, PrefixCell, entry_order
from kustos.authorizer.coverage import Coverage
from kustos.authorizer.errors import DuplicateAclError, InvalidAclError
from kustos.authorizer.prefixes import PrefixTable
from kustos.authorizer.spi import Decision


class Node:
    """All that is said of one principal on one resource type.

    `stamp` is the version of the index at the node's last change.
    """

    __slots__ = ("literals", "prefixes", "stamp", "wildcard")

    def __init__(self) -> None:
        self.literals: dict[str, Cell] = {}
        self.prefixes = PrefixTable()
        self.wildcard: Cell | None = None
        self.stamp = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return not self.literals and self.has_only_literals

    @property
    def has_only_literals(self) -> bool:
        """Whether neither a prefix nor `*` is spoken of."""
        return not self.prefixes.by_name and self.wildcard is None

    def cell_of(self, binding: AclBinding) -> Cell | None:
        """Return the cell in which a binding lives or would live."""
        name = binding.pattern.name
        if binding.pattern.pattern_type is not PatternType.LITERAL:
            return self.prefixes.by_name.get(name)
        return self.wildcard if name == WILDCARD else self.literals.get(name)

    def add(self, binding: AclBinding) -> None:
        """Take in a binding; raise `DuplicateAclError` if it is there."""
        name = binding.pattern.name
        cell = self.cell_of(binding)
        if cell is not None and cell.holds(binding):
            raise DuplicateAclError(f"ACL `{binding.audit_text()}` is there already, under another id")
        if binding.pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.add(name, binding)
        elif cell is not None:
            cell.with_binding(binding)
        elif name == WILDCARD:
            self.wildcard = Cell(binding)
        else:
            self.literals[name] = Cell(binding)

    def remove(self, binding: AclBinding) -> None:
        """Give up a binding that is there."""
        name = binding.pattern.name
        if binding.pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.remove(name, binding)
            return
        cell = self.wildcard if name == WILDCARD else self.literals[name]
        if cell is None:
            raise KeyError(name)
        cell.without_binding(binding)
        if not cell.bindings:
            if name == WILDCARD:
                self.wildcard = None
            else:
                del self.literals[name]

    def find(self, name: str, operation: AclOperation, host: str) -> Decision | None:
        """Return what this node alone decides, None if nothing matches."""
        literal = self.literals.get(name)
        wildcard = self.wildcard
        prefix: PrefixCell | None = None
        prefixes = self.prefixes
        if prefixes.cells:
            # `longest`, written out: this is the hottest line of all
            prefix = prefixes.cells[bisect_right(prefixes.names, name)]
            while prefix is not None and not name.startswith(prefix.name):
                prefix = prefix.parent
        elif prefixes.by_name:
            prefix = prefixes.longest(name)
        if wildcard is not None and name[:1] == WILDCARD:
            # Kafka's scan for `*` skips literals that are a true prefix of the name
            literal = wildcard if name == WILDCARD else literal
            wildcard = None
        decides = DECIDES[operation]
        if wildcard is None and (literal is None or prefix is None):
            # one cell at most has a say, and mostly it has one thing to say
            only = literal or prefix
            if only is None or not only.mask & decides:
                return None
            if only.sole is not None:
                return only.sole
            if not only.mask & HOSTED:
                denied = DENIES[operation]
                return only.decide(denied if only.mask & denied else ALLOWS[operation])
        mask = 0 if literal is None else literal.mask
        if prefix is not None:
            mask |= prefix.mask
        if wildcard is not None:
            mask |= wildcard.mask
        if not mask & decides:
            return None
        if mask & HOSTED:
            views = [None if cell is None else cell.at(host) for cell in (literal, prefix, wildcard)]
            return decide_in_order(views[0], views[1], views[2], operation)
        return decide_in_order(literal, prefix, wildcard, operation)


def decide_in_order(
    literal: Cell | None, prefix: Cell | None, wildcard: Cell | None, operation: AclOperation
) -> Decision | None:
    """Return the first DENY of these, else their last ALLOW; none of them has HOSTED."""
    denied, allowed = DENIES[operation], ALLOWS[operation]
    if literal is not None and literal.mask & denied:
        return literal.decide(denied)
    if prefix is not None and prefix.mask & denied:
        return prefix.decide(denied)
    if wildcard is not None and wildcard.mask & (denied | allowed):
        return wildcard.decide(denied if wildcard.mask & denied else allowed)
    if prefix is not None and prefix.mask & allowed:
        return prefix.decide(allowed)
    if literal is not None and literal.mask & allowed:
        return literal.decide(allowed)
    return None


def visit_order(binding: AclBinding, name: str) -> tuple[bool, int, int, EntryOrder]:
    """Return when Kafka's scan for a name visits a matching binding: the name's own section, then `*`."""
    pattern = binding.pattern
    in_wildcard_section = (
        pattern.name == WILDCARD and pattern.pattern_type is PatternType.LITERAL and name != WILDCARD
    )
    return in_wildcard_section, -len(pattern.name), pattern.pattern_type, entry_order(binding)


def first_of(own: Decision, every: Decision, name: str) -> Decision:
    """Return which of two nodes' decisions Kafka's scan ends with: DENY first, then by visit order."""
    if own.result is not every.result:
        return every if own.allowed else own
    mine, theirs = own.rule.binding, every.rule.binding
    if mine is None or theirs is None:
        return own
    is_mine_first = visit_order(mine, name) < visit_order(theirs, name)
    return own if is_mine_first is not own.allowed else every


class AclIndex:
    """Every node and, where default-allow will ask for it, the coverage of every resource type."""

    __slots__ = ("_coverage", "_nodes", "counts_coverage", "every")

    def __init__(self, *, counts_coverage: bool) -> None:
        self.counts_coverage = counts_coverage
        self._nodes: dict[str, dict[ResourceType, Node]] = {}
        self._coverage: dict[ResourceType, Coverage] = {}
        self.every: dict[ResourceType, Node] = {}
        self._nodes[EVERY_PRINCIPAL] = self.every

    def nodes(self, principal: str) -> dict[ResourceType, Node]:
        """Return a principal's nodes by resource type; to be read only."""
        return self._nodes.get(principal, {})

    def covers(self, resource_type: ResourceType, name: str) -> bool:
        """Return whether any entry, whosever, names the resource."""
        coverage = self._coverage.get(resource_type)
        return coverage is not None and coverage.covers(name)

    def add(self, binding: AclBinding, stamp: int) -> None:
        """Take in a binding; raise `DuplicateAclError` or `InvalidAclError` and change nothing."""
        principal = binding.entry.principal
        resource_type = binding.pattern.resource_type
        if ":" not in principal:
            raise InvalidAclError(f"principal `{principal}` of an ACL has no type, write it as `User:name`")
        by_type = self._nodes.setdefault(principal, {})
        node = by_type.get(resource_type)
        if node is None:
            node = by_type[resource_type] = Node()
        node.add(binding)
        node.stamp = stamp
        if self.counts_coverage:
            self._coverage.setdefault(resource_type, Coverage()).count(binding, 1)

    def remove(self, binding: AclBinding, stamp: int) -> None:
        """Give up a binding that is there."""
        principal = binding.entry.principal
        resource_type = binding.pattern.resource_type
        by_type = self._nodes[principal]
        node = by_type[resource_type]
        node.remove(binding)
        node.stamp = stamp
        if self.counts_coverage:
            self._coverage[resource_type].count(binding, -1)
        if node.is_empty:
            del by_type[resource_type]
            if not by_type and by_type is not self.every:
                del self._nodes[principal]
