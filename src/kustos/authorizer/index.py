"""The compiled index: principal, then resource type, then pattern.

Kafka walks a tree sorted by resource and looks at every entry on every matching pattern, whoever it is
for. Here a question touches only what speaks of its principal (and of `User:*`): one dictionary look-up
for the literal name, one bisection for the prefixes, one cell for the wildcard. A change touches one
principal's node on one resource type.

Who reads the index as a whole walks `AclIndex.nodes` and `every`, and of each node `literals`,
`prefixes.by_name` and `wildcard`; their cells tell `own_mask` (with HOSTED it may say too much, and the
hosts have the word) and `bindings`.
"""

from collections.abc import Iterable

from kustos.acl import EVERY_PRINCIPAL, WILDCARD, AclBinding, AclOperation, PatternType, ResourceType
from kustos.authorizer.cells import PatternCell
from kustos.authorizer.coverage import Coverage
from kustos.authorizer.errors import InvalidAclError
from kustos.authorizer.prefixes import LiteralCell, PrefixTable
from kustos.authorizer.spi import Decision


class Node:
    """All that is said of one principal on one resource type.

    `stamp` is the version of the index at the node's last change. `by_type` is the memory of
    `decide_by_type`.
    """

    __slots__ = ("by_type", "literals", "prefixes", "stamp", "wildcard")

    def __init__(self) -> None:
        self.literals: dict[str, LiteralCell] = {}
        self.prefixes = PrefixTable()
        self.wildcard: PatternCell | None = None
        self.stamp = 0
        self.by_type: dict[tuple[AclOperation, str], tuple[tuple[int, int], Decision | None]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said."""
        return not self.literals and self.has_only_literals

    @property
    def has_only_literals(self) -> bool:
        """Whether neither a prefix nor `*` is spoken of."""
        return not self.prefixes.by_name and self.wildcard is None

    def add(self, binding: AclBinding) -> None:
        """Take in a binding; raise `DuplicateAclError` if it is there."""
        pattern = binding.pattern
        if pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.add(binding)
            return
        name = pattern.name
        cell = self.wildcard if name == WILDCARD else self.literals.get(name)
        if cell is not None:
            cell.add(binding)
        elif name == WILDCARD:
            self.wildcard = PatternCell(binding)
        else:
            self.literals[name] = LiteralCell(binding)

    def remove(self, binding: AclBinding) -> None:
        """Give up a binding that is there."""
        pattern = binding.pattern
        if pattern.pattern_type is not PatternType.LITERAL:
            self.prefixes.remove(binding)
            return
        name = pattern.name
        cell = self.wildcard if name == WILDCARD else self.literals[name]
        if cell is None:
            raise KeyError(name)
        if not cell.remove(binding):
            return
        if name == WILDCARD:
            self.wildcard = None
        else:
            del self.literals[name]


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

    def load(self, bindings: Iterable[AclBinding], stamp: int) -> None:
        """Take in many bindings; raise what `add` raises, with the index no longer to be used."""
        # one principal's entries are laid down together: a cold decision mostly waits for memory
        groups: dict[str, list[AclBinding]] = {}
        for binding in bindings:
            principal = binding.entry.principal
            try:
                groups[principal].append(binding)
            except KeyError:
                groups[principal] = [binding]
        while groups:
            # freed one by one: dropped at once they would stop every other thread
            for binding in groups.popitem()[1]:
                self.add(binding, stamp)

    def add(self, binding: AclBinding, stamp: int) -> None:
        """Take in a binding; raise `DuplicateAclError` or `InvalidAclError` and change nothing."""
        principal = binding.entry.principal
        resource_type = binding.pattern.resource_type
        try:
            node = self._nodes[principal][resource_type]
        except KeyError:
            node = self._new_node(principal, resource_type)
        node.add(binding)
        node.stamp = stamp
        if self.counts_coverage:
            self._count(binding, 1)

    def _new_node(self, principal: str, resource_type: ResourceType) -> Node:
        if ":" not in principal:
            raise InvalidAclError(f"principal `{principal}` of an ACL has no type, write it as `User:name`")
        node = self._nodes.setdefault(principal, {})[resource_type] = Node()
        return node

    def _count(self, binding: AclBinding, step: int) -> None:
        self._coverage.setdefault(binding.pattern.resource_type, Coverage()).count(binding, step)

    def remove(self, binding: AclBinding, stamp: int) -> None:
        """Give up a binding that is there."""
        principal = binding.entry.principal
        resource_type = binding.pattern.resource_type
        by_type = self._nodes[principal]
        node = by_type[resource_type]
        node.remove(binding)
        node.stamp = stamp
        if self.counts_coverage:
            self._count(binding, -1)
        if not node.literals and node.is_empty:
            del by_type[resource_type]
            if not by_type and by_type is not self.every:
                del self._nodes[principal]
